// SPDX-License-Identifier: GPL-2.0-only
/* What a guest's console says of its kernel: what marks a result, what ends a run, and what does neither. */
#include "console.h"

#include <string.h>

static void say(struct console *c, const char *text)
{
	for (; *text; text++)
		console_byte(c, (u8)*text);
}

/* How many lines of `text` mark a result. */
static guint marks(const char *text)
{
	struct console c;
	guint n;

	console_init(&c, -1);
	say(&c, text);
	n = c.marked->len;
	if (n)
		g_assert_true(g_str_has_prefix(text, c.marked->pdata[0]));
	g_assert_false(c.panic);
	console_destroy(&c);
	return n;
}

static void test_marks(void)
{
	static const char *const bad[] = {
		"[    1.234567] WARNING: CPU: 2 PID: 71 at mm/rmap.c:12 f+0x1/0x2\r\n",
		"[12345.678901] WARNING: CPU: 2 PID: 71 at mm/rmap.c:12 f+0x1/0x2\r\n",
		"WARNING: CPU: 2 PID: 71 at mm/rmap.c:12 f+0x1/0x2\n",
		"[    1.234567] WARNING: possible circular locking dependency detected\n",
		"[    1.234567][    T1] WARNING: suspicious RCU usage\n",
		"WARNING: possible recursive locking detected\n",
		"[    1.234567] INFO: trying to register non-static key.\n",
		"[    1.234567] INFO: task init:1 blocked for more than 60 seconds.\n",
		"[    1.234567] rcu: INFO: rcu_sched self-detected stall on CPU\n",
		"[    1.234567] BUG: sleeping function called from invalid context at mm/gup.c:1\n",
		"[    1.234567] BUG: KASAN: slab-use-after-free in f+0x1/0x2\n",
		"[    1.234567] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]\n",
		"[    1.234567] BUG: Bad rss-counter state mm:00000000 type:MM_ANONPAGES val:1\n",
		"[    1.234567] UBSAN: shift-out-of-bounds in mm/x.c:1:2\n",
	};
	static const char *const fine[] = {
		"[    0.021533] Measured 2795 cycles TSC warp between CPUs, turning off TSC clock.\n",
		"INFO: 12 threads started\n",
		"WARNING: this load was scaled down\n",
		"[INFO: 1.234567] BUG: a program's\n",
		"[    1.2345678] INFO: a program's, whose clock is finer\n",
		"[    1] BUG: a program's\n",
		"[\n",
		"\n",
		"[    1.234567]\n",
		"[    1.234567] WARNING: no end of line",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_test_message("%s", bad[i]);
		g_assert_cmpuint(marks(bad[i]), ==, 1);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(fine); i++) {
		g_test_message("%s", fine[i]);
		g_assert_cmpuint(marks(fine[i]), ==, 0);
	}
}

static void test_ends(void)
{
	struct console c;

	console_init(&c, -1);
	say(&c, "[    1.234567] BUG: unable to handle page fault for address: 0000000000001000\n");
	g_assert_true(c.oops);
	g_assert_false(c.panic);
	say(&c, "[    1.234568] Kernel panic - not syncing: Fatal exception");
	g_assert_false(c.panic);
	say(&c, "\n");
	g_assert_true(c.panic);
	console_destroy(&c);
}

/* A kernel that complains without end costs no more than a few lines. */
static void test_flood(void)
{
	struct console c;

	console_init(&c, -1);
	for (u32 i = 0; i < 20000; i++)
		say(&c, "[    1.234567] WARNING: CPU: 2 PID: 71 at mm/rmap.c:12 f+0x1/0x2\n");
	g_assert_cmpuint(c.marked->len, ==, 20);
	g_assert_cmpuint(c.keep->len, <=, 2 * CONSOLE_KEEP);
	console_destroy(&c);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/console/marks", test_marks);
	g_test_add_func("/console/ends", test_ends);
	g_test_add_func("/console/flood", test_flood);
	return g_test_run();
}
