// SPDX-License-Identifier: GPL-2.0-only
/*
 * A snippet on the soft engine: one vCPU at CPL 3 in 64-bit mode, the regions of
 * isa.h mapped with the same rights, segments as 64-bit Linux has them, and an IDT whose
 * handlers are each a HLT at CPL 0. What the exception pushed and the vCPU's
 * registers then are the outcome. Tables and handlers are in the upper half, where user
 * code's accesses fault on both sides.
 */
#include "isa.h"

#include <glib.h>
#include <string.h>

#include "soft/lines.h"
#include "soft-fixture.h"

#define HIGH		0xffffffff80000000ull
#define PML4		0x1000ull
#define PDPT_LOW	0x2000ull
#define PD_LOW		0x3000ull
#define PT_CODE		0x4000ull
#define PT_DATA		0x5000ull
#define PT_STACK	0x6000ull
#define PDPT_HIGH	0x7000ull
#define PD_HIGH		0x8000ull
#define GDT		0x9000ull
#define IDT		0xa000ull
#define TSS		0xb000ull
#define HANDLERS	0xc000ull	/* 16 bytes a vector */
#define STACK0_TOP	0xf000ull
#define IMAGE		0x100000ull	/* a struct isa_image */
#define RAM_MIB		4
#define MAX_NS		(5 * NSEC_PER_MSEC)

#define SEL_USER_CS	0x33
#define SEL_USER_DS	0x2b
#define SEL_TSS		0x40
#define TSS_LIMIT	0x67

struct isa_soft {
	struct soft_fixture *f;
	struct soft_vm *svm;
	struct isa_image *image;
	struct x86_state start;
	bool memory;
	u64 waits;
};

static u64 *table(struct isa_soft *soft, gpa_t gpa)
{
	return soft_fixture_ram(soft->f, gpa, PAGE_SIZE);
}

static void soft_page_tables(struct isa_soft *soft)
{
	const u64 user = X86_PTE_P | X86_PTE_RW | X86_PTE_US;
	gpa_t gpa = IMAGE;

	table(soft, PML4)[0] = PDPT_LOW | user;
	table(soft, PML4)[511] = PDPT_HIGH | X86_PTE_P | X86_PTE_RW;
	table(soft, PDPT_LOW)[0] = PD_LOW | user;
	table(soft, PDPT_HIGH)[510] = PD_HIGH | X86_PTE_P | X86_PTE_RW;
	table(soft, PD_HIGH)[0] = X86_PTE_PS | X86_PTE_P | X86_PTE_RW;
	table(soft, PD_LOW)[ISA_CODE >> 21] = PT_CODE | user;
	table(soft, PD_LOW)[ISA_DATA >> 21] = PT_DATA | user;
	table(soft, PD_LOW)[ISA_STACK >> 21] = PT_STACK | user;
	for (u32 i = 0; i < ISA_CODE_PAGES; i++, gpa += PAGE_SIZE)
		table(soft, PT_CODE)[i] = gpa | user;
	for (u32 i = 0; i < ISA_DATA_PAGES; i++, gpa += PAGE_SIZE)
		table(soft, PT_DATA)[i] = (gpa | user | X86_PTE_NX) & ~(i == ISA_DATA_RO ? X86_PTE_RW : 0);
	for (u32 i = 0; i < ISA_STACK_PAGES; i++, gpa += PAGE_SIZE)
		table(soft, PT_STACK)[i] = gpa | user | X86_PTE_NX;
}

static void soft_descriptors(struct isa_soft *soft)
{
	/* SDM 3A 3.4.5: 32- and 64-bit code, data of the kernel; 32-bit code, data, 64-bit code of the user. */
	static const u64 gdt[] = {
		0, 0x00cf9b000000ffffull, 0x00af9b000000ffffull, 0x00cf93000000ffffull,
		0x00cffb000000ffffull, 0x00cff3000000ffffull, 0x00affb000000ffffull, 0,
	};
	const u64 tss = HIGH + TSS;
	u64 *idt = table(soft, IDT);
	u64 rsp0 = HIGH + STACK0_TOP;

	memcpy(table(soft, GDT), gdt, sizeof(gdt));
	/* SDM 3A 7.2.3: a busy 64-bit TSS; its I/O map lies beyond the limit, so that no port is allowed. */
	table(soft, GDT)[8] = TSS_LIMIT | (tss & 0xffffff) << 16 | 0x8bull << 40 | (tss >> 24 & 0xff) << 56;
	table(soft, GDT)[9] = tss >> 32;
	soft_fixture_load(soft->f, TSS + 4, &rsp0, sizeof(rsp0));
	table(soft, TSS)[12] = (u64)(TSS_LIMIT + 1) << 48;
	for (u64 vec = 0; vec < 256; vec++) {
		u64 at = HIGH + HANDLERS + vec * 16;
		u64 dpl = vec == VEC_BP || vec == VEC_OF ? 3 : 0;

		/* SDM 3A 6.14.1: interrupt gate to the kernel's 64-bit code. */
		idt[2 * vec] = (at & 0xffff) | 0x10ull << 16 | (0x8e | dpl << 5) << 40 | (at >> 16 & 0xffff) << 48;
		idt[2 * vec + 1] = at >> 32;
		memset((u8 *)table(soft, HANDLERS) + vec * 16, 0xf4, 16);
	}
}

