// SPDX-License-Identifier: GPL-2.0-only
/*
 * bad-guest MODE: a guest that misbehaves, one way a mode, for tests of what the
 * host makes of it. `bad-guest` alone lists the modes and how each should end.
 *
 * All values are pseudo-random from a fixed seed (FAULTBED_SEED, else 1), so that
 * what breaks a host breaks it again. Modes that write to devices need root, and
 * /dev/mem without STRICT_DEVMEM or /dev/cpu/0/msr where they say so.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cpu.h"
#include "lib/guest.h"
#include "lib/roi.h"
#include "lib/util.h"

/* The machine's device pages (vmm/machine/layout.h). */
#define MMIO_VIRTIO	0xd0000000u
#define MMIO_IOAPIC	0xfec00000u
#define MMIO_LAPIC	0xfee00000u
/* Where the kernel's text is mapped, and that it is there without KASLR. */
#define KERNEL_MAP	0xffffffff80000000ull

struct rng {
	u64 state;
};

/* xorshift64* (Vigna, 2016): enough to look like rubbish. */
static u64 rng_next(struct rng *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

static struct rng rng_new(void)
{
	return (struct rng){ .state = env_u64("FAULTBED_SEED", 1) * 2 + 1 };
}

static void need_ports(void)
{
	if (iopl(3))
		die_errno(EXIT_UNSUPPORTED, "iopl (X86_IOPL_IOPERM, and root)");
}

static bool is_uart(u32 port)
{
	return (port >= 0x3f8 && port < 0x400) || (port >= 0x2f8 && port < 0x300);
}

/*
 * A value that does not end the guest at once: keyboard controller and port
 * 0x92 reset it, PM1a control can put it to sleep, 0xcf9 is a PC's reset.
 */
static bool ends_guest(u32 port, u32 value)
{
	return port == ROI_PORT_EXIT || port == ROI_PORT_MARK || port == 0x64 || port == 0xcf9 ||
	       (port == 0x92 && (value & 1)) || (port >= 0x600 && port < 0x608);
}

static int bad_ports(const char *arg)
{
	struct rng r = rng_new();

	need_ports();
	/* All where devices are; of the others, each an exit for nothing, some. */
	for (u32 port = 0; port < 0x10000; port += port < 0x1000 ? 1 : 61) {
		u64 v = rng_next(&r);

		/* Wide accesses reach the ports behind, too. */
		if (is_uart(port) || is_uart(port + 3) || ends_guest(port, 1) ||
		    ends_guest(port + 3, 1) || ends_guest(port + 1, 1) || ends_guest(port + 2, 1))
			continue;
		outb((u8)v, (u16)port);
		if (port < 0x1000) {
			outw((u16)v, (u16)port);
			outl((u32)v, (u16)port);
			(void)inb((u16)port);
			(void)inw((u16)port);
			(void)inl((u16)port);
		}
	}
	puts("bad-guest: wrote to all ports but the UARTs and those that end the guest");
	return EXIT_OK;
}

static int bad_uart(const char *arg)
{
	struct rng r = rng_new();

	need_ports();
	for (u32 i = 0; i < 20000; i++) {
		u64 v = rng_next(&r);

		outb((u8)v, (u16)((v & 0x800 ? 0x3f8 : 0x2f8) + (v >> 8 & 7)));
	}
	puts("bad-guest: wrote to all registers of both UARTs");
	return EXIT_OK;
}

static int bad_marks(const char *arg)
{
	need_ports();
	for (u32 i = 0; i < 256 * 40; i++)
		outb((u8)i, ROI_PORT_MARK);
	puts("bad-guest: wrote every mark 40 times");
	return EXIT_OK;
}

static volatile u32 *map_physical(u64 addr, size_t bytes)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);
	void *p;

	if (fd < 0)
		die_errno(EXIT_UNSUPPORTED, "/dev/mem (DEVMEM)");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)addr);
	if (p == MAP_FAILED)
		die_errno(EXIT_UNSUPPORTED, "/dev/mem at %#llx (STRICT_DEVMEM is in the way)",
			  (unsigned long long)addr);
	close(fd);
	return p;
}

