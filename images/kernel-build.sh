#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the guest kernel, once, into a cache outside the tree, and prints the
# directory that holds bzImage, vmlinux, System.map, config and identity.
#
# The directory's name is a hash of all that goes into the build: the source,
# the config fragment, the patches and the compiler. A second call finds it and
# does nothing. Sources are never written to: the build works on a copy.

set -euo pipefail
export LC_ALL=C
umask 022
# Kbuild reads these, and a build must not depend on who calls it.
unset MAKEFLAGS MFLAGS MAKELEVEL ARCH CROSS_COMPILE KBUILD_OUTPUT KCFLAGS KCPPFLAGS KAFLAGS LLVM O

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
me=${KERNEL_BUILD_NAME:-kernel-build}

fragment=$here/kernel.config
patch_dir=$top/guest-kernel-patches
cache=${XDG_CACHE_HOME:-$HOME/.cache}/faultbed/kernel
default_tarball=/usr/src/linux-source-6.12.tar.xz

tree=${KERNEL_TREE:-}
tarball=${KERNEL_TARBALL:-}
base_config=
use_series=yes
upto=
variant=
output=
print_key=
dry_run=
jobs=
extra_patches=()

usage() {
	cat <<EOF
usage: $me [options]
Builds the guest kernel and prints the directory it is in.

  --tree DIR       build a copy of this source tree (or KERNEL_TREE=DIR)
  --tarball FILE   build this source archive (or KERNEL_TARBALL=FILE)
                   default: $default_tarball, of the
                   package linux-source-6.12
  --patch FILE     apply this patch after the project's; may be repeated
  --no-series      without the project's patches (guest-kernel-patches/)
  --upto N         with the first N of the project's patches only
  --variant V      with checks built in: debug (DEBUG_VM, lockdep, lock_stat) or
                   kasan; such a kernel finds faults and measures nothing. Or
                   aligned: functions on cache lines of their own
  --config FILE    lay the project's options over this configuration rather
                   than over an empty one; its modules are not built
  --output DIR     copy the result to DIR as well, and print that
  --dry-run        unpack, patch and configure only, and say which options of the
                   project the source did not take; keeps nothing
  --print-key      print the name of the result in the cache and whether it is
                   there ("cached" or "missing"), build nothing
  --jobs N         compilers at once (default: one a CPU)

Environment: XDG_CACHE_HOME, KERNEL_CC (default gcc), V=1 shows the build,
KEEP=1 keeps the work directory.
Exit status: 0 built or found, 1 the build failed, 2 bad input.
EOF
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { local rc=$1; shift; say "$*"; exit "$rc"; }

need_arg() { [ $# -ge 2 ] || die 2 "$1 wants an argument"; }
while [ $# -gt 0 ]; do
	case $1 in
	--tree) need_arg "$@"; tree=$2; tarball=; shift ;;
	--tarball) need_arg "$@"; tarball=$2; tree=; shift ;;
	--patch) need_arg "$@"; extra_patches+=("$2"); shift ;;
	--no-series) use_series=no ;;
	--upto) need_arg "$@"; upto=$2; shift ;;
	--variant) need_arg "$@"; variant=$2; shift ;;
	--config) need_arg "$@"; base_config=$2; shift ;;
	--output) need_arg "$@"; output=$2; shift ;;
	--jobs) need_arg "$@"; jobs=$2; shift ;;
	--dry-run) dry_run=yes ;;
	--print-key) print_key=yes ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; die 2 "unknown argument: $1" ;;
	esac
	shift
done

# The options: the project's, and over them the variant's.
fragments=("$fragment")
if [ -n "$variant" ]; then
	if ! [[ $variant =~ ^[a-z]+$ ]] || ! [ -f "$here/kernel-$variant.config" ]; then
		known=("$here"/kernel-*.config)
		known=("${known[@]##*/kernel-}")
		die 2 "--variant $variant: there is none of that name, only ${known[*]%.config}"
	fi
	fragments+=("$here/kernel-$variant.config")
fi
fragment_names=$(basename -a "${fragments[@]}" | paste -sd ' ')

number() { [[ $1 =~ ^[0-9]+$ ]] || die 2 "$2 wants a number, not \"$1\""; }
[ -z "$upto" ] || number "$upto" --upto
[ -z "$jobs" ] || number "$jobs" --jobs
: "${jobs:=$(nproc)}"

