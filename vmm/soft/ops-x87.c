// SPDX-License-Identifier: GPL-2.0-only
/*
 * The x87. Each instruction is executed as itself: the guest's registers go into the
 * host's FPU by FRSTOR, the one instruction runs, FNSAVE takes them back and leaves the
 * FPU as the ABI wants it (empty, control word 037FH). The guest's own masks are in
 * force meanwhile: the x87 reports an unmasked exception only to the next waiting
 * instruction, and FNSAVE does not wait, so the host never sees one, while the result,
 * the stack and ES are the hardware's.
 *
 * The transcendental instructions are the host's as well; their last bit may differ
 * between makers of CPUs (SDM 1 8.3.10).
 *
 * FIP, FDP and FOP are kept for every instruction that is not a control instruction;
 * the selectors FCS and FDS are 0, as on CPUs that deprecate them (CPUID.7.0:EBX[13]).
 */
#include "soft/x87.h"

/* FNSAVE's image, 32-bit protected mode (SDM 1 figure 8-9). */
struct x87_image {
	u16 fcw, pad0, fsw, pad1, ftw, pad2;
	u32 fip;
	u16 fcs, fop;
	u32 fdp;
	u16 fds, pad3;
	u8 st[8][10];
};
_Static_assert(sizeof(struct x87_image) == 108, "FNSAVE's image");

/* The instruction's place in the table of pads: 512 without a memory operand, then 64 with one. */
#define PAD_MEM		512u

/* aux: what an instruction does besides. */
#define X87_LOADS	BIT(0)
#define X87_STORES	BIT(1)
#define X87_FLAGS	BIT(2)	/* sets ZF, PF, CF of RFLAGS */

static u16 tag_of(const u8 *st)
{
	u16 exponent = (u16)((st[8] | st[9] << 8) & 0x7fff);
	u64 mantissa;

	memcpy(&mantissa, st, 8);
	if (exponent == 0x7fff)
		return 2;
	if (!exponent)
		return mantissa ? 2 : 1;
	return mantissa >> 63 ? 0 : 2;
}

u16 x87_full_tags(const struct soft_cpu *c)
{
	u32 top = *(const u16 *)(c->fx + FX_FSW) >> FSW_TOP_SHIFT & 7, tags = 0;

	for (u32 i = 0; i < 8; i++) {
		u32 tag = 3;

		if (c->fx[FX_FTW] >> i & 1)
			tag = tag_of(c->fx + FX_ST + 16 * ((i - top) & 7));
		tags |= tag << 2 * i;
	}
	return (u16)tags;
}

u8 x87_short_tags(u16 tags)
{
	u8 used = 0;

	for (u32 i = 0; i < 8; i++)
		if ((tags >> 2 * i & 3) != 3)
			used |= BIT(i);
	return used;
}

void x87_set_control(struct soft_cpu *c, u16 fcw, u16 fsw)
{
	u32 turn = ((fsw >> FSW_TOP_SHIFT) - (*x87_u16(c, FX_FSW) >> FSW_TOP_SHIFT)) & 7u;
	u8 st[8 * 16];

	fcw = (fcw & FCW_VALID) | FCW_FIXED;
	fsw &= (u16)~(FSW_ES | FSW_B);
	if (fsw & ~fcw & FSW_FLAGS)
		fsw |= FSW_ES | FSW_B;
	*x87_u16(c, FX_FCW) = fcw;
	*x87_u16(c, FX_FSW) = fsw;
	if (turn) {
		memcpy(st, c->fx + FX_ST, sizeof(st));
		memcpy(c->fx + FX_ST, st + 16 * turn, 16 * (8 - turn));
		memcpy(c->fx + FX_ST + 16 * (8 - turn), st, 16 * turn);
	}
}

void x87_init(struct soft_cpu *c)
{
	x87_set_control(c, FCW_INIT, 0);
	memset(c->fx + FX_FTW, 0, FX_MXCSR - FX_FTW);
}

static void to_image(struct soft_cpu *c, struct x87_image *img)
{
	memset(img, 0, sizeof(*img));
	img->fcw = *x87_u16(c, FX_FCW);
	img->fsw = *x87_u16(c, FX_FSW);
	img->ftw = x87_full_tags(c);
	for (u32 i = 0; i < 8; i++)
		memcpy(img->st[i], c->fx + FX_ST + 16 * i, 10);
}

static void from_image(struct soft_cpu *c, const struct x87_image *img)
{
	*x87_u16(c, FX_FSW) = img->fsw;
	c->fx[FX_FTW] = x87_short_tags(img->ftw);
	for (u32 i = 0; i < 8; i++)
		memcpy(c->fx + FX_ST + 16 * i, img->st[i], 10);
}

/*
 * Every x87 instruction by its two bytes, each followed by a jump to the end. Entry
 * numbers are those of struct soft_op's imm; decoding lets defined ones through only.
 */
