#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Boots a kernel with the project's patches on QEMU's emulated CPU, with a channel
# in its memory, and checks what the guest counts, what the host reads, and that
# the two agree. TAP on stdout. Needs no VMM and no /dev/kvm.
#
#	images/kernel-test.sh [DIR]	DIR holds bzImage; default: the cached build
#
# About 40 s on an idle CPU. A guest that is not through after TEST_TIMEOUT seconds
# (600) is ended, which is a failure that says so.

set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
dir=${1:-$("$here/kernel-build.sh")}
[ -f "$dir/bzImage" ] || { echo "kernel-test: $dir: no bzImage" >&2; exit 2; }
command -v qemu-system-x86_64 >/dev/null || { echo "1..0 # SKIP no qemu-system-x86_64"; exit 0; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
failed=0
# holds WHAT COMMAND...: one check.
holds() {
	local what=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $what"
	else
		failed=$((failed + 1))
		echo "not ok $n - $what"
	fi
}

gcc_guest=${GUEST_CC:-$(command -v musl-gcc || echo gcc)}
mkdir "$tmp/root" "$tmp/root/proc" "$tmp/root/sys"
"$gcc_guest" -std=gnu11 -O1 -Wall -Wextra -static -pthread -o "$tmp/root/init" "$here/kernel-test-init.c"
"${CC:-gcc}" -std=gnu11 -O1 -Wall -Wextra -I"$top/vmm" -o "$tmp/channel" "$here/kernel-test-channel.c"
(cd "$tmp/root" && find . | cpio -o -H newc 2>/dev/null) >"$tmp/initramfs"

addr=0x10000000
bytes=$((512 << 20))

# boot NAME CPUS APPEND...: console in $tmp/NAME, memory in $tmp/memory.
boot() {
	local name=$1 cpus=$2
	shift 2
	timeout "${TEST_TIMEOUT:-600}" qemu-system-x86_64 -M pc -cpu max -accel tcg,thread=multi -m 512 -smp "$cpus" \
		-object memory-backend-file,id=m,size=512M,mem-path="$tmp/memory",share=on \
		-machine memory-backend=m -display none -serial stdio -monitor none -no-reboot \
		-kernel "$dir/bzImage" -initrd "$tmp/initramfs" -device isa-debug-exit,iobase=0xf4,iosize=4 \
		-append "console=ttyS0 panic=-1 $*" </dev/null >"$tmp/$name" 2>&1 || {
		[ $? -ne 124 ] || echo "# the guest was not through after ${TEST_TIMEOUT:-600} s"
	}
}
memory() { rm -f "$tmp/memory"; "$tmp/channel" make "$tmp/memory" $bytes $addr "$@"; }

# --- a guest with a channel
memory "label=from host" "no_such_knob=x"
boot console 2 "memmap=64K\$$addr faultbed.channel=$addr,64K \"faultbed.label=from boot\""
tr -d '\r' <"$tmp/console" >"$tmp/lines"
while read -r line; do
	case $line in
	*"ok "[0-9]*" - "*) holds "guest: ${line#* - }" [ "${line#not }" = "$line" ] ;;
	esac
done < <(grep -aE '^(not )?ok [0-9]+ - ' "$tmp/lines")
plan=$(sed -n 's/^PLAN \([0-9]*\) .*/\1/p' "$tmp/lines")
holds "the guest made all its ${plan:-(none)} checks" [ "$plan" = "$n" ]
if [ -z "$plan" ]; then tail -n 30 "$tmp/lines" | sed 's/^/# /'; fi
quiet() { ! grep -aqE 'WARNING:|BUG:|Oops|Call Trace' "$1"; }
holds "no warning, no oops" quiet "$tmp/lines"

read_channel() { "$tmp/channel" read "$tmp/memory" $addr >"$tmp/host"; }
holds "the host reads the channel" read_channel
holds "it has two CPUs" grep -q '^guest [0-9]* 2$' "$tmp/host"
holds "the host sees the value in force" grep -q '^knob label from host from_guest$' "$tmp/host"
holds "and that a knob does not exist" grep -q '^knob no_such_knob x -$' "$tmp/host"
# The guest goes on for a moment after its last look.
agrees() { [ -n "$2" ] && [ "$2" -ge "$1" ] && [ "$2" -le $(($1 + 200)) ]; }
while read -r _ name guest; do
	host=$(sed -n "s/^counter $name //p" "$tmp/host")
	holds "$name: guest $guest, host ${host:-none}" agrees "$guest" "$host"
done < <(grep -a '^FINAL ' "$tmp/lines")

# --- channels that are none, each refused with a message and a guest that runs
refused() {
	local what=$1 message=$2
	shift 2
	boot refused 1 "$@"
	holds "$what" grep -aq "faultbed: .*$message" "$tmp/refused"
	holds "and the guest runs" grep -aq '^FINAL ' "$tmp/refused"
}
poke() { printf '%b' "$2" | dd of="$tmp/memory" bs=1 seek=$((addr + $1)) conv=notrunc status=none; }
memory; poke 0 '\x00'
refused "a wrong magic number is refused" "magic" "memmap=64K\$$addr faultbed.channel=$addr,64K"
memory; poke 4 '\x02'
refused "another version is refused" "version 2" "memmap=64K\$$addr faultbed.channel=$addr,64K"
memory; poke 8 '\x00\x00\x00\x01'
refused "a size beyond the region is refused" "size 16777216" "memmap=64K\$$addr faultbed.channel=$addr,64K"
memory
refused "a channel in usable memory is refused" "usable memory" "faultbed.channel=$addr,64K"
refused "a channel off a page's start is refused" "bad address or size" "faultbed.channel=0x10000100,64K"
refused "a channel too small is refused" "bad address or size" "faultbed.channel=$addr,4K"
refused "a channel without a size is refused" "ADDR,SIZE" "faultbed.channel=$addr"

echo "1..$n"
[ $failed -eq 0 ] || { echo "# $failed of $n failed"; exit 1; }
