#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# host-tools/deps.sh on made-up machines: which backports entry it derives, and
# what it does with apt. apt-get, apt-cache, dpkg-query and id are fakes that
# keep a log, so neither root nor a network is needed.

. "$(dirname "$0")/../tap.sh"

new_machine()	# ID VERSION_ID CODENAME
{
	M=$TAP_DIR/m
	rm -rf "$M"
	mkdir -p "$M/apt/sources.list.d" "$M/bin" "$M/state"
	printf 'ID=%s\nVERSION_ID="%s"\nVERSION_CODENAME=%s\n' "$1" "$2" "$3" >"$M/os-release"
	: >"$M/installed"	# name version
	: >"$M/offered"		# name version, in the suites configured from the start
	: >"$M/backports"	# name version, once our source is there
	: >"$M/log"
	echo 0 >"$M/uid"

	cat >"$M/bin/id" <<-'EOT'
	#!/bin/sh
	cat "$M/uid"
	EOT
	cat >"$M/bin/dpkg-query" <<-'EOT'
	#!/bin/bash
	# -W -f FORMAT [PATTERN]
	while read -r name version; do
		[ $# -lt 3 ] || [[ $name == $3 ]] || continue
		case $2 in
		*Version*) echo "installed $version" ;;
		*) echo "installed $name" ;;
		esac
	done <"$M/installed"
	EOT
	cat >"$M/bin/apt-cache" <<-'EOT'
	#!/bin/bash
	# madison PACKAGE
	files=$M/offered
	[ ! -f "$M/apt/sources.list.d/faultbed-backports.sources" ] || files="$files $M/backports"
	cat $files | while read -r name version; do
		[ "$name" != "$2" ] || echo " $name | $version | somewhere main amd64 Packages"
	done
	EOT
	cat >"$M/bin/apt-get" <<-'EOT'
	#!/bin/bash
	args=() verb= simulate=
	while [ $# -gt 0 ]; do
		case $1 in
		-s) simulate=1 ;;
		-o | -t) [ "$1" = -o ] || args+=("suite:$2"); shift ;;
		-*) ;;
		*) if [ -z "$verb" ]; then verb=$1; else args+=("$1"); fi ;;
		esac
		shift
	done
	if [ -n "$simulate" ]; then
		for p in "${args[@]}" $(cat "$M/dependents" 2>/dev/null); do echo "Purg $p [1.0]"; done
		exit 0
	fi
	echo "$verb ${args[*]}" >>"$M/log"
	for p in "${args[@]}"; do
		case $verb:$p in
		*:suite:*) ;;
		install:qemu-system-x86) echo "$p 1:10.0.2" >>"$M/installed"; echo "libslirp0 4.7" >>"$M/installed" ;;
		install:*) echo "$p 6.12.95" >>"$M/installed" ;;
		purge:*) sed -i "/^$p /d" "$M/installed" ;;
		esac
	done
	exit 0
	EOT
	chmod +x "$M"/bin/*
	export M
}

deps()
{
	tap_run env -u KERNEL_TREE -u KERNEL_TARBALL PATH="$M/bin:$PATH" FAULTBED_APT_DIR="$M/apt" \
		FAULTBED_OS_RELEASE="$M/os-release" FAULTBED_STATE_DIR="$M/state" \
		"$TOP/host-tools/deps.sh" "$@"
}

# Everything that is wanted, but for the packages named.
install_all_but()
{
	deps check
	echo "$ERR" | sed -n 's/.*missing: \(.*\) (make deps.*/\1/p' | tr ' ' '\n' |
		while read -r p; do
			[ -n "$p" ] || continue
			case " $* " in *" $p "*) ;; *) echo "$p 1:99" ;; esac
		done >"$M/installed.new"
	mv "$M/installed.new" "$M/installed"
}

our_source()
{
	grep -v '^#' "$M/apt/sources.list.d/faultbed-backports.sources" 2>/dev/null
}

# --- the derivation ---

new_machine debian 12 bookworm
cat >"$M/apt/sources.list.d/debian.sources" <<'EOT'
# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/other.gpg
EOT
deps backports-entry
tap_is "deb822: same place and key, other suite" "$OUT" "Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"

new_machine debian 12 bookworm
cat >"$M/apt/sources.list" <<'EOT'
# deb http://dead.example/debian bookworm main
deb http://sec.example/debian-security bookworm-security main
deb-src http://src.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # a remark
EOT
deps backports-entry
tap_is "one-line: security, source and commented entries are not taken" "$OUT" "Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main"

new_machine debian 12 bookworm
echo 'deb [ arch=amd64,i386 signed-by=/etc/apt/keyrings/mine.gpg check-valid-until=no ] https://m.example/d/ bookworm main' \
	>"$M/apt/sources.list.d/mine.list"
deps backports-entry
tap_is "one-line options become fields" "$OUT" "Types: deb
URIs: https://m.example/d/
Suites: bookworm-backports
Components: main
Architectures: amd64 i386
Signed-By: /etc/apt/keyrings/mine.gpg
Check-Valid-Until: no"

new_machine debian 12 bookworm
cat >"$M/apt/sources.list.d/cloud.sources" <<'EOT'
Enabled: no
Types: deb
URIs: http://disabled.example/debian
Suites: bookworm
Components: main

Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdA
 -----END PGP PUBLIC KEY BLOCK-----
EOT
deps backports-entry
tap_is "a mirror list with an embedded key; a disabled entry is not taken" "$OUT" "Types: deb
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: bookworm-backports
Components: main
Signed-By: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdA
 -----END PGP PUBLIC KEY BLOCK-----"

