#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The guest side without our VMM: the project's kernel and initramfs on plain
# QEMU (TCG), and this script as the host of the control protocol. What fails here
# is the guest's fault; what fails only under the VMM is the VMM's.

. "$(dirname "$0")/../tap.sh"

export LC_ALL=C
KERNEL=$BUILD/kernel/bzImage
if ! command -v qemu-system-x86_64 >/dev/null || [ ! -e "$KERNEL" ]; then
	echo "1..0 # SKIP needs qemu-system-x86_64 and $KERNEL"
	exit 0
fi
tap_ok "initramfs" "$TOP/images/initramfs-build.sh" --guest-tests "$BUILD/guest-tests" -o "$TAP_DIR/initrd"

CTL=$TAP_DIR/ctl
mkfifo "$CTL.in" "$CTL.out"
# iosize: QEMU's default of 2 would take a mark at port 0xf5 for an exit.
timeout -k 5 240 qemu-system-x86_64 -M pc -accel tcg -cpu Skylake-Client-v4,vendor=GenuineIntel -m 512 \
	-smp 4,sockets=2,cores=1,threads=2 -nodefaults -no-reboot -display none \
	-object memory-backend-ram,id=m0,size=256M -object memory-backend-ram,id=m1,size=256M \
	-numa node,nodeid=0,memdev=m0 -numa node,nodeid=1,memdev=m1 \
	-numa cpu,node-id=0,socket-id=0 -numa cpu,node-id=1,socket-id=1 \
	-kernel "$KERNEL" -initrd "$TAP_DIR/initrd" -append "console=ttyS0 quiet panic=-1" \
	-serial "file:$TAP_DIR/console" -serial "pipe:$CTL" -device isa-debug-exit,iobase=0xf4,iosize=1 \
	2>"$TAP_DIR/qemu.err" &
QEMU=$!
trap 'kill $QEMU 2>/dev/null; rm -rf "$TAP_DIR"' EXIT
exec 8>"$CTL.in" 9<"$CTL.out"

# Lines up to the next `ready` into LINES; fails if none comes.
until_ready()
{
	local line

	LINES=
	while IFS= read -r -t 120 -u 9 line; do
		[ "$line" = ready ] && return 0
		LINES+=$line$'\n'
	done
	tap_diag "no ready; console:"$'\n'"$(tail -n 20 "$TAP_DIR/console")"
	return 1
}
say()
{
	printf '%s\n' "$@" >&8
}
run()
{
	say "run $1"
	until_ready || tap_result 1 "$1: an answer"
}
value()
{
	printf '%s' "$LINES" | sed -n "s|^$1 ||p" | cut -d' ' -f1
}

if ! until_ready; then
	tap_result 1 "init is up"
	tap_done
	exit 1
fi
tap_like "says hello" "$LINES" '^hello 1$'
tap_like "counts its CPUs" "$LINES" '^info cpus_online 4$'
tap_like "and nodes" "$LINES" '^info nodes 2$'
tap_like "names its kernel" "$LINES" '^info release [0-9]+\.'
tap_like "and its mitigations" "$LINES" '^info vulnerabilities/meltdown '
tap_like "and flags" "$LINES" '^info pti [01]$'

run 'exit 3'
tap_like "exit status" "$LINES" '^done 3$'
tap_like "init's own counters" "$LINES" '^counter /proc/vmstat pgfault [1-9]'
run 'kill -9 $$'
tap_like "signal" "$LINES" '^done 137$'
run 'no-such-program'
tap_like "missing program" "$LINES" '^done 127$'
say 'env A=b c' 'env NOEQUALS'
run 'test "$A" = "b c"'
tap_like "environment" "$LINES" '^done 0$'
tap_like "malformed env is refused" "$LINES" '^error env NOEQUALS: not NAME=VALUE$'
run 'test -z "$A"'
tap_like "and gone for the next" "$LINES" '^done 0$'
say 'what is this'
run 'sleep 1000 & echo left behind'
tap_like "unknown line" "$LINES" '^error unknown line: what is this$'
tap_like "a process left behind does not block" "$LINES" '^done 0$'
run 'ps | grep -c "[s]leep 1000" >/tmp/n; read n </tmp/n; exit $n'
tap_like "and is killed" "$LINES" '^done 0$'
run 'echo "report x 1.5 ns" >&$FAULTBED_REPORT_FD; echo "warning w" >&$FAULTBED_REPORT_FD'
tap_like "reports are passed on" "$LINES" '^report x 1\.5 ns$'
tap_like "and warnings" "$LINES" '^warning w$'
run 'bad-guest protocol'
tap_unlike "malformed reports are not" "$LINES" '^report .*(nan|inf|e999|0x10|\.\.)'
tap_like "good ones behind them are" "$LINES" '^report good 1 count$'

