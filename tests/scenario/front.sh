#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The front end without a guest: every scenario of the tree is sound and says what it
# asks, topologies are drawn right, doctor speaks, results can be shown and compared.

. "$(dirname "$0")/../tap.sh"
cd "$TOP" || exit 1
fb=$BUILD/faultbed

# An unsound one ends with 2.
for f in scenarios/*.ini; do
	tap_run "$fb" run --check "$f"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$f is sound" "$RC" 0
	tap_like "$f says what answer it expects" "$(sed -n '/^\[/q;p' "$f")" '^# Expected'
done

tap_run "$fb" list
tap_is "list: status 0" "$RC" 0
for f in scenarios/*.ini; do
	tap_like "list has $(basename "$f") and its question" "$OUT" "$(basename "$f" .ini)"
done
tap_is "list shows as many questions as there are scenarios" "$(printf '%s\n' "$OUT" | grep -c '?')" \
	"$(ls scenarios/*.ini | wc -l)"

tap_run "$fb" topology 2x10x2
tap_is "topology: status 0" "$RC" 0
tap_like "topology: CPU 39 is there" "$OUT" '(^|[^0-9])39([^0-9]|$)'
tap_unlike "topology: CPU 40 is not a CPU" "$OUT" 'CPU 40([^0-9]|$)'
tap_run "$fb" topology 4x15x2
tap_like "topology 4x15x2: APIC ids go up to 125" "$OUT" '(^|[^0-9])125([^0-9]|$)'

tap_run "$fb" doctor
tap_like "doctor speaks of kvm" "$OUT$ERR" 'kvm'
tap_like "doctor speaks of nested" "$OUT$ERR" '[Nn]ested|QEMU|qemu'
tap_like "doctor speaks of QEMU as an engine" "$OUT" '^ (ok|note) +qemu  .*(KVM|TCG|not installed)'
tap_like "doctor speaks of libvirt, and of where it looked" "$OUT" '^ (ok|note) +libvirt  .*qemu:///'
tap_run env LIBVIRT_DEFAULT_URI=qemu+ssh://elsewhere/system "$fb" doctor
tap_like "doctor asks no other host" "$OUT" '^ note +libvirt  .*another host'
tap_run env LIBVIRT_DEFAULT_URI=test:///default "$fb" doctor
tap_like "doctor takes no other hypervisor's libvirt" "$OUT" '^ note +libvirt  .*a connection to TEST'
tap_ok "doctor's status is 0, or 3 where this host can run nothing" test "$RC" = 0 -o "$RC" = 3

tap_run "$fb" --version
tap_like "version" "$OUT" '^faultbed [0-9]'
tap_run "$fb" --help
tap_is "help: status 0" "$RC" 0
for c in run show compare bisect-run list topology doctor kernel; do
	tap_like "help has $c" "$OUT" "^ +$c "
	tap_run "$fb" $c --help
	tap_is "$c --help: status 0" "$RC" 0
	tap_run "$fb" --help
done

# A kernel that lacks things: from its options alone.
printf 'CONFIG_X86_64=y\nCONFIG_SMP=y\n# CONFIG_SERIAL_8250_CONSOLE is not set\n' >"$TAP_DIR/config"
tap_run "$fb" kernel check "$TAP_DIR/config"
tap_is "kernel check: one that lacks things: status 1" "$RC" 1
tap_like "kernel check names the serial console" "$OUT$ERR" 'SERIAL_8250_CONSOLE'
tap_run "$fb" kernel check "$BUILD/kernel/config"
tap_is "kernel check: our own has all it needs" "$RC" 0
tap_run "$fb" kernel check "$TOP/README.md"
tap_is "kernel check: not a kernel" "$RC" 2

tap_done
