/* SPDX-License-Identifier: GPL-2.0-only */
/* What --version says of both programs. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#include <glib.h>
#include <stdio.h>

#define FAULTBED_VERSION	"0.1"

#ifdef __clang__
#define VERSION_COMPILER	"clang " __clang_version__
#else
#define VERSION_COMPILER	"gcc " __VERSION__
#endif
#ifdef __SANITIZE_ADDRESS__
#define VERSION_ASAN	", AddressSanitizer"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VERSION_ASAN	", AddressSanitizer"
#endif
#endif
#ifndef VERSION_ASAN
#define VERSION_ASAN	""
#endif
#ifdef FAULTBED_HARD
#define VERSION_HARD	", TEST=hard: for tests only"
#else
#define VERSION_HARD	""
#endif

/* How it was built, and what it is linked with: lines below the program's name. */
static inline void version_build(FILE *to)
{
	fprintf(to, "built by %s%s%s%s\n", VERSION_COMPILER,
#ifdef __OPTIMIZE__
		"",
#else
		", not optimised",
#endif
		VERSION_ASAN, VERSION_HARD);
	fprintf(to, "GLib %u.%u.%u (built with %u.%u.%u)\n", glib_major_version, glib_minor_version, glib_micro_version, GLIB_MAJOR_VERSION, GLIB_MINOR_VERSION,
		GLIB_MICRO_VERSION);
	fprintf(to, "Free software under the GNU General Public License, version 2 only; there is no warranty.\n");
}

#endif
