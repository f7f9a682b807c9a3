#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the disk that guest.disk = default is: an ext2 file system with one file,
# "scan", for guest-tests/file-scan. Each of the file's pages begins with its own
# number, so that a reader can tell that it got what it asked for.
#
# The same inputs give the same bytes: times, the UUID and the seed of hashes are
# fixed. The result is kept outside the tree, in $XDG_CACHE_HOME/faultbed/disk/KEY
# (~/.cache by default), and its path is printed; a second call finds it there.

set -eu
export LC_ALL=C
umask 022

usage()
{
	cat <<-END
	usage: images/disk-build.sh [--file-mib N] [-o FILE]
	  --file-mib N   size of the file in the image (16)
	  -o FILE        write the image there, whatever the cache holds
	END
}

die()
{
	echo "disk-build.sh: $*" >&2
	exit 2
}

mib=16
out=
while [ $# -gt 0 ]; do
	case $1 in
	--file-mib|-o)
		[ $# -ge 2 ] || die "$1 needs a value"
		case $1 in
		--file-mib) mib=$2 ;;
		-o) out=$2 ;;
		esac
		shift 2 ;;
	-h|--help) usage; exit 0 ;;
	*) usage >&2; die "unknown argument $1" ;;
	esac
done
case $mib in
''|*[!0-9]*) die "--file-mib $mib: not a number" ;;
esac
{ [ "$mib" -ge 1 ] && [ "$mib" -le 65536 ]; } || die "--file-mib $mib: from 1 to 65536"

# Not in everybody's PATH.
PATH=$PATH:/usr/sbin:/sbin
for tool in mke2fs debugfs perl; do
	command -v "$tool" >/dev/null || die "$tool is not installed: make deps"
done

if [ -z "$out" ]; then
	key=$({ cat "$0"; mke2fs -V 2>&1; echo "$mib"; } | sha256sum | cut -c1-24)
	dir=${XDG_CACHE_HOME:-$HOME/.cache}/faultbed/disk/$key
	if [ -f "$dir/disk.img" ]; then
		echo "$dir/disk.img"
		exit 0
	fi
	mkdir -p "$dir"
	out=$dir/disk.img
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# The page's number in 8 bytes, little-endian; then as many 32-bit words that depend on it.
perl -e 'binmode STDOUT; for my $p (0 .. $ARGV[0] * 256 - 1) {
	print pack("Q<", $p), pack("L<", ($p * 2654435761 + 97) & 0xffffffff) x 1022 }' "$mib" >"$tmp/scan"

# Room for the file, its indirect blocks and the tables.
E2FSPROGS_FAKE_TIME=1
export E2FSPROGS_FAKE_TIME
uuid=00000000-0000-4000-8000-000000000001
mke2fs -q -F -t ext2 -b 4096 -I 128 -N 16 -m 0 -U "$uuid" -L faultbed -O none,filetype,sparse_super \
	-E "hash_seed=$uuid,root_owner=0:0" "$tmp/disk" "$((mib + mib / 64 + 2))M" >/dev/null 2>"$tmp/log" ||
	{ cat "$tmp/log" >&2; die "mke2fs failed"; }
debugfs -w -R "write $tmp/scan scan" "$tmp/disk" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; die "debugfs failed"; }
# debugfs has no exit status for what it could not do.
debugfs -R "stat scan" "$tmp/disk" 2>/dev/null | grep -q "Size: $((mib * 1048576))\$" ||
	{ cat "$tmp/log" >&2; die "the file does not fit its image"; }

# Whole or not at all.
cp "$tmp/disk" "$out.new.$$"
mv "$out.new.$$" "$out"
echo "$out"
