#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the test guest's initramfs: busybox, init, the guest programs, and what a
# user adds. The same inputs give the same bytes: names in order, times, owners,
# inode and device numbers fixed.
#
# Not compressed unless the output's name ends in .gz: the whole is about 2 MiB,
# and a guest that inflates it under emulation spends more time on that than on
# reading it. The kernel tells the two apart by content.

set -eu
export LC_ALL=C
umask 022

usage()
{
	cat <<-END
	usage: images/initramfs-build.sh [--guest-tests DIR] [--busybox FILE] [--add PATH[:GUESTPATH]]... -o FILE
	  --guest-tests DIR   built guest programs, init among them (default build/guest-tests)
	  --busybox FILE      a static busybox (default: the system's)
	  --add PATH[:GUESTPATH]
	                      a program, file or folder (with all that is in it). A program goes to /bin, anything
	                      else to /, unless GUESTPATH says where; a GUESTPATH with / at its end is a folder.
	                      A dynamic program brings its libraries and its ELF interpreter along.
	  -o FILE             result; compressed if its name ends in .gz
	END
}

die()
{
	echo "initramfs-build.sh: $*" >&2
	exit 2
}

here=$(cd "$(dirname "$0")/.." && pwd)
tests=$here/build/guest-tests
busybox=
out=
adds=
nl='
'
while [ $# -gt 0 ]; do
	case $1 in
	--guest-tests|--busybox|--add|-o)
		[ $# -ge 2 ] || die "$1 needs a value"
		case $1 in
		--guest-tests) tests=$2 ;;
		--busybox) busybox=$2 ;;
		--add) adds=$adds$2$nl ;;
		-o) out=$2 ;;
		esac
		shift 2 ;;
	-h|--help) usage; exit 0 ;;
	*) usage >&2; die "unknown argument $1" ;;
	esac
done
[ -n "$out" ] || { usage >&2; die "-o FILE is missing"; }
command -v cpio >/dev/null || die "cpio is not installed: make deps"

is_elf()
{
	[ "$(dd if="$1" bs=4 count=1 2>/dev/null | od -An -tx1 | tr -d ' \n')" = 7f454c46 ]
}

# Has this ELF file a PT_INTERP or needs libraries?
is_dynamic()
{
	readelf -ld "$1" 2>/dev/null | grep -qE 'INTERP|\(NEEDED\)'
}

if [ -z "$busybox" ]; then
	for busybox in /bin/busybox /usr/bin/busybox /sbin/busybox ''; do
		[ -n "$busybox" ] && [ -x "$busybox" ] && break
	done
	[ -n "$busybox" ] || die "no busybox: install the package busybox-static (make deps does)"
fi
[ -f "$busybox" ] || die "$busybox: no such file"
is_elf "$busybox" || die "$busybox is no ELF program"
! is_dynamic "$busybox" || die "$busybox is not static: install the package busybox-static"
[ -x "$tests/init" ] || die "$tests/init: no such program (make guest-tests builds it)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
trap 'exit 130' INT TERM

# Debian 12's merged /usr: one folder of programs, one of libraries, the others links to them.
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/run" "$root/etc" "$root/lib" \
	"$root/lib64" "$root/root" "$root/usr" "$root/var"
ln -s bin "$root/sbin"
for d in bin sbin lib lib64; do
	ln -s "../$d" "$root/usr/$d"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"

install -m 755 "$busybox" "$root/bin/busybox"
"$busybox" --list | while read -r applet; do
	case $applet in
	busybox|init|linuxrc) ;;
	*) ln -s busybox "$root/bin/$applet" ;;
	esac
done

# install would write through a link to busybox
put()
{
	rm -f "$2"
	install -m "$3" "$1" "$2"
}

for p in "$tests"/*; do
	if [ -f "$p" ] && [ -x "$p" ]; then
		case $p in
		*/init) dst=$root/init ;;
		*) dst=$root/bin/${p##*/} ;;
		esac
		put "$p" "$dst" 755
		strip -s "$dst" || die "strip $p failed"
	fi
done

# A library or interpreter goes where the program looks for it: its own path.
add_library()
{
	[ -e "$root$1" ] && return
	mkdir -p "$root$(dirname "$1")"
	put "$(readlink -f "$1")" "$root$1" 755
}

add_libraries()
{
	prog=$1
	interp=$(readelf -l "$prog" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
	if [ -n "$interp" ]; then
		[ -e "$interp" ] || die "$prog: its interpreter $interp is not on this machine"
		add_library "$interp"
	fi
	list=$(ldd "$prog" 2>&1) || die "$prog: ldd: $list"
	missing=$(printf '%s\n' "$list" | sed -n 's/^[[:space:]]*\(.*\) => not found.*/\1/p' | tr '\n' ' ')
	[ -z "$missing" ] || die "$prog: libraries not found: $missing"
	for lib in $(printf '%s\n' "$list" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'); do
		add_library "$lib"
	done
}

add_file()	# SRC DST
{
	mode=644
	[ -x "$1" ] && mode=755
	mkdir -p "$root$(dirname "$2")"
	[ ! -d "$root$2" ] || die "$1: $2 is a folder in the guest"
	put "$1" "$root$2" $mode
	if is_elf "$1" && is_dynamic "$1"; then
		add_libraries "$1"
	fi
}

add_path()	# PATH[:GUESTPATH]
{
	src=${1%%:*}
	dst=
	case $1 in
	*:*) dst=${1#*:} ;;
	esac
	[ -n "$src" ] || die "--add $1: no path"
	[ -e "$src" ] || die "--add $src: no such file or folder"
	[ -r "$src" ] || die "--add $src: cannot be read"
	case $dst in
	''|/*) ;;
	*) die "--add $1: $dst: the path in the guest must begin with /" ;;
	esac
	case $dst/ in
	*/../*) die "--add $1: $dst: no .. in a path in the guest" ;;
	esac
	if [ -d "$src" ]; then
		base=${dst:-/$(basename "$(readlink -f "$src")")}
		base=${base%/}
		mkdir -p "$root$base"
		# Not following links into the guest: a link is copied as what it points to.
		(cd "$src" && find -L . -type d -o -type f) | sort | while read -r f; do
			f=${f#.}
			if [ -d "$src$f" ]; then
				mkdir -p "$root$base$f"
			else
				add_file "$src$f" "$base$f"
			fi
		done
		return
	fi
	[ -f "$src" ] || die "--add $src: neither a file nor a folder"
	if [ -z "$dst" ]; then
		if [ -x "$src" ]; then dst=/bin/; else dst=/; fi
	fi
	case $dst in
	*/) dst=$dst$(basename "$src") ;;
	esac
	[ "$dst" != /init ] || die "--add $1: /init is the guest's own"
	add_file "$src" "$dst"
}

printf '%s' "$adds" >"$work/adds"
while IFS= read -r a; do
	add_path "$a"
done <"$work/adds"

mkdir -p "$(dirname "$out")"
find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . -mindepth 1 | sort | cpio --quiet --reproducible -o -H newc -R +0:+0) >"$out.tmp" ||
	die "cpio failed"
case $out in
*.gz)
	gzip -n -9 <"$out.tmp" >"$out.tmp2"
	mv "$out.tmp2" "$out"
	rm -f "$out.tmp" ;;
*)	mv "$out.tmp" "$out" ;;
esac
