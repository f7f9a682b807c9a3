#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The knob fault_around_order and mainline's fault_around_bytes are two names of one
# thing, and the experiment holds on its small machine. FAULTBED_TEST_KERNEL: another kernel than the build's.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
kernel=${FAULTBED_TEST_KERNEL:-$BUILD/kernel/bzImage}
export TAP_TIMEOUT=300

cat >knob.sh <<'EOT'
knob=/sys/kernel/debug/faultbed/knobs/fault_around_order
bytes=/sys/kernel/debug/fault_around_bytes
show() { echo "state $1: $(cat $knob) $(cat $bytes)"; }
show start
for order in 0 1 9 -1; do echo $order >$knob; show $order; done
for bad in 10 -2 x 4x; do echo $bad >$knob && echo "state took $bad"; done 2>/dev/null
show bad
echo 20000 >$bytes; show 20000
echo 4194304 >$bytes; show 4194304
EOT
cat >knob.ini <<'EOT'
# Are the two names one thing? Expected: yes.
[vm]
topology = 1x1x1
memory = 128MiB
[guest]
knob.fault_around_order = 3
add = knob.sh
[run]
command = sh /knob.sh 2>&1
EOT
tap_run "$BUILD/faultbed" run knob.ini --engine soft --kernel "$kernel" -o knob.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "the knob's run is done" "$RC" 0
tap_is "the host hears of the order in force" "$(json knob.json cells.0.repeats.0.knobs.fault_around_order)" 3
tap_is "what either name is set to, both show; what is no order changes nothing" \
	"$(json knob.json cells.0.end.console | tr -d '\r' | grep -o 'state [^ ]*: [-0-9]* [0-9]*\|state took [^ ]*')" \
	"$(printf 'state %s\n' 'start: 3 32768' '0: -1 4096' '1: 1 8192' '9: 9 2097152' '-1: -1 4096' 'bad: -1 4096' \
		'20000: 2 16384' '4194304: 2 16384')"

# The experiment without its large machines, which are left out as if they were another engine's.
cp -r "$TOP/experiments/fault-around" small
sed -i -e 's/^engine = soft/engine = nested/' -e '/^cost_model/d' small/power7*.ini small/x86*.ini
tap_run "$BUILD/faultbed" experiment ./small --engine soft --kernel "$kernel" -o o
[ "$RC" = 0 ] || tap_diag "$ERR$OUT"
tap_is "the experiment on 4 vCPUs: all claims hold" "$RC" 0
tap_is "one reader: pages / 2^order, by both patterns" \
	"$(printf '%s\n' "$OUT" | sed -n 's/^ small, order \([-0-9]*\): [^0-9]*\([0-9]*\) *\([0-9]*\) \([0-9]*\) .*/\1 \2 \3 \4/p')" \
	"$(printf '%s\n' '-1 2048 2048 2048' '1 1024 1024 1024' '4 128 128 128' '9 4 4 4')"
for order in 0 1 2 3; do
	n=$(json o/small/small.json "cells.$order.repeats.0.reports.sequential\\.one\\.4\\.minor_faults.value")
	tap_ok "four readers take four times that or more ($n)" test "$n" -ge "$(json o/small/small.json \
		"cells.$order.repeats.0.reports.sequential\\.one\\.1\\.minor_faults.value")"
done

tap_done