# --- what is to be built ---------------------------------------------------

cc=${KERNEL_CC:-gcc}
command -v "$cc" >/dev/null || die 2 "no compiler \"$cc\""

[ -z "$tree" ] || [ -z "$tarball" ] || die 2 "a tree or a tarball, not both"
[ -n "$tree$tarball" ] || tarball=$default_tarball
# The identity of the source, without reading hundreds of megabytes each time:
# a package's version, a tree's list of names, sizes and times.
if [ -n "$tree" ]; then
	[ -d "$tree" ] || die 2 "$tree: no such directory"
	if ! [ -f "$tree/Kbuild" ] || ! [ -d "$tree/arch/x86" ] || ! [ -f "$tree/Makefile" ]; then
		die 2 "$tree: not a Linux source tree"
	fi
	tree=$(cd "$tree" && pwd)
	list=$(cd "$tree" && find . \( -name .git -o -name '*.o' -o -name '.*.cmd' \) -prune -o \
		-type f -printf '%P %s %T@\n' | sort | sha256sum)
	source_id="tree $tree ${list%% *}"
else
	[ -f "$tarball" ] || {
		[ "$tarball" != "$default_tarball" ] ||
			say "install the package linux-source-6.12, or give --tree or --tarball"
		die 2 "$tarball: no such file"
	}
	package=
	[ "$tarball" != "$default_tarball" ] ||
		package=$(dpkg-query -W -f '${Package} ${Version}' linux-source-6.12 2>/dev/null || :)
	if [ -n "$package" ]; then
		source_id="package $package"
	else
		source_id="tarball $(sha256sum <"$tarball" | cut -d' ' -f1)"
	fi
fi

patches=()
if [ "$use_series" = yes ] && [ -f "$patch_dir/series" ]; then
	while read -r name _; do
		case $name in '' | '#'*) continue ;; esac
		[ -f "$patch_dir/$name" ] || die 2 "$patch_dir/series: no patch $name"
		patches+=("$patch_dir/$name")
	done <"$patch_dir/series"
