#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# first-touch finds what a second-level fault costs, on a quiet host and on one where
# other touches are slow too: here by mappings that are dropped, of memory that
# was touched before, and come back 30 us later.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1

cat >noise.ini <<'EOT'
# Does first-touch tell memory never touched from other slow touches?
[vm]
engine = soft
topology = 1x2x1
memory = 512MiB
[run]
command = first-touch
timeout = 200s
[inject]
ept.first_touch = fixed:5ms
ept.refault_delay = fixed:30us
[vary]
inject.ept.refault = none, 1000/s, 8000/s, 12000/s
EOT
tap_run "$BUILD/faultbed" run noise.ini -o noise.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "status 0" "$RC" 0
for cell in 0 1 2 3; do
	part=$(json noise.json "cells.$cell.repeats.0.reports.second_level_ns.value")
	tap_diag "$(json noise.json "cells.$cell.name"): $part ns, $(json noise.json "cells.$cell.repeats.0.reports.first_touch_slow.value") slow"
	# Where mappings go fast, a touch, or one of a recycled page, may have waited for one or two besides.
	slack=$((cell < 2 ? 10000 : 70000))
	tap_ok "cell $cell: the delay of 5 ms is found" test "$part" -gt $((5000000 - slack)) -a "$part" -lt $((5000000 + slack))
done
tap_done
