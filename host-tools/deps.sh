#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deps.sh [check|install|undo|plan|backports-entry]: what the build needs, by apt.
#
#   check            exit 0 if everything is here, else 3 with the list of what is not
#   install          (default) say what will be done, then do it; nothing, and no
#                    network, where everything is here already
#   plan             say what install would do, and stop
#   undo             take back what install did: its apt source, its packages
#   backports-entry  print the apt source that install would write
#
# Owns two files: the apt source faultbed-backports.sources, and the list of
# the packages that it brought to this machine (in the state folder). Exit
# status: 0 done, 2 bad usage, 3 this machine cannot do it (says why and what
# would).
#
# Debian 12 has no QEMU 10 and, without its security suite, no
# linux-source-6.12: both are in its backports. The entry for those is derived
# from the machine's own apt sources (same place, same key, other suite).
# On other distributions the list of packages is printed.
#
# The FAULTBED_* variables below move the files elsewhere; the tests use them.

set -euo pipefail

APT_DIR=${FAULTBED_APT_DIR:-/etc/apt}
OS_RELEASE=${FAULTBED_OS_RELEASE:-/etc/os-release}
STATE_DIR=${FAULTBED_STATE_DIR:-${XDG_STATE_HOME:-${HOME:-/root}/.local/state}/faultbed}

SOURCE_FILE=$APT_DIR/sources.list.d/faultbed-backports.sources
INSTALLED_LIST=$STATE_DIR/packages-installed

# QEMU's TCG carries SVM with nested paging for the nested engine; older ones
# than this were not tried.
QEMU_MIN=1:10.0
KERNEL_SOURCE=linux-source-6.12

# Package and what it is for. KERNEL_TREE= or KERNEL_TARBALL= make the kernel source unneeded.
packages()
{
	# the VMM and the front end
	echo build-essential gcc make pkg-config libglib2.0-dev libjson-glib-dev libfdt-dev libzydis-dev linux-libc-dev libvirt-dev
	# the guest kernel
	echo bc bison flex libelf-dev libssl-dev xz-utils patch kmod
	[ -n "${KERNEL_TREE:-}${KERNEL_TARBALL:-}" ] || echo $KERNEL_SOURCE
	# initramfs and appliance; musl's C library for small static guest programs
	echo busybox-static cpio gzip musl-tools
	# the disk image
	echo e2fsprogs
	# nested, and the peers it is compared with
	echo qemu-system-x86
	# libvirt, for the engine of that name: the daemon and its QEMU driver, without an init system's; xmllint, by which virt-xml-validate works
	echo libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients libxml2-utils
	# the tests: clang for a second opinion, iasl for the ACPI tables
	echo perl libjson-xs-perl acpica-tools util-linux git clang libclang-rt-14-dev
	# what reads the man pages before people do
	echo mandoc
	# the figures of faultbed report, and its test
	echo gnuplot-nox
	# sweeps beyond one machine
	echo slurm-wlm munge parallel
	# a load that everybody can get, run in the guest
	echo stress-ng
}

say()
{
	echo "set-up: $*"
}

die()
{
	echo "error: set-up: $*" >&2
	exit 3
}

os_release()
{
	(
		ID= VERSION_ID= VERSION_CODENAME= ID_LIKE=
		# shellcheck disable=SC1090
		. "$OS_RELEASE" 2>/dev/null || :
		eval "printf '%s' \"\$$1\""
	)
}

# Version of an installed package, or nothing.
installed_version()
{
	dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null |
		sed -n 's/^installed //p' | head -n 1
}

# clang's run-time library is named after clang's major version, which differs by release.
clang_rt()
{
	local have

	have=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 'libclang-rt-*-dev' 2>/dev/null |
		sed -n 's/^installed //p' | head -n 1)
	if [ -n "$have" ]; then
		echo "$have"
	elif [ "$(os_release VERSION_ID)" = 12 ]; then
		echo libclang-rt-14-dev
	else
		echo libclang-rt-19-dev
	fi
}

wanted()
{
	packages | tr ' ' '\n' | sed "s/^libclang-rt-14-dev$/$(clang_rt)/"
}

