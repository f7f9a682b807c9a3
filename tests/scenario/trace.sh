#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Traces and dumps by the front end: neither changes a result; a trace agrees with what is
# counted; what cannot be traced or written is said.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=300

cat >s.ini <<'END'
# Does looking change anything?
# Expected: no.
[vm]
engine = soft
topology = 2x2x1
memory = 256MiB
[run]
command = multi-fault 3
warmup = 1ms
duration = 4ms
[inject]
ept.first_touch = uniform:1us..3us
ipi.remote = lognormal:2us,0.5
END

# run NAME OPTION...: NAME.json, and NAME without its provenance, which is the last member.
run()
{
	local name=$1

	shift
	tap_run "$fb" run s.ini -q -o "$name.json" "$@"
	sed '/^  "provenance": {$/,$d' "$name.json" >"$name"
}

# lines KIND WHAT FILE: how many lines of that kind (and what, if not "") the trace has.
lines()
{
	awk -v kind="$1" -v what="$2" '!/^#/ && $3 == kind && (what == "" || $4 == what)' "$3" | wc -l
}

# --- a trace changes nothing, and is the same again ---

run plain --no-snapshot
tap_is "without a trace: status 0" "$RC" 0
run traced --no-snapshot --trace all.txt
tap_is "with a trace: status 0" "$RC" 0
tap_ok "the result is the same" cmp plain traced
tap_ok "and there is one" test -s plain
tap_like "and something was measured" "$(cat plain)" '"guest_page_faults_per_s"'
run again --no-snapshot --trace again.txt
tap_ok "the same run gives the same trace" cmp all.txt again.txt
tap_ok "which is not empty" test "$(wc -l <all.txt)" -gt 1000
tap_is "every line has its form" "$(grep -Evn -m 3 \
	'^(# .*|[0-9]+ [0-3] [a-z0-9]+ [a-z0-9_]+( [a-z0-9_]+=[0-9a-fx]+)* at=0x[0-9a-f]+( [A-Za-z0-9_.]+\+0x[0-9a-f]+)?)$' all.txt)" ""
tap_is "all kinds are there" "$(awk '!/^#/ { print $3 }' all.txt | sort -u | tr '\n' ' ')" \
	"cr3 ept exit fault flush ipi irq walk "
tap_like "flushes have causes" "$(awk '$3 == "flush" { print $4 }' all.txt | sort -u)" '^invlpg$'
tap_like "the kernel's functions have names" "$(grep ' flush invlpg ' all.txt)" ' at=0xf[0-9a-f]+ [a-z_]*flush[a-z_]*\+0x'

# --- and it is what is counted ---

run command --trace command.txt --trace-from command --trace-events ipi,ept,flush,cr3,fault
tap_is "only a command, from a snapshot or not: status 0" "$RC" 0
tap_ok "the result is the same" cmp plain command
tap_is "only the kinds asked for" "$(awk '!/^#/ { print $3 }' command.txt | sort -u | tr '\n' ' ')" "cr3 ept fault flush ipi "
tap_ok "less than all of the run" test "$(wc -l <command.txt)" -lt "$(wc -l <all.txt)"
run again --trace again.txt --trace-from command --trace-events ipi,ept,flush,cr3,fault
tap_like "from a snapshot" "$(cat again.json)" '"use": "restored"'
tap_ok "the trace of the command is the same" cmp command.txt again.txt

# topology-check marks no region of its own, so what is counted is between init's marks, as the trace is.
run whole --set "run.command=topology-check -q" --trace whole.txt --trace-from command
tap_is "a command without marks of its own: status 0" "$RC" 0
counter()
{
	json whole.json "cells.0.repeats.0.counters.$1.value"
}
tap_is "as many IPIs as were counted" "$(lines ipi "" whole.txt)" "$(counter ipis_sent)"
tap_is "as many EPT violations" "$(lines ept "" whole.txt)" "$(counter ept_violations)"
tap_is "as many refaults" "$(lines ept refault whole.txt)" "$(counter ept_refault)"
tap_is "as many halts" "$(lines exit hlt whole.txt)" "$(counter exits_hlt)"
tap_is "as many interrupts" "$(lines irq "" whole.txt)" "$(counter irqs_injected)"
tap_is "as many INVLPG" "$(lines flush invlpg whole.txt)" "$(counter soft_flush_invlpg)"
tap_is "as many loads of CR3" "$(lines cr3 "" whole.txt)" "$(counter soft_cr3_writes)"
tap_is "as many exceptions" "$(lines fault "" whole.txt)" "$(counter soft_exceptions)"
tap_is "the delays injected" "$(awk '$3 == "ept" { sub(".*delay_ns=", ""); n += $1 } END { print n + 0 }' whole.txt)" \
	"$(counter ept_injected_ns)"

# --- files ---