/* One vCPU; or, with the memory model, that, another thread of its core, and cores near and far to take its lines. */
static struct soft_fixture *soft_machine(bool memory)
{
	struct topology_params params = { .sockets = 2, .cores = 2, .threads = 2, .memory = 4 * GIB };
	struct cost_model model;

	if (!memory)
		return soft_fixture_new(RAM_MIB, 1);
	soft_fixture_memory(&model);
	model.v[COST_jitter] = 3000;
	return soft_fixture_new_on(RAM_MIB, &params, &model);
}

struct isa_soft *isa_soft_new(bool fsgsbase, bool memory)
{
	const struct x86_segment code = { .selector = SEL_USER_CS, .attr = 0xa0fb, .limit = 0xffffffff };
	const struct x86_segment data = { .selector = SEL_USER_DS, .attr = 0xc0f3, .limit = 0xffffffff };
	const struct x86_segment null = { .unusable = true };
	struct isa_soft *soft = g_new0(struct isa_soft, 1);
	struct x86_state *s = &soft->start;

	soft->memory = memory;
	soft->f = soft_machine(memory);
	soft->svm = soft->f->vm.engine_data;
	soft->image = soft_fixture_ram(soft->f, IMAGE, sizeof(struct isa_image));
	soft_page_tables(soft);
	soft_descriptors(soft);
	x86_state_long(s, 0, 0, PML4, HIGH + GDT, 10 * 8 - 1);
	s->cr0 |= X86_CR0_MP | X86_CR0_NE | X86_CR0_WP | X86_CR0_AM;
	s->cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT | (fsgsbase ? X86_CR4_FSGSBASE : 0);
	s->efer |= X86_EFER_NXE | X86_EFER_SCE;
	s->cs = code;
	s->ss = data;
	s->ds = s->es = s->fs = s->gs = null;
	s->tr = (struct x86_segment){ .selector = SEL_TSS, .attr = 0x8b, .limit = TSS_LIMIT, .base = HIGH + TSS };
	s->ldt = null;
	s->idt.base = HIGH + IDT;
	s->idt.limit = PAGE_SIZE - 1;
	return soft;
}

u64 isa_soft_waits(const struct isa_soft *soft)
{
	return soft->waits;
}

void isa_soft_free(struct isa_soft *soft)
{
	soft_fixture_free(soft->f);
	g_free(soft);
}

static void soft_load(struct isa_soft *soft, const struct isa_snippet *s, const struct isa_image *image)
{
	memcpy(soft->image, image, sizeof(*image));
	memcpy(soft->image->code + s->at, s->code, s->len);
	for (u32 i = 0; i < ISA_CODE_PAGES; i++) {
		u8 *hva;
		struct soft_page *page = soft_page_of(soft->svm, IMAGE + i * PAGE_SIZE, &hva);

		if (page->code)
			soft_code_written(soft->svm, page, 0, PAGE_SIZE);
	}
}

static bool vector_has_error(int vector)
{
	return vector == VEC_DF || (vector >= VEC_TS && vector <= VEC_PF) || vector == VEC_AC;
}

/* What the exception's delivery left on the stack of CPL 0 (SDM 3A 6.14.2). */
static void soft_unwind(struct isa_soft *soft, const struct x86_state *s, struct isa_outcome *out)
{
	const u64 *frame;

	if (s->gpr[X86_RSP] - HIGH > STACK0_TOP - 40 || s->rip - HIGH - HANDLERS > PAGE_SIZE) {
		out->vector = -2;	/* HLT elsewhere, or from a stack that is not the TSS's */
		return;
	}
	frame = soft_fixture_ram(soft->f, s->gpr[X86_RSP] - HIGH, 40);
	out->vector = (int)((s->rip - 1 - HIGH - HANDLERS) / 16);
	if (vector_has_error(out->vector))
		out->error = (u32)*frame++;
	if (out->vector == VEC_PF)
		out->cr2 = s->cr2;
	out->regs.rip = frame[0];
	out->regs.rflags = frame[2];
	out->regs.gpr[X86_RSP] = frame[3];
}

