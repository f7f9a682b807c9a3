#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# libvirt-up.sh [--session] COMMAND...: run COMMAND beside a libvirtd of its own, which is ended with it. Its files lie where only
# this process and its children see or look for them, so a daemon that the host has, and its domains, are neither used nor disturbed.
#
#   as root            it answers at qemu:///system
#   else               a user's own, at qemu:///session
#   --session as root  the same, and COMMAND believes that it is an ordinary user's
#
# Exit status: COMMAND's, or 3 if there is no daemon or it does not come up.

set -euo pipefail

usage()
{
	echo "usage: libvirt-up.sh [--session] COMMAND..." >&2
	exit 2
}

inside=
session=
while :; do
	case ${1:-} in
	--inside) inside=yes ;;
	--session) session=--session ;;
	"" | --*) usage ;;
	*) break ;;
	esac
	shift
done
[ "$(id -u)" = 0 ] || session=--session

if [ -z "$inside" ]; then
	command -v libvirtd >/dev/null || { echo "error: libvirt-up.sh: no libvirtd: make deps installs it" >&2; exit 3; }
	# Of the host root is still root, to which all files are open; but inside it has a user's number.
	if [ "$session:$(id -u)" = --session:0 ]; then
		exec unshare --user --map-user=1000 --map-group=1000 "$0" --inside --session "$@"
	elif [ -z "$session" ]; then
		exec unshare --mount --propagation private "$0" --inside "$@"
	fi
fi

private=$(mktemp -d)
chmod 0755 "$private"
unmount=()
if [ -n "$session" ]; then
	export XDG_RUNTIME_DIR=$private/run XDG_CONFIG_HOME=$private/config XDG_CACHE_HOME=$private/cache XDG_DATA_HOME=$private/data
	config=$XDG_CONFIG_HOME/libvirt
	mkdir -p -m 0700 "$XDG_RUNTIME_DIR" "$XDG_CACHE_HOME" "$XDG_DATA_HOME"
	mkdir -p "$config"
	uri=qemu:///session
else
	config=/etc/libvirt
	for dir in $config /run/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
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
		unmount+=(/etc/$file)
	done
	printf 'user = "root"\ngroup = "root"\n' >$config/qemu.conf
	echo 'auth_unix_rw = "none"' >$config/libvirtd.conf
	uri=qemu:///system
fi
cat >>"$config/qemu.conf" <<EOF
stdio_handler = "file"
security_driver = "none"
remember_owner = 0
namespaces = []
cgroup_controllers = []
EOF

log=$private/log
# Nobody else is to start one in its place.
export LIBVIRT_AUTOSTART=0
libvirtd >"$log" 2>&1 &
daemon=$!
finish()
{
	kill $daemon 2>/dev/null || :
	wait $daemon 2>/dev/null || :
	[ ${#unmount[@]} = 0 ] || umount "${unmount[@]}" || :
	rm -rf "$private"
}
trap finish EXIT
for ((i = 0; i < 300; i++)); do
	! virsh -q -c $uri version >/dev/null 2>&1 || break
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
