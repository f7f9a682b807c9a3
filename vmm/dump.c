// SPDX-License-Identifier: GPL-2.0-only
/* The state of a VM's vCPUs, for a person. */
#include "dump.h"

#include "base/log.h"
#include "core/engine.h"
#include "core/symbols.h"
#include "core/trace.h"
#include "machine/lapic.h"
#include "x86/cr.h"

#define CODE_BEFORE	8u	/* bytes */
#define CODE_AFTER	16u
/* Words of the stack: so many are looked at for names, so many are shown as they are, so many names at most. */
#define STACK_WORDS	128u
#define STACK_RAW	8u
#define STACK_NAMES	12u

#define SEG_L		BIT(13)		/* of x86_segment.attr */
#define SEG_DB		BIT(14)

static const char *dump_mode(const struct x86_state *s)
{
	if (!(s->cr0 & X86_CR0_PE))
		return "real mode";
	if (s->rflags & X86_EFLAGS_VM)
		return "virtual-8086 mode";
	if (s->efer & X86_EFER_LMA)
		return s->cs.attr & SEG_L ? "64-bit mode" : "compatibility mode";
	return s->cs.attr & SEG_DB ? "32-bit mode" : "16-bit protected mode";
}

static bool dump_long(const struct x86_state *s)
{
	return s->efer & X86_EFER_LMA && s->cs.attr & SEG_L;
}

/* Guest memory by linear address, as the page tables have it now. False if there is none, or no way to know. */
static bool dump_read(struct vcpu *vcpu, u64 va, void *buf, u32 len)
{
	const struct engine_ops *engine = vcpu->vm->engine;
	u8 *to = buf;
	gpa_t gpa;

	for (; len; va++, to++, len--)
		if (!engine->peek || !engine->peek(vcpu, va, &gpa) || memory_read(&vcpu->vm->mem, gpa, to, 1))
			return false;
	return true;
}

static void add_symbol(GString *text, const struct vm *vm, u64 address)
{
	u64 offset;
	const char *name = symbols_find(vm->symbols, address, &offset);

	if (name)
		g_string_append_printf(text, " %s+0x%llx", name, (unsigned long long)offset);
}

static void dump_line(GString *text)
{
	fb_info("  %s", text->str);
	g_string_truncate(text, 0);
}

static void dump_code(struct vcpu *vcpu, const struct x86_state *s, GString *text)
{
	u64 rip = s->rip + (dump_long(s) ? 0 : s->cs.base), at;
	u8 byte;

	g_string_append_printf(text, "rip 0x%llx", (unsigned long long)s->rip);
	add_symbol(text, vcpu->vm, s->rip);
	g_string_append_c(text, ':');
	for (at = rip - CODE_BEFORE; at != rip + CODE_AFTER; at++)
		if (dump_read(vcpu, at, &byte, 1))
			g_string_append_printf(text, at == rip ? " <%02x>" : " %02x", byte);
		else
			g_string_append(text, at == rip ? " <?" "?>" : " ?" "?");
	dump_line(text);
}

static void dump_registers(const struct x86_state *s, GString *text)
{
	static const char *const name[NR_X86_GPRS] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8 ", "r9 ", "r10", "r11", "r12", "r13", "r14", "r15",
	};
	u32 i;

	for (i = 0; i < NR_X86_GPRS; i++) {
		g_string_append_printf(text, "%s%s %016llx", i % 4 ? "  " : "", name[i], (unsigned long long)s->gpr[i]);
		if (i % 4 == 3)
			dump_line(text);
	}
	g_string_printf(text, "rflags %llx  cr0 %llx  cr2 %llx  cr3 %llx  cr4 %llx  efer %llx",
			(unsigned long long)s->rflags, (unsigned long long)s->cr0, (unsigned long long)s->cr2,
			(unsigned long long)s->cr3, (unsigned long long)s->cr4, (unsigned long long)s->efer);
	dump_line(text);
}

static void dump_segments(const struct x86_state *s, GString *text)
{
	const struct { const char *name; const struct x86_segment *seg; } all[] = {
		{ "cs", &s->cs }, { "ss", &s->ss }, { "ds", &s->ds }, { "es", &s->es }, { "fs", &s->fs },
		{ "gs", &s->gs }, { "tr", &s->tr }, { "ldt", &s->ldt },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		const struct x86_segment *seg = all[i].seg;

		g_string_append_printf(text, "%s%s %04x base %llx limit %x attr %x%s", i % 4 ? ", " : "", all[i].name,
				       seg->selector, (unsigned long long)seg->base, seg->limit, seg->attr,
				       seg->unusable ? " (unusable)" : "");
		if (i % 4 == 3)
			dump_line(text);
	}
	g_string_printf(text, "gdt %llx limit %x, idt %llx limit %x, kernel gs base %llx",
			(unsigned long long)s->gdt.base, s->gdt.limit, (unsigned long long)s->idt.base, s->idt.limit,
			(unsigned long long)s->kernel_gs_base);
	dump_line(text);
}

/* Raw words, then whatever looks like an address of a function: with no frame pointers, that is what can be said. */
static void dump_stack(struct vcpu *vcpu, const struct x86_state *s, GString *text)
{
	u32 width = dump_long(s) ? 8 : s->ss.attr & SEG_DB ? 4 : 2, i, names = 0;
	u64 at = s->gpr[X86_RSP] + (dump_long(s) ? 0 : s->ss.base), word, offset;

	g_string_append(text, "stack:");
	for (i = 0; i < STACK_RAW; i++) {
		word = 0;
		if (!dump_read(vcpu, at + i * width, &word, width)) {
			g_string_append(text, " (not mapped)");
			break;
		}
		g_string_append_printf(text, " %0*llx", (int)width * 2, (unsigned long long)word);
	}
	dump_line(text);
	for (i = 0; i < STACK_WORDS && names < STACK_NAMES && width == 8; i++) {
		if (!dump_read(vcpu, at + i * width, &word, width))
			break;
		if (!symbols_find(vcpu->vm->symbols, word, &offset))
			continue;
		g_string_append(text, names++ ? "," : "perhaps called by:");
		add_symbol(text, vcpu->vm, word);
	}
	if (names)
		dump_line(text);
}