/* Another vCPU has a line of the snippet's memory now, or waits for one: as an instruction of its own would. */
static void soft_take_line(struct isa_soft *soft, struct rng *rng)
{
	static const enum line_kind kinds[] = { LINE_READ, LINE_WRITE, LINE_LOCKED, LINE_STREAM_WRITE, LINE_WALK };
	static const struct soft_op op = { .base = GPR_ZERO, .index = GPR_ZERO };
	struct vm *vm = &soft->f->vm;
	struct soft_cpu *c = soft_cpu(vm->vcpu[1 + rng_next(rng) % (vm->topo.nr_cpus - 1)]);
	u64 line = IMAGE / LINE_BYTES + rng_next(rng) % (sizeof(struct isa_image) / LINE_BYTES);
	enum line_kind kind = kinds[rng_next(rng) % ARRAY_SIZE(kinds)];

	c->end = MAX(c->end - (u64)c->left, soft_units(soft_cpu(vm->vcpu[0])));
	c->left = 0;
	c->cur = &op;
	c->insns++;
	soft_line(c, line, kind, kind != LINE_WRITE && rng_next(rng) & 1);
	c->cur = NULL;
}

/*
 * Instruction by instruction for the first ones, or block by block: what the snippet's memory is in goes to
 * others in between, so that almost any access has to wait for its line.
 */
static enum run_exit soft_run_robbed(struct isa_soft *soft, const struct isa_snippet *s, u64 until)
{
	struct vcpu *vcpu = soft->f->vm.vcpu[0];
	struct soft_cpu *c = soft_cpu(vcpu);
	enum run_exit why = RUN_DEADLINE;
	bool single = s->number & 1;
	struct rng rng;

	rng_seed(&rng, s->number, s->len);
	soft->f->turn_needed = true;
	for (u32 turns = 0; turns < 200 && (why == RUN_DEADLINE || why == RUN_KICK); turns++) {
		u64 now = vcpu->vm->engine->now(vcpu->vm, vcpu), n = rng_next(&rng) % 256;

		while (n--)
			soft_take_line(soft, &rng);
		c->shadow |= single;
		why = vcpu->vm->engine->run(vcpu, now + 1 + rng_next(&rng) % 64);
		soft->waits += c->fault.vector == VEC_LINE;
		c->fault.vector = 0;
	}
	soft->f->turn_needed = false;
	if (why == RUN_DEADLINE || why == RUN_KICK)
		why = soft_fixture_run(soft->f, 0, until);
	return why;
}

void isa_soft_run(struct isa_soft *soft, const struct isa_snippet *s, const struct isa_image *image,
		  struct isa_outcome *out)
{
	struct x86_state st = soft->start;
	struct vm *vm = &soft->f->vm;
	enum run_exit why;
	u64 until;

	soft_load(soft, s, image);
	memcpy(st.gpr, s->in.gpr, sizeof(st.gpr));
	st.rip = s->in.rip;
	st.rflags = s->in.rflags;
	st.fs.base = s->in.fs_base;
	st.gs.base = s->in.gs_base;
	memcpy(st.fxsave, s->in.fx, sizeof(st.fxsave));
	soft_fixture_set(soft->f, 0, &st);
	until = vm->engine->now(vm, vm->vcpu[0]) + MAX_NS;
	why = soft->memory ? soft_run_robbed(soft, s, until) : soft_fixture_run(soft->f, 0, until);
	soft_fixture_get(soft->f, 0, &st);

	memset(&out->regs, 0, sizeof(out->regs));
	out->vector = -1;
	out->error = 0;
	out->cr2 = 0;
	memcpy(out->regs.gpr, st.gpr, sizeof(st.gpr));
	out->regs.rip = st.rip;
	out->regs.rflags = st.rflags;
	out->regs.fs_base = st.fs.base;
	out->regs.gs_base = st.gs.base;
	out->regs.ds = st.ds.selector;
	out->regs.es = st.es.selector;
	memcpy(out->regs.fx, st.fxsave, sizeof(st.fxsave));
	memcpy(&out->mem, soft->image, sizeof(out->mem));
	if (why == RUN_HLT)
		soft_unwind(soft, &st, out);
	else if (why != RUN_DEADLINE)
		out->vector = -2;	/* shutdown or an error */
}
