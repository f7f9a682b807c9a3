#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make install: what is installed runs without the tree that it came from, wherever it is moved, and is taken away whole. --version says what it is.

. "$(dirname "$0")/../tap.sh"
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
root="$TAP_DIR/a stage"

installed() { find "$root" -mindepth 1 2>/dev/null | sed "s,^$root,,"; }

# As `make install` does, with its man pages made here.
mkdir -p "$TAP_DIR/build"
for file in faultbed faultbed-vmm initramfs.cpio appliance.cpio disk.img kernel guest-tests; do
	ln -s "$BUILD/$file" "$TAP_DIR/build/$file"
done
tap_ok "man pages are made" "$TOP/man/make-man.pl" "$BUILD/faultbed" "$BUILD/faultbed-vmm" "$TAP_DIR/build/man"
mkdir -p "$root/usr/share/man/man1"
: >"$root/usr/share/man/man1/other.1"
tap_run env DESTDIR="$root" PREFIX=/usr "$TOP/host-tools/install.sh" install "$TAP_DIR/build"
tap_is "install: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$OUT$ERR"
for file in bin/faultbed bin/faultbed-vmm share/man/man1/faultbed.1 share/man/man1/faultbed-run.1 share/man/man5/faultbed-scenario.5 \
	share/bash-completion/completions/faultbed lib/faultbed/LICENSE; do
	tap_ok "$file" test -s "$root/usr/$file"
done
tap_is "nothing in it points out of it" "$(find "$root" -type l -exec readlink -f {} + | grep -v "^$root/")" ""

# Somewhere else, and with nothing said of the tree or the build.
mv "$root" "$TAP_DIR/moved"
cd / || exit 1
run() { tap_run env -i PATH=/usr/bin:/bin HOME="$TAP_DIR" XDG_CACHE_HOME="$XDG_CACHE_HOME" "$TAP_DIR/moved/usr/bin/faultbed" "$@"; }
run list
tap_like "list: its own scenarios" "$OUT" 'first-run'
tap_unlike "not the tree's" "$OUT$ERR" "$TOP/"
run experiment --list
tap_like "experiments" "$OUT" '^i-mmap '
run cost-model ivb-ep
tap_like "cost models" "$OUT" "$TAP_DIR/moved/usr/lib/faultbed/cost-models/ivb-ep.ini"
cat >"$TAP_DIR/s.ini" <<'EOF'
# Does it run?
[vm]
engine = soft
topology = 1x1x1
memory = 128MiB
[guest]
add = s.ini:/s.ini
[run]
command = grep -q 'Does it run' /s.ini && multi-fault 1 --pages 64
duration = 1ms
EOF
run run "$TAP_DIR/s.ini" -o "$TAP_DIR/s.json"
tap_is "a scenario on soft, with its kernel and a file added: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "its own VMM ran it" "$(json "$TAP_DIR/s.json" provenance.vmm)" "$(readlink -f "$TAP_DIR/moved/usr/lib/faultbed/build/faultbed-vmm")"
run kernel check "$TAP_DIR/moved/usr/lib/faultbed/build/kernel/bzImage"
tap_is "kernel check: status 0" "$RC" 0
run kernel build --print-key
tap_unlike "what a kernel is built of is there" "$ERR" 'No such file'
run doctor
tap_is "doctor: status 0" "$RC" 0

# --- version ---

run --version
tap_like "the version" "$OUT" '^faultbed [0-9]+\.[0-9]+'
tap_like "the compiler" "$OUT" '^built by (gcc|clang) [0-9]'
tap_like "libraries" "$OUT" '^json-glib .*libvirt [0-9]'
tap_like "the licence" "$OUT" 'GNU General Public License, version 2 only'
tap_run "$BUILD/faultbed-vmm" --version
tap_like "the VMM's" "$OUT" '^faultbed-vmm [0-9]+\.[0-9]+'
if [ -d "$TOP/.git" ] && git -C "$TOP" rev-parse HEAD >/dev/null 2>&1; then
	tap_run "$BUILD/faultbed" --version
	tap_like "the commit" "$OUT" '\(commit [0-9a-f]{7}'
else
	tap_ok "the commit: not in a clone" true
fi

# --- away again ---

mv "$TAP_DIR/moved" "$root"
tap_run env DESTDIR="$root" PREFIX=/usr "$TOP/host-tools/install.sh" uninstall "$TAP_DIR/build"
tap_is "uninstall: status 0" "$RC" 0
tap_is "only what was there before is left" "$(installed | sort | tr '\n' ' ')" "/usr /usr/share /usr/share/man /usr/share/man/man1 /usr/share/man/man1/other.1 "
tap_run env DESTDIR="$root" PREFIX=usr "$TOP/host-tools/install.sh" install "$TAP_DIR/build"
tap_is "a PREFIX that is no path from the root: status 2" "$RC" 2
rm "$TAP_DIR/build/disk.img"
tap_run env DESTDIR="$root" PREFIX=/usr "$TOP/host-tools/install.sh" install "$TAP_DIR/build"
tap_is "something is not built: status 2" "$RC" 2
tap_like "what, and what builds it" "$ERR" 'disk.img is not there: make all images'

tap_done
