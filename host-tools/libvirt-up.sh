#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# libvirt-up.sh COMMAND...: run COMMAND beside a libvirtd of its own, which answers at qemu:///system and is ended with it. Its
# files lie in file systems that only this process and its children see, so a daemon that the host has, and its domains, are neither used
# nor disturbed. As root. Exit status: COMMAND's, or 3 if there is no daemon or it does not come up.

set -euo pipefail

if [ "${1:-}" != --inside ]; then
	[ $# -gt 0 ] || { echo "usage: libvirt-up.sh COMMAND..." >&2; exit 2; }
	[ "$(id -u)" = 0 ] || { echo "error: libvirt-up.sh: as root only" >&2; exit 3; }
	command -v libvirtd >/dev/null || { echo "error: libvirt-up.sh: no libvirtd: make deps installs it" >&2; exit 3; }
	exec unshare --mount --propagation private "$0" --inside "$@"
fi
shift

private=$(mktemp -d)
for dir in /etc/libvirt /run/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
	mkdir -p $dir
	mount -t tmpfs -o mode=0755 faultbed $dir
done
# The daemon wants this user, even where QEMU does not run as it.
for file in passwd group; do
	cp /etc/$file "$private/$file"
done
grep -q ^libvirt-qemu: "$private/passwd" || echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >>"$private/passwd"
grep -q ^libvirt-qemu: "$private/group" || echo 'libvirt-qemu:x:64055:' >>"$private/group"
for file in passwd group; do
	mount --bind "$private/$file" /etc/$file
done
cat >/etc/libvirt/qemu.conf <<EOF
user = "root"
group = "root"
stdio_handler = "file"
security_driver = "none"
remember_owner = 0
namespaces = []
cgroup_controllers = []
EOF
echo 'auth_unix_rw = "none"' >/etc/libvirt/libvirtd.conf

log=$private/log
libvirtd >"$log" 2>&1 &
daemon=$!
finish()
{
	kill $daemon 2>/dev/null || :
	wait $daemon 2>/dev/null || :
	umount /etc/passwd /etc/group || :
	rm -rf "$private"
}
trap finish EXIT
for ((i = 0; i < 300; i++)); do
	! virsh -q -c qemu:///system version >/dev/null 2>&1 || break
	if ! kill -0 $daemon 2>/dev/null || [ $i = 299 ]; then
		echo "error: libvirt-up.sh: libvirtd did not come up:" >&2
		tail -n 5 "$log" >&2
		exit 3
	fi
	sleep 0.2
done
status=0
"$@" || status=$?
exit $status