static void write_page(u64 addr, struct rng *r)
{
	volatile u32 *page = map_physical(addr, PAGE_BYTES);
	volatile u8 *byte = (volatile u8 *)page;

	for (u32 i = 0; i < PAGE_BYTES / 4; i++) {
		page[i] = (u32)rng_next(r);
		(void)page[i];
	}
	/* Widths and alignments that no driver uses. */
	for (u32 i = 0; i < 64; i++) {
		u64 v = rng_next(r);

		byte[v % PAGE_BYTES] = (u8)(v >> 16);
		*(volatile u16 *)(byte + (v >> 24) % (PAGE_BYTES - 1)) = (u16)(v >> 40);
	}
}

static int bad_mmio(const char *arg)
{
	struct rng r = rng_new();

	for (u32 i = 0; i < 8; i++)
		write_page(MMIO_VIRTIO + i * PAGE_BYTES, &r);
	write_page(0xfed00000, &r);
	/* The console's interrupt is lost with this one. */
	write_page(MMIO_IOAPIC, &r);
	puts("bad-guest: wrote to the virtio-mmio, HPET and IOAPIC pages");
	return EXIT_OK;
}

static int bad_lapic(const char *arg)
{
	struct rng r = rng_new();

	write_page(MMIO_LAPIC, &r);
	puts("bad-guest: wrote to every register of this CPU's local APIC");
	return EXIT_OK;
}

static int bad_msr(const char *arg)
{
	static const u32 range[][2] = {
		{ 0, 0x2000 },
		{ 0xc0000000, 0xc0002000 },
		{ 0xc0010000, 0xc0012000 },
		{ 0x4b564d00, 0x4b564d10 },
	};
	int fd = open("/dev/cpu/0/msr", O_RDWR);
	struct rng r = rng_new();
	u32 written = 0;

	if (fd < 0)
		die_errno(EXIT_UNSUPPORTED, "/dev/cpu/0/msr (X86_MSR)");
	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		for (u32 msr = range[i][0]; msr < range[i][1]; msr++) {
			u64 v = rng_next(&r);

			written += pwrite(fd, &v, sizeof(v), msr) == sizeof(v);
		}
	}
	printf("bad-guest: %u MSRs took a write\n", written);
	return EXIT_OK;
}

static int bad_exit(const char *arg)
{
	u64 value;

	if (!arg || !parse_u64(arg, 0, 255, &value))
		die(EXIT_USAGE, "exit wants a value from 0 to 255");
	need_ports();
	outb((u8)value, ROI_PORT_EXIT);
	die(EXIT_MISMATCH, "still here: no test device");
}

static int bad_reset(const char *arg)
{
	need_ports();
	outb(0xfe, 0x64);
	usleep(100000);
	outb(0x01, 0x92);
	usleep(100000);
	reboot(RB_AUTOBOOT);
	die_errno(EXIT_MISMATCH, "reboot");
}

static int bad_poweroff(const char *arg)
{
	reboot(RB_POWER_OFF);
	die_errno(EXIT_MISMATCH, "reboot");
}

/* The kernel's own way: an empty IDT and an exception. */
static int bad_triple_fault(const char *arg)
{
	int ret = write_file("/sys/kernel/reboot/type", "triple");

	if (ret) {
		errno = -ret;
		die_errno(EXIT_UNSUPPORTED, "/sys/kernel/reboot/type");
	}
	write_file("/sys/kernel/reboot/force", "1");
	reboot(RB_AUTOBOOT);
	die_errno(EXIT_MISMATCH, "reboot");
}

static int bad_silent(const char *arg)
{
	for (;;)
		pause();
	return EXIT_MISMATCH;
}

static int bad_panic(const char *arg)
{
	/* Our init exits on this, which is a panic of any kernel. */
	if (kill(1, SIGQUIT))
		die_errno(EXIT_MISMATCH, "SIGQUIT to init");
	return bad_silent(arg);
}

/* Address of a kernel symbol, 0 if it is not there. */
static u64 kernel_symbol(const char *symbol)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long addr;
	char line[512], name[128];
	u64 found = 0;

	if (!f)
		return 0;
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %127s", &addr, name) == 2 && !strcmp(name, symbol))
			found = addr;
	fclose(f);
	return found;
}

