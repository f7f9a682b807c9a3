// SPDX-License-Identifier: GPL-2.0-only
/* Are two outcomes the same, and if not, what happened. */
#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <string.h>

#include "generate.h"
#include "x86/cr.h"

/* User addresses end here on hosts with 4 levels of page tables; Linux hides what is mapped above. */
#define USER_END	0x7ffffffff000ull

static const struct isa_insn *insn_at(const struct isa_snippet *s, u64 rip)
{
	for (u32 i = 0; i < s->nr; i++)
		if (s->insn[i].off == rip - s->in.rip)
			return &s->insn[i];
	return NULL;
}

static u64 undefined_at(const struct isa_snippet *s, u64 rip)
{
	const struct isa_insn *insn = insn_at(s, rip);
	u64 off = rip - s->in.rip;

	if (insn)
		return insn->undefined;
	if (off == s->len + 1u || !s->nr)	/* behind the INT3 that ends it */
		return s->undefined;
	return ARITH_FLAGS;
}

static u32 error_of(const struct isa_outcome *o)
{
	/* arch/x86/mm/fault.c, set_signal_archinfo(). */
	return o->error | (o->vector == 14 && o->cr2 >= USER_END ? 1 : 0);
}

static u32 mxcsr_of(const u8 *fx)
{
	u32 v;

	memcpy(&v, fx + 24, 4);
	return v;
}

/* With an unmasked overflow or underflow the engine's PE is the masked one's (ops-sse-fp.c says why). */
static u32 mxcsr_mask(const struct isa_outcome *o)
{
	u32 v = mxcsr_of(o->regs.fx);

	return o->vector == 19 && v & ~(v >> 7) & 0x18 ? ~0x20u : ~0u;
}

/* Offset of physical x87 register n: FXSAVE has them in the order of the stack. */
static u32 st_offset(const u8 *fx, u32 n)
{
	return 32 + 16 * ((n - (fx[3] >> 3)) & 7);
}

/*
 * Control word, status word, tags, MXCSR, the ten bytes of each x87 register, XMM. Whether an MMX instruction
 * that faults has made TOP 0 and all tags valid by then is the host's choice.
 */
static bool fx_equal(const u8 *a, const u8 *b, bool mmx_fault, u32 mxcsr_mask)
{
	if (memcmp(a, b, mmx_fault ? 3 : 5) || (mxcsr_of(a) ^ mxcsr_of(b)) & mxcsr_mask || memcmp(a + 160, b + 160, 256))
		return false;
	for (u32 i = 0; i < 8; i++)
		if (memcmp(a + st_offset(a, i), b + st_offset(b, i), 10))
			return false;
	return true;
}

bool isa_equal(const struct isa_snippet *s, const struct isa_outcome *a, const struct isa_outcome *b)
{
	const struct isa_regs *x = &a->regs, *y = &b->regs;
	const struct isa_insn *insn;
	bool mmx_fault = !strcmp(s->family, "mmx") && x->rip != s->in.rip + s->len + 1;

	if (a->vector != b->vector)
		return false;
	if (a->vector == -1)		/* neither ended: cut off at different places */
		return true;
	if (x->rip != y->rip)
		return false;
	insn = insn_at(s, x->rip);
	if ((!insn || !insn->two_loads) && (error_of(a) != error_of(b) || (a->vector == 14 && a->cr2 != b->cr2)))
		return false;
	return !((x->rflags ^ y->rflags) & ~undefined_at(s, x->rip)) && !memcmp(x->gpr, y->gpr, sizeof(x->gpr)) &&
	       x->fs_base == y->fs_base && x->gs_base == y->gs_base && x->ds == y->ds && x->es == y->es &&
	       fx_equal(x->fx, y->fx, mmx_fault, mxcsr_mask(a)) && !memcmp(&a->mem, &b->mem, sizeof(a->mem));
}

static const char *const gpr_names[] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};

static void print_code(FILE *f, const struct isa_snippet *s)
{
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand arg[ZYDIS_MAX_OPERAND_COUNT];
	char text[128];

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	for (u32 off = 0, len; off < s->len; off += len) {
		u64 rip = ISA_CODE + s->at + off;

		if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, s->code + off, s->len - off, &insn, arg))) {
			len = insn.length;
			ZydisFormatterFormatInstruction(&formatter, &insn, arg, insn.operand_count_visible, text,
							sizeof(text), rip, NULL);
		} else {
			len = 1;
			snprintf(text, sizeof(text), "(bad)");
		}
		fprintf(f, "#   %08" PRIx64 "  ", rip);
		for (u32 i = 0; i < 12; i++)
			fprintf(f, i < len ? "%02x" : "  ", i < len ? s->code[off + i] : 0);
		fprintf(f, "  %s\n", text);
	}
}

