#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench: figures to judge the VMM by, against QEMU on the same host, with the
# same kernel and initramfs.
#
#   boot to init, wall time and the guest's own, for 1 and 8 vCPUs: ours with
#   apic = kernel against qemu-system-x86_64 -M microvm,accel=kvm
#   resident memory of either beyond guest RAM
#   the floor of an IPI with apic = xapic and apic = kernel, and the exits each costs
#   soft: the soft engine against QEMU's TCG, each on one host thread: boot to init,
#   restore, instructions and guest faults a second, memory, at 1, 40 and 120 vCPUs
#   lines: the soft engine with a whole cost model, caches and all: instructions of a fault loop on all
#   vCPUs a second, at 2, 40 (ivb-ep) and 120 (ivb-ex), each run from a snapshot
#   park: CPU time of a boot and a load on one of 40 vCPUs while the others poll (idle=poll), with vCPUs that wait in a
#   loop parked and executed (--no-park)
#
# For boot and ipi the host is this machine where /dev/kvm is usable, else an emulated
# one (as engine = nested): then ratios say something, times do not. For the others it always is this
# machine, which should have nothing else to do. Settings, from the environment:
# BENCH_PARTS ("boot ipi soft lines park"), BENCH_RUNS (5) of each, BENCH_BUILD (build) where
# everything is; of soft BENCH_SIZES ("1x1x1 2x10x2 4x15x2"), BENCH_WHO ("soft tcg
# icount"), BENCH_LIMIT (900) seconds of one boot with its load, BENCH_QUICK=1: does
# all of it work? One run of little at 1x1x1 and 2x2x1 (lines: 1x1x2 and 2x2x1; park: 1x2x2), whose figures mean nothing.

set -euo pipefail
export LC_ALL=C

top=$(cd "$(dirname "$0")/.." && pwd)
build=${BENCH_BUILD:-$top/build}
runs=${BENCH_RUNS:-5}
parts=${BENCH_PARTS:-boot ipi soft lines park}
ram=512
qemu=${FAULTBED_QEMU:-qemu-system-x86_64}
kernel=$build/kernel/bzImage

for f in "$build/faultbed" "$build/faultbed-vmm" "$build/guest-tools/stopwatch" "$kernel" "$build/initramfs.cpio"; do
	if [ ! -e "$f" ]; then
		echo "error: bench: $f is not there: make all images" >&2
		exit 2
	fi
done
command -v "$qemu" >/dev/null || { echo "error: bench: no $qemu: make deps" >&2; exit 3; }

work=$(mktemp -d)
qemu_pid=
[ -n "${BENCH_KEEP:-}" ] || trap '[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null; rm -rf "$work"' EXIT

# --- boot ---

# What the second-level guest's init is for this: say that it is there.
cat >"$work/init-is-up" <<'EOT'
#!/bin/sh
# By the kernel's log, whose console writes are polled: QEMU's microvm has no interrupt of the port that works here.
/bin/busybox mkdir -p /dev
/bin/busybox mount -t devtmpfs devtmpfs /dev
echo '<1>init is up' >/dev/kmsg
while :; do /bin/busybox sleep 1000; done
EOT

for n in 1 8; do
	cat >"$work/boot-$n.ini" <<-EOT
	# How long does a boot to init take?
	[vm]
	engine = kvm
	topology = 1x${n}x1
	memory = ${ram}MiB
	apic = kernel
	[guest]
	append = rdinit=/bin/init-is-up
	[run]
	command = true
	timeout = 280s
	EOT
done

# The script that boots them by turns; runs where /dev/kvm is, with all it needs under $D.
cat >"$work/bench-boot" <<EOT
#!/bin/sh
# Started as init in the emulated machine, by hand elsewhere.
D=\${1:-/bench}
if [ \$\$ = 1 ]; then
	export PATH=/bin:/usr/bin:/sbin
	/bin/busybox mkdir -p /proc /sys /dev /tmp
	/bin/busybox mount -t proc proc /proc
	/bin/busybox mount -t sysfs sysfs /sys
	/bin/busybox mount -t devtmpfs devtmpfs /dev
	exec >/dev/ttyS0 2>&1
fi
sw="\$D/stopwatch --ram ${ram}MiB --timeout 290s"
cmdline="console=ttyS0 quiet panic=-1 oops=panic reboot=k nokaslr rdinit=/bin/init-is-up"
run=1
while [ \$run -le $runs ]; do
	for n in 1 8; do
		echo "@boot faultbed \$n \$(\$sw 'init is up' \$D/faultbed-vmm run \$D/boot-\$n.ini --kernel \$D/bzImage --initrd \$D/initrd </dev/null)"
		echo "@boot qemu-microvm \$n \$(\$sw 'init is up' \$D/qemu -L \$D/firmware -M microvm,accel=kvm -cpu host -m $ram \
-smp \$n -kernel \$D/bzImage -initrd \$D/initrd -append "\$cmdline" -nodefaults -no-user-config -display none -serial stdio -no-reboot </dev/null)"
	done
	run=\$((run + 1))
