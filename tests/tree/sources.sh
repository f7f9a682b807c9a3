#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The Makefile's lists and the disk agree: no source is left out of the build, and
# no test script is without its execute bit (prove would not run it).

. "$(dirname "$0")/../tap.sh"
cd "$TOP" || exit 1

listed=$(make -s --no-print-directory print-sources | sort)
there=$(find vmm host-tools tests/unit tests/isa guest-tests \( -name '*.c' -o -path 'guest-tests/bare/*.S' \) | sort)
tap_is "every source on disk is in the Makefile" "$(comm -13 <(echo "$listed") <(echo "$there"))" ""
tap_is "every source in the Makefile is on disk" "$(comm -23 <(echo "$listed") <(echo "$there"))" ""
tap_is "no source is listed twice" "$(echo "$listed" | uniq -d)" ""

tap_is "every test script is executable" \
	"$(find tests/tree tests/bad-input tests/scenario tests/guest tests/debug-kernels -name '*.sh' ! -name lib.sh ! -perm -u+x)" ""

# SPDX lines (the kernel's rule: the first line that can be a comment).
tap_is "every source opens with its SPDX line" "$(
	git ls-files -- '*.[chS]' '*.sh' '*.def' Makefile .ci/run | while read -r f; do
		[ ! -f "$f" ] || head -n 2 "$f" | grep -q 'SPDX-License-Identifier: GPL-2.0' || echo "$f"
	done
)" ""

tap_done