new_machine debian 12 bookworm
printf 'deb cdrom:[Debian 12]/ bookworm main\n' >"$M/apt/sources.list"
deps backports-entry
tap_is "only a CD: nothing to derive from" "$RC" 1

new_machine debian 12 bookworm
printf 'deb http://m.example/d bookworm main\ndeb http://m.example/d bookworm-backports main\n' >"$M/apt/sources.list"
deps backports-entry
tap_is "backports is there already" "$RC:$OUT" "2:"

new_machine debian 12 bookworm
printf 'deb http://vendor.example/apt bookworm stable\ndeb http://m.example/d oldstable main\n' >"$M/apt/sources.list"
deps backports-entry
tap_like "a vendor's source without main is not taken; an alias of the suite is" "$OUT" "^URIs: http://m.example/d$"

# --- what it does with apt ---

debian12()
{
	new_machine debian 12 bookworm
	printf 'deb http://m.example/d bookworm main\n' >"$M/apt/sources.list"
	install_all_but "$@"
	echo "qemu-system-x86 1:7.2+dfsg-7" >"$M/offered"
	printf 'qemu-system-x86 1:10.0.2~bpo12+1\nlinux-source-6.12 6.12.95-1~bpo12+1\n' >"$M/backports"
}

debian12
deps
tap_is "all there: status 0" "$RC" 0
tap_is "all there: apt-get is not called" "$(cat "$M/log")" ""
tap_like "all there: it says so" "$OUT" "everything is here already"

debian12 qemu-system-x86 linux-source-6.12
deps
tap_is "Debian 12: installs" "$RC" 0
tap_is "Debian 12: both come from backports, after the lists were refreshed" "$(cat "$M/log")" "update 
update 
install suite:bookworm-backports linux-source-6.12 qemu-system-x86"
tap_like "Debian 12: the source is announced" "$OUT" "adding bookworm-backports as"
tap_like "Debian 12: the source is written" "$(our_source)" "^Suites: bookworm-backports$"
tap_is "what it brought is on record, dependencies too" "$(tr '\n' ' ' <"$M/state/packages-installed")" \
	"libslirp0 linux-source-6.12 qemu-system-x86 "
cp "$M/installed" "$M/installed.before"
: >"$M/log"
deps
tap_is "a second time: nothing to do" "$RC:$(cat "$M/log")" "0:"
deps undo
tap_is "undo: status 0" "$RC" 0
tap_like "undo: purges what it brought" "$(cat "$M/log")" "^purge libslirp0 linux-source-6.12 qemu-system-x86$"
tap_is "undo: the source is gone" "$(our_source)" ""
tap_unlike "undo: and so are the packages" "$(cat "$M/installed")" "qemu-system|libslirp"
: >"$M/log"
deps undo
tap_is "undo twice: nothing to do" "$RC:$(cat "$M/log")" "0:"

debian12 qemu-system-x86 linux-source-6.12
deps
echo virt-manager >"$M/dependents"
deps undo
tap_is "undo refuses to remove what came from elsewhere" "$RC" 3
tap_like "undo names it" "$ERR" "virt-manager"
tap_like "undo then leaves the packages" "$(cat "$M/installed")" "^qemu-system-x86 "

debian12 qemu-system-x86 linux-source-6.12
echo "linux-source-6.12 6.12.117-1~deb12u1" >>"$M/offered"
deps
tap_is "kernel source in another suite: only QEMU comes from backports" "$(cat "$M/log")" "update 
update 
install linux-source-6.12
install suite:bookworm-backports qemu-system-x86"

debian12 linux-source-6.12
echo "linux-source-6.12 6.12.117-1~deb12u1" >>"$M/offered"
deps
tap_is "QEMU here, source in another suite: no backports" "$(our_source)" ""

debian12
sed -i 's/^qemu-system-x86 .*/qemu-system-x86 1:7.2+dfsg-7/' "$M/installed"
deps
tap_like "an old QEMU is replaced" "$(cat "$M/log")" "^install suite:bookworm-backports qemu-system-x86$"

debian12 qemu-system-x86
echo 1000 >"$M/uid"
deps
tap_is "not root: status 3" "$RC" 3
tap_like "not root: the command to run" "$ERR" "sudo make deps$"
tap_is "not root: nothing is done" "$(cat "$M/log"):$(our_source)" ":"

debian12 qemu-system-x86
rm "$M/apt/sources.list"
deps
tap_is "no source to derive from: status 3" "$RC" 3
tap_like "and it says what is lacking" "$ERR" "no suite configured here offers QEMU"

debian12 qemu-system-x86
printf 'deb http://m.example/d bookworm-backports main\n' >>"$M/apt/sources.list"
deps
tap_is "backports configured but empty-handed: status 3" "$RC" 3

new_machine debian 13 trixie
printf 'deb http://m.example/d trixie main\n' >"$M/apt/sources.list"
install_all_but qemu-system-x86 linux-source-6.12
printf 'qemu-system-x86 1:10.0.2+ds-2\nlinux-source-6.12 6.12.90-2\n' >"$M/offered"
deps
tap_is "Debian 13: all from main" "$RC:$(tail -n 1 "$M/log"):$(our_source)" \
	"0:install linux-source-6.12 qemu-system-x86:"

new_machine fedora 42 ""
deps
tap_is "another distribution: status 3" "$RC" 3
tap_like "another distribution: what to install and to set" "$ERR" "KERNEL_TREE=DIR"
tap_is "another distribution: nothing is done" "$(cat "$M/log")" ""

deps frobnicate
tap_is "an unknown verb: status 2" "$RC" 2

tap_done