done
echo @done
[ \$\$ != 1 ] || while :; do /bin/busybox sleep 1000; done
EOT
chmod +x "$work/init-is-up" "$work/bench-boot"

firmware()
{
	local d f

	mkdir -p "$work/firmware"
	for f in bios-microvm.bin qboot.rom linuxboot_dma.bin pvh.bin kvmvapic.bin; do
		for d in /usr/share/qemu /usr/share/seabios /usr/local/share/qemu; do
			[ ! -f "$d/$f" ] || { cp -L "$d/$f" "$work/firmware/"; break; }
		done
	done
	[ -f "$work/firmware/bios-microvm.bin" ] || { echo "error: bench: no bios-microvm.bin of QEMU found" >&2; exit 3; }
}

# Numbers on stdin to "median (min to max)", divided by $1.
spread()
{
	sort -n | awk -v d="$1" '{ v[NR] = $1 / d }
		END { if (NR) printf "%8.2f (%.2f to %.2f)", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[1], v[NR] }'
}

median()
{
	sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "%.6f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# field FILE WHO CPUS NAME
field()
{
	sed -n "s/^@boot $2 $3 .*$4=\([0-9.]*\).*/\1/p" "$1"
}

boot()
{
	local out=$work/boot.out n who dev=/dev/kvm shown lines

	"$top/images/initramfs-build.sh" --guest-tests "$build/guest-tests" --add "$work/init-is-up:/bin/init-is-up" \
		-o "$work/initrd"
	firmware
	if "$build/faultbed-vmm" probe >/dev/null 2>&1; then
		echo "boot to init, on this machine's $dev, $runs boots of each by turns:"
		mkdir "$work/d"
		cp "$build/faultbed-vmm" "$build/guest-tools/stopwatch" "$work"/boot-*.ini "$work/initrd" "$work/d/"
		cp -L "$kernel" "$work/d/"
		cp -r "$work/firmware" "$work/d/"
		ln -s "$(command -v "$qemu")" "$work/d/qemu"
		"$work/bench-boot" "$work/d" | tee "$out" | progress
	else
		echo "boot to init, in an emulated machine (ratios mean something, times do not), $runs boots of each by turns:"
		"$top/images/initramfs-build.sh" --guest-tests "$build/guest-tests" --add "$work/bench-boot:/bench/bench-boot" \
			--add "$work/boot-1.ini:/bench/boot-1.ini" --add "$work/boot-8.ini:/bench/boot-8.ini" \
			--add "$work/firmware:/bench/firmware" --add "$build/faultbed-vmm:/bench/faultbed-vmm" \
			--add "$build/guest-tools/stopwatch:/bench/stopwatch" --add "$(command -v "$qemu"):/bench/qemu" \
			--add "$work/initrd:/bench/initrd" --add "$(readlink -f "$kernel"):/bench/bzImage" -o "$work/host.cpio"
		"$qemu" -nodefaults -no-user-config -M pc -accel tcg -cpu max -smp 1 -m 3G -kernel "$kernel" \
			-initrd "$work/host.cpio" -display none -no-reboot -serial "file:$work/serial" \
			-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable rdinit=/bench/bench-boot" \
			</dev/null >"$work/qemu.err" 2>&1 &
		qemu_pid=$!
		: >>"$work/serial"
		# Until the guest says that it is done, or QEMU is gone; what it says meanwhile is shown as it comes.
		shown=0
		while kill -0 $qemu_pid 2>/dev/null; do
			tr -d '\r' <"$work/serial" >"$out" 2>/dev/null || :
			lines=$(wc -l <"$out")
			sed -n "$((shown + 1)),${lines}p" "$out" | progress
			shown=$lines
			! grep -q '^@done' "$out" || break
			sleep 1
		done
		kill $qemu_pid 2>/dev/null || :
		wait $qemu_pid 2>/dev/null || :
		qemu_pid=
	fi
	grep -q '^@done' "$out" || { echo "error: bench: it ended early; its last words:" >&2
		tail -n 20 "$out" "$work"/qemu.err >&2; exit 1; }
	for n in 1 8; do
		for who in faultbed qemu-microvm; do
			printf '  %d vCPU %-14s wall s %s   guest s %s   KiB beyond RAM %s\n' $n $who \
				"$(field "$out" $who $n wall_ns | spread 1e9)" "$(field "$out" $who $n guest_s | spread 1)" \
				"$(field "$out" $who $n beyond_ram_kib | median | sed 's/\..*//')"
		done
		awk -v a="$(field "$out" faultbed $n wall_ns | median)" -v b="$(field "$out" qemu-microvm $n wall_ns | median)" \
			-v n=$n 'BEGIN { if (a && b) printf "  %d vCPU: faultbed / qemu-microvm = %.2f of the wall time\n", n, a / b }'
	done
}

progress()
{
	sed -u -n 's/^@boot \([^ ]*\) \([0-9]*\) .*wall_ns=\([0-9]*\)[0-9]\{9\} .*/  ... \1, \2 vCPU: \3 s/p; /^|/p' >&2
}

# --- ipi ---

# A result on stdin to one line: latency as the guest sees it, exits of each kind for each IPI it sent.
ipi_line()
{
	perl -MJSON::PP -e '
		local $/;
		my (%sum, @median, $events);
		for my $r (@{decode_json(<STDIN>)->{cells}[0]{repeats}}) {
			push @median, $r->{reports}{ipi_socket_median_ns}{value};
			$events += $r->{reports}{ipi_events}{value};
			$sum{$_} += $r->{counters}{$_}{value} // 0 for qw(vm_exits exits_apic exits_hlt exits_kick kvm_exits);
		}
		die "error: bench: no IPI was measured\n" unless $events;
		@median = sort { $a <=> $b } @median;
		printf "  send to handler %.1f us (median; %.1f to %.1f); for each IPI, the timer included: " .
			"%.1f exits of KVM, %.1f of these to the VMM (%.1f local APIC, %.1f HLT, %.1f kicks)\n",
			$median[@median / 2] / 1e3, $median[0] / 1e3, $median[-1] / 1e3,
			map { $sum{$_} / $events } qw(kvm_exits vm_exits exits_apic exits_hlt exits_kick);'
}

ipi()
{
	local apic engine=nested

	"$build/faultbed-vmm" probe >/dev/null 2>&1 && engine=kvm
	cat >"$work/ipi.ini" <<-EOT
	# What is the floor of an IPI, from send to handler, and how many exits does it cost?
	[vm]
	engine = $engine
	topology = 1x2x1
	memory = ${ram}MiB
	[run]
	command = ipi-pingpong
	repeat = 3
	EOT
	for apic in xapic kernel; do
		echo "IPI, apic = $apic:"
		"$build/faultbed" run "$work/ipi.ini" --set "vm.apic=$apic" -o "$work/ipi-$apic.json" -q
		ipi_line <"$work/ipi-$apic.json"
	done
}

# --- soft ---

soft()
{
	local sizes="1x1x1 2x10x2 4x15x2" args=()

	if [ -n "${BENCH_QUICK:-}" ]; then
		sizes="1x1x1 2x2x1"
		args=(--quick)
	fi
	"$top/host-tools/bench-soft.pl" --vmm "$build/faultbed-vmm" --qemu "$qemu" --kernel "$(readlink -f "$kernel")" \
		--initrd "$build/initramfs.cpio" --cost-model "$top/cost-models/simple.ini" --work "$work" \
		--runs "${BENCH_QUICK:-$runs}" --limit "${BENCH_LIMIT:-900}" --sizes "${BENCH_SIZES:-$sizes}" \
		--who "${BENCH_WHO:-soft tcg icount}" "${args[@]}"
}

# --- lines ---

# lines_run SIZE MODEL COMMAND ARGS...: one run of the VMM; records in lines.records.
lines_run()
{
	local size=$1 model=$2 command=$3 ram=512

	shift 3
	case $size in
	2x10x2) ram=2048 ;;
	4x15x2) ram=4096 ;;
	esac
	cat >"$work/lines.ini" <<-EOT
	# How fast is the soft engine with a whole cost model?
	[vm]
	engine = soft
	topology = $size
	memory = ${ram}MiB
	cost_model = $model
	[run]
	command = $command
	timeout = 600s
	EOT
	rm -f "$work/lines.records"
	if ! "$build/faultbed-vmm" run "$work/lines.ini" --engine soft --kernel "$kernel" --initrd "$build/initramfs.cpio" \
		--cost-model "$top/cost-models/$model.ini" -q -o "$work/lines.records" "$@" >"$work/lines.log" 2>&1; then
		echo "error: bench: lines, $size: the run failed; its last words:" >&2
		tail -n 5 "$work/lines.log" >&2
		exit 1
	fi
}

