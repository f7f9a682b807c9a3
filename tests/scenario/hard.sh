#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The soft engine of TEST=hard: four TLB entries, blocks of two instructions, four shortcuts, the next
# vCPU's turn after every block. What is rare elsewhere happens all the time here, and the
# guest must not notice: it boots, its checks and the bare-metal tests pass, and it goes on from
# a snapshot as from a boot.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
fb=$BUILD/faultbed
export FAULTBED_VMM=$BUILD/gcc-hard/faultbed-vmm
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=900

cat >hard.ini <<'END'
# Does a guest notice that its CPUs are made to be difficult?
# Expected: no, but for the time that it takes.
[vm]
engine = soft
memory = 256MiB
[run]
warmup = 1ms
duration = 2ms
timeout = 60s
host_timeout = 600s
[inject]
ept.refault = 10000/s
[vary]
vm.topology + vm.apic + run.command = 1x1x1 + xapic + topology-check -q && counters-check && multi-fault 1, 2x2x2 + x2apic + topology-check -q && counters-check && multi-fault 6
END

for run in booted restored; do
	tap_run "$fb" run hard.ini -q -o $run.json
	tap_is "$run: status 0" "$RC" 0
	[ "$RC" = 0 ] || tap_diag "$ERR"
	sed '/^  "provenance": {$/,$d' $run.json >$run
done
tap_like "the second time from a snapshot" "$(cat restored.json)" '"use": "restored"'
tap_ok "the result is the same" cmp booted restored
tap_ok "and there is one" test -s booted

# It is what it says: a first-level TLB of four entries misses at every turn.
misses=$(json booted.json 'cells.1.repeats.0.counters.soft_tlb_l1d_misses.value')
insns=$(json booted.json 'cells.1.repeats.0.counters.instructions.value')
tap_ok "this is the hard build: $misses misses in $insns instructions" test "$((misses * 500))" -gt "$insns"

# Where the front end looks for a VMM, it finds this one. The images tsc and apic mostly wait, all four vCPUs spinning,
# which takes minutes here. A stale entry stays visible until it is replaced, and of four the next few accesses leave none.
cat "$TOP/tests/guest/bare.expect" - >bare.expect <<'END'
soft paging | stale: * | evicted already
END
tap_ok "the bare-metal tests pass" env BARE_ENGINES=soft BARE_IMAGES="exceptions paging modes strings smc decimal" \
	BARE_EXPECT="$TAP_DIR/bare.expect" FAULTBED_BUILD="$BUILD" "$TOP/tests/guest/bare.sh"

tap_done
