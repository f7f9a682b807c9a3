#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed kernel build|check: builds a guest kernel with the project's options,
# and says what a kernel that somebody else built lacks to run here.

set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
me="faultbed kernel"

usage() {
	cat <<EOF
usage: $me build [options]    build a guest kernel, print its directory
       $me check FILE         what a kernel lacks to run here

build: see "$me build --help". Without options, the project's own kernel.
check: FILE is a bzImage, a vmlinux or a .config. The options of an image are read
       from the image (CONFIG_IKCONFIG) or from "config", ".config" or
       "config-VERSION" beside it.
       --config FILE   take the options from here
       --cpus N        check for this many CPUs (default 40)

Exit status: 0 fine, 1 the build failed or the kernel lacks something it needs,
2 bad input.
EOF
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 2; }

# --- check: the options ----------------------------------------------------

tmp=
cleanup() { [ -z "$tmp" ] || rm -rf "$tmp"; }
trap cleanup EXIT

# hex_at FILE OFFSET COUNT: bytes as hexadecimal digits, fewer at the end of the file.
hex_at() { od -An -v -tx1 -j "$2" -N "$3" "$1" 2>/dev/null | tr -d ' \n'; }

# u32_at FILE OFFSET: little-endian.
u32_at() {
	local h
	h=$(hex_at "$1" "$2" 4)
	[ ${#h} -eq 8 ] || die "$1: ends in its header"
	echo $((16#${h:6:2}${h:4:2}${h:2:2}${h:0:2}))
}

# ikconfig FILE: the configuration inside an uncompressed kernel, or nothing.
ikconfig() {
	local at
	at=$(grep -abo -m1 -P 'IKCFG_ST\x1f\x8b\x08' "$1" | head -n1 | cut -d: -f1) || :
	[ -n "$at" ] || return 1
	tail -c +$((at + 9)) "$1" | gzip -dc 2>/dev/null >"$tmp/config" || :
	grep -q '^CONFIG_' "$tmp/config"
}

# unpack_bzimage FILE OUT: the vmlinux in a bzImage (setup header fields
# payload_offset and payload_length, Documentation/arch/x86/boot.rst).
unpack_bzimage() {
	local file=$1 out=$2 setup_sects start length magic tool

	setup_sects=$((16#$(hex_at "$file" $((0x1f1)) 1)))
	[ $setup_sects -ne 0 ] || setup_sects=4
	start=$(((setup_sects + 1) * 512 + $(u32_at "$file" $((0x248)))))
	length=$(u32_at "$file" $((0x24c)))
	[ $((start + length)) -le "$(stat -Lc %s "$file")" ] ||
		die "$file: a bzImage, but cut short ($((start + length)) bytes expected)"
	magic=$(hex_at "$file" $start 6)
	case $magic in
	1f8b*) tool="gzip -dc" ;;
	fd377a585a00) tool="xz -dc" ;;
	28b52ffd*) tool="zstd -dc" ;;
	02214c18*) tool="lz4 -dc" ;;
	5d0000*) tool="xz --format=lzma -dc" ;;
	425a68*) tool="bzip2 -dc" ;;
	894c5a4f*) tool="lzop -dc" ;;
	7f454c46*) tool="cat" ;;
	*) return 1 ;;
	esac
	command -v "${tool%% *}" >/dev/null || {
		say "$file: ${tool%% *} is needed to look into it and is not installed"
		return 1
	}
	# The length is appended to the stream, so the tools complain at the end.
	tail -c +$((start + 1)) "$file" | head -c "$length" | $tool >"$out" 2>/dev/null || :
	[ -s "$out" ]
}

# config_beside FILE RELEASE: the path of a configuration that goes with an image.
config_beside() {
	local dir base c
	dir=$(dirname "$1")
	base=$(basename "$1")
	for c in "$dir/config-$2" "$dir/config-${base#vmlinu[xz]-}" "$1.config" "$dir/config" "$dir/.config" \
		"$dir/../../../.config"; do
		# Three levels up only for an image that stands where the build left it.
		case $c in */../../../.config) [[ $(realpath "$dir") == */arch/x86/boot ]] || continue ;; esac
		[ ! -f "$c" ] || { echo "$c"; return 0; }
	done
	return 1
}

