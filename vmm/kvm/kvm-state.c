// SPDX-License-Identifier: GPL-2.0-only
/* struct x86_state to and from KVM's register structures. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "kvm/kvm.h"
#include "x86/msr.h"

/* Where every x86 has its local APIC at power-up (SDM 3A 10.4.1). */
#define KVM_LAPIC_BASE	0xfee00000ull

static void seg_to_kvm(struct kvm_segment *k, const struct x86_segment *s)
{
	*k = (struct kvm_segment) {
		.base = s->base, .limit = s->limit, .selector = s->selector,
		.type = s->attr & 0xf, .s = s->attr >> 4 & 1, .dpl = s->attr >> 5 & 3, .present = s->attr >> 7 & 1,
		.avl = s->attr >> 12 & 1, .l = s->attr >> 13 & 1, .db = s->attr >> 14 & 1, .g = s->attr >> 15 & 1,
		.unusable = s->unusable,
	};
}

static void seg_from_kvm(struct x86_segment *s, const struct kvm_segment *k)
{
	*s = (struct x86_segment) {
		.base = k->base, .limit = k->limit, .selector = k->selector,
		.attr = (u16)(k->type | k->s << 4 | k->dpl << 5 | k->present << 7 | k->avl << 12 | k->l << 13 |
			      k->db << 14 | k->g << 15),
		.unusable = k->unusable,
	};
}

/* One list for both directions. */
static const struct { u32 msr; size_t off; } state_msr[] = {
	{ MSR_STAR, offsetof(struct x86_state, star) },
	{ MSR_LSTAR, offsetof(struct x86_state, lstar) },
	{ MSR_CSTAR, offsetof(struct x86_state, cstar) },
	{ MSR_SYSCALL_MASK, offsetof(struct x86_state, sfmask) },
	{ MSR_KERNEL_GS_BASE, offsetof(struct x86_state, kernel_gs_base) },
	{ MSR_IA32_SYSENTER_CS, offsetof(struct x86_state, sysenter_cs) },
	{ MSR_IA32_SYSENTER_ESP, offsetof(struct x86_state, sysenter_esp) },
	{ MSR_IA32_SYSENTER_EIP, offsetof(struct x86_state, sysenter_eip) },
	{ MSR_IA32_PAT, offsetof(struct x86_state, pat) },
};

/* struct kvm_msrs ends in a flexible array: room for the list behind it. */
union msr_block {
	struct kvm_msrs head;
	u8 room[sizeof(struct kvm_msrs) + ARRAY_SIZE(state_msr) * sizeof(struct kvm_msr_entry)];
};

static int state_error(const struct vcpu *vcpu, const char *what, int err)
{
	fb_err("kvm: %s of vCPU %u: %s", what, vcpu->id, strerror(err));
	return -err;
}

static int get_msrs(struct vcpu *vcpu, struct kvm_vcpu *kv, struct x86_state *state)
{
	union msr_block b = { .room = { 0 } };
	size_t i;

	b.head.nmsrs = ARRAY_SIZE(state_msr);
	for (i = 0; i < ARRAY_SIZE(state_msr); i++)
		b.head.entries[i].index = state_msr[i].msr;
	if (ioctl(kv->fd, KVM_GET_MSRS, &b) != (int)ARRAY_SIZE(state_msr))
		return state_error(vcpu, "reading MSRs", errno ? errno : EIO);
	for (i = 0; i < ARRAY_SIZE(state_msr); i++)
		memcpy((u8 *)state + state_msr[i].off, &b.head.entries[i].data, sizeof(u64));
	return 0;
}

static int set_msrs(struct vcpu *vcpu, struct kvm_vcpu *kv, const struct x86_state *state)
{
	union msr_block b = { .room = { 0 } };
	size_t i;

	b.head.nmsrs = ARRAY_SIZE(state_msr);
	for (i = 0; i < ARRAY_SIZE(state_msr); i++) {
		b.head.entries[i].index = state_msr[i].msr;
		memcpy(&b.head.entries[i].data, (const u8 *)state + state_msr[i].off, sizeof(u64));
	}
	if (ioctl(kv->fd, KVM_SET_MSRS, &b) != (int)ARRAY_SIZE(state_msr))
		return state_error(vcpu, "writing MSRs", errno ? errno : EIO);
	return 0;
}

