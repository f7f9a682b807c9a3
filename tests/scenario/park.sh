#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# vCPUs that wait in a loop are not executed, and nothing in a result or a profile tells.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=300

cat >spin.ini <<'EOT'
# Does a result change if vCPUs that wait in a loop are parked?
# Expected: no.
[vm]
engine = soft
topology = 2x2x2
memory = 256MiB
cost_model = ivb-ep
[guest]
knob.i_mmap_stat = on
[run]
warmup = 1ms
duration = 2ms
timeout = 60s
[vary]
guest.knob.i_mmap + run.command = spin + mmap-file 8 50000 --scale 0.002, mutex + mmap-file 8 50000 --scale 0.002, rwsem + multi-fault 8
EOT

# run NAME ARGS...: cells as NAME, with what is known of the snapshot taken out.
run()
{
	local name=$1

	shift
	tap_run "$BUILD/faultbed" run spin.ini -q --profile -o "$name.json" "$@"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$name: status 0" "$RC" 0
	python3 - "$name.json" >"$name" 2>&1 <<'END'
import json, sys
cells = json.load(open(sys.argv[1]))["cells"]
for cell in cells:
    cell.pop("snapshot", None)
    print(json.dumps(cell, sort_keys=True))
END
}

run parked
run executed --no-park
run booted --no-park --no-snapshot
tap_ok "the same cells without parking" cmp parked executed
tap_ok "and booted" cmp parked booted
tap_is "three of them" "$(wc -l <parked)" 3
for i in 0 1; do
	tap_like "cell $i: vCPUs have spun" "$(json parked.json "cells.$i.repeats.0.counters.soft_time_spinning.value")" '^[1-9]'
done

tap_run "$BUILD/faultbed" run spin.ini -q --no-park --engine nested --set vm.cost_model=auto -o no.json
tap_is "only soft parks" "$RC" 3
tap_like "and it says so" "$ERR" 'no-park: engine nested'

tap_done
