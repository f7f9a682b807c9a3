#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Guests that misbehave: each ends with the documented status and says why, the VMM
# outlives all of them, and what was measured before is kept. Bare-metal images
# first, then programs under Linux; a cell each, so that one appliance carries
# them all where there is no KVM, and a guest that behaves comes last to show that
# nothing is left of the others. All of it on kvm (or nested) and on soft; and on soft, more that only an
# interpreter can get wrong. GUESTS_ENGINES="soft": that one only.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1500

bare=$BUILD/guest-tests/bare
engines=${GUESTS_ENGINES:-$(kvm_engine) soft}

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
	tap_like "$engine: $1 ends with status $2: $3" "$(grep "^$1 " cells)" "^$1 $2 [0-9]+ .*$3"
}

# run INI: on $engine; cells has its cells, RC, OUT and ERR are the command's. Busy guests of soft take the host's time.
run()
{
	local limit=()

	[ "$engine" = soft ] && limit=(--set "run.host_timeout=${HOST_TIMEOUT:-20s}")
	rm -f out.json
	tap_run "$BUILD/faultbed" run --engine "$engine" "${limit[@]}" "$1" -o out.json
	[ -s out.json ] || tap_diag "$ERR"
	cells out.json >cells
	tap_unlike "$engine: no VMM crashed" "$ERR" 'AddressSanitizer|runtime error|Assertion|assertion|signal [0-9]'
}

# --- without an operating system ---

bare_guests()
{
	cat >bare.ini <<-EOT
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
	HOST_TIMEOUT=5s run bare.ini
	tap_is "$engine: all are run" "$(wc -l <cells)" 6
	ends triple-fault.elf 5 'shut down: triple fault'
	ends cli-hlt.elf 5 'had not come up after 10 s'
	ends silent.elf 5 'had not come up after 10 s'
	ends spin.elf 5 'had not come up after (10|5) s'
	ends mmio-exec.elf 5 'cannot be run'
	ends exit.elf 1 'left with status 7'
	tap_is "$engine: the run's status is the worst" "$RC" 5
	tap_like "$engine: a silent guest is called silent" "$ERR$OUT" 'console said nothing|nothing to its console'

	cat >garbage.ini <<-EOT
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
	HOST_TIMEOUT=60s run garbage.ini
	tap_like "$engine: garbage to every port, device page and MSR: the guest gets to its end" "$(cat cells)" \
		' 1 0 the guest left with status 15'
}

# Ring 0 at its worst, a case each (guest-tests/bare/bad.c says what they do).
bad_guests()
{
	local case list=
	local good="tables-off-the-end tables-as-code code-and-data storm wide-in-device endless-steps fast-timers ipi-storm init-storm"
	local gone="code-in-device code-off-the-end tables-in-device tables-in-hole idt-in-hole gdt-in-hole no-handlers no-stack"
	local loops="endless-rep endless-rep-device endless-fault endless-delivery"

	for case in $good $gone tss-in-hole stack-in-device $loops random-user; do
		list="$list${list:+, }case=$case cpus=4 seed=1 name=$case"
	done
	for case in 2 3; do
		list="$list, case=random-user seed=$case name=random-user-$case"
	done
	for case in 1 2 3 4 5 6 7 8; do
		list="$list, case=random-kernel seed=$case name=random-kernel-$case"
	done
	cat >bad.ini <<-EOT
	# Does the VMM outlive whatever a guest does in ring 0?
	[vm]
	topology = 1x4x1
	memory = 64MiB
	[guest]
	kernel = $bare/bad.elf
	[run]
	command = true
	timeout = 100s
	[vary]
	guest.append = $list
	EOT
	HOST_TIMEOUT=15s run bad.ini
	for case in $good random-user random-user-2 random-user-3; do
		ends "$case" 0 ''
	done
	for case in $gone; do
		ends "$case" 5 'cannot be run'
	done
	for case in $loops; do
		ends "$case" 5 'run.(host_)?timeout'
	done
	# All ones are an address as good as any: these come to an exception that the image knows.
	ends tss-in-hole 1 'left with status 7'
	ends stack-in-device '[15]' '(left with status 7|cannot be run|timeout)'
	# Anything but our own fault: an end of the guest's, or an instruction that the engine names.
	for case in 1 2 3 4 5 6 7 8; do
		ends "random-kernel-$case" '[0145]' ''
	done
	tap_unlike "soft: no rubbish is more than the engine names" "$(grep '^random' cells | grep ' 4 ' | grep -v 'the engine failed')" .
}

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
	run "$1"
	tap_diag "$(cat cells)"
}

linux_guests()
{
	# These end of themselves, so the time-out is for a slow host only.
	HOST_TIMEOUT=120s linux_ini ends.ini 300s "bad-guest marks, bad-guest flood 16KiB, bad-guest protocol, bad-guest panic, \
bad-guest reset, bad-guest triple-fault, bad-guest oom, false, no-such-program, true"
	tap_is "$engine: all are run" "$(wc -l <cells)" 10
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
	tap_is "$engine: true is measured twice after all that" "$(sed -n 's/^true 0 \([0-9]*\) .*/\1/p' cells)" 2
	tap_is "$engine: a failed command is measured all the same" "$(sed -n 's/^false 1 \([0-9]*\) .*/\1/p' cells)" 2

	# These do not.
	linux_ini hangs.ini 45s "bad-guest silent, bad-guest hang, bad-guest lapic"
	tap_is "$engine: all are run" "$(wc -l <cells)" 3
	ends silent 5 'run.timeout'
	ends hang 5 ''
	ends lapic '[05]' ''

	# run.timeout ends a stuck guest and keeps what was measured: the first repeat is good, the second hangs.
	cat >stuck.ini <<-EOT
	# Is what was measured before a guest got stuck kept?
	[vm]
	topology = 1x1x1
	memory = 256MiB
	[run]
	command = test -e /tmp/once && sleep 1000; touch /tmp/once
	repeat = 3
	timeout = 60s
	EOT
	run stuck.ini
	tap_is "$engine: stuck in the second repeat: status 5" "$RC" 5
	tap_like "$engine: stuck in the second repeat: the first is kept" "$(cat cells)" ' 5 1 .*run\.timeout'
}

# Where a boot takes a second: the modes after which anything may come.
worse_linux_guests()
{
	HOST_TIMEOUT=60s linux_ini worse.ini 45s "bad-guest ports, bad-guest uart, bad-guest mmio, bad-guest msr, bad-guest oops, bad-guest scribble, \
bad-guest forkbomb, bad-guest poweroff, bad-guest protocol port, true"
	tap_is "$engine: all are run" "$(wc -l <cells)" 10
	ends ports '[05]' ''
	ends uart '[05]' ''
	ends mmio '[05]' ''
	ends msr '[0157]' ''
	ends oops '[05]' ''
	ends scribble '[145]' ''
	ends forkbomb '[01]' ''
	ends poweroff '[05]' ''
	ends port '[0145]' ''
	ends true 0 ''
}

for engine in $engines; do
	bare_guests
	[ "$engine" != soft ] || bad_guests
	linux_guests
	[ "$engine" != soft ] || worse_linux_guests
done

tap_done
