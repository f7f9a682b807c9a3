// SPDX-License-Identifier: GPL-2.0-only
/*
 * The x87's environment and whole state to and from memory, in the formats of
 * protected mode (SDM 1 figures 8-9 and 8-11); in real mode the pointers lie as there,
 * too. The image's size, 14, 28, 94 or 108 bytes, is op->size.
 */
#include "soft/x87.h"

static void put16(u8 *p, u16 v)
{
	memcpy(p, &v, 2);
}

static u16 get16(const u8 *p)
{
	u16 v;

	memcpy(&v, p, 2);
	return v;
}

/* Unused halves of the 32-bit format are stored as ones. */
static u32 env_make(struct soft_cpu *c, u8 *buf, bool wide)
{
	u16 fip = get16(c->fx + FX_FIP), fdp = get16(c->fx + FX_FDP);

	if (!wide) {
		u16 env[7] = { *x87_u16(c, FX_FCW), *x87_u16(c, FX_FSW), x87_full_tags(c), fip, 0, fdp, 0 };

		memcpy(buf, env, 14);
		return 14;
	}
	memset(buf, 0xff, 28);
	put16(buf, *x87_u16(c, FX_FCW));
	put16(buf + 4, *x87_u16(c, FX_FSW));
	put16(buf + 8, x87_full_tags(c));
	memcpy(buf + 12, c->fx + FX_FIP, 4);
	put16(buf + 16, 0);
	put16(buf + 18, *x87_u16(c, FX_FOP));
	memcpy(buf + 20, c->fx + FX_FDP, 4);
	put16(buf + 24, 0);
	return 28;
}

static u32 env_take(struct soft_cpu *c, const u8 *buf, bool wide)
{
	u32 step = wide ? 4 : 2;

	c->fx[FX_FTW] = x87_short_tags(get16(buf + 2 * step));
	memset(c->fx + FX_FIP, 0, 16);
	memcpy(c->fx + FX_FIP, buf + 3 * step, step);
	memcpy(c->fx + FX_FDP, buf + 5 * step, step);
	*x87_u16(c, FX_FOP) = wide ? get16(buf + 18) & 0x7ff : 0;
	x87_set_control(c, get16(buf), get16(buf + step));
	return 7 * step;
}

/* Pieces that do not cross a page; the caller has seen to it that the whole can be written. */
static int store(struct soft_cpu *c, const struct soft_op *op, u64 ea, const u8 *buf, u32 len)
{
	if (soft_check_write(c, op, ea, len))
		return SOFT_FAULT;
	for (u32 at = 0, n; at < len; at += n) {
		n = MIN(len - at, 32u);
		if (soft_store_slow(c, op, ea + at, buf + at, n))
			return SOFT_FAULT;
		c->accesses++;
	}
	return 0;
}

static int load(struct soft_cpu *c, const struct soft_op *op, u64 ea, u8 *buf, u32 len)
{
	for (u32 at = 0, n; at < len; at += n) {
		n = MIN(len - at, 32u);
		if (soft_load_slow(c, op, ea + at, n))
			return SOFT_FAULT;
		memcpy(buf + at, c->val, n);
		c->accesses++;
	}
	return 0;
}

/* After FNSTENV all exceptions are masked, after FNSAVE the FPU is as after FNINIT (SDM 2A). */
static __attribute__((noinline)) int save(struct soft_cpu *c, const struct soft_op *op)
{
	bool all = op->size >= 94;
	u8 buf[112];
	u32 at = env_make(c, buf, op->size == 28 || op->size == 108);

	for (u32 i = 0; all && i < 8; i++)
		memcpy(buf + at + 10 * i, c->fx + FX_ST + 16 * i, 10);
	if (store(c, op, soft_ea(c, op), buf, op->size))
		return SOFT_FAULT;
	if (all)
		x87_init(c);
	else
		x87_set_control(c, *x87_u16(c, FX_FCW) | FSW_FLAGS, *x87_u16(c, FX_FSW));
	return 0;
}

static __attribute__((noinline)) int restore(struct soft_cpu *c, const struct soft_op *op)
{
	u8 buf[112];
	u32 at;

	if (load(c, op, soft_ea(c, op), buf, op->size))
		return SOFT_FAULT;
	at = env_take(c, buf, op->size == 28 || op->size == 108);
	for (u32 i = 0; op->size >= 94 && i < 8; i++)
		memcpy(c->fx + FX_ST + 16 * i, buf + at + 10 * i, 10);
	return 0;
}

static int op_save(struct soft_cpu *c, const struct soft_op *op)
{
	X87_READY(c, op);
	if (unlikely(save(c, op)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

static int op_restore(struct soft_cpu *c, const struct soft_op *op)
{
	X87_WAIT(c, op);
	if (unlikely(restore(c, op)))
		return soft_faulted(c, op);
	SOFT_NEXT(c, op);
}

bool x87_decode_env(struct soft_decode *d, struct soft_op *op)
{
	switch (d->insn->mnemonic) {
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FNSAVE:
		op->fn = op_save;
		break;
	case ZYDIS_MNEMONIC_FLDENV:
	case ZYDIS_MNEMONIC_FRSTOR:
		op->fn = op_restore;
		break;
	default:
		return false;
	}
	soft_decode_mem(d, op, 0);
	op->size = (u8)(d->arg[0].size / 8);
	return true;
}
