#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The soft engine by the front end: guests of all shapes boot and see what they were
# given; the same scenario and seed give the same result to the byte, whatever the
# host does meanwhile; seeds, and nothing else, set repeats apart; a guest that never comes back
# ends in bounded time.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=900
export XDG_CACHE_HOME=$TAP_DIR/cache

# A result without its provenance, which is its last member: all of it has to be the same again.
same_part()
{
	grep -q '^  "provenance": {$' "$1" && sed '/^  "provenance": {$/,$d' "$1"
}

# twice NAME: run NAME.ini two times, the second with the host busy and its cells one after another, and compare.
twice()
{
	local load

	tap_run "$BUILD/faultbed" run "$1.ini" -o "$1-1.json" -q
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$1: status 0" "$RC" 0
	nice -n 5 sh -c 'while :; do :; done' &
	load=$!
	tap_run "$BUILD/faultbed" run "$1.ini" -o "$1-2.json" -q --jobs 1
	kill "$load"
	tap_is "$1, again: status 0" "$RC" 0
	same_part "$1-1.json" >one
	same_part "$1-2.json" >two
	tap_ok "$1: both results are the same" cmp one two
	tap_ok "$1: and they are not empty" test -s one
}

# --- shapes ---

cat >shapes.ini <<'EOT'
# Do guests of all shapes boot, and see what they were given?
[vm]
engine = soft
memory = 1GiB
[run]
command = topology-check -q
timeout = 60s
[vary]
vm.topology + vm.apic = 1x1x1 + xapic, 2x6x2 + xapic, 2x10x2 + x2apic, 4x8x4 + x2apic, 4x15x2 + auto
EOT
twice shapes
tap_is "all shapes are what was asked for" "$(json shapes-1.json 'cells.*.status' | tr '\n' ' ')" "0 0 0 0 0 "
tap_is "the local APICs are those asked for" "$(json shapes-1.json 'cells.*.vm.apic' | tr '\n' ' ')" \
	"xapic xapic x2apic x2apic xapic "
tap_is "their time is virtual" "$(json shapes-1.json 'cells.*.vm.time' | sort -u)" virtual
tap_is "the cost model is named" "$(json shapes-1.json 'cells.0.vm.cost_model.name')" simple
tap_is "by the digest of its file" "$(json shapes-1.json 'cells.0.vm.cost_model.sha256')" \
	"$(sha256sum <"$TOP/cost-models/simple.ini" | cut -d' ' -f1)"

# --- a load, with delays and repeats ---

cat >load.ini <<'EOT'
# Do repeats of a load differ by their seeds, and by nothing else?
[vm]
engine = soft
topology = 2x2x1
memory = 256MiB
[run]
command = multi-fault 4
warmup = 1ms
duration = 10ms
repeat = 3
seed = 7
timeout = 60s
[inject]
ipi.remote = exp:5us
ept.first_touch = uniform:1us..3us
ept.refault = 2000/s
ept.write_protect = 20000/s
ept.write_protect_delay = fixed:4us
EOT
twice load
tap_is "the repeats' seeds" "$(json load-1.json 'cells.0.repeats.*.seed' | tr '\n' ' ')" "7 8 9 "
tap_is "each repeat took a time of its own" "$(json load-1.json 'cells.0.repeats.*.time_ns' | sort -u | wc -l)" 3
tap_like "a rate says what its time is" "$(json load-1.json 'cells.0.summary.rates.guest_page_faults_per_s.time')" '^virtual$'
tap_like "and that there was no memory model" "$(json load-1.json 'cells.0.summary.rates.guest_page_faults_per_s.trust')" \
	'time = virtual, no memory model'
for r in 0 1 2; do
	sum=0
	for name in ept_first_touch ept_refault ept_write_protect; do
		n=$(json load-1.json "cells.0.repeats.$r.counters.$name.value")
		sum=$((sum + n))
	done
	tap_is "repeat $r: second-level faults are what their causes add up to" \
		"$(json load-1.json "cells.0.repeats.$r.counters.ept_violations.value")" "$sum"
	tap_ok "repeat $r: some are of writes to protected pages ($n)" test "$n" -gt 0
	tap_is "repeat $r: and each of these was delayed" \
		"$(json load-1.json "cells.0.repeats.$r.histograms.injected_ept_ns\.write_protect.sum")" $((n * 4000))
