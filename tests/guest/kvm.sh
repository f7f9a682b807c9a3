#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The main job on a real guest and the real KVM API (/dev/kvm, or nested): the guest
# sees its topology, IPIs arrive where they were sent, injected delays are seen
# from inside and accounted outside, and counts of both sides agree.
#
# Delays are 5 ms, since one exit of the nested engine takes some hundred
# microseconds; bounds leave room for a busy host, but none that a delay that is
# missing, doubled, or put on the wrong IPIs would fit into.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1800

# run NAME LINE...: run NAME.ini and keep NAME.json. The first line of the scenario is its question.
run()
{
	local name=$1

	shift
	printf '%s\n' "$@" >"$name.ini"
	tap_run "$BUILD/faultbed" run "$name.ini" --engine "$(kvm_engine)" -o "$name.json"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$name: status 0" "$RC" 0
}

# counter FILE CELL NAME; report FILE CELL NAME; hist FILE CELL NAME FIELD: of the cell's first repeat.
counter() { json "$1.json" "cells.$2.repeats.0.counters.$3.value"; }
report() { json "$1.json" "cells.$2.repeats.0.reports.$3.value"; }
hist() { json "$1.json" "cells.$2.repeats.0.histograms.$(printf '%s' "$3" | sed 's/\./\\./g').$4"; }

# holds NAME EXPRESSION: an expression of awk is true. Empty values make it an error, and so a failure.
holds()
{
	tap_ok "$1 ($2)" awk "BEGIN { exit !($2) }"
}

# --- topology, counters inside ---

run topology "# Does the guest see what it was given?" "[vm]" "topology = 1x3x2" "memory = 256MiB" "apic = xapic" \
	"[run]" "command = topology-check -q" "timeout = 600s" \
	"[vary]" "vm.topology + vm.cpu_order = 2x3x1 + siblings-last, 1x3x2 + siblings-adjacent"
tap_is "three cores, two sockets, two threads: all are seen" "$(json topology.json 'cells.*.status' | tr '\n' ' ')" "0 0 "
tap_like "the kernel that ran is identified" "$(json topology.json 'cells.0.vm.kernel.sha256')" '^[0-9a-f]{64}$'
tap_like "its patches are identified" "$(json topology.json 'cells.0.vm.kernel.patch_id')" '^[0-9a-f]+'

run counters "# Do the guest's counters agree with each other and with what was done?" "[vm]" "topology = 1x2x1" \
	"memory = 256MiB" "apic = xapic" "[run]" "command = counters-check" "timeout = 600s"

# --- IPIs ---

run ipi "# Do IPIs and their delays arrive?" "[vm]" "topology = 2x2x1" "memory = 256MiB" "apic = xapic" \
	"[run]" "command = ipi-pingpong --count 100" "timeout = 600s" "[vary]" "inject.ipi.remote = none, fixed:5ms"
for cell in 0 1; do
	sent=$(counter ipi $cell ipis_sent)
	guest=$(($(counter ipi $cell ipis_reschedule) + $(counter ipi $cell ipis_call_single) + $(counter ipi $cell ipis_call_many)))
	# A guest that cannot calibrate its timer, its host being busy, has the PIT tick for all CPUs: IPIs that its
	# kernel's counters leave out, three for each tick of four CPUs.
	ticks=$((3 * $(counter ipi $cell irq_0 | grep . || echo 0)))
	vectors=0
	for vector in 0xfb 0xfc 0xfd; do
		vectors=$((vectors + $(counter ipi $cell ipis_sent_vector_$vector | grep . || echo 0)))
	done
	events=$(report ipi $cell ipi_events)
	matrix=$(json ipi.json "cells.$cell.repeats.0.matrices.ipi_matrix.*.*" | awk '{ s += $1 } END { print s }')
	holds "cell $cell: the guest sent what it meant to" "$events >= 200 && $guest >= $events"
	holds "cell $cell: guest and host count the same IPIs" "$sent >= 0.98 * ($guest + $ticks) - 5 && $sent <= 1.02 * ($guest + $ticks) + 5"
	holds "cell $cell: by vector, too" "$vectors >= 0.98 * $guest - 5 && $vectors <= 1.02 * $guest + 5"
	holds "cell $cell: those sent are delivered" "$(counter ipi $cell ipis_delivered) >= 0.98 * $sent - 5"
	holds "cell $cell: the matrix adds up to them" "$matrix >= 0.98 * $sent - 5 && $matrix <= 1.02 * $sent + 5"
