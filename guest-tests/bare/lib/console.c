// SPDX-License-Identifier: GPL-2.0-only
/* The first serial port, TAP, the command line, and what C compilers call by themselves. */
#include "bare/bare64.h"

#define FIFO_BYTES	16
#define OPTIONS_MAX	512

static u32 nr_points, nr_failed, fifo_left;
static char options[OPTIONS_MAX];

void *memset(void *to, int c, u64 n)
{
	void *d = to;

	asm volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, u64 n)
{
	void *d = to;

	asm volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(n) : : "memory");
	return to;
}

int memcmp(const void *a, const void *b, u64 n)
{
	const u8 *p = a, *q = b;

	for (u64 i = 0; i < n; i++) {
		if (p[i] != q[i])
			return p[i] - q[i];
	}
	return 0;
}

/* Each port access may be an exit of some hundred microseconds: look once a FIFO. */
static void put_char(char c)
{
	if (!fifo_left) {
		while (!(inb(PORT_CONSOLE + 5) & 0x20))
			;
		fifo_left = FIFO_BYTES;
	}
	fifo_left--;
	outb(PORT_CONSOLE, (u8)c);
}

static void put_number(u64 v, u32 base)
{
	char text[24];
	u32 n = 0;

	do {
		text[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (n)
		put_char(text[--n]);
}

static void put_text(const char *s)
{
	while (*s)
		put_char(*s++);
}

static void put_format(const char *fmt, __builtin_va_list ap)
{
	for (; *fmt; fmt++) {
		bool wide = false;
		s64 v;

		if (*fmt != '%') {
			put_char(*fmt);
			continue;
		}
		if (*++fmt == 'l') {
			wide = true;
			fmt++;
		}
		switch (*fmt) {
		case 's':
			put_text(__builtin_va_arg(ap, const char *));
			break;
		case 'c':
			put_char((char)__builtin_va_arg(ap, int));
			break;
		case 'd':
			v = wide ? __builtin_va_arg(ap, s64) : __builtin_va_arg(ap, int);
			if (v < 0)
				put_char('-');
			put_number(v < 0 ? -(u64)v : (u64)v, 10);
			break;
		case 'u':
		case 'x':
			put_number(wide ? __builtin_va_arg(ap, u64) : __builtin_va_arg(ap, u32),
				   *fmt == 'u' ? 10 : 16);
			break;
		default:
			put_char(*fmt);
		}
	}
}

void say(const char *fmt, ...)
{
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	put_format(fmt, ap);
	__builtin_va_end(ap);
}

static void point(bool good, const char *fmt, __builtin_va_list ap)
{
	nr_failed += !good;
	say("%s %u - ", good ? "ok" : "not ok", ++nr_points);
	put_format(fmt, ap);
	put_char('\n');
}

bool ok(bool good, const char *fmt, ...)
{
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	point(good, fmt, ap);
	__builtin_va_end(ap);
	return good;
}

bool is(u64 got, u64 wanted, const char *fmt, ...)
{
	__builtin_va_list ap;

	if (got != wanted)
		say("# got 0x%lx, wanted 0x%lx:\n", got, wanted);
	__builtin_va_start(ap, fmt);
	point(got == wanted, fmt, ap);
	__builtin_va_end(ap);
	return got == wanted;
}

static const char *vector_text(s64 vec)
{
	static const char *const names[] = {
		"#DE", "#DB", "NMI", "#BP", "#OF", "#BR", "#UD", "#NM", "#DF", "vector 9", "#TS",
		"#NP", "#SS", "#GP", "#PF", "vector 15", "#MF", "#AC", "#MC", "#XM",
	};

	return vec == NO_TRAP ? "no trap" : vec < (s64)ARRAY_SIZE(names) ? names[vec] : "vector";
}

bool trapped(s64 vec, u64 error, const char *fmt, ...)
{
	bool good = last.vec == vec && (vec == NO_TRAP || last.error == error);
	__builtin_va_list ap;

	if (!good)
		say("# got %s (%ld) error 0x%lx at 0x%lx%s0x%lx cr2 0x%lx, wanted %s (%ld) error 0x%lx:\n",
		    vector_text(last.vec), last.vec, last.error, last.rip, last.off < 0 ? "-" : "+",
		    last.off < 0 ? -(u64)last.off : (u64)last.off, last.cr2, vector_text(vec), vec, error);
	__builtin_va_start(ap, fmt);
	point(good, fmt, ap);
	__builtin_va_end(ap);
	return good;
}

void skip(const char *name, const char *why)
{
	say("ok %u - %s # SKIP %s\n", ++nr_points, name, why);
}

void info(const char *name, const char *what)
{
	say("ok %u - %s # info: %s\n", ++nr_points, name, what);
}

void leave(u8 value)
{
	outb(PORT_EXIT, value);
	for (;;)
		asm volatile("cli; hlt");
}

void bail(const char *fmt, ...)
{
	__builtin_va_list ap;

	say("Bail out! ");
	__builtin_va_start(ap, fmt);
	put_format(fmt, ap);
	__builtin_va_end(ap);
	put_char('\n');
	leave(3);
}

const char *option(const char *name)
{
	for (const char *p = options; *p;) {
		u64 n = 0;

		while (name[n] && p[n] == name[n])
			n++;
		if (!name[n] && p[n] == '=')
			return p + n + 1;
		while (*p && *p != ' ')
			p++;
		while (*p == ' ')
			p++;
	}
	return NULL;
}

bool option_is(const char *name, const char *value)
{
	const char *p = option(name);
	u64 n = 0;

	if (!p)
		return false;
	while (value[n] && p[n] == value[n])
		n++;
	return !value[n] && (!p[n] || p[n] == ' ');
}

u64 option_number(const char *name, u64 otherwise)
{
	const char *p = option(name);
	u64 v = 0;

	if (!p || *p < '0' || *p > '9')
		return otherwise;
	while (*p >= '0' && *p <= '9')
		v = v * 10 + (u64)(*p++ - '0');
	return v;
}

bool is_amd(void)
{
	u32 r[4];

	cpuid(0, 0, r);
	return r[1] == 0x68747541;	/* "Auth" */
}

bool on_tcg(void)
{
	u32 r[4] = { 0 };

	if (cpu_has(1, 2, 31))
		cpuid(0x40000000, 0, r);
	return r[1] == 0x54474354;	/* "TCGT" */
}

bool under_tcg(void)
{
	return on_tcg() || option_is("under", "tcg");
}

void traps_init(void);
void bare_main(u32 magic, const u32 *info_page);

void bare_main(u32 magic, const u32 *multiboot)
{
	outb(PORT_CONSOLE + 1, 0);
	outb(PORT_CONSOLE + 3, 3);
	outb(PORT_CONSOLE + 2, 7);
	outb(PORT_CONSOLE + 4, 3);
	/* Both legacy interrupt controllers, if they are there: a BIOS may have left its timer on. */
	outb(0x21, 0xff);
	outb(0xa1, 0xff);

	if (magic == 0x2badb002 && multiboot[0] & 4) {
		const char *from = (const char *)(u64)multiboot[4];

		for (u32 i = 0; i < OPTIONS_MAX - 1 && from[i]; i++)
			options[i] = from[i];
	}
	traps_init();
	pages_init();
	test_main();
	say("1..%u\n", nr_points);
	leave(nr_failed ? 1 : 0);
}
