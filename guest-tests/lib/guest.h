/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For programs that do to their machine what nobody wants done to his own: empty its
 * caches, write to its devices, take all its memory or its CPUs. No state; any thread.
 */
#ifndef LIB_GUEST_H
#define LIB_GUEST_H

/* What init puts into the environment of all that it starts, and nothing else does. */
#define GUEST_ENV	"FAULTBED_GUEST"

/* Ends the program with EXIT_UNSUPPORTED and a line that says why, unless it runs below a guest's init. */
void guest_only(void);

#endif
