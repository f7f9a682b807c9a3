#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The nested appliance's initramfs: its init, the VMM, and the shared libraries
# that the VMM needs. The front end appends the work of each run.
#
# Not compressed: under emulation, unpacking costs more than reading.

set -euo pipefail
export LC_ALL=C
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
me=${0##*/}
vmm=
output=

usage() {
	cat <<USAGE
usage: $me --vmm FILE -o FILE
Writes the initramfs of the nested appliance.

  --vmm FILE   the VMM, with whose libraries it is filled
  -o FILE      where to
Exit status: 0 written, 1 it could not be, 2 bad usage.
USAGE
}

die() { local rc=$1; shift; printf '%s: %s\n' "$me" "$*" >&2; exit "$rc"; }

while [ $# -gt 0 ]; do
	case $1 in
	--vmm) vmm=${2:?--vmm needs a file}; shift 2 ;;
	-o) output=${2:?-o needs a file}; shift 2 ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; die 2 "unknown option $1" ;;
	esac
done
[ -n "$vmm" ] && [ -n "$output" ] || { usage >&2; exit 2; }
[ -x "$vmm" ] || die 2 "$vmm: no such program"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,dev,proc,sys,tmp,job,root}
"${CC:-gcc}" -std=gnu11 -O2 -Wall -Wextra -static -o "$root/init" "$here/appliance-init.c"
cp "$vmm" "$root/bin/faultbed-vmm"
strip "$root/init" "$root/bin/faultbed-vmm"

# Libraries, and the loader, go where the VMM will look for them: at their own paths.
ldd "$vmm" | grep -o '/[^ ]*' | sort -u | while read -r lib; do
	mkdir -p "$root$(dirname "$lib")"
	cp -L "$lib" "$root$lib"
done

# Same input, same bytes.
find "$root" -exec touch -h -d @0 {} +
mkdir -p "$(dirname "$output")"
(cd "$root" && find . -mindepth 1 | sort |
	cpio --quiet -o -H newc --reproducible -R 0:0) >"$output.tmp"
mv "$output.tmp" "$output"