done
n=$(hist ipi 1 injected_ipi_ns.remote count)
holds "every remote IPI was delayed, none else" \
	"$n > 0 && $(hist ipi 1 injected_ipi_ns.remote sum) == $n * 5000000 && $(counter ipi 1 ipi_injected_ns) == $n * 5000000"
tap_is "nothing is injected on others" "$(hist ipi 1 injected_ipi_ns.socket count)" ""
tap_is "nothing is injected without a rule" "$(counter ipi 0 ipi_injected_ns)" 0
# Bucket i of a histogram is 2^i to 2^(i+1) ns: 22 begins at 4.2 ms.
tap_is "no delayed IPI is early" "$(hist ipi 1 ipi_latency_ns.remote buckets.* | head -n 22 | awk '{ s += $1 } END { print s }')" 0
holds "and every one is late" \
	"$(hist ipi 1 ipi_latency_ns.remote buckets.* | tail -n +23 | awk '{ s += $1 } END { print s }') >= 0.98 * $n - 5"
# How much was injected is counted above, to the ns. How much longer the guest waited than that is the host's load, so there is no upper bound.
holds "the guest sees the delay between sockets" \
	"$(report ipi 1 ipi_remote_median_ns) - $(report ipi 0 ipi_remote_median_ns) > 4000000"
holds "and not within a socket" \
	"$(report ipi 1 ipi_socket_median_ns) - $(report ipi 0 ipi_socket_median_ns) < ($(report ipi 1 ipi_remote_median_ns) - $(report ipi 0 ipi_remote_median_ns)) / 2"

# --- second-level faults ---

run ept "# Do second-level faults and their delays arrive?" "[vm]" "topology = 1x2x1" "memory = 512MiB" "apic = xapic" \
	"[run]" "command = first-touch" "timeout = 600s" "[inject]" "ept.count = yes" \
	"[vary]" "inject.ept.first_touch = none, fixed:5ms"
for cell in 0 1; do
	holds "cell $cell: some first touches of the guest are second-level faults" \
		"$(counter ept $cell ept_first_touch) >= 100 && $(counter ept $cell ept_first_touch) <= 1.1 * $(report ept $cell pages) + 20"
	holds "cell $cell: violations are first touches and refaults" \
		"$(counter ept $cell ept_violations) - $(counter ept $cell ept_first_touch) - $(counter ept $cell ept_refault) <= 5"
	holds "cell $cell: guest faults by the channel and by /proc agree" \
		"$(counter ept $cell guest_page_faults) - $(json ept.json "cells.$cell.repeats.0.counters.guest_page_faults@/proc/vmstat.value") <= 20"
done
n=$(hist ept 1 injected_ept_ns.first_touch count)
holds "every one of them was delayed" \
	"$n >= $(counter ept 1 ept_first_touch) - 5 && $(counter ept 1 ept_injected_ns) == $n * 5000000"
tap_is "nothing is injected without a rule" "$(counter ept 0 ept_injected_ns)" 0
holds "the guest sees the delay on first touches" \
	"$(report ept 1 second_level_ns) - $(report ept 0 second_level_ns) > 4000000"
holds "and not on touching the same pages again" "$(report ept 1 again_ns_median) < $(report ept 1 second_level_ns) / 2"

# --- refaults ---

run refault "# Are mappings dropped at the rate asked for, with contents kept?" "[vm]" "topology = 1x2x1" "memory = 256MiB" \
	"apic = xapic" "[run]" "command = first-touch --size 4MiB --retouch 20" "timeout = 600s" "[inject]" "ept.count = yes" \
	"ept.refault = 2000/s"
holds "mappings are dropped" "$(counter refault 0 ept_dropped) > 0"
holds "and faulted in again" "$(counter refault 0 ept_refault) > 0"
holds "not faster than asked for" \
	"$(counter refault 0 ept_dropped) <= 2000 * ($(json refault.json cells.0.repeats.0.time_ns) / 1e9 + 0.5)"

# --- KVM's local APIC ---

run kernel "# Does the fast local APIC work, and say what it cannot see?" "[vm]" "topology = 2x2x1" "memory = 256MiB" "apic = kernel" \
	"[run]" "command = topology-check -q" "timeout = 600s"
tap_like "apic = kernel: IPIs are n/a, with the reason" "$(json kernel.json cells.0.repeats.0.na.ipis_sent)" 'apic = kernel'
tap_is "apic = kernel: and not 0" "$(counter kernel 0 ipis_sent)" ""

tap_done
