#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An emulator crashes at times. The cell that its appliance was at is run again by
# another one, once, and what was measured before is kept.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=600

emulator=${FAULTBED_QEMU:-$(command -v qemu-system-x86_64)}
printf '%s\n' "# Is a cell whose appliance dies run again?" "[vm]" "topology = 1x1x1" "memory = 128MiB" "engine = nested" \
	"[run]" "command = true" "[vary]" "run.seed = 1, 2" >two.ini

# A QEMU that is killed at the second cell of its first appliance, as often as `lives` says.
cat >qemu <<EOF
#!/bin/bash
read -r lives <lives
if [[ \$* == *-version* || \$lives = 0 ]]; then
	exec "$emulator" "\$@"
fi
echo \$((lives - 1)) >lives
"$emulator" "\$@" > >(while IFS= read -r line; do
	printf '%s\n' "\$line"
	[[ \$line != *"seed=2: booting"* ]] || kill -KILL "\$(<pid)"
done) &
echo \$! >pid
wait \$!
EOF
chmod +x qemu

echo 1 >lives
tap_run env FAULTBED_QEMU="$PWD/qemu" "$BUILD/faultbed" run two.ini -o once.json
tap_is "an appliance lost: status 0" "$RC" 0
tap_is "each cell has its repeat" "$(json once.json 'cells.*.repeats.*.seed' | tr '\n' ' ')" "1 2 "
tap_is "and none has a reason not to" "$(json once.json 'cells.*.why')" ""
tap_like "what happened is said" "$ERR" 'the appliance left with status 137 in the middle of a cell'
tap_like "and what is done about it" "$ERR" 'is run again by another appliance'
tap_is "the emulator was killed" "$(cat lives)" 0

echo 2 >lives
tap_run env FAULTBED_QEMU="$PWD/qemu" "$BUILD/faultbed" run two.ini -o twice.json
tap_is "lost again: an internal error" "$RC" 4
tap_like "which says so" "$(json twice.json 'cells.1.why')" 'and so did the one before at the same cell'
tap_is "the cell before is kept" "$(json twice.json 'cells.0.repeats.*.seed')" 1

tap_done
