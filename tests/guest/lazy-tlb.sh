#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The knob lazy_tlb: each value does what it says, and it may change at any time, with CPUs
# in lazy mode. kv-server ends with a message if a CPU ever reads through a translation
# that a shootdown should have taken away; soft's TLB keeps such a one until it is flushed.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=300

knob=/sys/kernel/debug/faultbed/knobs/lazy_tlb
load="kv-server --pin all --think 100us --slots 32"
flip="$load --requests 500 & p=\$!; while kill -0 \$p 2>/dev/null; do for v in off ipi skip; do echo \$v >$knob; usleep 3000; done; done; wait \$p"
wrong="cat $knob; for v in on OFF skip2; do echo \$v >$knob && exit 9; done; cat $knob"

cat >lazy.ini <<EOT
# Does the knob do what it says, and can it change at any time?
[vm]
engine = soft
topology = 2x3x2
memory = 512MiB
[run]
command = $load --requests 120
warmup = 5ms
[vary]
run.command + guest.knob.lazy_tlb = $load --requests 120 + off | $load --requests 120 + ipi | $load --requests 120 + skip | $flip + skip | $wrong + ipi
EOT
tap_run "$BUILD/faultbed" run lazy.ini -o lazy.json
[ "$RC" = 0 ] || tap_diag "$OUT"$'\n'"$ERR"
tap_is "no CPU ever reads a stale page, whatever the knob" "$(json lazy.json 'cells.*.status' | tr '\n' ' ')" "0 0 0 0 0 "
tap_is "the kernel complains of nothing" "$(json lazy.json 'cells.*.end.marked' | sort -u)" "[]"

counter() { json lazy.json "cells.$1.repeats.0.counters.$2.value"; }

# holds NAME EXPRESSION: an expression of awk is true. Empty values make it an error, and so a failure.
holds()
{
	local status=0

	[ "$(awk "BEGIN { print ($2) ? 1 : 0 }" 2>&1)" = 1 ] || status=1
	[ $status = 0 ] || tap_why "$1" "$2"
	tap_result $status "$1"
}

holds "off: nobody is lazy" "$(counter 0 tlb_lazy_enter) == 0 && $(counter 0 tlb_shootdown_ipis_skipped_lazy) == 0"
holds "off: two CR3 loads for each idle period" "$(counter 0 tlb_lazy_off_idle) > 500 && $(counter 0 tlb_lazy_off_back) > 500"
holds "ipi: lazy CPUs are told and leave" "$(counter 1 tlb_shootdown_lazy_told) > 100 && $(counter 1 tlb_flush_lazy_kicked) > 100"
holds "ipi: none is left out for being lazy" "$(counter 1 tlb_shootdown_ipis_skipped_lazy) == 0 && $(counter 1 tlb_lazy_off_idle) == 0"
holds "skip: lazy CPUs are left out" "$(counter 2 tlb_shootdown_ipis_skipped_lazy) > 100 && $(counter 2 tlb_shootdown_lazy_told) == 0"
holds "skip: fewer IPIs than ipi" "$(counter 2 tlb_shootdown_ipis_sent) < $(counter 1 tlb_shootdown_ipis_sent)"
for cell in 0 1 2 3; do
	host=$(($(counter $cell ipis_sent_vector_0xfb) + $(counter $cell ipis_sent_vector_0xfc | grep . || echo 0)))
	guest=$(($(counter $cell ipis_call_single) + $(counter $cell ipis_call_many)))
	holds "cell $cell: host and guest count the same calls" "$host > 0 && $host >= $guest - 2 && $host <= $guest + 2"
	holds "cell $cell: all told came" "$(counter $cell tlb_shootdown_targets) == $(counter $cell tlb_flush_received)"
done
holds "it changed with CPUs in lazy mode" "$(counter 3 tlb_lazy_knob_changes) > 10 && $(counter 3 tlb_lazy_at_knob_change) > 10"
holds "and each value was in force for a while" "$(counter 3 tlb_lazy_off_idle) > 100 && $(counter 3 tlb_shootdown_lazy_told) > 10 && \
	$(counter 3 tlb_shootdown_ipis_skipped_lazy) > 10"
console=$(json lazy.json 'cells.4.end.console')
tap_like "other values are refused, and the one in force stays" "$console" 'ipi.*Invalid argument.*Invalid argument.*Invalid argument.*ipi'

tap_done