static void add_vectors(GString *text, const char *name, const u32 *bits)
{
	const char *before = "";
	u32 i;

	g_string_append_printf(text, "%s ", name);
	for (i = 0; i < 256; i++) {
		if (!(bits[i / 32] & BIT(i % 32)))
			continue;
		g_string_append_printf(text, "%s0x%x", before, i);
		before = ",";
	}
	g_string_append(text, *before ? "; " : "none; ");
}

static void dump_pending(const struct vcpu *vcpu, u64 now, GString *text)
{
	u64 first = clock_first(&vcpu->clock);

	if (vcpu->lapic) {
		add_vectors(text, "irr", vcpu->lapic->irr);
		add_vectors(text, "isr", vcpu->lapic->isr);
		g_string_append_printf(text, "tpr 0x%x; to be delivered now: %d; ", vcpu->lapic->tpr,
				       lapic_pending(vcpu->lapic));
	} else {
		g_string_append(text, "local APIC: KVM's; ");
	}
	if (vcpu->nmi_pending)
		g_string_append(text, "NMI pending; ");
	if (first == CLOCK_NEVER)
		g_string_append(text, "no event to come");
	else
		g_string_append_printf(text, "next event in %lld ns", (long long)(first - now));
	dump_line(text);
}

static void dump_counters(const struct vcpu *vcpu, GString *text)
{
	u32 i;

	g_string_append(text, "counted:");
	for (i = 0; i < NR_COUNTERS; i++)
		if (counter_read(&vcpu->counters, i))
			g_string_append_printf(text, " %s=%llu", counter_desc[i].name,
					       (unsigned long long)counter_read(&vcpu->counters, i));
	dump_line(text);
}

static void dump_last_exit(const struct vcpu *vcpu, GString *text)
{
	if (!vcpu->last_exit.what) {
		g_string_append(text, "no exit yet");
		return;
	}
	g_string_append_printf(text, "last exit %s", vcpu->last_exit.what);
	if (vcpu->last_exit.address != TRACE_NONE)
		g_string_append_printf(text, " 0x%llx", (unsigned long long)vcpu->last_exit.address);
	g_string_append_printf(text, " at %.9f s", (double)vcpu->last_exit.ns / 1e9);
}

static void dump_engine(struct vcpu *vcpu)
{
	char *text = vcpu->vm->engine->dump ? vcpu->vm->engine->dump(vcpu) : NULL, **lines, **l;

	if (!text)
		return;
	lines = g_strsplit(g_strchomp(text), "\n", -1);
	for (l = lines; *l; l++)
		fb_info("  %s", *l);
	g_strfreev(lines);
	g_free(text);
}

static void dump_vcpu(struct vcpu *vcpu)
{
	static const char *const mp_name[] = { "runnable", "halted", "waiting for SIPI" };
	u64 now = vcpu->vm->engine->now(vcpu->vm, vcpu);
	struct x86_state *s = g_new0(struct x86_state, 1);
	GString *text = g_string_new(NULL);

	dump_last_exit(vcpu, text);
	if (vcpu->vm->engine->get_state(vcpu, s)) {
		fb_info("vcpu %u: %s at %.9f s, %s", vcpu->id, mp_name[vcpu->mp_state], (double)now / 1e9, text->str);
		goto out;
	}
	fb_info("vcpu %u (APIC id 0x%x): %s, %s, CPL %u, at %.9f s, %s", vcpu->id, vcpu->apic_id, mp_name[vcpu->mp_state],
		dump_mode(s), s->cr0 & X86_CR0_PE ? s->ss.attr >> 5 & 3 : 0, (double)now / 1e9, text->str);
	/* One that was never started has nothing more to tell. */
	if (vcpu->mp_state == VCPU_WAIT_SIPI)
		goto out;
	g_string_truncate(text, 0);
	dump_code(vcpu, s, text);
	dump_registers(s, text);
	dump_segments(s, text);
	dump_stack(vcpu, s, text);
	dump_pending(vcpu, now, text);
	dump_counters(vcpu, text);
	dump_engine(vcpu);
out:
	g_string_free(text, TRUE);
	g_free(s);
}

void dump_symbols(struct vm *vm, const char *system_map)
{
	char *err = NULL;

	if (vm->symbols || !system_map)
		return;
	vm->symbols = symbols_read(system_map, &err);
	if (!vm->symbols)
		fb_warn("%s: no names of functions", err);
	g_free(err);
}

void dump_vcpus(struct vm *vm)
{
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++)
		dump_vcpu(vm->vcpu[i]);
}

void dump_request(struct vm *vm)
{
	u32 i;

	for (i = 0; i < vm->topo.nr_cpus; i++)
		__atomic_store_n(&vm->vcpu[i]->dump, true, __ATOMIC_RELEASE);
	vm->kick_all(vm);
}

void dump_requested(struct vcpu *vcpu)
{
	if (!__atomic_exchange_n(&vcpu->dump, false, __ATOMIC_ACQ_REL))
		return;
	/* Not in each other's midst. */
	g_mutex_lock(&vcpu->vm->lock);
	dump_vcpu(vcpu);
	g_mutex_unlock(&vcpu->vm->lock);
}