is_config() { grep -qaE '^(CONFIG_[A-Za-z0-9_]+=|# CONFIG_[A-Za-z0-9_]+ is not set$)' "$1"; }

# read_options FILE GIVEN: leaves the options in $tmp/config and prints what FILE is.
read_options() {
	local file=$1 given=$2 magic release="" kernel="" ptr from

	[ -e "$file" ] || die "$file: no such file"
	[ -f "$file" ] && [ -r "$file" ] || die "$file: cannot be read"
	[ -s "$file" ] || die "$file: is empty"
	magic=$(hex_at "$file" 0 20)
	if [ "$(hex_at "$file" $((0x202)) 4)" = 48647253 ] && [ "$(hex_at "$file" $((0x1fe)) 2)" = 55aa ]; then
		[ "$(stat -Lc %s "$file")" -ge $((0x268)) ] || die "$file: a bzImage, but cut short in its header"
		[ $((16#$(hex_at "$file" $((0x207)) 1)$(hex_at "$file" $((0x206)) 1))) -ge $((0x20c)) ] ||
			die "$file: a bzImage of a boot protocol before 2.12; it has no 64-bit entry"
		[ $((16#$(hex_at "$file" $((0x236)) 1) & 1)) -eq 1 ] ||
			die "$file: a bzImage without a 64-bit entry: not an x86-64 kernel"
		ptr=$(hex_at "$file" $((0x20e)) 2)
		ptr=$((16#${ptr:2:2}${ptr:0:2}))
		[ $ptr -eq 0 ] || release=$(tail -c +$((ptr + 513)) "$file" | head -c 128 | tr '\0' '\n' | sed -n 1p) || :
		release=${release%% *}
		echo "$file: bzImage, Linux ${release:-of unknown release}"
		kernel=$tmp/vmlinux
		unpack_bzimage "$file" "$kernel" || kernel=
	elif [ "${magic:0:8}" = 7f454c46 ]; then
		[ "${magic:8:2}" = 02 ] && [ "${magic:36:4}" = 3e00 ] ||
			die "$file: an ELF file, but not for x86-64"
		release=$(grep -aom1 -P 'Linux version [^\0 ]{1,90}' "$file" | head -n1 | cut -d' ' -f3) || :
		[ -n "$release" ] || die "$file: an ELF file, but not a Linux kernel"
		echo "$file: vmlinux, Linux $release"
		kernel=$file
	elif [ "${magic:0:4}" = 1f8b ] && gzip -dc "$file" >"$tmp/config" 2>/dev/null && is_config "$tmp/config"; then
		echo "$file: a kernel's options, compressed"
		return
	elif is_config "$file"; then
		cp "$file" "$tmp/config"
		echo "$file: a kernel's options"
		return
	else
		die "$file: neither a bzImage nor a vmlinux nor a .config"
	fi

	if [ -n "$given" ]; then
		[ -f "$given" ] && is_config "$given" || die "$given: not a .config"
		cp "$given" "$tmp/config"
		echo "options: $given"
	elif [ -n "$kernel" ] && ikconfig "$kernel"; then
		echo "options: from the image"
	elif from=$(config_beside "$file" "$release"); then
		is_config "$from" || die "$from: not a .config"
		cp "$from" "$tmp/config"
		echo "options: $from"
	else
		die "$file: it holds no configuration (CONFIG_IKCONFIG) and there is no config${release:+-$release} beside it; give --config"
	fi
	rm -f "$tmp/vmlinux"
}

# value OPTION: y, m, n or what it is set to.
value() {
	local v
	v=$(sed -n "s/^CONFIG_$1=//p" "$tmp/config" | head -n1)
	echo "${v:-n}"
}

lacking=0
section=
# item SECTION TEXT...: one finding, under its heading.
item() {
	[ "$section" = "$1" ] || printf '\n%s\n' "$1"
	section=$1
	shift
	printf '  %-38s %s\n' "$1" "$2"
}

# need OPTION CONSEQUENCE: built in, or it does not run.
need() {
	local v
	v=$(value "$1")
	[ "$v" != y ] || return 0
	lacking=1
	[ "$v" != m ] || set -- "$1" "$2 (it is a module, which is too late)"
	item "Lacks, and will not run without:" "CONFIG_$1" "$2"
}

# want OPTION CONSEQUENCE: runs without, but not everything.
want() {
	local v
	v=$(value "$1")
	case $v in
	y) ;;
	m) item "Runs, but:" "CONFIG_$1=m" "$2, unless the initramfs loads the module" ;;
	*) item "Runs, but:" "CONFIG_$1" "$2" ;;
	esac
}

# counts OPTION CONSEQUENCE
counts() {
	[ "$(value "$1")" = y ] || item "What it costs in counters:" "CONFIG_$1" "$2"
}

# moves OPTION CONSEQUENCE: is on, and is measured along.
moves() {
	case $(value "$1") in
	n) ;;
	*) item "Is on, and moves results:" "CONFIG_$1" "$2" ;;
	esac
}

check_needs() {
	local cpus=$1 nr
	need 64BIT "only x86-64 guests are run"
	need SMP "one CPU only, no shootdowns"
	need PRINTK "no console messages: a panic would pass unseen"
	need TTY "no console"
	need SERIAL_8250 "no serial port, so no console"
	need SERIAL_8250_CONSOLE "no console on the serial port"
	need ACPI "finds one CPU and no interrupt routing"
	need PCI "ACPI's tables are not loaded without it"
	need NUMA "sees one node, whatever the scenario says"
	need X86_64_ACPI_NUMA "sees one node, whatever the scenario says"
	need BLK_DEV_INITRD "the initramfs is not unpacked"
	need RD_GZIP "the initramfs is compressed by gzip and is not unpacked"
	need DEVTMPFS "init finds no devices"
	need PROC_FS "init cannot read counters"
	need SYSFS "init cannot read the topology"
	need BINFMT_ELF "runs no program"
	need FUTEX "runs no threads"
	need POSIX_TIMERS "programs cannot measure time"
	need X86_IOPL_IOPERM "a program cannot reach the test device: no marks, no exit status"
	nr=$(value NR_CPUS)
	if [[ $nr =~ ^[0-9]+$ ]] && [ "$nr" -lt "$cpus" ]; then
		lacking=1
		item "Lacks, and will not run without:" "CONFIG_NR_CPUS=$nr" "fewer than the $cpus CPUs asked for"
	fi
}

check_wants() {
	want BINFMT_SCRIPT "init cannot start shell scripts by their path"
	want TMPFS "no /tmp in memory"
	want DEBUG_FS "knobs, fault_around_bytes and the IPI benchmark are out of reach"
	want KVM_GUEST "no kvmclock: time comes from the TSC or by exits"
	want X86_X2APIC "APIC ids above 254 are not reachable"
	want SCHED_MC "the scheduler does not see which cores share a cache"
	want SCHED_SMT "the scheduler does not see which threads share a core"
	want HIGH_RES_TIMERS "short sleeps last a tick"
	want VIRTIO_MMIO "the guest does not see its disk (guest.disk)"
	want VIRTIO_BLK "the guest does not see its disk (guest.disk)"
	if [ "$(value FAULTBED)" = y ] && [ "$(value OF)" != y ]; then
		item "Runs, but:" "CONFIG_OF" "the device tree is not read: the channel goes by command line"
	fi
	if [ "$(value RANDOMIZE_BASE)" = y ]; then
		item "Runs, but:" "CONFIG_RANDOMIZE_BASE=y" "symbols are not where vmlinux has them unless it runs with nokaslr"
	fi
}

check_counters() {
	if [ "$(value FAULTBED)" = y ]; then
		counts DEBUG_FS "the guest cannot show its own counters, only the host reads them"
	else
		item "What it costs in counters:" "CONFIG_FAULTBED" "no channel, so:"
		printf '  %-38s %s\n' \
			"  guest_page_faults" "from pgfault of /proc/vmstat, all CPUs together" \
			"  guest_page_faults_minor, _major" "from getrusage of the command" \
			"  pf_*" "n/a" \
			"  context_switches" "from /proc/stat" \
			"  tlb_flush_received" "from the TLB line of /proc/interrupts" \
			"  tlb_shootdown_ipis_*" "n/a; the engine's count by vector stands in where IPIs exit" \
			"  tlb_lazy_*, tlb_flush_on_*" "n/a" \
			"  knobs" "a scenario with knob.* is refused"
		counts VM_EVENT_COUNTERS "guest_page_faults n/a: /proc/vmstat has no pgfault"
		if [ "$(value DEBUG_TLBFLUSH)" = y ]; then
			printf '  %-38s %s\n' "  tlb_shootdowns, tlb_flush_*" "from nr_tlb_* of /proc/vmstat"
		else
			counts DEBUG_TLBFLUSH "tlb_shootdowns, tlb_flush_full, tlb_flush_page n/a"
		fi
	fi
	counts PER_VMA_LOCK_STATS "vma_lock_* of /proc/vmstat n/a: how often a VMA lock was missed"
	counts KALLSYMS "no symbols in a panic, none from guest memory"
	counts IKCONFIG_PROC "results cannot record the guest's options"
}

check_moves() {
	moves NUMA_BALANCING_DEFAULT_ENABLED "makes hint faults, unless numa_balancing=disable"
	moves TRANSPARENT_HUGEPAGE_ALWAYS "512 faults become one, unless transparent_hugepage=madvise"
	moves INIT_ON_ALLOC_DEFAULT_ON "pages are zeroed twice, unless init_on_alloc=0"
	moves PAGE_TABLE_ISOLATION "where the CPU needs it: kernel entries and flushes cost more"
	moves MITIGATION_PAGE_TABLE_ISOLATION "where the CPU needs it: kernel entries and flushes cost more"
	moves MEMCG "each fault is charged to a control group"
	moves PROVE_LOCKING "lockdep: times are no times"
	moves KASAN "times are no times"
	moves KCSAN "times are no times"
	moves DEBUG_VM "checks in the fault path"
	moves DEBUG_PAGEALLOC "unmaps free pages: more TLB flushes"
}

check() {
	local file="" given="" cpus=40

	while [ $# -gt 0 ]; do
		case $1 in
		--config | --cpus) [ $# -ge 2 ] || die "$1 wants an argument" ;;&
		--config) given=$2; shift ;;
		--cpus) cpus=$2; shift ;;
		-h | --help) usage; exit 0 ;;
		-*) usage >&2; die "unknown argument: $1" ;;
		*) [ -z "$file" ] || die "one file at a time"; file=$1 ;;
		esac
		shift
	done
	[ -n "$file" ] || { usage >&2; die "check wants a bzImage, a vmlinux or a .config"; }
	[[ $cpus =~ ^[1-9][0-9]{0,4}$ ]] || die "--cpus wants a number, not \"$cpus\""

	tmp=$(mktemp -d)
	read_options "$file" "$given"
	check_needs "$cpus"
	check_wants
	check_counters
	check_moves
	echo
	if [ $lacking -ne 0 ]; then
		echo "It will not run here as it is. \"$me build --tree DIR\" builds a tree with what it needs."
		exit 1
	fi
	echo "It runs here."
}

case ${1:-} in
build)
	shift
	KERNEL_BUILD_NAME="$me build" exec "$top/images/kernel-build.sh" "$@"
	;;
check)
	shift
	check "$@"
	;;
-h | --help)
	usage
	;;
'')
	usage >&2
	exit 2
	;;
*)
	usage >&2
	die "unknown command: $1"
	;;
esac
