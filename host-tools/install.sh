#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# install.sh install|uninstall BUILD: what was built in the folder BUILD, and what it needs of the tree, to $DESTDIR$PREFIX (/usr/local).
#
# It is a tree of its own, PREFIX/lib/faultbed, of the same shape as this one but for its sources, so that everything is found as it is here
# (host-tools/front.c); bin/ has links into it. It can be moved as a whole.

set -euo pipefail
what=${1:-}
build=${2:-}
prefix=${PREFIX:-/usr/local}
case $what:$prefix in
install:/* | uninstall:/*) ;;
*:/*) echo "usage: install.sh install|uninstall BUILD" >&2; exit 2 ;;
*) echo "error: install: PREFIX=$prefix: a path from the root, such as /usr/local" >&2; exit 2 ;;
esac
root=${DESTDIR:-}$prefix
lib=$root/lib/faultbed
man=$root/share/man
completions=$root/share/bash-completion/completions
tree=$(cd "$(dirname "$0")/.." && pwd)

remove()
{
	rm -rf "$lib"
	rm -f "$root/bin/faultbed" "$root/bin/faultbed-vmm" "$completions/faultbed"
	rm -f "$man"/man1/faultbed.1 "$man"/man1/faultbed-*.1 "$man"/man5/faultbed-*.5
	rmdir -p "$root/bin" "$root/lib" "$completions" "$man/man1" "$man/man5" 2>/dev/null || :
}

if [ "$what" = uninstall ]; then
	remove
	echo "uninstalled from $root"
	exit 0
fi

for file in faultbed faultbed-vmm initramfs.cpio appliance.cpio disk.img kernel/bzImage man/faultbed.1; do
	[ -e "$build/$file" ] || { echo "error: install: $build/$file is not there: make all images builds it" >&2; exit 2; }
done
remove
install -d "$lib/build/kernel" "$lib/build/guest-tests" "$lib/host-tools" "$lib/vmm/machine" "$root/bin" "$completions" "$man/man1" "$man/man5"
install -m 755 "$build/faultbed" "$build/faultbed-vmm" "$lib/build"
install -m 644 "$build/initramfs.cpio" "$build/appliance.cpio" "$build/disk.img" "$lib/build"
# vmlinux is for debuggers and stays where it was built.
install -m 644 "$build"/kernel/{bzImage,System.map,config,identity} "$lib/build/kernel"
for program in "$build"/guest-tests/*; do
	[ ! -f "$program" ] || install -m 755 "$program" "$lib/build/guest-tests"
done
cp -R "$tree/scenarios" "$tree/experiments" "$tree/cost-models" "$tree/guest-kernel-patches" "$tree/images" "$lib"
install -m 755 "$tree"/host-tools/{kernel.sh,libvirt-up.sh,peers.pl,deps.sh} "$lib/host-tools"
# The kernel's side of the channel is built with the host's description of it.
install -m 644 "$tree/vmm/machine/channel-abi.h" "$lib/vmm/machine"
install -m 644 "$tree/LICENSE" "$lib"
install -m 644 "$build"/man/*.1 "$man/man1"
install -m 644 "$build"/man/*.5 "$man/man5"
install -m 644 "$tree/completion/faultbed.bash" "$completions/faultbed"
for program in faultbed faultbed-vmm; do
	ln -sfn "../lib/faultbed/build/$program" "$root/bin/$program"
done
echo "installed to $root"
