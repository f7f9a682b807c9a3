#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Guests that misbehave: each ends with the documented status and says why, the VMM
# outlives all of them, and what was measured before is kept. Bare-metal images
# first, then programs under Linux; a cell each, so that one appliance carries
# them all where there is no KVM, and a guest that behaves comes last to show that
# nothing is left of the others.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1500

bare=$BUILD/guest-tests/bare
engine=$(kvm_engine)

# "NAME STATUS REPEATS WHY" of each cell of a result; NAME is the last word of the setting.
cells()
{
	paste -d' ' <(json "$1" 'cells.*.name' | sed 's,.*[/= ],,') <(json "$1" 'cells.*.status') \
		<(json "$1" 'cells.*.repeats' | perl -MJSON::PP -ne 'print scalar @{decode_json($_)}, "\n"') \
		<(json "$1" 'cells.*.why')
}

# ends NAME STATUS WHY: of the cells read last.
ends()
{
	tap_like "$1 ends with status $2: $3" "$(grep "^$1 " cells)" "^$1 $2 [0-9]+ .*$3"
}

# --- without an operating system ---

cat >bare.ini <<EOT
# How do bare-metal guests end that misbehave?
[vm]
topology = 1x1x1
memory = 64MiB
apic = xapic
[run]
command = true
timeout = 10s
[vary]
guest.kernel = $bare/triple-fault.elf, $bare/cli-hlt.elf, $bare/silent.elf, $bare/spin.elf, $bare/mmio-exec.elf, $bare/exit.elf
EOT
tap_run "$BUILD/faultbed" run --engine "$engine" bare.ini -o bare.json
[ -s bare.json ] || tap_diag "$ERR"
cells bare.json >cells
tap_is "all are run" "$(wc -l <cells)" 6
ends triple-fault.elf 5 'shut down: triple fault'
ends cli-hlt.elf 5 'had not come up after 10 s'
ends silent.elf 5 'had not come up after 10 s'
ends spin.elf 5 'had not come up after 10 s'
ends mmio-exec.elf 5 'cannot be run'
ends exit.elf 1 'left with status 7'
tap_is "the run's status is the worst" "$RC" 5
tap_like "a silent guest is called silent" "$ERR$OUT" 'console said nothing|nothing to its console'

cat >garbage.ini <<EOT
# Does a guest that writes rubbish to every port, device page and MSR get to its end?
[vm]
topology = 1x1x1
memory = 64MiB
apic = xapic
[guest]
kernel = $bare/garbage.elf
[run]
command = true
timeout = 400s
EOT
tap_run "$BUILD/faultbed" run --engine "$engine" garbage.ini -o garbage.json
cells garbage.json >cells
tap_like "garbage to every port, device page and MSR: the guest gets to its end" "$(cat cells)" ' 1 0 the guest left with status 15'

# --- under Linux ---

linux_ini()	# FILE TIMEOUT COMMANDS
{
	cat >"$1" <<-EOT
	# How do programs end that misbehave in a guest?
	[vm]
	topology = 1x2x1
	memory = 256MiB
	apic = xapic
	[run]
	command = true
	repeat = 2
	timeout = $2
	[vary]
	run.command = $3
	EOT
	tap_run "$BUILD/faultbed" run --engine "$engine" "$1" -o linux.json
	[ -s linux.json ] || tap_diag "$ERR"
	cells linux.json >cells
	tap_diag "$(cat cells)"
}

# These end of themselves, so the time-out is for a slow host only.
linux_ini ends.ini 300s "bad-guest marks, bad-guest flood 16KiB, bad-guest protocol, bad-guest panic, bad-guest reset, \
bad-guest triple-fault, bad-guest oom, false, no-such-program, true"
tap_is "all are run" "$(wc -l <cells)" 10
ends marks 0 ''
ends 16KiB 0 ''
ends protocol '[01]' ''
ends panic 5 'panic'
ends reset 5 'shut down'
ends triple-fault 5 'shut down|panic'
ends oom 1 ''
ends false 1 ''
ends no-such-program 1 ''
ends true 0 ''
tap_is "true is measured twice after all that" "$(sed -n 's/^true 0 \([0-9]*\) .*/\1/p' cells)" 2
tap_is "a failed command is measured all the same" "$(sed -n 's/^false 1 \([0-9]*\) .*/\1/p' cells)" 2

# These do not.
linux_ini hangs.ini 45s "bad-guest silent, bad-guest hang, bad-guest lapic"
tap_is "all are run" "$(wc -l <cells)" 3
ends silent 5 'run.timeout'
ends hang 5 ''
ends lapic '[05]' ''

# run.timeout ends a stuck guest and keeps what was measured: the first repeat is good, the second hangs.
cat >stuck.ini <<EOT
# Is what was measured before a guest got stuck kept?
[vm]
topology = 1x1x1
memory = 256MiB
[run]
command = test -e /tmp/once && sleep 1000; touch /tmp/once
repeat = 3
timeout = 60s
EOT
tap_run "$BUILD/faultbed" run --engine "$engine" stuck.ini -o stuck.json
tap_is "stuck in the second repeat: status 5" "$RC" 5
cells stuck.json >cells
tap_like "stuck in the second repeat: the first is kept" "$(cat cells)" ' 5 1 .*run\.timeout'

tap_done