for zap in own first; do
	say 'env FAULTBED_DURATION_NS=300000000'
	run "multi-fault 4 --zap $zap"
	tap_like "multi-fault $zap" "$LINES" '^done 0$'
	tap_is "multi-fault $zap: its marks bracket its faults and no others" \
		"$(value 'counter /proc/vmstat pgfault')" "$(value 'report faults')"
	tap_is "multi-fault $zap: whole rounds" "$(value 'report faults')" \
		"$(($(value 'report thread_rounds') * 512))"
done
run 'multi-fault 5'
tap_like "more threads than CPUs" "$LINES" '^done 2$'

say 'env FAULTBED_TOPOLOGY=2x1x2' 'env FAULTBED_CPU_ORDER=siblings-adjacent' 'env FAULTBED_NODES=2' \
	'env FAULTBED_DISTANCE=10,20;20,10' 'env FAULTBED_APIC_IDS=0,1,2,3'
run 'topology-check -q'
tap_like "topology-check agrees" "$LINES" '^done 0$'
say 'env FAULTBED_TOPOLOGY=2x1x2' 'env FAULTBED_CPU_ORDER=siblings-last' 'env FAULTBED_NODES=2' \
	'env FAULTBED_DISTANCE=10,21;21,10' 'env FAULTBED_APIC_IDS=0,1,2,4'
run 'topology-check -q >/tmp/t; s=$?; grep -c "^MISMATCH.*core_cpus_list" /tmp/t; cat /tmp/t; exit $s'
tap_like "topology-check sees a wrong one" "$LINES" '^done 1$'
for wrong in 'cpu0/topology/core_cpus_list: is 0-1, should be 0,2' 'node0/distance: is 10 20, should be 10 21' \
	     'CPU 3: /proc/cpuinfo gives APIC id 3, should be 4' 'CPU 3: CPUID 1 EBX gives APIC id 3, should be 4'; do
	tap_like "wrong: $wrong" "$(tr -d '\r' <"$TAP_DIR/console")" "MISMATCH .*$wrong"
done

run 'counters-check'
tap_like "counters agree" "$LINES" '^done 0$'
run 'ipi-pingpong --count 20 --pairs 1'
tap_like "ipi-pingpong" "$LINES" '^done 0$'
tap_like "by distance" "$LINES" '^report ipi_remote_median_ns [1-9]'
tap_is "IPIs counted: 2 classes and 4 node pairs, 20 each" \
	"$(($(value 'report ipi_events') + $(value 'report ipi_polled')))" 120
run 'ipi-pingpong --count 5 --pairs 1 --method membarrier'
tap_like "round trips without the kernel's helper" "$LINES" '^report round_trip_smt_median_ns [1-9]'
run 'first-touch --size 4MiB --fresh 0 --retouch 2'
tap_like "first-touch" "$LINES" '^done 0$'
tap_is "first-touch: a sample a page" "$(value 'report first_touch_ns_count')" 1024
tap_is "first-touch: and two retouches" "$(value 'report retouch_ns_count')" 2048
run 'first-touch --size 4GiB'
tap_like "first-touch refuses what does not fit" "$LINES" '^done 2$'

say quit
RC=0
wait $QEMU || RC=$?
tap_is "quit leaves by the test device with 0" "$RC" 1
tap_unlike "the console has no kernel warning" "$(tr -d '\0' <"$TAP_DIR/console")" 'WARNING:|BUG:|Oops'

tap_done