# Packages that are wanted and not here (or too old), one a line.
missing()
{
	local p v

	for p in $(wanted); do
		v=$(installed_version "$p")
		if [ -z "$v" ]; then
			echo "$p"
		elif [ "$p" = qemu-system-x86 ] && dpkg --compare-versions "$v" lt $QEMU_MIN; then
			echo "$p"
		fi
	done
}

# Is there a candidate of package $1, version >= $2, in any configured suite?
offered()
{
	local v

	for v in $(apt-cache madison "$1" 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); print $2 }'); do
		if dpkg --compare-versions "$v" ge "$2"; then
			return 0
		fi
	done
	return 1
}

# Stanzas of the machine's apt sources in deb822 form, one field a line, "%%" between stanzas.
# One-line entries are rewritten; options become the fields of sources.list(5).
sources_as_deb822()
{
	local f

	for f in "$APT_DIR"/sources.list "$APT_DIR"/sources.list.d/*.list; do
		[ -f "$f" ] || continue
		awk '
		function field(k) {
			if (k == "arch") return "Architectures"
			if (k == "lang") return "Languages"
			if (k == "target") return "Targets"
			if (k == "pdiffs") return "PDiffs"
			n = split(k, w, "-"); r = ""
			for (i = 1; i <= n; i++)
				r = r (i > 1 ? "-" : "") toupper(substr(w[i], 1, 1)) substr(w[i], 2)
			return r
		}
		{ sub(/#.*/, "") }
		$1 == "deb" {
			line = $0; opts = ""
			sub(/^[ \t]*deb[ \t]+/, "", line)
			if (line ~ /^\[/) {
				opts = line; sub(/^\[[ \t]*/, "", opts); sub(/[ \t]*\].*/, "", opts)
				sub(/^\[[^]]*\][ \t]*/, "", line)
			}
			n = split(line, w, /[ \t]+/)
			comps = ""
			for (i = 3; i <= n; i++)
				if (w[i] != "") comps = comps " " w[i]
			print "Types: deb"; print "URIs: " w[1]; print "Suites: " w[2]; print "Components:" comps
			m = split(opts, o, /[ \t]+/)
			for (j = 1; j <= m; j++) {
				eq = index(o[j], "=")
				if (!eq) continue
				v = substr(o[j], eq + 1); gsub(/,/, " ", v)
				print field(substr(o[j], 1, eq - 1)) ": " v
			}
			print "%%"
		}' "$f"
	done
	for f in "$APT_DIR"/sources.list.d/*.sources; do
		[ -f "$f" ] && [ "$f" != "$SOURCE_FILE" ] || continue
		awk '
		/^#/ { next }
		/^[ \t]*$/ { if (n) print "%%"; n = 0; next }
		{ print; n++ }
		END { if (n) print "%%" }' "$f"
	done
}

# Read stanzas; print the backports stanza for codename $1 derived from the first
# that is of Debian's main archive. Exit 1 if there is none, 2 if backports is there already.
derive()
{
	awk -v code="$1" '
	function reset() { split("", f); nf = 0; key = "" }
	function has(list, word,   w, n, i) {
		n = split(list, w, /[ \t\n]+/)
		for (i = 1; i <= n; i++)
			if (w[i] == word) return 1
		return 0
	}
	function finish(   i, k, l) {
		l = tolower(f["enabled"])
		if (!has(f["types"], "deb") || l ~ /^(no|false|off|0|disable)$/) return
		if (has(f["suites"], code "-backports")) { there = 1; return }
		if (out != "" || !has(f["components"], "main") || f["uris"] ~ /^cdrom:/) return
		if (!has(f["suites"], code) && !has(f["suites"], "stable") && !has(f["suites"], "oldstable"))
			return
		out = "Types: deb\nURIs: " f["uris"] "\nSuites: " code "-backports\nComponents: main\n"
		for (i = 1; i <= nf; i++) {
			k = tolower(name[i])
			if (k ~ /^(types|uris|suites|components|enabled|x-.*)$/) continue
			out = out name[i] ": " f[k] "\n"
		}
	}
	BEGIN { reset() }
	$0 == "%%" { finish(); reset(); next }
	/^[ \t]/ { if (key != "") f[key] = f[key] "\n" $0; next }
	{
		c = index($0, ":")
		if (!c) next
		key = tolower(substr($0, 1, c - 1))
		v = substr($0, c + 1); sub(/^[ \t]+/, "", v)
		name[++nf] = substr($0, 1, c - 1); f[key] = v
	}
	END {
		if (there) exit 2
		if (out == "") exit 1
		printf "%s", out
	}'
}

# The derived entry on stdout. 0; 1: no source to derive from; 2: backports is configured already.
backports_entry()
{
	sources_as_deb822 | derive "$(os_release VERSION_CODENAME)"
}

other_distribution()
{
	cat >&2 <<-EOT
	error: set-up: this is not Debian 12 or 13 (${OS_RELEASE} says: $(os_release ID) $(os_release VERSION_ID)), so
	nothing was installed. Install, by the names your distribution gives them:
	  a C compiler (gcc or clang), make, pkg-config, perl, git
	  development files of GLib 2.74+, json-glib, libfdt, Zydis 4, the kernel's user-space headers
	  for the kernel: bc bison flex libelf and openssl development files, xz, patch, kmod
	  a statically linked busybox, cpio, gzip; musl-gcc if you have it (guest programs are then ten times smaller)
	  qemu-system-x86_64 10.0 or newer (where /dev/kvm is not usable, and for make check)
	  iasl (acpica), clang with its sanitizer libraries (for make check)
	and give the kernel: KERNEL_TREE=DIR (a 6.12 source tree) or KERNEL_TARBALL=FILE (linux-6.12.y.tar.xz).
	Then run make with DEPS=no, which skips this set-up.
	EOT
	exit 3
}

supported()
{
	case "$(os_release ID) $(os_release VERSION_ID)" in
	"debian 12" | "debian 13") return 0 ;;
	esac
	return 1
}

# Sets MISSING and NEED_BACKPORTS. Call after apt's lists are fresh for a sure answer.
decide()
{
	MISSING=$(missing | tr '\n' ' ')
	MISSING=${MISSING% }
	NEED_BACKPORTS=
	case " $MISSING " in
	*" qemu-system-x86 "*)
		offered qemu-system-x86 $QEMU_MIN || NEED_BACKPORTS="QEMU ${QEMU_MIN#1:} or newer" ;;
	esac
	case " $MISSING " in
	*" $KERNEL_SOURCE "*)
		offered $KERNEL_SOURCE 0 ||
			NEED_BACKPORTS="${NEED_BACKPORTS:+$NEED_BACKPORTS and }$KERNEL_SOURCE" ;;
	esac
}

installed_names()
{
	dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u
}

apt()
{
	say "+ apt-get $*"
	DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" ||
		die "apt-get $1 failed (see above); is there a network, and a right date?"
}

# After the lists were refreshed: the backports source, announced, if it is needed.
add_backports()
{
	local entry status=0

	[ -n "$NEED_BACKPORTS" ] || return 0
	entry=$(backports_entry) || status=$?
	case $status in
	2)
		die "$(os_release VERSION_CODENAME)-backports is configured here, yet no suite offers $NEED_BACKPORTS;" \
			"see apt-cache policy qemu-system-x86 $KERNEL_SOURCE" ;;
	1)
		die "no suite configured here offers $NEED_BACKPORTS, and no entry for $(os_release VERSION_CODENAME)" \
			"main was found under $APT_DIR from which to derive one for its backports" ;;
	esac
	say "no suite configured here offers $NEED_BACKPORTS: adding $(os_release VERSION_CODENAME)-backports as"
	say "$SOURCE_FILE (take it back with: make deps-undo):"
	printf '%s\n' "$entry" | sed 's/^/    /'
	mkdir -p "${SOURCE_FILE%/*}"
	{
		echo "# Written by Faultbed's set-up; make deps-undo removes it."
		printf '%s\n' "$entry"
	} >"$SOURCE_FILE"
	apt update
}

# Does backports (as opposed to the other suites) have to serve the package?
from_backports()
{
	[ -n "$NEED_BACKPORTS" ] || return 1
	case $1 in
	qemu-system-x86) case $NEED_BACKPORTS in *QEMU*) return 0 ;; esac ;;
	"$KERNEL_SOURCE") case $NEED_BACKPORTS in *linux-source*) return 0 ;; esac ;;
	esac
	return 1
}

announce()
{
	say "this machine lacks, for Faultbed: $MISSING"
	say "as root this will: run apt-get update; where no configured suite offers QEMU ${QEMU_MIN#1:} or"
	say "$KERNEL_SOURCE, add a backports source derived from this machine's own; and apt-get install those."
	say "What it brings is listed in $INSTALLED_LIST; make deps-undo takes it back."
}

do_install()
{
	local p plain= backports= suite

	if ! supported; then
		command -v dpkg-query >/dev/null && [ -z "$(missing)" ] && return 0
		other_distribution
	fi
	decide
	if [ -z "$MISSING" ]; then
		say "everything is here already"
		return 0
	fi
	announce
	[ "$1" = plan ] && return 0
	if [ "$(id -u)" != 0 ]; then
		echo "error: set-up: not root: run this once:  sudo make deps" >&2
		exit 3
	fi
	apt update
	decide
	add_backports
	for p in $MISSING; do
		if from_backports "$p"; then backports="$backports $p"; else plain="$plain $p"; fi
	done
	SCRATCH=$(mktemp -d)
	trap 'rm -rf "$SCRATCH"' EXIT
	installed_names >"$SCRATCH/before"
	# One at a time, so that what was brought is on record even if a later one fails.
	# shellcheck disable=SC2086
	[ -z "$plain" ] || apt install -y --no-install-recommends $plain
	record
	suite=$(os_release VERSION_CODENAME)-backports
	# shellcheck disable=SC2086
	[ -z "$backports" ] || apt install -y --no-install-recommends -t "$suite" $backports
	record
	decide
	[ -z "$MISSING" ] || die "still missing after the installation: $MISSING"
	say "done"
}

# Add what is installed now and was not before to the list.
record()
{
	installed_names >"$SCRATCH/after"
	mkdir -p "$STATE_DIR"
	{
		[ ! -f "$INSTALLED_LIST" ] || cat "$INSTALLED_LIST"
		comm -13 "$SCRATCH/before" "$SCRATCH/after"
	} | sort -u >"$INSTALLED_LIST.new"
	mv "$INSTALLED_LIST.new" "$INSTALLED_LIST"
}

do_undo()
{
	local list= other

	if [ ! -f "$SOURCE_FILE" ] && [ ! -s "$INSTALLED_LIST" ]; then
		say "nothing to take back: no $SOURCE_FILE, no packages on record"
		return 0
	fi
	[ ! -s "$INSTALLED_LIST" ] || list=$(
		installed_names | comm -12 - "$INSTALLED_LIST" | tr '\n' ' ')
	[ ! -f "$SOURCE_FILE" ] || say "will remove the apt source $SOURCE_FILE"
	[ -z "$list" ] || say "will purge the packages that this set-up brought: $list"
	if [ "$(id -u)" != 0 ]; then
		echo "error: set-up: not root: run  sudo make deps-undo" >&2
		exit 3
	fi
	if [ -n "$list" ]; then
		# What else would go? Something that came later and needs one of ours stays, and so do ours.
		# shellcheck disable=SC2086
		other=$(apt-get -s purge $list | awk '$1 == "Purg" || $1 == "Remv" { print $2 }' |
			sort -u | comm -23 - "$INSTALLED_LIST" | tr '\n' ' ')
		[ -z "$other" ] || die "purging those would also remove $other, which came from elsewhere;" \
			"nothing was removed. By hand: apt-get purge $list"
		# shellcheck disable=SC2086
		apt purge -y $list
	fi
	rm -f "$INSTALLED_LIST"
	if [ -f "$SOURCE_FILE" ]; then
		rm -f "$SOURCE_FILE"
		apt update
	fi
	say "taken back"
}

case ${1:-install} in
check)
	m=$(missing | tr '\n' ' ')
	[ -z "$m" ] || die "missing: ${m% } (make deps installs them)"
	;;
install) do_install install ;;
plan) do_install plan ;;
undo) do_undo ;;
backports-entry) backports_entry ;;
*)
	echo "usage: deps.sh [check|install|plan|undo|backports-entry]" >&2
	exit 2
	;;
esac
