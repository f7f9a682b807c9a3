// SPDX-License-Identifier: GPL-2.0-only
/*
 * MOV (but of segment and control registers), MOVZX, MOVSX, MOVSXD, LEA, CMOVcc, SETcc, BSWAP, XLAT,
 * sign extensions of the accumulator, flag instructions, NOPs.
 */
#include "soft/ops.h"

#define MOV_FORMS(bits, type)							\
static int op_mov_rr_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, get##bits(c, op->src));				\
	SOFT_NEXT(c, op);							\
}										\
static int op_mov_ri_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, (type)op->imm);					\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_mov_rm_##type)							\
{										\
	type v;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, v, ea, type);						\
	set##bits(c, op->dst, v);						\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_mov_mr_##type)							\
{										\
	MEM_EA(c, op, ea)							\
	MEM_STORE(c, op, ea, get##bits(c, op->src), type);			\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_mov_mi_##type)							\
{										\
	MEM_EA(c, op, ea)							\
	MEM_STORE(c, op, ea, op->imm, type);					\
	SOFT_NEXT(c, op);							\
}										\
/* The address is the immediate: 64 bits of it, which a displacement does not hold. */ \
static int op_mov_moffs_load_##type(struct soft_cpu *c, const struct soft_op *op) \
{										\
	type v;									\
	SOFT_LOAD(c, op, v, soft_ea_slow(c, op, op->imm), type);		\
	set##bits(c, 0, v);							\
	SOFT_NEXT(c, op);							\
}										\
static int op_mov_moffs_store_##type(struct soft_cpu *c, const struct soft_op *op) \
{										\
	SOFT_STORE(c, op, soft_ea_slow(c, op, op->imm), get##bits(c, 0), type);	\
	SOFT_NEXT(c, op);							\
}

MOV_FORMS(8, u8)
MOV_FORMS(16, u16)
MOV_FORMS(32, u32)
MOV_FORMS(64, u64)

#define ROW(form)	{ op_mov_##form##_u8, op_mov_##form##_u16, op_mov_##form##_u32, op_mov_##form##_u64 }
static const soft_fn mov_rr[4] = ROW(rr), mov_ri[4] = ROW(ri), mov_rm[4] = ROW(rm), mov_mr[4] = ROW(mr);
static const soft_fn mov_mi[4] = ROW(mi), moffs_load[4] = ROW(moffs_load), moffs_store[4] = ROW(moffs_store);

/* Extensions: from, signed or not, to. The conversions of C do the work. */
#define EXT_FORMS(name, from_bits, from, ext, to_bits, to)			\
static int op_##name##_r_##from##_##to(struct soft_cpu *c, const struct soft_op *op) \
{										\
	set##to_bits(c, op->dst, (to)(ext)get##from_bits(c, op->src));		\
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_##name##_m_##from##_##to)					\
{										\
	from v;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, v, ea, from);						\
	set##to_bits(c, op->dst, (to)(ext)v);					\
	SOFT_NEXT(c, op);							\
}
typedef int8_t s8;
typedef int16_t s16;
EXT_FORMS(movzx, 8, u8, u8, 16, u16)
EXT_FORMS(movzx, 8, u8, u8, 32, u32)
EXT_FORMS(movzx, 8, u8, u8, 64, u64)
EXT_FORMS(movzx, 16, u16, u16, 32, u32)
EXT_FORMS(movzx, 16, u16, u16, 64, u64)
EXT_FORMS(movsx, 8, u8, s8, 16, u16)
EXT_FORMS(movsx, 8, u8, s8, 32, u32)
EXT_FORMS(movsx, 8, u8, s8, 64, u64)
EXT_FORMS(movsx, 16, u16, s16, 32, u32)
EXT_FORMS(movsx, 16, u16, s16, 64, u64)
EXT_FORMS(movsx, 32, u32, s32, 64, u64)

static bool soft_decode_extend(struct soft_decode *d, struct soft_op *op, bool is_signed)
{
	bool mem = soft_is_mem(d, 1);
	u32 from = d->arg[1].size, to = d->arg[0].size;

	if (from >= to) {	/* MOVSXD r32, r/m32 and r16, r/m16 (which Zydis gives 32 bits): a plain move */
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		if (mem)
			soft_decode_mem(d, op, 1);
		else
			op->src = soft_decode_reg(d->arg[1].reg.value);
		op->fn = (mem ? mov_rm : mov_rr)[soft_size_index(to)];
		d->accesses = mem;
		return true;
	}
	op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (mem) {
		soft_decode_mem(d, op, 1);
		d->accesses = 1;
	} else {
		op->src = soft_decode_reg(d->arg[1].reg.value);
	}
#define PICK(name, f, t)	op->fn = mem ? op_##name##_m_##f##_##t : op_##name##_r_##f##_##t
	if (is_signed) {
		if (from == 8 && to == 16)
			PICK(movsx, u8, u16);
		else if (from == 8 && to == 32)
			PICK(movsx, u8, u32);
		else if (from == 8)
			PICK(movsx, u8, u64);
		else if (from == 16 && to == 32)
			PICK(movsx, u16, u32);
		else if (from == 16)
			PICK(movsx, u16, u64);
		else
			PICK(movsx, u32, u64);
	} else {
		if (from == 8 && to == 16)
			PICK(movzx, u8, u16);
		else if (from == 8 && to == 32)
			PICK(movzx, u8, u32);
		else if (from == 8)
			PICK(movzx, u8, u64);
		else if (to == 32)
			PICK(movzx, u16, u32);
		else
			PICK(movzx, u16, u64);
	}
#undef PICK
	return true;
}

/* LEA makes an address of the operand's size, without a segment's base. */
static u64 soft_lea(const struct soft_cpu *c, const struct soft_op *op)
{
	u64 ea = c->gpr[op->base] + (c->gpr[op->index] << op->shift) + (u64)(s64)op->disp;

	if (op->amode & AMODE_RIP)
		ea += op->pc + (u64)op->len;
	if (op->amode & AMODE_32)
		return (u32)ea;
	return op->amode & AMODE_16 ? (u16)ea : ea;
}
static int op_lea_plain(struct soft_cpu *c, const struct soft_op *op)
{
	c->gpr[op->dst] = c->gpr[op->base] + (c->gpr[op->index] << op->shift) + (u64)(s64)op->disp;
	SOFT_NEXT(c, op);
}
static int op_lea_u64(struct soft_cpu *c, const struct soft_op *op)
{
	set64(c, op->dst, soft_lea(c, op));
	SOFT_NEXT(c, op);
}
static int op_lea_u32(struct soft_cpu *c, const struct soft_op *op)
{
	set32(c, op->dst, (u32)soft_lea(c, op));
	SOFT_NEXT(c, op);
}
static int op_lea_u16(struct soft_cpu *c, const struct soft_op *op)
{
	set16(c, op->dst, (u16)soft_lea(c, op));
	SOFT_NEXT(c, op);
}

/* CMOVcc reads its source even if it does not move; with 32-bit operands the upper half is cleared in any case. */
#define CMOV_FORMS(bits, type)							\
static int op_cmov_r_##type(struct soft_cpu *c, const struct soft_op *op)	\
{										\
	set##bits(c, op->dst, soft_condition(c, op->aux) ? get##bits(c, op->src) : get##bits(c, op->dst)); \
	SOFT_NEXT(c, op);							\
}										\
SOFT_OP_MEM(op_cmov_m_##type)							\
{										\
	type v;									\
	MEM_EA(c, op, ea)							\
	MEM_LOAD(c, op, v, ea, type);						\
	set##bits(c, op->dst, soft_condition(c, op->aux) ? v : get##bits(c, op->dst)); \
	SOFT_NEXT(c, op);							\
}
CMOV_FORMS(16, u16)
CMOV_FORMS(32, u32)
CMOV_FORMS(64, u64)

static int op_setcc_r(struct soft_cpu *c, const struct soft_op *op)
{
	set8(c, op->dst, soft_condition(c, op->aux));
	SOFT_NEXT(c, op);
}
SOFT_OP_MEM(op_setcc_m)
{
	MEM_EA(c, op, ea)
	MEM_STORE(c, op, ea, soft_condition(c, op->aux), u8);
	SOFT_NEXT(c, op);
}

static int op_bswap_u16(struct soft_cpu *c, const struct soft_op *op)
{
	set16(c, op->dst, 0);	/* undefined; what processors do */
	SOFT_NEXT(c, op);
}
static int op_bswap_u32(struct soft_cpu *c, const struct soft_op *op)
{
	set32(c, op->dst, __builtin_bswap32(get32(c, op->dst)));
	SOFT_NEXT(c, op);
}
static int op_bswap_u64(struct soft_cpu *c, const struct soft_op *op)
{
	set64(c, op->dst, __builtin_bswap64(get64(c, op->dst)));
	SOFT_NEXT(c, op);
}

static int op_xlat(struct soft_cpu *c, const struct soft_op *op)
{
	u8 v;

	SOFT_LOAD(c, op, v, soft_ea_slow(c, op, c->gpr[X86_RBX] + get8(c, 0)), u8);
	set8(c, 0, v);
	SOFT_NEXT(c, op);
}

static int op_cbw(struct soft_cpu *c, const struct soft_op *op)
{
	set16(c, X86_RAX, (u16)(s16)(s8)get8(c, 0));
	SOFT_NEXT(c, op);
}
static int op_cwde(struct soft_cpu *c, const struct soft_op *op)
{
	set32(c, X86_RAX, (u32)(s32)(s16)get16(c, X86_RAX));
	SOFT_NEXT(c, op);
}
static int op_cdqe(struct soft_cpu *c, const struct soft_op *op)
{
	set64(c, X86_RAX, (u64)(s64)(s32)get32(c, X86_RAX));
	SOFT_NEXT(c, op);
}
static int op_cwd(struct soft_cpu *c, const struct soft_op *op)
{
	set16(c, X86_RDX, (s16)get16(c, X86_RAX) < 0 ? 0xffff : 0);
	SOFT_NEXT(c, op);
}
static int op_cdq(struct soft_cpu *c, const struct soft_op *op)
{
	set32(c, X86_RDX, (s32)get32(c, X86_RAX) < 0 ? ~0u : 0);
	SOFT_NEXT(c, op);
}
static int op_cqo(struct soft_cpu *c, const struct soft_op *op)
{
	set64(c, X86_RDX, (s64)get64(c, X86_RAX) < 0 ? ~0ull : 0);
	SOFT_NEXT(c, op);
}

static int op_lahf(struct soft_cpu *c, const struct soft_op *op)
{
	set8(c, 1, (u8)((c->lo & 0xd5) | 2));
	SOFT_NEXT(c, op);
}
static int op_sahf(struct soft_cpu *c, const struct soft_op *op)
{
	c->lo = (u8)((get8(c, 1) & 0xd5) | 2);
	SOFT_NEXT(c, op);
}
static int op_clc(struct soft_cpu *c, const struct soft_op *op)
{
	c->lo &= (u8)~LO_CF;
	SOFT_NEXT(c, op);
}
static int op_stc(struct soft_cpu *c, const struct soft_op *op)
{
	c->lo |= LO_CF;
	SOFT_NEXT(c, op);
}
static int op_cmc(struct soft_cpu *c, const struct soft_op *op)
{
	c->lo ^= LO_CF;
	SOFT_NEXT(c, op);
}
static int op_cld(struct soft_cpu *c, const struct soft_op *op)
{
	c->sysflags &= ~X86_EFLAGS_DF;
	SOFT_NEXT(c, op);
}
static int op_std(struct soft_cpu *c, const struct soft_op *op)
{
	c->sysflags |= X86_EFLAGS_DF;
	SOFT_NEXT(c, op);
}
static int op_nop(struct soft_cpu *c, const struct soft_op *op)
{
	SOFT_NEXT(c, op);
}

static bool soft_decode_move(struct soft_decode *d, struct soft_op *op)
{
	const ZydisDecodedOperand *a = d->arg, *mem = soft_is_mem(d, 0) ? &a[0] : soft_is_mem(d, 1) ? &a[1] : NULL;
	u32 size;

	/* Segment, control and debug registers are the system's. */
	for (u32 i = 0; i < 2; i++)
		if (soft_is_reg(d, i)) {
			ZydisRegisterClass class = ZydisRegisterGetClass(a[i].reg.value);

			if (class < ZYDIS_REGCLASS_GPR8 || class > ZYDIS_REGCLASS_GPR64)
				return false;
		}
	size = soft_size_index(a[0].size);
	d->accesses = mem != NULL;
	if (mem && mem->mem.disp.has_displacement && mem->mem.disp.value != (s32)mem->mem.disp.value) {
		u32 i = mem == &a[0] ? 0 : 1;

		soft_decode_mem(d, op, i);
		op->imm = (u64)mem->mem.disp.value;
		op->fn = (i ? moffs_load : moffs_store)[size];
	} else if (soft_is_mem(d, 0)) {
		soft_decode_mem(d, op, 0);
		if (soft_is_imm(d, 1)) {
			op->imm = (u64)a[1].imm.value.s;
			op->fn = mov_mi[size];
		} else {
			op->src = soft_decode_reg(a[1].reg.value);
			op->fn = mov_mr[size];
		}
	} else {
		op->dst = soft_decode_reg(a[0].reg.value);
		if (soft_is_imm(d, 1)) {
			op->imm = (u64)a[1].imm.value.s;
			op->fn = mov_ri[size];
		} else if (mem) {
			soft_decode_mem(d, op, 1);
			op->fn = mov_rm[size];
		} else {
			op->src = soft_decode_reg(a[1].reg.value);
			op->fn = mov_rr[size];
		}
	}
	return true;
}

static bool soft_decode_conditional(struct soft_decode *d, struct soft_op *op)
{
	static const soft_fn cmov_r[4] = { NULL, op_cmov_r_u16, op_cmov_r_u32, op_cmov_r_u64 };
	static const soft_fn cmov_m[4] = { NULL, op_cmov_m_u16, op_cmov_m_u32, op_cmov_m_u64 };

	op->aux = d->insn->opcode & 15;
	if (d->insn->meta.category == ZYDIS_CATEGORY_SETCC) {
		if (soft_is_mem(d, 0)) {
			soft_decode_mem(d, op, 0);
			d->accesses = 1;
			op->fn = op_setcc_m;
		} else {
			op->dst = soft_decode_reg(d->arg[0].reg.value);
			op->fn = op_setcc_r;
		}
		return true;
	}
	op->dst = soft_decode_reg(d->arg[0].reg.value);
	if (soft_is_mem(d, 1)) {
		soft_decode_mem(d, op, 1);
		d->accesses = 1;
		op->fn = cmov_m[soft_size_index(d->arg[0].size)];
	} else {
		op->src = soft_decode_reg(d->arg[1].reg.value);
		op->fn = cmov_r[soft_size_index(d->arg[0].size)];
	}
	return true;
}

bool soft_decode_mov(struct soft_decode *d, struct soft_op *op)
{
	static const soft_fn lea[4] = { NULL, op_lea_u16, op_lea_u32, op_lea_u64 };
	static const soft_fn bswap[4] = { NULL, op_bswap_u16, op_bswap_u32, op_bswap_u64 };
	u32 width;

	/* FCMOVcc is x87's. */
	if (d->insn->meta.category == ZYDIS_CATEGORY_SETCC ||
	    (d->insn->meta.category == ZYDIS_CATEGORY_CMOV && d->insn->meta.isa_ext != ZYDIS_ISA_EXT_X87))
		return soft_decode_conditional(d, op);
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return soft_decode_move(d, op);
	case ZYDIS_MNEMONIC_MOVZX:
		return soft_decode_extend(d, op, false);
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return soft_decode_extend(d, op, true);
	case ZYDIS_MNEMONIC_LEA:
		soft_decode_mem(d, op, 1);
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		width = d->arg[0].size;
		op->fn = width == 64 && !(op->amode & ~AMODE_SEG) ? op_lea_plain : lea[soft_size_index(width)];
		return true;
	case ZYDIS_MNEMONIC_BSWAP:
		op->dst = soft_decode_reg(d->arg[0].reg.value);
		op->fn = bswap[soft_size_index(d->arg[0].size)];
		return true;
	case ZYDIS_MNEMONIC_XLAT:
		op->amode = d->insn->address_width == 32 ? AMODE_32 : d->insn->address_width == 16 ? AMODE_16 : 0;
		/* The operands are hidden; a prefix gives the segment. */
		for (u32 i = 0; i < d->insn->operand_count; i++)
			if (d->arg[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    (d->mode != MODE_64 || d->arg[i].mem.segment == ZYDIS_REGISTER_FS ||
			     d->arg[i].mem.segment == ZYDIS_REGISTER_GS))
				op->amode |= (u8)(1 + ZydisRegisterGetId(d->arg[i].mem.segment));
		if (d->mode != MODE_64)
			op->amode |= AMODE_LIN32;
		d->accesses = 1;
		op->fn = op_xlat;
		return true;
#define SIMPLE(mnemonic, function)						\
	case ZYDIS_MNEMONIC_##mnemonic:						\
		op->fn = function;						\
		return true;
	SIMPLE(CBW, op_cbw)
	SIMPLE(CWDE, op_cwde)
	SIMPLE(CDQE, op_cdqe)
	SIMPLE(CWD, op_cwd)
	SIMPLE(CDQ, op_cdq)
	SIMPLE(CQO, op_cqo)
	SIMPLE(LAHF, op_lahf)
	SIMPLE(SAHF, op_sahf)
	SIMPLE(CLC, op_clc)
	SIMPLE(STC, op_stc)
	SIMPLE(CMC, op_cmc)
	SIMPLE(CLD, op_cld)
	SIMPLE(STD, op_std)
	SIMPLE(NOP, op_nop)
	/* Shadow stacks and the like are off: hints of theirs are NOPs. */
	SIMPLE(ENDBR64, op_nop)
	SIMPLE(ENDBR32, op_nop)
	SIMPLE(RDSSPD, op_nop)
	SIMPLE(RDSSPQ, op_nop)
	/* So are those of bound registers and of cache control, which are encoded as NOPs for that. */
	SIMPLE(BNDCL, op_nop)
	SIMPLE(BNDCN, op_nop)
	SIMPLE(BNDCU, op_nop)
	SIMPLE(BNDLDX, op_nop)
	SIMPLE(BNDMK, op_nop)
	SIMPLE(BNDMOV, op_nop)
	SIMPLE(BNDSTX, op_nop)
	SIMPLE(CLDEMOTE, op_nop)
	SIMPLE(PREFETCHWT1, op_nop)
#undef SIMPLE
	default:
		return false;
	}
}
