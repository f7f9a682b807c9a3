#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The documents keep up with the code: every counter, injection point and layer
# folder is described, every link to a file leads somewhere, every make target
# that a document names exists.

. "$(dirname "$0")/../tap.sh"
cd "$TOP" || exit 1

counters=$(sed -n 's/^COUNTER(\([a-z0-9_]*\),.*/\1/p' vmm/core/counters.def)
tap_like "there are counters" "$counters" '^vm_exits$'
tap_is "every counter of counters.def is in docs/counters.md" "$(
	for c in $counters; do grep -q "^| \`$c\` |" docs/counters.md || echo "$c"; done
)" ""
tap_is "docs/counters.md lists no VMM counter that is gone" "$(
	sed -n '/^## Counted by the VMM/,/^## /s/^| `\([a-z0-9_]*\)` |.*/\1/p' docs/counters.md | sort |
		comm -23 - <(echo "$counters" | sort)
)" ""
stats=$(sed -n 's/^SOFT_STAT(\([a-z0-9_]*\),.*/\1/p' vmm/soft/soft-stats.def)
tap_like "there are statistics of the soft engine" "$stats" '(^|[[:space:]])tlb_l2_hits([[:space:]]|$)'
tap_is "every statistic of soft-stats.def is in docs/counters.md" "$(
	for s in $stats; do grep -q -e "^| \`soft_$s\` |" -e "^| \`$s\` |" docs/counters.md || echo "$s"; done
)" ""
tap_is "every class of time of soft-time.def is in docs/counters.md" "$(
	sed -n 's/^SOFT_TIME(\([a-z0-9_]*\),.*/\1/p' vmm/soft/soft-time.def | while read -r s; do
		grep -q "^| \`soft_time_$s\` |" docs/counters.md || echo "$s"
	done
)" ""
tap_is "every cost is in docs/soft-engine.md" "$(
	sed -n 's/^\(COST\|MEMORY\)(\([a-z0-9_]*\), \([A-Z]*\),.*/\2 \3/p' vmm/core/cost.def | while read -r c kind; do
		[ "$kind" = COUNT ] || grep -q "^|.*\`$c\`.* |" docs/soft-engine.md || echo "$c"
	done
)" ""
guest=$(cat guest-kernel-patches/*.patch | sed -n 's/^+.*FAULTBED_COUNTER(\([a-z0-9_]*\).*/\1/p' | sort -u)
tap_is "every counter of the kernel patches is in docs/counters.md" "$(
	for c in $guest; do [ "$c" = name ] || grep -q "^| \`$c\` |" docs/counters.md || echo "$c"; done
)" ""
tap_is "every injection point is in docs/scenario.md" "$(
	sed -n 's/^INJECT_POINT(\([a-z]*\),.*/\1/p' vmm/core/inject.def | while read -r p; do
		grep -q "\`$p\." docs/scenario.md || echo "$p"
	done
)" ""
tap_is "every folder of the tree is in docs/architecture.md" "$(
	git ls-files | sed -n 's,^\([a-z-]*\(/[a-z-]*\)\?\)/.*,\1,p' | sort -u | while read -r d; do
		grep -q -F "\`$d/\`" docs/architecture.md || echo "$d"
	done
)" ""
tap_is "links in the documents lead somewhere" "$(
	for f in README.md HACKING.md docs/*.md guest-kernel-patches/README.md; do
		grep -o '](\([^)#]*\)' "$f" | sed 's/](//' | grep -v '^[a-z]*:' | while read -r l; do
			[ -z "$l" ] || [ -e "$(dirname "$f")/$l" ] || echo "$f: $l"
		done
	done
)" ""
targets=$(make -s --no-print-directory -pnRr -f Makefile DEPS=no help 2>/dev/null | sed -n 's/^\([a-z-]*\):.*/\1/p' | sort -u)
tap_is "make targets that the documents name exist" "$(
	grep -oh '`make [a-z][a-z-]*' README.md HACKING.md docs/*.md | sed 's/.*make //' | sort -u |
		comm -23 - <(echo "$targets")
)" ""

tap_done