done
tap_run "$BUILD/faultbed" show load-1.json
tap_unlike "virtual time is no time elapsed" "$OUT" 'time elapsed'
tap_like "it is called what it is" "$OUT" 's of virtual time between the marks'
tap_run "$BUILD/faultbed" compare load-1.json load-2.json
tap_is "a rate without a memory model is no performance result" "$RC" 1

# --- guests that do not come back ---

bare=$BUILD/guest-tests/bare
cat >hang.ini <<EOT
# Do guests that hang end, those that sleep at once, those that spin by the host's clock?
[vm]
engine = soft
topology = 1x2x1
memory = 64MiB
[run]
command = true
timeout = 300s
host_timeout = 3s
[vary]
guest.kernel = $bare/cli-hlt.elf, $bare/spin.elf
EOT
TAP_TIMEOUT=30
tap_run "$BUILD/faultbed" run hang.ini -o hang.json
tap_is "hung guests: status 5, in little time" "$RC" 5
tap_like "one that sleeps comes to its own limit at once" "$(json hang.json 'cells.0.why')" \
	'had not come up after 300 s of virtual time \(run.timeout\)'
tap_like "one that spins comes to the host's" "$(json hang.json 'cells.1.why')" \
	"had not come up after 3 s of this host's time.*\(run.host_timeout\)"
tap_is "such a result is incomplete" "$(json hang.json complete)" false

# --- what the engine does not have ---

# refused NAME REGEX SETTING
refused()
{
	tap_run "$BUILD/faultbed" run load.ini --set "$3"
	tap_is "refused: $1: status 2" "$RC" 2
	tap_like "refused: $1: the message" "$ERR" "$2"
}
refused "KVM's local APIC" 'vm.apic = kernel' vm.apic=kernel
refused "the host's CPU" 'vm.cpu_model = host' vm.cpu_model=host
refused "paravirtual features" 'guest.pv' guest.pv=tlb_flush
refused "no cost model" 'vm.cost_model = none' vm.cost_model=none
refused "a cost model that is not there" 'there is no .*/cost-models/no-such.ini' vm.cost_model=no-such
refused "a cost model's file that is not there" 'vm.cost_model: there is no file .*no-such.ini' vm.cost_model=./no-such.ini
sed 's/^cpi = .*/cpi = fast/' "$TOP/cost-models/simple.ini" >bad.ini
refused "a cost model that is wrong" 'bad.ini:[0-9]+: cost.cpi: "fast" is not a number of cycles' vm.cost_model=./bad.ini
sed 's/^cpi = .*/cpi = 1 (2..3)/' "$TOP/cost-models/simple.ini" >bad.ini
refused "a number below its own range" 'bad.ini:[0-9]+: cost.cpi: 1 is less than the low end of its range, 2' vm.cost_model=./bad.ini
refused "a change of a number that there is not" '^error: --set: cost.exeption: no number of a cost model; did you mean exception\?' cost.exeption=1
refused "a change to no number" '^error: --set: cost.cpi: "fast" is not a number of cycles.*; or \*FACTOR, low or high' cost.cpi=fast
refused "a change of what the model has not" '^error: --set: cost.dram_local: simple has no \[memory\]' cost.dram_local=*2
refused "a change that the engine cannot bear" '^error: --set: cost.ipi_smt: 5ns is shorter than the quantum' cost.ipi_smt=5ns

# --- numbers of the cost model changed ---

tap_run "$BUILD/faultbed" run load.ini -q -o plain.json --set run.repeat=1
tap_run "$BUILD/faultbed" run load.ini -q -o dear.json --set run.repeat=1 --set 'cost.exception=*2'
tap_is "an exception twice as dear: status" "$RC" 0
tap_is "the model is said to be changed" "$(json dear.json 'cells.*.vm.cost_model.changed' | sort -u)" true
tap_is "and else not" "$(json plain.json 'cells.*.vm.cost_model.changed')" ""
tap_is "it has another digest" "$(cat plain.json dear.json | grep -A2 '"cost_model": {' | sed -n 's/.*"sha256": //p' | sort -u | wc -l)" 2
tap_is "exceptions and interrupts take longer" "$(
	for f in plain dear; do json $f.json 'cells.0.repeats.0.counters.soft_time_event.per_vcpu.0'; done | sort -n -u | wc -l)" 2

tap_done