#define PADS									\
	".set fb_pad, 0\n\t"							\
	".rept 512\n\t"								\
	".byte 0xd8 + (fb_pad >> 6), 0xc0 + (fb_pad & 63)\n\t"			\
	"jmp 9f\n\t"								\
	".balign 8\n\t"								\
	".set fb_pad, fb_pad + 1\n\t"						\
	".endr\n\t"								\
	".set fb_pad, 0\n\t"							\
	".rept 64\n\t"			/* ModRM: mod 0, rm 7: (%rdi) */	\
	".byte 0xd8 + (fb_pad >> 3), 0x07 + 8 * (fb_pad & 7)\n\t"		\
	"jmp 9f\n\t"								\
	".balign 8\n\t"								\
	".set fb_pad, fb_pad + 1\n\t"						\
	".endr\n\t"

/* Run instruction number `pad` on the image; `af` as soft_cpu's af, in and out, for FCMOVcc and FCOMI. */
static __attribute__((noinline)) u16 on_host(struct x87_image *img, u64 pad, u8 mem[16], u16 af)
{
	u32 eax = af;

	asm volatile("frstor (%[img])\n\t"
		     "leaq 8f(%%rip), %%rdx\n\t"
		     "leaq (%%rdx, %[pad], 8), %%rdx\n\t"
		     "addb $0x7f, %%al\n\t"		/* 1 overflows: OF */
		     "sahf\n\t"
		     "jmp *%%rdx\n\t"
		     ".balign 8\n"
		     "8:\n\t"
		     PADS
		     "9:\n\t"
		     "lahf\n\t"
		     "seto %%al\n\t"
		     "fnsave (%[img])"
		     : "+a" (eax)
		     : [img] "r" (img), [pad] "r" (pad), "D" (mem)
		     : "rdx", "cc", "memory", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
	return (u16)eax;
}

/*
 * An unmasked exception other than PE keeps a store from being done (SDM 1 8.5). None was
 * pending before, so what is pending now is new.
 */
static bool stores(const struct x87_image *img)
{
	return !(img->fsw & ~img->fcw & FSW_FLAGS & ~0x20u);
}

static __attribute__((noinline)) int x87_run(struct soft_cpu *c, const struct soft_op *op)
{
	u32 seg = op->amode & AMODE_SEG;
	struct x87_image img;
	u8 mem[16] = { 0 };
	u64 ea = 0;
	u16 af;

	if (op->aux & (X87_LOADS | X87_STORES))
		ea = soft_ea(c, op);
	if (op->aux & X87_LOADS) {
		if (soft_load_slow(c, op, ea, op->size))
			return SOFT_FAULT;
		memcpy(mem, c->val, op->size);
	}
	to_image(c, &img);
	af = on_host(&img, op->imm & 0xffff, mem, c->af);
	/* The address is checked even if nothing is stored. */
	if (op->aux & X87_STORES && (stores(&img) ? soft_store_slow(c, op, ea, mem, op->size) :
						    soft_check_write(c, op, ea, op->size)))
		return SOFT_FAULT;
	from_image(c, &img);
	if (op->aux & X87_FLAGS)
		c->af = af;
	*x87_u16(c, FX_FOP) = (u16)(op->imm >> 16);
	*(u64 *)(c->fx + FX_FIP) = soft_op_rip(c, op);
	if (op->aux & (X87_LOADS | X87_STORES))
		*(u64 *)(c->fx + FX_FDP) = seg ? ea - c->seg[seg - 1].base : ea;
	return 0;
}

static int op_x87(struct soft_cpu *c, const struct soft_op *op)
{
	X87_WAIT(c, op);
	if (unlikely(x87_run(c, op)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

/* --- control instructions --- */

static int op_fldcw(struct soft_cpu *c, const struct soft_op *op)
{
	u16 v;

	X87_WAIT(c, op);
	SOFT_LOAD(c, op, v, soft_ea(c, op), u16);
	x87_set_control(c, v, *x87_u16(c, FX_FSW));
	SOFT_NEXT(c, op);
}

static int op_fnstcw(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	SOFT_STORE(c, op, soft_ea(c, op), *x87_u16(c, FX_FCW), u16);
	SOFT_NEXT(c, op);
}

static int op_fnstsw(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	SOFT_STORE(c, op, soft_ea(c, op), *x87_u16(c, FX_FSW), u16);
	SOFT_NEXT(c, op);
}

static int op_fnstsw_ax(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	memcpy(&c->gpr[X86_RAX], x87_u16(c, FX_FSW), 2);
	SOFT_NEXT(c, op);
}

/* The registers' contents stay, all are empty (SDM 2A FINIT). */
static int op_fninit(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	x87_init(c);
	SOFT_NEXT(c, op);
}

static int op_fnclex(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	*x87_u16(c, FX_FSW) &= 0x7f00;
	SOFT_NEXT(c, op);
}

/* FENI, FDISI, FSETPM of older coprocessors: no operation, and no wait. */
static int op_none(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	SOFT_NEXT(c, op);
}

/* FWAIT heeds TS only if MP says so, and EM never (SDM 3A 2.5). */
static int op_fwait(struct soft_cpu *c, const struct soft_op *op)
{
	if (unlikely((c->cr0 & (X86_CR0_MP | X86_CR0_TS)) == (X86_CR0_MP | X86_CR0_TS)))
		return soft_raise(c, op, VEC_NM);
	if (unlikely(*x87_u16(c, FX_FSW) & FSW_ES))
		return soft_raise(c, op, VEC_MF);
	SOFT_NEXT(c, op);
}

/* An MMX instruction: EM gives #UD, TOP becomes 0 (SDM 3A 12.1, table 12-1). */
static int op_emms(struct soft_cpu *c, const struct soft_op *op)
{
	if (unlikely(c->cr0 & X86_CR0_EM))
		return soft_raise(c, op, VEC_UD);
	X87_WAIT(c, op);
	x87_set_control(c, *x87_u16(c, FX_FCW), *x87_u16(c, FX_FSW) & ~FSW_TOP & 0xffff);
	c->fx[FX_FTW] = 0;
	SOFT_NEXT(c, op);
}

static soft_fn control(struct soft_decode *d)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_FLDCW:		return op_fldcw;
	case ZYDIS_MNEMONIC_FNSTCW:		return op_fnstcw;
	case ZYDIS_MNEMONIC_FNSTSW:		return soft_is_mem(d, 0) ? op_fnstsw : op_fnstsw_ax;
	case ZYDIS_MNEMONIC_FNINIT:		return op_fninit;
	case ZYDIS_MNEMONIC_FNCLEX:		return op_fnclex;
	case ZYDIS_MNEMONIC_FENI8087_NOP:
	case ZYDIS_MNEMONIC_FDISI8087_NOP:
	case ZYDIS_MNEMONIC_FSETPM287_NOP:	return op_none;
	case ZYDIS_MNEMONIC_FWAIT:		return op_fwait;
	case ZYDIS_MNEMONIC_EMMS:		return op_emms;
	default:				return NULL;
	}
}

/* --- memory operands by opcode D8 to DF and ModRM.reg: bytes, negative if stored; 0: not one of these --- */

static const signed char mem_size[8][8] = {
	{ 4, 4, 4, 4, 4, 4, 4, 4 },		/* D8: FADD FMUL FCOM FCOMP FSUB FSUBR FDIV FDIVR m32fp */
	{ 4, 0, -4, -4, 0, 0, 0, 0 },		/* D9: FLD - FST FSTP m32fp; the rest is control */
	{ 4, 4, 4, 4, 4, 4, 4, 4 },		/* DA: FIADD ... FIDIVR m32int */
	{ 4, 0, -4, -4, 0, 10, 0, -10 },	/* DB: FILD - FIST FISTP m32int, FLD, FSTP m80fp; FISTTP is SSE3 */
	{ 8, 8, 8, 8, 8, 8, 8, 8 },		/* DC: FADD ... FDIVR m64fp */
	{ 8, 0, -8, -8, 0, 0, 0, 0 },		/* DD: FLD - FST FSTP m64fp */
	{ 2, 2, 2, 2, 2, 2, 2, 2 },		/* DE: FIADD ... FIDIVR m16int */
	{ 2, 0, -2, -2, 10, 8, -10, -8 },	/* DF: FILD - FIST FISTP m16int, FBLD, FILD m64, FBSTP, FISTP m64 */
};

static bool decode_mem(struct soft_decode *d, struct soft_op *op, u32 escape)
{
	u32 reg = d->insn->raw.modrm.reg;
	int size = mem_size[escape][reg];

	if (!size)
		return false;
	soft_decode_mem(d, op, soft_is_mem(d, 0) ? 0 : 1);
	d->accesses = 1;
	op->imm = PAD_MEM + escape * 8 + reg;
	op->size = (u8)(size < 0 ? -size : size);
	op->aux = size < 0 ? X87_STORES : X87_LOADS;
	return true;
}

static void decode_reg(struct soft_decode *d, struct soft_op *op, u32 escape)
{
	op->imm = escape * 64 + (d->insn->raw.modrm.reg * 8u + d->insn->raw.modrm.rm);
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_FCOMI:
	case ZYDIS_MNEMONIC_FCOMIP:
	case ZYDIS_MNEMONIC_FUCOMI:
	case ZYDIS_MNEMONIC_FUCOMIP:
		op->aux = X87_FLAGS;
		break;
	default:
		break;
	}
}

bool soft_decode_x87(struct soft_decode *d, struct soft_op *op)
{
	u32 escape = d->insn->opcode - 0xd8u;

	op->imm = 0;		/* a family asked before may have left something */
	op->aux = op->size = 0;
	op->fn = control(d);
	if (op->fn) {
		if (soft_is_mem(d, 0)) {
			soft_decode_mem(d, op, 0);
			d->accesses = 1;
		}
		return true;
	}
	if (d->insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    d->insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || escape > 7)
		return false;
	if (d->insn->raw.modrm.mod == 3)
		decode_reg(d, op, escape);
	else if (x87_decode_env(d, op))
		return true;
	else if (!decode_mem(d, op, escape))
		return false;
	op->imm |= (u64)(escape << 8 | d->insn->raw.modrm.mod << 6 | d->insn->raw.modrm.reg << 3 |
			 d->insn->raw.modrm.rm) << 16;		/* FOP (SDM 1 8.1.9) */
	op->fn = op_x87;
	return true;
}
