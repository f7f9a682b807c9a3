// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snippets from seeds. What an instruction of the middle of a snippet must not do
 * is write a register that a later memory operand is based on, or read a flag that is
 * undefined; whatever else Zydis decodes is fair.
 */
#include "generate.h"

#include <string.h>

#include "x86/cr.h"

#define TRIES		60u
#define BUF_LEN		32u

u32 isa_nr_families(void)
{
	return isa_families_nr;
}

const char *isa_family_name(u32 family)
{
	return isa_families[family].name;
}

u32 gen_pick(struct gen *g, u32 set)
{
	u32 n = gen_below(&g->rng, (u32)__builtin_popcount(set));

	for (u32 i = 0;; i++)
		if (set & BIT(i) && !n--)
			return i;
}

/* --- may this instruction stand here? --- */

static bool isa_set_allowed(const struct gen *g, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	bool mm = insn->mnemonic == ZYDIS_MNEMONIC_EMMS;

	switch (insn->meta.isa_ext) {
	case ZYDIS_ISA_EXT_BASE: case ZYDIS_ISA_EXT_LONGMODE: case ZYDIS_ISA_EXT_SSE: case ZYDIS_ISA_EXT_SSE2:
	case ZYDIS_ISA_EXT_X87: case ZYDIS_ISA_EXT_MMX: case ZYDIS_ISA_EXT_RDWRFSGS: case ZYDIS_ISA_EXT_CLFSH:
	case ZYDIS_ISA_EXT_PAUSE:
		break;
	default:
		if (insn->mnemonic != ZYDIS_MNEMONIC_POPCNT)
			return false;
	}
	for (u32 i = 0; i < insn->operand_count; i++)
		mm |= arg[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		      ZydisRegisterGetClass(arg[i].reg.value) == ZYDIS_REGCLASS_MMX;
	return mm == !!(g->family->flags & F_MMX);
}

/* What would leave the sandbox, or differs between hosts by design. */
static bool mnemonic_allowed(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_SYSCALL: case ZYDIS_MNEMONIC_SYSENTER: case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT: case ZYDIS_MNEMONIC_INT: case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD: case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_CPUID: case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP: case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_SGDT: case ZYDIS_MNEMONIC_SIDT: case ZYDIS_MNEMONIC_SLDT: case ZYDIS_MNEMONIC_STR:
	case ZYDIS_MNEMONIC_SMSW: case ZYDIS_MNEMONIC_LAR: case ZYDIS_MNEMONIC_LSL: case ZYDIS_MNEMONIC_VERR:
	case ZYDIS_MNEMONIC_VERW: case ZYDIS_MNEMONIC_LFS: case ZYDIS_MNEMONIC_LGS: case ZYDIS_MNEMONIC_LSS:
	case ZYDIS_MNEMONIC_POPF: case ZYDIS_MNEMONIC_POPFD: case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_FNSTENV: case ZYDIS_MNEMONIC_FNSAVE: case ZYDIS_MNEMONIC_FXSAVE: case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FXRSTOR: case ZYDIS_MNEMONIC_FXRSTOR64: case ZYDIS_MNEMONIC_FLDENV: case ZYDIS_MNEMONIC_FRSTOR:
	case ZYDIS_MNEMONIC_LDMXCSR:
		return false;		/* some of them come by special.c */
	default:
		return true;
	}
}

static bool is_cmps(const ZydisDecodedInstruction *insn)
{
	return insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (insn->opcode == 0xa6 || insn->opcode == 0xa7);
}

/*
 * Where makers of CPUs differ: which byte MASKMOVDQU reports; how many bytes a MOVSXD to 16 bits reads; whether 0F 0D with a register exists; whether
 * CVTPI2PS with memory enters MMX state. Two wild operands of CMPS, which may raise different faults.
 */