# Records on stdin to "SIZE instructions wall-ns cpu-ns".
lines_speed()
{
	perl -MJSON::PP -ne '
		my $r = decode_json($_);
		next unless $r->{record} eq "repeat";
		my ($n, $p) = ($r->{counters}{instructions}{value}, $r->{provenance});
		printf "%s %d %d %d\n", $ENV{SIZE}, $n, $p->{host_ns}, $p->{host_cpu_ns} // 0 if $n && $p->{host_ns};'
}

lines()
{
	local sizes="1x1x2 2x10x2 4x15x2" times=$runs all=240 run size s c t cpus ms model n first=

	if [ -n "${BENCH_QUICK:-}" ]; then
		sizes="1x1x2 2x2x1"
		times=1
		all=20
	fi
	for run in $(seq 0 "$times"); do
		for size in $sizes; do
			IFS=x read -r s c t <<<"$size"
			cpus=$((s * c * t))
			# As much work at each size; no shorter than a few rounds of one thread.
			ms=$((all / cpus + 2))
			model=ivb-ep
			[ "$size" != 4x15x2 ] || model=ivb-ex
			if [ "$run" = 0 ]; then
				lines_run "$size" $model true --save-snapshot "$work/lines-$size"
				continue
			fi
			lines_run "$size" $model "multi-fault $cpus --warmup 1ms --duration ${ms}ms" --snapshot "$work/lines-$size"
			SIZE=$size lines_speed <"$work/lines.records" >>"$work/lines.speed"
			echo "  ... lines, $size, run $run" >&2
		done
	done
	echo "soft with caches and lines (ivb-ep; ivb-ex at 4x15x2), a fault loop on all vCPUs, one host thread:"
	echo "M guest instructions a wall second, and a second of CPU time; aim: at least 50 at 2x10x2"
	for size in $sizes; do
		printf '  %-7s %s   %s\n' "$size" "$(awk -v s="$size" '$1 == s { print $2 / $3 * 1e3 }' "$work/lines.speed" | spread 1)" \
			"$(awk -v s="$size" '$1 == s && $4 { print $2 / $4 * 1e3 }' "$work/lines.speed" | spread 1)"
	done
	echo "CPU time of a guest instruction, ${sizes%% *} = 1; aim: at most 1.3"
	for size in $sizes; do
		n=$(awk -v s="$size" '$1 == s && $4 { print $4 / $2 }' "$work/lines.speed" | median)
		first=${first:-$n}
		awk -v s="$size" -v n="$n" -v f="$first" 'BEGIN { if (n && f) printf "  %-7s %8.2f\n", s, n / f }'
	done
}