/* Put UD2 where a system call begins, and call it. */
static int bad_oops(const char *arg)
{
	u64 addr = kernel_symbol("__x64_sys_getpriority");
	volatile u8 *page;

	if (addr < KERNEL_MAP)
		die(EXIT_UNSUPPORTED,
		    "no address of __x64_sys_getpriority in /proc/kallsyms (KALLSYMS)");
	addr -= KERNEL_MAP;
	page = (volatile u8 *)map_physical(addr & ~(u64)(PAGE_BYTES - 1), 2 * PAGE_BYTES);
	page[addr % PAGE_BYTES] = 0x0f;
	page[addr % PAGE_BYTES + 1] = 0x0b;
	/* Once more after a while, in case this CPU has the old bytes at hand. */
	syscall(SYS_getpriority, 0, 0);
	usleep(1000);
	syscall(SYS_getpriority, 0, 0);
	die(EXIT_UNSUPPORTED, "no oops: is the kernel somewhere else (KASLR)?");
}

/* A line in the kernel's log, at the level of WARN() and lockdep. Other lines stand beside it there. */
static int bad_warn(const char *arg)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		die_errno(EXIT_UNSUPPORTED, "/dev/kmsg");
	if (dprintf(fd, "<4>%s\n", arg ? arg : "WARNING: CPU: 0 PID: 1 at guest-tests/bad-guest.c:1 bad_warn+0x0/0x10") < 0)
		die_errno(EXIT_MISMATCH, "/dev/kmsg");
	close(fd);
	return EXIT_OK;
}

/* Rubbish over the kernel's memory, until something gives. */
static int bad_scribble(const char *arg)
{
	struct rng r = rng_new();
	volatile u32 *mem = map_physical(16u << 20, 32u << 20);

	for (;;)
		mem[rng_next(&r) % (8u << 20)] = (u32)rng_next(&r);
	return EXIT_MISMATCH;
}

static void *spin_main(void *arg)
{
	struct sched_param param = { .sched_priority = 99 };

	if (cpu_bind(*(u32 *)arg) || syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param))
		die_errno(EXIT_UNSUPPORTED, "SCHED_FIFO");
	for (;;)
		__builtin_ia32_pause();
}

/* Nothing but interrupts runs any more: init and the console's reader starve. */
static int bad_hang(const char *arg)
{
	struct cpu_map *map = calloc(1, sizeof(*map));
	static u32 cpu[CPU_MAX];
	pthread_t thread;

	if (!map || cpu_map_read(map))
		die(EXIT_UNSUPPORTED, "/sys/devices/system/cpu cannot be read");
	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	for (u32 i = map->nr; i-- > 1;) {
		cpu[i] = i;
		if (cpu_mask_test(&map->online, i))
			pthread_create(&thread, NULL, spin_main, &cpu[i]);
	}
	usleep(100000);
	spin_main(&cpu[0]);
	return EXIT_MISMATCH;
}

static int bad_flood(const char *arg)
{
	u64 bytes = 1u << 20;
	struct rng r = rng_new();
	char block[1024];

	if (arg && !parse_size(arg, &bytes))
		die(EXIT_USAGE, "flood wants a size such as 1MiB");
	for (u64 done = 0; done < bytes; done += sizeof(block)) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (char)rng_next(&r);
		if (write(STDOUT_FILENO, block, sizeof(block)) < 0)
			die_errno(EXIT_MISMATCH, "console");
	}
	puts("\nbad-guest: flooded the console");
	return EXIT_OK;
}

/* Rubbish as reports, and straight to the control port, as if init had said it. */
static int bad_protocol(const char *arg)
{
	static const char *const line[] = {
		"report\n",
		"report x\n",
		"report x 1\n",
		"report x nan bad\n",
		"report x 1e999 s\n",
		"report x inf s\n",
		"report x -1 s\n",
		"report ../../x 1 s\n",
		"counter /proc/vmstat pgfault -5\n",
		"counter a b\n",
		"counter\n",
		"warning\n",
		"warning \001\002\003\033[2J\n",
		"marked extra\n",
		"done 0\n",
		"ready\n",
		"\n",
		"\r\n",
		" \n",
		"report x 18446744073709551616 count\n",
		"report x 0x10 count\n",
	};
	const char *fd_text = getenv("FAULTBED_REPORT_FD");
	int report_fd = fd_text ? atoi(fd_text) : STDOUT_FILENO;
	int port = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
	struct rng r = rng_new();
	char big[8192];

	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++)
		if (write(report_fd, line[i], strlen(line[i])) < 0)
			die_errno(EXIT_MISMATCH, "report descriptor");
	for (int i = 0; i < 4; i++)
		if (write(report_fd, big, sizeof(big)) < 0)
			die_errno(EXIT_MISMATCH, "report descriptor");
	if (write(report_fd, "\nreport good 1 count\n", 21) < 0 || port < 0)
		return EXIT_OK;
	if (arg && !strcmp(arg, "port")) {
		static const char fake[] =
			"\nhello 99\ninfo\ninfo x\nknob\nknob a\ndone\ndone x\ndone 999999999999\nbogus\n";

		for (size_t i = 0; i < sizeof(big); i++)
			big[i] = (char)rng_next(&r);
		if (write(port, big, sizeof(big)) < 0 || write(port, fake, sizeof(fake) - 1) < 0)
			die_errno(EXIT_MISMATCH, "/dev/ttyS1");
	}
	return EXIT_OK;
}