static void print_in(FILE *f, const struct isa_regs *in)
{
	for (u32 i = 0; i < NR_X86_GPRS; i++)
		fprintf(f, "%s%3s=%016" PRIx64 "%s", i % 4 ? " " : "#   ", gpr_names[i], in->gpr[i], i % 4 == 3 ? "\n" : "");
	fprintf(f, "#   rflags=%" PRIx64 " fs=%" PRIx64 " gs=%" PRIx64 " mxcsr=%08x cw=%02x%02x sw=%02x%02x tags=%02x\n",
		in->rflags, in->fs_base, in->gs_base, (u32)in->fx[24] | (u32)in->fx[25] << 8, in->fx[1], in->fx[0],
		in->fx[3], in->fx[2], in->fx[4]);
}

static void print_bytes(FILE *f, const u8 *p, u32 len)
{
	for (u32 i = len; i--;)
		fprintf(f, "%02x", p[i]);
}

static void diff_bytes(FILE *f, const char *name, u32 n, const u8 *in, const u8 *a, const u8 *b, u32 len)
{
	if (!memcmp(a, b, len))
		return;
	fprintf(f, "#   %s%u: in ", name, n);
	print_bytes(f, in, len);
	fprintf(f, " native ");
	print_bytes(f, a, len);
	fprintf(f, " soft ");
	print_bytes(f, b, len);
	fputc('\n', f);
}

static void diff_value(FILE *f, const char *name, u64 a, u64 b)
{
	if (a != b)
		fprintf(f, "#   %s: native %" PRIx64 " soft %" PRIx64 "\n", name, a, b);
}

static void diff_memory(FILE *f, const char *name, u64 at, const u8 *image, const u8 *a, const u8 *b, size_t len)
{
	u32 shown = 0;

	for (size_t i = 0; i < len && shown < 8; i += 8) {
		if (!memcmp(a + i, b + i, 8))
			continue;
		fprintf(f, "#   %s %" PRIx64, name, at + i);
		diff_bytes(f, "", 0, image + i, a + i, b + i, 8);
		shown++;
	}
}

void isa_explain(FILE *f, const struct isa_snippet *s, const struct isa_image *image, const struct isa_outcome *native,
		 const struct isa_outcome *soft)
{
	const struct isa_regs *a = &native->regs, *b = &soft->regs;

	fprintf(f, "# %s %" PRIu64 ":\n", s->family, s->number);
	print_code(f, s);
	print_in(f, &s->in);
	fprintf(f, "#   native: vector %d error %x cr2 %" PRIx64 " rip %" PRIx64 "\n", native->vector, native->error,
		native->vector == 14 ? native->cr2 : 0, a->rip);
	fprintf(f, "#   soft:   vector %d error %x cr2 %" PRIx64 " rip %" PRIx64 "\n", soft->vector, soft->error, soft->cr2,
		b->rip);
	for (u32 i = 0; i < NR_X86_GPRS; i++)
		diff_value(f, gpr_names[i], a->gpr[i], b->gpr[i]);
	if ((a->rflags ^ b->rflags) & ~undefined_at(s, a->rip))
		fprintf(f, "#   rflags: native %" PRIx64 " soft %" PRIx64 " (undefined: %" PRIx64 ")\n", a->rflags,
			b->rflags, undefined_at(s, a->rip));
	diff_value(f, "fs base", a->fs_base, b->fs_base);
	diff_value(f, "gs base", a->gs_base, b->gs_base);
	diff_value(f, "ds", a->ds, b->ds);
	diff_value(f, "es", a->es, b->es);
	diff_bytes(f, "cw", 0, s->in.fx, a->fx, b->fx, 2);
	diff_bytes(f, "sw", 0, s->in.fx + 2, a->fx + 2, b->fx + 2, 2);
	diff_bytes(f, "tags", 0, s->in.fx + 4, a->fx + 4, b->fx + 4, 1);
	diff_bytes(f, "mxcsr", 0, s->in.fx + 24, a->fx + 24, b->fx + 24, 4);
	for (u32 i = 0; i < 8; i++)
		diff_bytes(f, "st", i, s->in.fx + 32 + 16 * i, a->fx + 32 + 16 * i, b->fx + 32 + 16 * i, 10);
	for (u32 i = 0; i < 16; i++)
		diff_bytes(f, "xmm", i, s->in.fx + 160 + 16 * i, a->fx + 160 + 16 * i, b->fx + 160 + 16 * i, 16);
	diff_memory(f, "code", ISA_CODE, image->code, native->mem.code, soft->mem.code, sizeof(image->code));
	diff_memory(f, "data", ISA_DATA, image->data, native->mem.data, soft->mem.data, sizeof(image->data));
	diff_memory(f, "stack", ISA_STACK, image->stack, native->mem.stack, soft->mem.stack, sizeof(image->stack));
}
