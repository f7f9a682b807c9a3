#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# memory-probe on this host, without a guest: it runs to its end, measures all that was asked for,
# and refuses what it cannot do. Whether its figures are right is tests/scenario/memory-model.sh's.

. "$(dirname "$0")/../tap.sh"

probe=$BUILD/guest-tests/memory-probe
tap_run "$probe" --repeat 3 --rounds 320 --lines 1024 --l3 8MiB atomic fault chase tlb
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "it runs outside of a guest" "$RC" 0
tap_unlike "and writes to no port there" "$OUT$ERR" "lost"
reports=$(printf '%s\n' "$OUT" | sed -n 's/^report //p')

figure()
{
	printf '%s\n' "$reports" | awk -v name="$1" '$1 == name { print $2 }'
}

# No order is asked for: a busy host may turn any of them round, and on soft memory-model.sh asks for the values.
for name in plain_cycles lock_add_cycles chase.l1_cycles chase.l3_cycles chase.l2_ns chase.dram_ns chase.dram_overlapped_ns \
	tlb.16_cycles tlb.4096_cycles fault_cycles; do
	tap_ok "$name is measured ($(figure $name))" perl -e 'exit !($ARGV[0] > 0)' -- "$(figure $name)"
done
tap_is "only the parts that were asked for" "$(printf '%s\n' "$reports" | grep -c '^line\.\|^stream\.')" 0

for bad in "--repeat 0" "--repeat 65" "--lines x" "--l1 3" "--l2 9GiB" "--cpu 1023" "--tlb-pages 17000" "--what" "cache" "line cache"; do
	# shellcheck disable=SC2086
	tap_run "$probe" $bad
	tap_is "$bad: bad arguments" "$RC" 2
	tap_like "$bad: says so" "$ERR" "memory-probe"
done
tap_run "$probe" --l1 1MiB --l2 2MiB --l3 8MiB
tap_is "caches that are too much alike to be told apart" "$RC" 77
tap_like "it says which" "$ERR" "1024, 2048 and 8192 KiB"
tap_run "$probe" --help
tap_is "help" "$RC" 0

tap_done