static bool same_everywhere(const struct gen *g, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	u64 rdi = g->s->in.gpr[X86_RDI];

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVDQU: case ZYDIS_MNEMONIC_MASKMOVQ:
		return g->pointers & BIT(X86_RDI) && rdi >= ISA_DATA && rdi < ISA_DATA + ISA_DATA_RO * PAGE_SIZE - 16 &&
		       insn->address_width == 64 && !(insn->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS));
	case ZYDIS_MNEMONIC_MOVSXD:
		return insn->operand_width != 16 || arg[1].type != ZYDIS_OPERAND_TYPE_MEMORY;
	case ZYDIS_MNEMONIC_CVTPI2PS:
		return arg[1].type != ZYDIS_OPERAND_TYPE_MEMORY;
	default:
		return (!is_cmps(insn) || g->family->flags & F_STRING) &&
		       (insn->opcode_map != ZYDIS_OPCODE_MAP_0F || insn->opcode != 0x0d);
	}
}

static bool leaves_sequence(const ZydisDecodedInstruction *insn)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_CALL: case ZYDIS_CATEGORY_RET: case ZYDIS_CATEGORY_UNCOND_BR: case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_INTERRUPT: case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_SYSRET:
		return true;
	default:
		return false;
	}
}

static u32 gpr_of(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15)
		return (u32)(wide - ZYDIS_REGISTER_RAX);
	return 32;
}

