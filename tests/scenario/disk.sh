#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A guest with a disk, on soft: it reads what the image holds, what it writes stays its
# own, injected delays are what it sees, and a result is the same again.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
cd "$TAP_DIR" || exit 1

tap_ok "an image is made" "$TOP/images/disk-build.sh" --file-mib 2 -o disk.img
tap_ok "and the same again" "$TOP/images/disk-build.sh" --file-mib 2 -o again.img
tap_ok "to the byte" cmp disk.img again.img
sum=$(sha256sum <disk.img)

cat >scan.ini <<'END'
# What does a scan of a file see of its disk?
[vm]
engine = soft
topology = 1x4x1
memory = 256MiB
[guest]
disk = disk.img
[run]
command = file-scan --scale 0.1 3
timeout = 60s
[inject]
blk.read = uniform:1ms..3ms
[vary]
run.command = file-scan --scale 0.1 --how read 3, file-scan --scale 0.1 --how mmap 3, file-scan --passes 2 --scale 0.1 --how mixed 3
END

tap_run "$fb" run scan.ini -q -o one.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "file-scan in three ways: status 0" "$RC" 0
tap_is "each page read is a request" "$(json one.json 'cells|*|summary|counters|blk_requests|mean' | tr '\n' ' ')" "51 51 102 "
tap_is "of a page" "$(json one.json 'cells|*|summary|counters|blk_read_bytes|mean' | tr '\n' ' ')" "208896 208896 417792 "
tap_is "by read() there are no faults" "$(json one.json 'cells|0|summary|reports|faults_major|mean')" 0
tap_is "through a mapping each page is a major one" "$(json one.json 'cells|1|summary|reports|faults_major|mean')" 51
tap_is "nothing takes time but what is injected" "$(json one.json 'cells|*|summary|counters|blk_service_ns|mean')" \
	"$(json one.json 'cells|*|summary|counters|blk_injected_ns|mean')"
tap_is "the record names the image" "$(json one.json 'cells|0|vm|disk|sha256')" "${sum%% *}"
tap_run "$fb" run scan.ini -q -o two.json --jobs 1
for f in one two; do
	sed '/^  "provenance": {$/,$d' $f.json >$f.part
done
tap_ok "the same again, from snapshots" cmp one.part two.part
tap_is "which there were" "$(json two.json 'provenance|cells|*|snapshot|use' | sort -u)" restored

# --- writing ---

cat >w.sh <<'END'
mkdir -p /tmp/m && mount -t ext2 $1 /dev/vda /tmp/m || exit 3
[ "$(head -c 8 /tmp/m/scan | od -An -tx1 | tr -d ' ')" = 0000000000000000 ] || exit 4
dd if=/dev/zero bs=4096 count=100 2>/dev/null | tr '\0' x >/tmp/m/new || exit 5
was=$(md5sum </tmp/m/new) && sync && umount /tmp/m && mount -t ext2 /dev/vda /tmp/m || exit 6
echo 3 >/proc/sys/vm/drop_caches
[ "$(md5sum </tmp/m/new)" = "$was" ] && umount /tmp/m || exit 7
END
cat >write.ini <<'END'
# Where does what a guest writes to its disk go?
[vm]
engine = soft
topology = 1x2x1
memory = 256MiB
[guest]
disk = disk.img
add = w.sh
[run]
command = sh /w.sh
timeout = 60s
repeat = 2
[inject]
blk.all = exp:20us
END
tap_run "$fb" run write.ini -q -o write.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "a guest reads back what it wrote, later repeats too" "$RC" 0
tap_like "it was written to the disk" "$(json write.json 'cells|0|summary|counters|blk_write_bytes|mean')" '^[1-9][0-9]{5}'
tap_is "without errors" "$(json write.json 'cells|0|summary|counters|blk_errors|mean')" 0
tap_is "the image is as it was" "$(sha256sum <disk.img)" "$sum"
tap_run "$fb" run write.ini -q --set guest.disk_mode=ro -o ro.json
tap_is "a read-only disk cannot be written" "$(json ro.json 'cells|0|repeats|0|exit_status')" 5
tap_is "status 1" "$RC" 1

# --- what cannot be ---

head -c 1000 disk.img >odd.img
tap_run "$fb" run write.ini -q --set guest.disk=odd.img -o odd.json
tap_is "half a sector: status 2" "$RC" 2
tap_like "says what is wrong" "$ERR" 'odd\.img: 1000 bytes; a disk image has .* whole ones'
tap_done
