#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every header compiles alone, and the checker would see it if one did not.

. "$(dirname "$0")/../tap.sh"

export TAP_TIMEOUT=300
tap_ok "every header compiles alone" "$TOP/host-tools/check-headers.sh"

T=$TAP_DIR/t
mkdir -p "$T/vmm/core"
check()
{
	tap_run env CC_LIST=gcc "$TOP/host-tools/check-headers.sh" "$T"
}

printf '#ifndef A_H\n#define A_H\n#include <stdint.h>\nstruct a { uint64_t x; };\n#endif\n' >"$T/vmm/core/a.h"
check
tap_is "a good header passes" "$RC" 0
printf '#ifndef B_H\n#define B_H\nstruct b { uint64_t x; };\n#endif\n' >"$T/vmm/core/b.h"
check
tap_is "a header that leans on its includer is seen" "$RC" 1
tap_like "and named" "$OUT" "^vmm/core/b.h: does not compile alone"
printf 'struct c { int x; };\n' >"$T/vmm/core/b.h"
check
tap_is "a header without a guard is seen" "$RC" 1
rm -r "$T/vmm"
check
tap_is "no header at all is a failure" "$RC" 1

tap_done
