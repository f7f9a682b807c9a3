/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of core/cpuid: the feature bits of CPU model faultbed-v1. Pure functions;
 * nothing here is for others than cpuid.c and cpuid-model.c.
 */
#ifndef CORE_CPUID_MODEL_H
#define CORE_CPUID_MODEL_H

#include "core/cpuid.h"

enum cpuid_reg { CPUID_EAX, CPUID_EBX, CPUID_ECX, CPUID_EDX };

static inline u32 *cpuid_reg(struct cpuid_entry *e, enum cpuid_reg reg)
{
	switch (reg) {
	case CPUID_EAX: return &e->eax;
	case CPUID_EBX: return &e->ebx;
	case CPUID_ECX: return &e->ecx;
	case CPUID_EDX: break;
	}
	return &e->edx;
}

/* The model's bits of a feature word for the vendor in params, less what the host cannot do. */
u32 cpuid_model_word(const struct cpuid_params *params, u32 leaf, enum cpuid_reg reg);
/* Names, comma separated, of bits that the host lacks: all, or only those without which nothing runs. g_free(). */
char *cpuid_model_missing(const struct cpuid_params *params, bool required_only);

#endif
