#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel patches: the series names them all, each applies to a clean tree after
# those before it, with no fuzz, and each is explained; and what the guest
# kernel and the host take for the channel's layout is one text.

. "$(dirname "$0")/../tap.sh"
cd "$TOP/guest-kernel-patches" || exit 1

series=$(sed 's/#.*//; s/[ \t]*$//; /^$/d' series)
tap_like "the series has patches" "$series" '\.patch$'
tap_is "the series and the folder name the same patches" "$(echo "$series" | sort)" \
	"$(find . -name '*.patch' -printf '%f\n' | sort)"
tap_is "every patch has a subject and says why" "$(
	for p in $series; do
		grep -q '^Subject: ' "$p" && sed -n '/^Subject: /,/^---$/p' "$p" | grep -q '^[A-Z].*[a-z]' || echo "$p"
	done
)" ""
tap_is "every patch is explained in the README" "$(
	for p in $series; do
		grep -q -F "${p%%-*}" README.md || echo "$p"
	done
)" ""

# A clean copy of the files that the patches touch (those that a patch creates and a later one changes
# are not in the archive).
files=$(sed -n 's,^--- a/,,p' $series | sed 's/\t.*//' | sort -u)
src=$TAP_DIR/src
mkdir "$src"
if [ -n "${KERNEL_TREE:-}" ]; then
	(cd "$KERNEL_TREE" && cp --parents $files "$src")
else
	tarball=${KERNEL_TARBALL:-/usr/src/linux-source-6.12.tar.xz}
	tap_ok "the kernel's source is there ($tarball)" test -f "$tarball"
	tar -C "$src" --strip-components=1 -xf "$tarball" --wildcards --no-anchored --exclude='*/tools/*' \
		$(printf '%s\n' $files | sed 's,^,linux-*/,') 2>/dev/null
fi
for p in $series; do
	tap_ok "applies with no fuzz: $p" patch -d "$src" -p1 -F0 -N --no-backup-if-mismatch -i "$PWD/$p"
done

# From the include guard on: the two files' first comments speak to different readers.
body()
{
	sed -n '/^#ifndef/,$p' "$1"
}
uapi=$src/include/uapi/linux/faultbed.h
tap_ok "the series brings include/uapi/linux/faultbed.h" test -s "$uapi"
tap_is "the guest's and the host's channel layout are one text" "$(body "$uapi")" \
	"$(body "$TOP/vmm/machine/channel-abi.h")"

tap_done
