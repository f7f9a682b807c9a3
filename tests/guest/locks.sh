#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's knobs i_mmap and mmap_lock_stat, on the soft engine: what they count is
# what was done, turning the knob under load breaks nothing, and mmap-file's counts
# are those of its tasks and loops. In small what experiments/i-mmap asks.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1500

cat >check.ini <<'EOT'
# Do the figures of the two locks agree with what was done to them, on one CPU and on several?
[vm]
engine = soft
memory = 256MiB
[run]
command = lock-check
timeout = 60s
[vary]
vm.topology = 1x1x1, 1x4x1
EOT
tap_run "$BUILD/faultbed" run check.ini -o check.json
[ "$RC" = 0 ] || tap_diag "$OUT$ERR"
tap_is "lock-check: status, on 1 and 4 CPUs" "$(json check.json 'cells.*.status' | tr '\n' ' ')" "0 0 "
for i in 0 1; do
	tap_unlike "the kernel has nothing to say about it ($i)" "$(json check.json "cells.$i.end.console")" \
		'WARNING|BUG:|lockdep|DEBUG_RWSEMS'
done

cat >load.ini <<'EOT'
# Are mmap-file's counts those of its tasks and loops, in each arm?
[vm]
engine = soft
topology = 1x2x1
memory = 256MiB
[guest]
knob.i_mmap_stat = on
[run]
command = true
timeout = 60s
[vary]
guest.knob.i_mmap = spin, mutex, rwsem
run.command = mmap-file 2 800 --scale 0.05, mmap-file 8 800 --scale 0.05, mmap-file 8 800
EOT
tap_run "$BUILD/faultbed" run load.ini -o load.json
[ "$RC" = 0 ] || tap_diag "$OUT$ERR"

# of CELL NAME: a counter's or report's mean, n/a if it is not there.
of()
{
	local v

	v=$(json load.json "cells.$1.summary.counters.$2.mean")
	[ -n "$v" ] || v=$(json load.json "cells.$1.summary.reports.$2.mean")
	printf '%.0f' "${v:-nan}"
}

arms=(spin mutex rwsem)
for a in 0 1 2; do
	arm=${arms[$a]}
	few=$((3 * a)) many=$((3 * a + 1)) long=$((3 * a + 2))
	tap_is "$arm: 2, 8 and 8 tasks" "$(of $few tasks) $(of $many tasks) $(of $long tasks)" "2 8 8"
	tap_is "$arm: all loops are done" "$(of $few loops_done) $(of $many loops_done) $(of $long loops_done)" "80 320 6400"
	tap_is "$arm: the scale is reported" "$(of $few scale_ppm) $(of $long scale_ppm)" "50000 1000000"
	tap_is "$arm: a task costs the parent 3 page faults" \
		"$(($(of $many parent_page_faults) - $(of $few parent_page_faults)))" 18
	tap_is "$arm: a loop takes the lock twice for writing, starting and ending a task as often as ever" \
		"$(($(of $long i_mmap_write) - $(of $many i_mmap_write)))" $((2 * (6400 - 320)))
	tap_ok "$arm: some find it taken" test "$(of $long i_mmap_contended)" -gt 0
done
tap_is "spin: nobody sleeps for it, or sees an owner off its CPU" \
	"$(for i in 0 1 2; do of $i i_mmap_sleeps; echo -n ' '; of $i i_mmap_owner_off_cpu; echo -n ' '; done)" "0 0 0 0 0 0 "
tap_is "spin: all that found it taken got it by spinning" "$(of 2 i_mmap_spins)" "$(of 2 i_mmap_contended)"
tap_is "mutex and rwsem do not spin by ticket" "$(of 5 i_mmap_spins) $(of 8 i_mmap_spins)" "0 0"

tap_done