static int bad_forkbomb(const char *arg)
{
	u64 wanted = 1000, n = 0;
	int gate[2];
	char byte;

	if (arg && !parse_u64(arg, 1, 100000, &wanted))
		die(EXIT_USAGE, "forkbomb wants a number of processes");
	if (pipe(gate))
		die_errno(EXIT_MISMATCH, "pipe");
	while (n < wanted) {
		pid_t pid = fork();

		if (pid == 0) {
			/* Ends when the parent closes the last writing end. */
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) != 0);
		}
		if (pid < 0)
			break;
		n++;
	}
	close(gate[1]);
	while (wait(NULL) > 0)
		;
	printf("bad-guest: %llu processes\n", (unsigned long long)n);
	return EXIT_OK;
}

static int bad_oom(const char *arg)
{
	for (;;) {
		char *p = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			die_errno(EXIT_MISMATCH, "mmap");
		memset(p, 1, 1u << 20);
	}
	return EXIT_MISMATCH;
}

static const struct mode {
	const char *name;
	int (*run)(const char *arg);
	const char *what;
} modes[] = {
	{ "ports", bad_ports,
	  "rubbish to the ports, but for the UARTs and those that end the guest; exit 0" },
	{ "uart", bad_uart, "rubbish to both UARTs; console and control port may be lost: a hang" },
	{ "marks", bad_marks, "every mark value 40 times; exit 0" },
	{ "mmio", bad_mmio,
	  "rubbish to virtio-mmio, HPET and IOAPIC; interrupts may be lost: exit 0 or a hang" },
	{ "lapic", bad_lapic, "rubbish to this CPU's local APIC; a hang or a panic" },
	{ "msr", bad_msr, "rubbish to MSRs; a hang, a panic or a triple fault" },
	{ "exit", bad_exit, "exit N: leave by the test device with this value" },
	{ "reset", bad_reset,
	  "by the keyboard controller, port 0x92, the kernel; the guest is gone" },
	{ "poweroff", bad_poweroff, "the kernel's power-off; the guest is gone or halted" },
	{ "triple-fault", bad_triple_fault, "an exception without an IDT; the guest is gone" },
	{ "panic", bad_panic, "init exits; the kernel panics" },
	{ "oops", bad_oops, "an invalid opcode in a system call; the kernel oopses and goes on" },
	{ "warn", bad_warn, "warn [TEXT]: what a kernel's WARN() prints, into the kernel's log; exit 0" },
	{ "scribble", bad_scribble, "rubbish over kernel memory; anything" },
	{ "hang", bad_hang, "real-time threads take all CPUs; the guest answers no more" },
	{ "silent", bad_silent, "sleep for ever, idle; the guest answers no more" },
	{ "flood", bad_flood, "flood [SIZE]: 1 MiB of binary rubbish to the console; exit 0" },
	{ "protocol", bad_protocol,
	  "protocol [port]: malformed reports, and straight to ttyS1; exit 0" },
	{ "forkbomb", bad_forkbomb, "forkbomb [N]: 1000 processes at once; exit 0" },
	{ "oom", bad_oom, "use all memory; the kernel kills it: status 137" },
};

int main(int argc, char **argv)
{
	const size_t nr = sizeof(modes) / sizeof(modes[0]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 1 && i < nr; i++)
		if (!strcmp(argv[1], modes[i].name)) {
			guest_only();
			return modes[i].run(argc > 2 ? argv[2] : NULL);
		}
	fprintf(stderr, "usage: bad-guest MODE [ARGUMENT]\n");
	for (size_t i = 0; i < nr; i++)
		fprintf(stderr, "  %-13s %s\n", modes[i].name, modes[i].what);
	return EXIT_USAGE;
}