run matrix --set "run.repeat=1" --set vm.topology=1x1x1 --trace m.txt --trace-from command --trace-events cr3
tap_ok "one cell: the file itself" test -s m.txt
cat >>s.ini <<'END'
[vary]
run.seed = 1, 2
END
run matrix --trace m2.txt --trace-from command --trace-events cr3
tap_is "a matrix: a file for each cell" "$(ls m2.txt*)" "m2.txt.1
m2.txt.2"
tap_ok "with something in it" test "$(wc -l <m2.txt.2)" -gt 10
sed -i '/^\[vary\]/,$d' s.ini
run full --trace /dev/full
tap_is "a full disk: status 2" "$RC" 2
tap_like "with its reason" "$ERR" 'error: /dev/full: .*No space left on device'
tap_like "and the measurement stands" "$(json full.json 'cells.0.repeats.0.time_ns')" "^$(json plain.json 'cells.0.repeats.0.time_ns')$"

# A kernel without a System.map beside it.
cp "$BUILD/kernel/bzImage" .
run nameless --no-snapshot --kernel bzImage --trace nameless.txt --trace-from command --trace-events flush
tap_unlike "no System.map: no names" "$(cat nameless.txt)" '\+0x'
tap_ok "but addresses" grep -q ' at=0xf' nameless.txt
printf 'not a map\n' >System.map
run nameless --no-snapshot --kernel bzImage --trace nameless.txt --trace-from command --trace-events flush
tap_is "a System.map that is none: status 0" "$RC" 0
tap_like "with a warning" "$ERR" 'warning: .*/System.map:1: .*no names'

# --- what is refused ---

# refused NAME STATUS REGEX OPTION...
refused()
{
	local name=$1 status=$2 regex=$3

	shift 3
	tap_run "$fb" run s.ini "$@"
	tap_is "refused: $name: status $status" "$RC" "$status"
	tap_like "refused: $name: the message" "$ERR" "$regex"
}
refused "a kind that is none" 2 "no kind of event is called 'walks'; there are: all, .*walk" --trace x --trace-events walks
refused "kinds without a trace" 2 'go with --trace FILE' --trace-events walk
refused "some other start" 2 'trace-from boot: start or command' --trace x --trace-from boot
refused "a folder" 2 'Is a directory' --trace "$TAP_DIR"
refused "where nothing can be written" 2 'No such file' --trace /nonexistent/trace
refused "nested" 3 'engine nested has none' --trace x --engine nested
if [ "$(kvm_engine)" = kvm ]; then
	refused "what KVM does not show" 3 'engine kvm cannot see events of the kind walk' \
		--trace x --trace-events exit,walk --engine kvm
fi

# --- dumps ---

# dump_of_four NAME OUTPUT: the form of a dump of four vCPUs.
dump_of_four()
{
	tap_is "$1: four vCPUs" "$(grep -Ec '^vcpu [0-3] \(APIC id 0x[0-9a-f]+\): ' "$2")" 4
	tap_like "$1: bytes at rip, and a name" "$(cat "$2")" '^  rip 0x[0-9a-f]+ [a-z0-9_.]+\+0x[0-9a-f]+:.* <[0-9a-f]{2}>'
	tap_like "$1: registers" "$(cat "$2")" '^  rflags [0-9a-f]+  cr0 [0-9a-f]+ '
	tap_like "$1: the stack" "$(cat "$2")" '^  perhaps called by: [a-z0-9_.]+\+0x'
	tap_like "$1: the TLB" "$(cat "$2")" '^  tlb: data 4K [0-9]+/64'
}

# Asked for as soon as the command runs: no earlier, so that all vCPUs have started.
"$fb" run s.ini -q -o dumped.json --set run.duration=20ms >out.txt 2>err.txt &
pid=$!
for ((i = 0; i < 3000; i++)); do
	grep -q 'repeat 1 of 1: multi-fault' err.txt && break
	sleep 0.02
done
kill -USR1 $pid
RC=0
wait $pid || RC=$?
tap_is "SIGUSR1: the run goes on to its end" "$RC" 0
tap_is "one dump was asked for" "$(grep -c '^dump of 4 vCPUs' err.txt)" 1
dump_of_four "SIGUSR1" err.txt
run undumped --set run.duration=20ms
sed '/^  "provenance": {$/,$d' dumped.json >dumped
tap_ok "and the result is the same" cmp dumped undumped

run panic --set "run.command=bad-guest panic"
tap_is "a panic: status 5" "$RC" 5
printf '%s\n' "$ERR" >err.txt
dump_of_four "a panic" err.txt
tap_like "a panic: where" "$ERR" 'panic\+0x'
bare=$BUILD/guest-tests/bare
for guest in triple-fault cli-hlt; do
	run bad --kernel "$bare/$guest.elf" --set vm.topology=1x1x1 --set run.timeout=1s
	tap_is "$guest: status 5" "$RC" 5
	tap_like "$guest: 32-bit code" "$ERR" '^vcpu 0 \(APIC id 0x0\): (runnable|halted), 32-bit mode, CPL 0, at .*, last exit (other|hlt)'
	tap_like "$guest: bytes without a name" "$ERR" '^  rip 0x10[0-9a-f]+:.* <[0-9a-f]{2}>'
done

tap_done