fi
if [ -n "$upto" ]; then
	[ "$upto" -le ${#patches[@]} ] || die 2 "--upto $upto: the series has ${#patches[@]} patches"
	patches=("${patches[@]:0:$upto}")
fi
# What the guest reports as its patches: the series alone, and whether more went in.
patch_id=none
[ ${#patches[@]} -eq 0 ] || patch_id=$(cat "${patches[@]}" | sha256sum | cut -c1-16)
[ ${#extra_patches[@]} -eq 0 ] && [ -z "$tree" ] && [ -z "$upto" ] || patch_id=$patch_id-dirty
for p in ${extra_patches[@]+"${extra_patches[@]}"}; do
	[ -f "$p" ] || die 2 "$p: no such file"
	patches+=("$(realpath "$p")")
done
[ -z "$base_config" ] || [ -f "$base_config" ] || die 2 "$base_config: no such file"

compiler=$("$cc" --version | head -n1)
linker=$(ld --version | head -n1)
key=$({
	echo "recipe 1"
	echo "$source_id"
	echo "$compiler"
	echo "$linker"
	# Not its comments.
	cat "${fragments[@]}" | grep -E '^(# )?CONFIG_' | sha256sum
	[ -z "$base_config" ] || sha256sum <"$base_config"
	for p in ${patches[@]+"${patches[@]}"}; do sha256sum <"$p"; done
	echo "$patch_id"
} | sha256sum | cut -c1-24)
result=$cache/$key

finish() {
	if [ -n "$output" ]; then
		mkdir -p "$output"
		cp "$result"/* "$output"/
		result=$(cd "$output" && pwd)
	fi
	echo "$result"
	exit 0
}

if [ -n "$print_key" ]; then
	[ -f "$result/identity" ] && echo "$key cached" || echo "$key missing"
	exit 0
fi
if [ -f "$result/identity" ] && [ -z "$dry_run" ]; then
	[ ! -f "$result/dropped" ] || cat "$result/dropped" >&2
	finish
fi

# --- the work directory ----------------------------------------------------

for tool in make flex bison bc tar patch lz4; do
	command -v $tool >/dev/null || die 2 "$tool is needed to build a kernel and is not installed"
done
mkdir -p "$cache/work" || die 2 "$cache: cannot be written"

# A tree keeps its objects, so that an edit costs what changed; the package's
# work directory goes when it is done.
if [ -n "$tree" ]; then
	work=$cache/work/tree-$(echo "$tree ${patches[*]-} $base_config$variant" | sha256sum | cut -c1-16)
else
	work=$cache/work/$key
fi
[ -z "$dry_run" ] || work=$work-dry
mkdir -p "$work"
exec 9>"$work.lock"
flock -n 9 || { say "another build of the same kernel is running, waiting for it"; flock 9; }
[ ! -f "$result/identity" ] || [ -n "$dry_run" ] || finish

log=$work/log
: >"$log"
src=$work/src
obj=$work/obj
started=$SECONDS

# fail RC WHAT: the end, with the log. 2 is bad input, and leaves no source behind.
fail() {
	say "$2; the log's last lines:"
	tail -n 25 "$log" | sed 's/^/  | /' >&2
	say "the whole log is $log"
	[ "$1" -ne 2 ] || rm -rf "$src"
	exit "$1"
}

# Of the default configuration; another one has as many as it has.
expected="about 1070"
[ -z "$base_config" ] || expected="some thousand"

# step RC WHAT COMMAND...: a long step, its output in the log, RC if it fails. On a
# terminal one line is kept up to date with the number of objects built, elsewhere
# there is a line a minute.
step() {
	local rc=$1 what=$2 pid n last=$SECONDS
	shift 2
	echo "+ $*" >>"$log"
	if [ "${V:-}" = 1 ]; then
		"$@" > >(tee -a "$log" >&2) 2>&1 9>&- || fail "$rc" "$what failed"
		return
	fi
	"$@" >>"$log" 2>&1 9>&- &
	pid=$!
	trap 'kill $pid 2>/dev/null; exit 130' INT TERM
	while kill -0 $pid 2>/dev/null; do
		sleep 0.5
		n=
		[ "$what" != compiling ] || n=", $(grep -cE '^ +(CC|AS) ' "$log" || :) of $expected files"
		if [ -t 2 ]; then
			printf '\r%s: %s%s, %d:%02d \033[K' "$me" "$what" "$n" \
				$(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) >&2
		elif [ $((SECONDS - last)) -ge 60 ]; then
			say "$what$n, $((SECONDS - started)) s"
			last=$SECONDS
		fi
	done
	trap - INT TERM
	[ ! -t 2 ] || printf '\r\033[K' >&2
	wait $pid || fail "$rc" "$what failed"
}

rm -rf "$src"
mkdir -p "$src" "$obj"
unpack_tree() { tar -C "$tree" --exclude-vcs --exclude='*.o' --exclude='.*.cmd' -cf - . | tar -C "$src" -xf -; }
unpack_tarball() {
	local skip=()
	# Unpacking costs as much as a tenth of the build. What an x86 guest cannot use
	# stays in the archive, all but its Kconfig files and Makefiles.
	if [ "$tarball" = "$default_tarball" ] && [ ${#extra_patches[@]} -eq 0 ]; then
		local d
		for d in drivers/{gpu,net,media,infiniband,scsi,staging,iio,hwmon,usb,clk,pinctrl} sound \
			Documentation tools/{perf,testing} fs/{xfs,btrfs,smb,nfs,ocfs2} \
			arch/{alpha,arc,arm,arm64,csky,hexagon,loongarch,m68k,microblaze,mips} \
			arch/{nios2,openrisc,parisc,powerpc,riscv,s390,sh,sparc,um,xtensa}; do
			skip+=(--exclude="*/$d/*.[chS]" --exclude="*/$d/*.dts*" --exclude="*/$d/*.rst"
				--exclude="*/$d/*.yaml")
		done
	fi
	tar -C "$src" --strip-components=1 ${skip[@]+"${skip[@]}"} -xf "$tarball"
}

say "building a guest kernel${variant:+ ($variant)} from ${source_id%% *} ${tree:-$(basename "$tarball")}, ${#patches[@]} patches, -j$jobs"
if [ -n "$tree" ]; then
	step 2 "copying the tree" unpack_tree
else
	step 2 "unpacking" unpack_tarball
fi
[ -f "$src/Kbuild" ] || fail 2 "${tree:-$tarball} holds no Linux source tree"
# Who followed guest-kernel-patches/README.md has them in the tree already.
patched=
[ ! -f "$src/kernel/faultbed/Kconfig" ] || patched=yes
[ -z "$patched" ] || say "this source has the project's patches already, they are not applied again"
for p in ${patches[@]+"${patches[@]}"}; do
	echo "+ patch $p" >>"$log"
	if [ -n "$patched" ] && [ "$(dirname "$p")" = "$patch_dir" ]; then continue; fi
	patch -d "$src" -p1 -F0 --no-backup-if-mismatch -N -s <"$p" >>"$log" 2>&1 ||
		fail 2 "$(basename "$p") does not apply to this source"
done

kmake=(make -C "$src" O="$obj" CC="$cc" HOSTCC="$cc" LOCALVERSION=
	KBUILD_BUILD_TIMESTAMP="1970-01-01 00:00:00 UTC" KBUILD_BUILD_USER=faultbed
	KBUILD_BUILD_HOST=faultbed KBUILD_BUILD_VERSION=1)
# A tree that was built in refuses to be built elsewhere; this is the copy.
if [ -n "$tree" ] && { [ -e "$src/.config" ] || [ -d "$src/include/config" ]; }; then
	step 1 "cleaning the copy" "${kmake[@]}" O= mrproper
fi

# --- configuration ---------------------------------------------------------

wanted=$work/wanted
cat "${fragments[@]}" >"$wanted"
[ ! -f "$src/kernel/faultbed/Kconfig" ] || cat >>"$wanted" <<EOF
CONFIG_FAULTBED=y
CONFIG_FAULTBED_PATCH_ID="$patch_id"
EOF
if [ -n "$base_config" ]; then
	cat "$base_config" "$wanted" >"$obj/.config"
	step 1 "configuring" "${kmake[@]}" olddefconfig
else
	step 1 "configuring" "${kmake[@]}" KCONFIG_ALLCONFIG="$wanted" allnoconfig
fi

# Kconfig drops what does not exist or lacks a dependency, without a word.
dropped=$work/dropped
: >"$dropped"
while IFS= read -r line; do
	case $line in
	CONFIG_*=n) opt=${line%=n}; want=n ;;
	CONFIG_*=*) opt=${line%%=*}; want=${line#*=} ;;
	*) continue ;;
	esac
	have=$(sed -n "s/^$opt=//p" "$obj/.config")
	[ "${have:-n}" = "$want" ] || printf '%s: wanted %s, is %s%s\n' "$opt" "$want" "${have:-n}" \
		"$(grep -qrs --include='Kconfig*' "config ${opt#CONFIG_}\$" "$src" || echo ' (this source has no such option)')" >>"$dropped"
done <"$wanted"
if [ -s "$dropped" ]; then
	say "options of $fragment_names that this source did not take:"
	sed -i 's/^/  /' "$dropped"
	cat "$dropped" >&2
fi

if [ -n "$dry_run" ]; then
	[ -s "$dropped" ] || say "this source takes all options of $fragment_names"
	rm -rf "$work" "$work.lock"
	exit 0
fi

# --- build and install -----------------------------------------------------

step 1 "compiling" "${kmake[@]}" -j"$jobs" bzImage

tmp=$(mktemp -d "$cache/.new-XXXXXX")
cp "$obj/arch/x86/boot/bzImage" "$obj/vmlinux" "$obj/System.map" "$tmp"/
cp "$obj/.config" "$tmp/config"
[ ! -s "$dropped" ] || cp "$dropped" "$tmp/dropped"
cat >"$tmp/identity" <<EOF
release=$(cat "$obj/include/config/kernel.release")
source=$source_id
patches=$(for p in ${patches[@]+"${patches[@]}"}; do basename "$p"; done | tr '\n' ' ')
patch_id=$patch_id
variant=${variant:-none}
config_sha256=$(sha256sum <"$tmp/config" | cut -d' ' -f1)
bzimage_sha256=$(sha256sum <"$tmp/bzImage" | cut -d' ' -f1)
compiler=$compiler
key=$key
EOF
chmod 755 "$tmp"
rm -rf "$result"
mv "$tmp" "$result"
if [ -z "$tree" ] && [ "${KEEP:-}" != 1 ]; then
	rm -rf "$work" "$work.lock"
fi
say "built in $((SECONDS - started)) s: $(stat -c %s "$result/bzImage") bytes of bzImage"
finish
