#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the kernel's own selftests that apply to a guest of this project (x86 and
# mm, 64-bit, static), once, into a cache outside the tree, and an initramfs with
# them: the project's own plus /selftests and /bin/selftests-run.
#
# The source is that of images/kernel-build.sh: Debian's package, or KERNEL_TARBALL.
# The cache's name is a hash of what goes in. A program that does not build is no
# failure; it is listed, with the compiler's first complaint, in /selftests/not-built.

set -euo pipefail
export LC_ALL=C
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL ARCH CROSS_COMPILE KBUILD_OUTPUT KCFLAGS KCPPFLAGS KAFLAGS LLVM O

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
me=${0##*/}
tarball=${KERNEL_TARBALL:-/usr/src/linux-source-6.12.tar.xz}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/faultbed/selftests
cc=${KERNEL_CC:-gcc}
guest_tests=$top/build/guest-tests
output=

# 32-bit programs would need a 32-bit C library to be linked statically, which Debian's
# gcc-multilib brings, and IA32_EMULATION, which the guest kernel does not have.
x86="single_step_syscall sysret_ss_attrs syscall_nt test_mremap_vdso check_initial_reg_state sigreturn iopl ioperm
	test_vsyscall mov_ss_trap sigtrap_loop syscall_arg_fault fsgsbase_restore sigaltstack nx_stack fsgsbase sysret_rip
	syscall_numbering corrupt_xstate_header amx lam test_shadow_stack ldt_gdt ptrace_syscall"
# Without those that only test huge pages of hugetlbfs, device memory, memory failure or other machines.
mm="cow compaction_test droppable gup_longterm khugepaged ksm_functional_tests madv_populate map_fixed_noreplace
	map_populate mdwe_test memfd_secret migration mkdirty mlock-random-test mlock2-tests mrelease_test
	mremap_dontunmap mremap_test mseal_test on-fault-limit pagemap_ioctl protection_keys seal_elf soft-dirty
	split_huge_page_test thuge-gen transhuge-stress uffd-stress uffd-unit-tests va_high_addr_switch virtual_address_range"

usage() {
	cat <<USAGE
usage: $me [--guest-tests DIR] [-o FILE]
Builds the kernel's selftests into the cache and prints the directory; with -o also
an initramfs that has them.

  --guest-tests DIR   built guest programs (build/guest-tests)
  -o FILE             the initramfs
Environment: KERNEL_TARBALL, KERNEL_CC, XDG_CACHE_HOME.
Exit status: 0 built or found, 1 the build failed, 2 bad input.
USAGE
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { local rc=$1; shift; say "$*"; exit "$rc"; }

while [ $# -gt 0 ]; do
	case $1 in
	--guest-tests) guest_tests=${2:?--guest-tests needs a folder}; shift 2 ;;
	-o) output=${2:?-o needs a file}; shift 2 ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; die 2 "unknown argument $1" ;;
	esac
done
[ -f "$tarball" ] || die 2 "$tarball: no such file (the package linux-source-6.12, or KERNEL_TARBALL)"
command -v "$cc" >/dev/null || die 2 "no compiler \"$cc\""

source_id=
[ -n "${KERNEL_TARBALL:-}" ] || source_id=$(dpkg-query -W -f '${Package} ${Version}' linux-source-6.12 2>/dev/null || :)
[ -n "$source_id" ] || source_id=$(sha256sum <"$tarball")
key=$({
	echo "$source_id"
	"$cc" --version | head -n1
	ld --version | head -n1
	sha256sum <"${BASH_SOURCE[0]}"
} | sha256sum | cut -c1-24)
result=$cache/$key

build() {
	local work=$1 src=$1/src tmp=$1/new log=$1/log program

	mkdir -p "$src" "$tmp/x86" "$tmp/mm"
	say "unpacking the selftests of $source_id"
	# The parts that the programs and the installation of the headers need.
	tar -C "$src" --strip-components=1 -xf "$tarball" --wildcards '*/Makefile' '*/Kbuild' '*/scripts/*' \
		'*/include/uapi/*' '*/include/asm-generic/*' '*/arch/x86/include/*' '*/arch/x86/entry/syscalls/*' \
		'*/arch/x86/Makefile*' '*/arch/x86/tools/*' '*/tools/testing/selftests/x86/*' \
		'*/tools/testing/selftests/mm/*' '*/tools/testing/selftests/*.h' '*/tools/include/*' '*/mm/gup_test.h' \
		2>>"$log" || die 1 "$tarball cannot be unpacked: $(tail -n 1 "$log")"
	make -s -C "$src" ARCH=x86 HOSTCC="$cc" headers >>"$log" 2>&1 ||
		die 1 "the kernel's headers cannot be made: $(tail -n 3 "$log" | head -n 1)"

	local common=(-O2 -g0 -pthread -no-pie -static -w -U_FORTIFY_SOURCE -isystem "$src/usr/include")
	local one
	: >"$tmp/not-built"
	for program in $x86; do
		one=("$program.c")
		case $program in
		sysret_ss_attrs) one+=(thunks.S) ;;
		fsgsbase_restore | sysret_rip) one+=(clang_helpers_64.S) ;;
		check_initial_reg_state) one+=(-Wl,-ereal_start) ;;
		esac
		one_program "$tmp" x86 "$program" -std=gnu99 "${one[@]}"
	done
	for program in $mm; do
		one=("$program.c" vm_util.c thp_settings.c)
		case $program in
		uffd-*) one+=(uffd-common.c) ;;
		protection_keys) one+=(-mxsave) ;;
		esac
		one_program "$tmp" mm "$program" -std=gnu11 -I"$src/tools/include" -I"$src" "${one[@]}"
	done
	echo "$source_id" >"$tmp/source"
}

# one_program RESULT SET NAME FLAG... SOURCE...
one_program() {
	local to=$1 set=$2 name=$3
	shift 3
	if ! (cd "$src/tools/testing/selftests/$set" && touch local_config.h &&
		"$cc" "${common[@]}" -o "$to/$set/$name" "$@" -lrt -lm) >"$work/one" 2>&1; then
		echo "$set/$name: $(grep -m1 -E 'error|undefined|cannot find' "$work/one" | sed 's/^[^ ]*: //')" >>"$to/not-built"
		return
	fi
	strip "$to/$set/$name"
}

if [ ! -f "$result/source" ]; then
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/.work-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	build "$work"
	rm -rf "$result"
	mv "$work/new" "$result"
	rm -rf "$work"
	trap - EXIT
	say "$(find "$result/x86" "$result/mm" -type f | wc -l) programs built, $(wc -l <"$result/not-built") not"
fi

if [ -n "$output" ]; then
	"$here/initramfs-build.sh" --guest-tests "$guest_tests" --add "$result:/selftests" \
		--add "$top/guest-tests/selftests-run.sh:/bin/selftests-run" -o "$output"
fi
echo "$result"