static bool writes_kept(const struct gen *g, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	for (u32 i = 0; i < insn->operand_count; i++) {
		u32 r;

		if (arg[i].type != ZYDIS_OPERAND_TYPE_REGISTER || !(arg[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (ZydisRegisterGetClass(arg[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return true;
		r = gpr_of(arg[i].reg.value);
		if (r >= 32 || !(g->keep & BIT(r)))
			continue;
		/* PUSH and the like move RSP by a little, string instructions RSI, RDI and RCX. */
		if (arg[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    (r == X86_RSP || g->family->flags & F_STRING))
			continue;
		return true;
	}
	return false;
}

static bool reads_undefined(const struct gen *g, const ZydisDecodedInstruction *insn)
{
	u64 tested = insn->cpu_flags ? insn->cpu_flags->tested : 0;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_PUSHF: case ZYDIS_MNEMONIC_PUSHFD: case ZYDIS_MNEMONIC_PUSHFQ: case ZYDIS_MNEMONIC_LAHF:
		tested |= ARITH_FLAGS;
		break;
	case ZYDIS_MNEMONIC_RCL: case ZYDIS_MNEMONIC_RCR:
		tested |= FLAG_CF;
		break;
	default:
		break;
	}
	return tested & g->undefined;
}

/* Append an instruction that has been decoded. */
static bool gen_append(struct gen *g, const u8 *bytes, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *arg)
{
	struct isa_snippet *s = g->s;

	if (s->nr >= ISA_MAX_INSNS || s->len + insn->length > ISA_MAX_CODE)
		return false;
	memcpy(s->code + s->len, bytes, insn->length);
	s->insn[s->nr++] = (struct isa_insn){ (u16)s->len, insn->length, g->undefined, is_cmps(insn) };
	s->len += insn->length;
	g->undefined = gen_flags_after(g->undefined, insn, arg);
	return true;
}

static bool gen_decode(struct gen *g, const u8 *bytes, u32 len, ZydisDecodedInstruction *insn, ZydisDecodedOperand *arg)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&g->decoder, bytes, len, insn, arg));
}

bool gen_bytes(struct gen *g, const u8 *bytes, u32 len)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	struct isa_snippet *s = g->s;

	if (gen_decode(g, bytes, len, &insn, arg) && insn.length == len)
		return !reads_undefined(g, &insn) && gen_append(g, bytes, &insn, arg);
	/* What Zydis does not know must fault: it ends the snippet. */
	if (s->nr >= ISA_MAX_INSNS || s->len + len > ISA_MAX_CODE)
		return false;
	memcpy(s->code + s->len, bytes, len);
	s->insn[s->nr++] = (struct isa_insn){ (u16)s->len, (u16)len, g->undefined, false };
	s->len += len;
	return true;
}

/* --- one instruction of a pattern --- */

struct operand {
	u8 modrm, sib, rex;
	bool has_sib, rip;
	u32 disp_len;
	u64 target;		/* address that a displacement alone gives */
	s32 disp;
};

static void operand_mem(struct gen *g, struct operand *o)
{
	static const s32 near[] = { 0, 0, 16, -16, 32, 64, -48, 8 };
	u32 base = gen_pick(g, g->pointers), index = gen_pick(g, g->indexes), form = gen_below(&g->rng, 100);

	o->disp = near[gen_below(&g->rng, ARRAY_SIZE(near))];
	o->disp_len = gen_below(&g->rng, 2) ? 1 : 4;
	if (form < 6) {			/* RIP-relative */
		o->modrm |= 5;
		o->rip = true;
		o->target = gen_address(&g->rng);
		o->disp_len = 4;
		return;
	}
	if (form < 12) {		/* disp32, with an index or none */
		o->modrm |= 4;
		o->has_sib = true;
		if (gen_below(&g->rng, 2))
			index = 4;
		o->sib = (u8)(gen_below(&g->rng, 4) << 6 | (index & 7) << 3 | 5);
		o->rex |= index & 8 ? 2 : 0;
		o->disp = (s32)gen_address(&g->rng);
		o->disp_len = 4;
		return;
	}
	if (form > 96) {		/* wherever it leads */
		base = gen_below(&g->rng, 16);
		index = gen_below(&g->rng, 16);
	}
	if (!o->disp && (base & 7) != 5)
		o->disp_len = 0;
	o->modrm |= (u8)(o->disp_len == 4 ? 0x80 : o->disp_len ? 0x40 : 0);
	o->rex |= base & 8 ? 1 : 0;
	if ((base & 7) == 4 || form > 60) {
		if (form <= 60)
			index = 4;
		o->has_sib = true;
		o->modrm |= 4;
		o->sib = (u8)(gen_below(&g->rng, 4) << 6 | (index & 7) << 3 | (base & 7));
		o->rex |= index & 8 ? 2 : 0;
	} else {
		o->modrm |= base & 7;
	}
}

/* Legacy prefixes; the number of bytes. */
static u32 put_prefixes(struct gen *g, const struct isa_pattern *p, bool mem, u8 *b)
{
	static const u8 segments[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65 };
	u32 n = 0, mandatory = p->prefix & (P_NP | P_66 | P_F3 | P_F2);

	if (p->prefix & P_OPSIZE && gen_chance(&g->rng, 25))
		b[n++] = 0x66;
	if (mem && gen_chance(&g->rng, g->family->flags & F_FS ? 70 : 4))
		b[n++] = segments[gen_below(&g->rng, ARRAY_SIZE(segments))];
	if ((mem || p->prefix & P_REP) && gen_chance(&g->rng, 4))
		b[n++] = 0x67;
	if (mem && p->prefix & P_LOCK && gen_chance(&g->rng, p->flags & M_MEM ? 80 : 5))
		b[n++] = 0xf0;
	if (p->prefix & P_REP && gen_chance(&g->rng, 75))
		b[n++] = gen_below(&g->rng, 2) ? 0xf2 : 0xf3;
	if (mandatory) {
		switch (gen_pick(g, mandatory)) {
		case 1: b[n++] = 0x66; break;
		case 2: b[n++] = 0xf3; break;
		case 3: b[n++] = 0xf2; break;
		default: break;
		}
	}
	return n;
}

static void operand_fill(struct gen *g, const struct isa_pattern *p, bool mem, struct operand *o)
{
	u32 reg = gen_below(&g->rng, 16);

	if (p->flags & M_BITS && mem && gen_chance(&g->rng, 70))
		reg = gen_pick(g, g->indexes);
	if (p->digit_lo >= 0)
		reg = (u32)p->digit_lo + gen_below(&g->rng, (u32)(p->digit_hi - p->digit_lo + 1));
	o->modrm = (u8)((reg & 7) << 3);
	o->rex = reg & 8 ? 4 : 0;
	if (mem) {
		operand_mem(g, o);
	} else {
		u32 rm = gen_below(&g->rng, 16);

		o->modrm |= 0xc0 | (rm & 7);
		o->rex |= rm & 8 ? 1 : 0;
	}
}

/* A candidate; its opcode's position comes back, for the check that Zydis sees the same one. */
static u32 put_candidate(struct gen *g, const struct isa_pattern *p, u8 *b, u8 *opcode, struct operand *o)
{
	bool has_modrm = !(p->flags & (M_NONE | M_MOFFS));
	bool mem = has_modrm && !(p->flags & M_REG) && (p->flags & M_MEM || gen_below(&g->rng, 2));
	u32 n;
	u64 imm;

	*o = (struct operand){ 0 };
	if (has_modrm)
		operand_fill(g, p, mem, o);
	else
		o->rex = (u8)(gen_below(&g->rng, 4) ? 0 : gen_below(&g->rng, 8));
	n = put_prefixes(g, p, mem || p->flags & M_MOFFS, b);
	if (gen_chance(&g->rng, p->prefix & (P_NP | P_66 | P_F3 | P_F2) ? 20 : 40))
		o->rex |= 8;
	if (o->rex || gen_chance(&g->rng, 20))
		b[n++] = 0x40 | o->rex;
	if (p->map)
		b[n++] = 0x0f;
	*opcode = (u8)(p->lo + gen_below(&g->rng, (u32)(p->hi - p->lo + 1)));
	b[n++] = *opcode;
	if (has_modrm) {
		b[n++] = o->modrm;
		if (o->has_sib)
			b[n++] = o->sib;
		memcpy(b + n, &o->disp, 4);
		n += o->disp_len;
	}
	imm = p->flags & M_MOFFS ? gen_address(&g->rng) : gen_value(&g->rng);
	memcpy(b + n, &imm, 8);
	return n + 8;
}

bool gen_pattern(struct gen *g, const struct isa_pattern *p)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	struct operand o;
	u8 b[BUF_LEN], opcode;

	for (u32 try = 0; try < TRIES; try++) {
		u32 n = put_candidate(g, p, b, &opcode, &o);

		if (!gen_decode(g, b, n, &insn, arg) || insn.opcode != opcode ||
		    insn.opcode_map != (p->map ? ZYDIS_OPCODE_MAP_0F : ZYDIS_OPCODE_MAP_DEFAULT) ||
		    !isa_set_allowed(g, &insn, arg) || !mnemonic_allowed(insn.mnemonic) || leaves_sequence(&insn) ||
		    !same_everywhere(g, &insn, arg) ||
		    (!g->last && writes_kept(g, &insn, arg)) || reads_undefined(g, &insn))
			continue;
		/* Results of a 16-bit SHLD or SHRD by more than 16 are undefined (SDM 2B). */
		if ((insn.mnemonic == ZYDIS_MNEMONIC_SHLD || insn.mnemonic == ZYDIS_MNEMONIC_SHRD) &&
		    insn.operand_width == 16 &&
		    (arg[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || (arg[2].imm.value.u & 31) > 16))
			continue;
		for (u32 i = 0; i < insn.operand_count; i++)	/* loads of segment registers come by special.c */
			if (arg[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    arg[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
			    ZydisRegisterGetClass(arg[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
				return false;
		if (o.rip && insn.raw.disp.size == 32) {
			u64 next = ISA_CODE + g->s->at + g->s->len + insn.length;
			s32 disp = (s32)(o.target - next);

			memcpy(b + insn.raw.disp.offset, &disp, 4);
		}
		return gen_append(g, b, &insn, arg);
	}
	return false;
}

bool gen_any(struct gen *g)
{
	return gen_pattern(g, &g->family->pattern[gen_below(&g->rng, g->family->nr)]);
}

/* --- whole snippets --- */

static void gen_registers(struct gen *g)
{
	struct isa_regs *in = &g->s->in;
	u32 free = 0xffef, flags = g->family->flags;

	for (u32 i = 0; i < NR_X86_GPRS; i++)
		in->gpr[i] = gen_value(&g->rng);
	if (flags & F_STRING) {
		g->pointers = BIT(X86_RSI) | BIT(X86_RDI);
		g->indexes = BIT(X86_RCX);
	} else {
		if (flags & F_FRAME)
			free &= ~BIT(X86_RBP);
		for (u32 i = 0; i < 3; i++)
			g->pointers |= BIT(gen_pick(g, free & ~g->pointers));
		g->indexes = BIT(gen_pick(g, free & ~g->pointers));
		g->indexes |= BIT(gen_pick(g, free & ~g->pointers));
	}
	for (u32 i = 0; i < NR_X86_GPRS; i++) {
		if (g->pointers & BIT(i))
			in->gpr[i] = gen_address(&g->rng);
		if (g->indexes & BIT(i))
			in->gpr[i] = gen_chance(&g->rng, 60) ? 16 * gen_below(&g->rng, 4) :
							       (u64)(s64)((int)gen_below(&g->rng, 80) - 40);
	}
	if (flags & F_STRING)
		in->gpr[X86_RCX] = gen_chance(&g->rng, 3) ? gen_value(&g->rng) : gen_below(&g->rng, 64);
	in->gpr[X86_RSP] = ISA_STACK + PAGE_SIZE - 256 + gen_below(&g->rng, 64) * 8;
	if (gen_chance(&g->rng, 4))
		in->gpr[X86_RSP] = ISA_STACK + gen_below(&g->rng, 16);
	if (gen_chance(&g->rng, 3))
		in->gpr[X86_RSP] = ISA_STACK + ISA_STACK_PAGES * PAGE_SIZE - gen_below(&g->rng, 16);
	if (flags & F_FRAME)
		in->gpr[X86_RBP] = ISA_STACK + PAGE_SIZE - 512 + gen_below(&g->rng, 128) * 8;
	g->keep = g->pointers | g->indexes | BIT(X86_RSP) | (flags & F_FRAME ? BIT(X86_RBP) : 0);

	in->rflags = 0x202 | (rng_next(&g->rng) & ARITH_FLAGS);
	if (gen_chance(&g->rng, flags & F_DF ? 50 : 4))
		in->rflags |= X86_EFLAGS_DF;
	in->fs_base = flags & F_FS ? gen_below(&g->rng, 4) * 16 : gen_below(&g->rng, 100) < 50 ? gen_address(&g->rng) : 0;
	in->gs_base = flags & F_FS ? gen_below(&g->rng, 64) : gen_value(&g->rng) >> 18;
	gen_fpu(&g->rng, in->fx, !(flags & F_FPU));
}

void isa_generate_image(struct isa_image *image, u64 seed, u32 family, u64 number)
{
	struct rng rng;

	rng_seed(&rng, seed, (u64)(family + 1) << 48 | (number | 63) | 1ull << 47);
	memset(image->code, 0xcc, sizeof(image->code));
	gen_memory(&rng, image->data, sizeof(image->data));
	gen_memory(&rng, image->stack, sizeof(image->stack));
}

void isa_generate(struct isa_snippet *s, u64 seed, u32 family, u64 number)
{
	struct gen g = { .s = s, .family = &isa_families[family] };
	u32 want;

	memset(s, 0, sizeof(*s));
	s->family = g.family->name;
	s->number = number;
	rng_seed(&g.rng, seed, (u64)(family + 1) << 48 | number);
	ZydisDecoderInit(&g.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	s->at = gen_chance(&g.rng, 10) ? PAGE_SIZE - gen_below(&g.rng, 24) : 64 * gen_below(&g.rng, 56);
	gen_registers(&g);
	s->in.rip = ISA_CODE + s->at;

	want = gen_chance(&g.rng, g.family->flags & F_SINGLE ? 75 : 35) ? 1 : 2 + gen_below(&g.rng, 7);
	for (u32 i = 0; i < want; i++) {
		g.last = i + 1 == want;
		if (!g.family->special || !g.family->special(&g))
			gen_any(&g);
	}
	s->undefined = g.undefined;
}
