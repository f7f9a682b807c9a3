#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's stress-ng, unmodified, in the guest: its stressors end well and what they did is
# counted, on soft by scenarios/stress-ng.ini, and one of them on the kvm engine (or nested).

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=900

if [ ! -x /usr/bin/stress-ng ]; then
	echo "1..0 # SKIP no /usr/bin/stress-ng (the package stress-ng)"
	exit 0
fi

counter() { json "$1.json" "cells.$2.repeats.0.counters.$3.value"; }

# holds NAME EXPRESSION: an expression of awk is true. Empty values make it an error, and so a failure.
holds()
{
	local status=0

	[ "$(awk "BEGIN { print ($2) ? 1 : 0 }" 2>&1)" = 1 ] || status=1
	[ $status = 0 ] || tap_why "$1" "$2"
	tap_result $status "$1"
}

# What must be so in every cell, whatever the stressor.
good()	# RESULT CELL NAME
{
	local faults

	faults=$(counter "$1" "$2" guest_page_faults)
	tap_like "$3: it ends well" "$(json "$1.json" "cells.$2.end.console")" 'successful run completed'
	# /proc is read just outside the marks: reading it faults a little.
	holds "$3: the channel and /proc count the same faults" \
		"$faults > 500 && $(counter "$1" "$2" 'guest_page_faults@/proc/vmstat') - $faults < 50 + 0.02 * $faults && \
		$faults - $(counter "$1" "$2" 'guest_page_faults@/proc/vmstat') < 50 + 0.02 * $faults"
	holds "$3: faults are minor, major or errors" "$faults == $(counter "$1" "$2" guest_page_faults_minor) + \
		$(counter "$1" "$2" guest_page_faults_major) + $(counter "$1" "$2" pf_error)"
	holds "$3: every CPU told to flush came" "$(counter "$1" "$2" tlb_shootdown_targets) - $(counter "$1" "$2" tlb_flush_received) <= 2 && \
		$(counter "$1" "$2" tlb_flush_received) - $(counter "$1" "$2" tlb_shootdown_targets) <= 2"
	tap_is "$3: the kernel complains of nothing" "$(json "$1.json" "cells.$2.end.marked")" "[]"
}

tap_run "$BUILD/faultbed" run "$TOP/scenarios/stress-ng.ini" --engine soft -o soft.json
[ "$RC" = 0 ] || tap_diag "$OUT"$'\n'"$ERR"
tap_is "soft: all are run" "$(json soft.json 'cells.*.status' | tr '\n' ' ')" "0 0 0 0 "
cell=0
for name in mmap fault tlb-shootdown vm; do
	good soft $cell "$name"
	cell=$((cell + 1))
done
holds "mmap: pages are touched" "$(counter soft 0 pf_anon) > 900"
holds "fault: faults of files" "$(counter soft 1 pf_file) + $(counter soft 1 pf_shared) > 1000"
# Of its processes each has an address space of its own: flushes, and next to no shootdowns.
holds "tlb-shootdown: flushes" "$(counter soft 2 tlb_flush_full) > 100 && $(counter soft 2 tlb_flush_page) > 100"
holds "vm: pages are touched" "$(counter soft 3 pf_anon) > 900"

kvm=$(kvm_engine)
tap_run "$BUILD/faultbed" run "$TOP/scenarios/stress-ng.ini" --engine "$kvm" --set vm.topology=1x2x1 --set vm.memory=256MiB \
	--set "run.command=stress-ng --tlb-shootdown 1 --tlb-shootdown-ops 5 -t 60" -o kvm.json
[ "$RC" = 0 ] || tap_diag "$OUT"$'\n'"$ERR"
tap_is "$kvm: it is run" "$(json kvm.json 'cells.*.status' | tr '\n' ' ')" "0 "
good kvm 0 "$kvm, tlb-shootdown"

tap_done