# --- park ---

# park_run ARGS...: CPU seconds of one run of the VMM.
park_run()
{
	local TIMEFORMAT=%U

	{ time "$build/faultbed-vmm" run "$work/park.ini" --engine soft --kernel "$kernel" --initrd "$build/initramfs.cpio" \
		--cost-model "$top/cost-models/ivb-ep.ini" -q --no-snapshot -o "$work/park.records" "$@" >"$work/park.log" 2>&1; } 2>&1 || {
		echo "error: bench: park: the run failed; its last words:" >&2
		tail -n 5 "$work/park.log" >&2
		return 1
	}
}

park()
{
	local size=2x10x2 times=$runs run

	if [ -n "${BENCH_QUICK:-}" ]; then
		size=1x2x2
		times=1
	fi

	cat >"$work/park.ini" <<-EOT
	# What do vCPUs cost that poll while they are idle?
	[vm]
	topology = $size
	memory = 1GiB
	[guest]
	append = idle=poll
	[run]
	command = multi-fault 1
	duration = 2ms
	timeout = 280s
	EOT
	rm -f "$work/park.yes" "$work/park.no"
	for run in $(seq "$times"); do
		park_run >>"$work/park.yes"
		park_run --no-park >>"$work/park.no"
		echo "  ... park, run $run" >&2
	done
	echo "soft with caches and lines (ivb-ep), $size with idle=poll: boot and a fault loop on one vCPU, CPU seconds, median (min to max):"
	echo "  executed  $(spread 1 <"$work/park.no")"
	echo "  parked    $(spread 1 <"$work/park.yes")"
	echo "  ratio     $(echo "$(median <"$work/park.no") $(median <"$work/park.yes")" | awk '{ printf "%.1f", $1 / $2 }')"
}

for part in $parts; do
	case $part in
	boot | ipi | soft | lines | park) $part ;;
	*) echo "error: bench: BENCH_PARTS: boot, ipi, soft, lines and park are the parts, not $part" >&2; exit 2 ;;
	esac
done