/* KVM's register file in the order of enum x86_gpr. */
static void gprs_to_kvm(struct kvm_regs *r, const struct x86_state *s)
{
	r->rax = s->gpr[X86_RAX]; r->rcx = s->gpr[X86_RCX]; r->rdx = s->gpr[X86_RDX]; r->rbx = s->gpr[X86_RBX];
	r->rsp = s->gpr[X86_RSP]; r->rbp = s->gpr[X86_RBP]; r->rsi = s->gpr[X86_RSI]; r->rdi = s->gpr[X86_RDI];
	r->r8 = s->gpr[X86_R8]; r->r9 = s->gpr[X86_R9]; r->r10 = s->gpr[X86_R10]; r->r11 = s->gpr[X86_R11];
	r->r12 = s->gpr[X86_R12]; r->r13 = s->gpr[X86_R13]; r->r14 = s->gpr[X86_R14]; r->r15 = s->gpr[X86_R15];
	r->rip = s->rip;
	r->rflags = s->rflags;
}

static void gprs_from_kvm(struct x86_state *s, const struct kvm_regs *r)
{
	s->gpr[X86_RAX] = r->rax; s->gpr[X86_RCX] = r->rcx; s->gpr[X86_RDX] = r->rdx; s->gpr[X86_RBX] = r->rbx;
	s->gpr[X86_RSP] = r->rsp; s->gpr[X86_RBP] = r->rbp; s->gpr[X86_RSI] = r->rsi; s->gpr[X86_RDI] = r->rdi;
	s->gpr[X86_R8] = r->r8; s->gpr[X86_R9] = r->r9; s->gpr[X86_R10] = r->r10; s->gpr[X86_R11] = r->r11;
	s->gpr[X86_R12] = r->r12; s->gpr[X86_R13] = r->r13; s->gpr[X86_R14] = r->r14; s->gpr[X86_R15] = r->r15;
	s->rip = r->rip;
	s->rflags = r->rflags;
}

int kvm_vcpu_get_state(struct vcpu *vcpu, struct x86_state *state)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_sregs sr;
	struct kvm_regs r;
	struct kvm_fpu fpu;

	if (ioctl(kv->fd, KVM_GET_REGS, &r) < 0 || ioctl(kv->fd, KVM_GET_SREGS, &sr) < 0 ||
	    ioctl(kv->fd, KVM_GET_FPU, &fpu) < 0)
		return state_error(vcpu, "reading registers", errno);
	memset(state, 0, sizeof(*state));
	gprs_from_kvm(state, &r);
	seg_from_kvm(&state->cs, &sr.cs);
	seg_from_kvm(&state->ds, &sr.ds);
	seg_from_kvm(&state->es, &sr.es);
	seg_from_kvm(&state->fs, &sr.fs);
	seg_from_kvm(&state->gs, &sr.gs);
	seg_from_kvm(&state->ss, &sr.ss);
	seg_from_kvm(&state->tr, &sr.tr);
	seg_from_kvm(&state->ldt, &sr.ldt);
	state->gdt = (struct x86_table) { sr.gdt.base, sr.gdt.limit };
	state->idt = (struct x86_table) { sr.idt.base, sr.idt.limit };
	state->cr0 = sr.cr0;
	state->cr2 = sr.cr2;
	state->cr3 = sr.cr3;
	state->cr4 = sr.cr4;
	state->efer = sr.efer;
	/* FXSAVE's layout, SDM 1 table 10-2: FCW, FSW, abridged FTW, FOP, FIP, FDP, MXCSR, ST, XMM. */
	memcpy(state->fxsave, &fpu.fcw, 2);
	memcpy(state->fxsave + 2, &fpu.fsw, 2);
	state->fxsave[4] = fpu.ftwx;
	memcpy(state->fxsave + 6, &fpu.last_opcode, 2);
	memcpy(state->fxsave + 8, &fpu.last_ip, 8);
	memcpy(state->fxsave + 16, &fpu.last_dp, 8);
	memcpy(state->fxsave + 24, &fpu.mxcsr, 4);
	memcpy(state->fxsave + 32, fpu.fpr, sizeof(fpu.fpr));
	memcpy(state->fxsave + 160, fpu.xmm, sizeof(fpu.xmm));
	return get_msrs(vcpu, kv, state);
}

int kvm_vcpu_set_state(struct vcpu *vcpu, const struct x86_state *state)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_sregs sr;
	struct kvm_regs r;
	struct kvm_fpu fpu;

	memset(&fpu, 0, sizeof(fpu));
	/* What is not in x86_state (APIC base, pending interrupt) stays as it is. */
	if (ioctl(kv->fd, KVM_GET_SREGS, &sr) < 0)
		return state_error(vcpu, "reading registers", errno);
	memset(&r, 0, sizeof(r));
	gprs_to_kvm(&r, state);
	seg_to_kvm(&sr.cs, &state->cs);
	seg_to_kvm(&sr.ds, &state->ds);
	seg_to_kvm(&sr.es, &state->es);
	seg_to_kvm(&sr.fs, &state->fs);
	seg_to_kvm(&sr.gs, &state->gs);
	seg_to_kvm(&sr.ss, &state->ss);
	seg_to_kvm(&sr.tr, &state->tr);
	seg_to_kvm(&sr.ldt, &state->ldt);
	sr.gdt = (struct kvm_dtable) { .base = state->gdt.base, .limit = state->gdt.limit };
	sr.idt = (struct kvm_dtable) { .base = state->idt.base, .limit = state->idt.limit };
	sr.cr0 = state->cr0;
	sr.cr2 = state->cr2;
	sr.cr3 = state->cr3;
	sr.cr4 = state->cr4;
	sr.efer = state->efer;
	memset(sr.interrupt_bitmap, 0, sizeof(sr.interrupt_bitmap));
	memcpy(&fpu.fcw, state->fxsave, 2);
	memcpy(&fpu.fsw, state->fxsave + 2, 2);
	fpu.ftwx = state->fxsave[4];
	memcpy(&fpu.last_opcode, state->fxsave + 6, 2);
	memcpy(&fpu.last_ip, state->fxsave + 8, 8);
	memcpy(&fpu.last_dp, state->fxsave + 16, 8);
	memcpy(&fpu.mxcsr, state->fxsave + 24, 4);
	memcpy(fpu.fpr, state->fxsave + 32, sizeof(fpu.fpr));
	memcpy(fpu.xmm, state->fxsave + 160, sizeof(fpu.xmm));
	if (ioctl(kv->fd, KVM_SET_SREGS, &sr) < 0 || ioctl(kv->fd, KVM_SET_REGS, &r) < 0 ||
	    ioctl(kv->fd, KVM_SET_FPU, &fpu) < 0)
		return state_error(vcpu, "writing registers", errno);
	return set_msrs(vcpu, kv, state);
}

int kvm_vcpu_set_apic_base(struct vcpu *vcpu)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_sregs sr;

	if (vcpu->vm->apic == APIC_KERNEL)
		return 0;
	if (ioctl(kv->fd, KVM_GET_SREGS, &sr) < 0)
		return state_error(vcpu, "reading registers", errno);
	sr.apic_base = KVM_LAPIC_BASE | APIC_BASE_ENABLE | (vcpu->id == 0 ? APIC_BASE_BSP : 0);
	kv->apic_base = sr.apic_base;
	if (ioctl(kv->fd, KVM_SET_SREGS, &sr) < 0)
		return state_error(vcpu, "setting the APIC base", errno);
	return 0;
}

/* Another thread would wait for KVM_RUN to end, and that may be waiting for it (second-level faults). */
bool kvm_vcpu_rip(struct vcpu *vcpu, u64 *rip)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_regs regs;

	if (__atomic_load_n(&kv->tid, __ATOMIC_ACQUIRE) && !pthread_equal(kv->thread, pthread_self()))
		return false;
	if (ioctl(kv->fd, KVM_GET_REGS, &regs) < 0)
		return false;
	*rip = regs.rip;
	return true;
}

bool kvm_vcpu_peek(struct vcpu *vcpu, u64 va, gpa_t *gpa)
{
	struct kvm_vcpu *kv = vcpu->engine;
	struct kvm_translation tr = { .linear_address = va };

	if (ioctl(kv->fd, KVM_TRANSLATE, &tr) < 0 || !tr.valid)
		return false;
	*gpa = tr.physical_address;
	return true;
}
