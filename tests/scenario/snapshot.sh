#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Snapshots of booted guests: a result is the same with and without one, whatever the cell
# does; one is used only for its own guest; a damaged one does no harm.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
cache=$XDG_CACHE_HOME/faultbed/snapshots
# shellcheck disable=SC2034
TAP_TIMEOUT=300

cat >"$TAP_DIR/s.ini" <<'END'
# Is a result the same with and without a snapshot?
# Expected: yes.
[vm]
engine = soft
topology = 2x2x2
memory = 256MiB
[guest]
knob.label = one
[run]
command = multi-fault 3
warmup = 1ms
duration = 4ms
repeat = 2
[inject]
ept.first_touch = uniform:1us..3us
ipi.remote = lognormal:2us,0.5
END

# The result but for provenance, in a file of that name.
result()
{
	local name=$1

	shift
	tap_run "$fb" run "$TAP_DIR/s.ini" -q -o "$TAP_DIR/$name.json" "$@"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	python3 - "$TAP_DIR/$name.json" >"$TAP_DIR/$name" 2>&1 <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
del result["provenance"]
print(json.dumps(result, indent=1))
END
}

# What the VMM says that it did with snapshots, cell by cell.
use()
{
	python3 - "$TAP_DIR/$1.json" 2>&1 <<'END'
import json, sys
found = []
def look(v):
    if isinstance(v, dict):
        if "snapshot" in v and isinstance(v["snapshot"], dict):
            found.append(v["snapshot"]["use"])
        for x in v.values():
            look(x)
    elif isinstance(v, list):
        for x in v:
            look(x)
look(json.load(open(sys.argv[1]))["provenance"])
print(" ".join(found))
END
}

in_cache()
{
	find "$cache" -name '????????????????????????????????????????????????????????????????' | wc -l
}

# Two results that are something.
same()
{
	tap_ok "$1" sh -c 'grep -q \"guest_page_faults_per_s\" "$1" && cmp "$1" "$2"' sh "$TAP_DIR/$2" "$TAP_DIR/$3"
}

result booted --no-snapshot
tap_is "no snapshot: status 0" "$RC" 0
tap_is "no snapshot: none is used" "$(use booted)" off
tap_ok "no snapshot: nothing is kept" test ! -e "$cache"
tap_like "something was measured" "$(cat "$TAP_DIR/booted")" '"guest_page_faults_per_s"'

result first
tap_is "the first run boots and saves" "$(use first)" saved
tap_is "and keeps one file" "$(in_cache)" 1
same "saving changes nothing in the result" booted first
result second
tap_is "the second run is restored" "$(use second)" restored
tap_like "and says in how much time" "$ERR" 'restored from a snapshot in 0\.[0-9]+ s'
same "the result is the same as from a boot" booted second

# What comes after the boot is the cell's own.
for set in guest.knob.label=two run.seed=9 'run.command=multi-fault 2' inject.ipi.remote=fixed:9us; do
	result other-booted --set "$set" --no-snapshot
	result other --set "$set"
	tap_is "$set: restored" "$(use other)" restored
	same "$set: the same as from a boot" other-booted other
	tap_ok "$set: and not the same as without it" test "$(cat "$TAP_DIR/other")" != "$(cat "$TAP_DIR/booted")"
done
tap_is "still one file" "$(in_cache)" 1

# A seed reaches the guest's random numbers, although all start from one boot.
random()
{
	tap_run "$fb" run "$TAP_DIR/s.ini" -q -c --set run.seed="$1" --set run.repeat=1 \
		--set "run.command=cat /proc/sys/kernel/random/uuid"
	printf '%s\n' "$OUT$ERR" | grep -Eo '[0-9a-f]{8}-[0-9a-f-]{27}'
}
one=$(random 1) again=$(random 1) two=$(random 2)
tap_like "a guest draws a random number" "$one" '^[0-9a-f]{8}-'
tap_is "the same with the same seed" "$again" "$one"
tap_ok "another with another seed" test "$one" != "$two"

# What a boot depends on has its own.
for set in vm.topology=2x2x1 vm.memory=320MiB guest.append=nosmep; do
	result other --set "$set"
	tap_is "$set: boots" "$(use other)" saved
done
tap_is "and each is kept" "$(in_cache)" 4
printf '# Some other initramfs.\n' >"$TAP_DIR/added"
result other --set "guest.add=$TAP_DIR/added:/added"
tap_is "another initramfs: boots" "$(use other)" saved
result other --set run.boot_timeout=1ms
tap_is "a snapshot does not get round run.boot_timeout" "$RC" 5

# Cells of a matrix side by side: one of them boots.
rm -rf "$cache"
cat >>"$TAP_DIR/s.ini" <<'END'
[vary]
run.seed = 1, 2, 3
END
result matrix
tap_is "of three cells one boots, the others wait and start from there" \
	"$(use matrix | tr ' ' '\n' | sort | tr '\n' ' ')" "restored restored saved "
result matrix-booted --no-snapshot
same "and the result is the same" matrix matrix-booted
sed -i '/^\[vary\]/,$d' "$TAP_DIR/s.ini"

# Files of one's own.
result named --save-snapshot "$TAP_DIR/snap"
tap_is "--save-snapshot saves" "$(use named)" saved
result named --snapshot "$TAP_DIR/snap"
tap_is "--snapshot restores" "$(use named)" restored
same "--snapshot: the same result" named booted
tap_run "$fb" run "$TAP_DIR/s.ini" --snapshot "$TAP_DIR/snap" --set vm.topology=1x2x1
tap_is "--snapshot of another guest: status 2" "$RC" 2
tap_like "and what differs is said" "$ERR" 'snap: a snapshot of another guest: .*2x2x2.*1x2x1'
tap_run "$fb" run "$TAP_DIR/s.ini" --snapshot "$TAP_DIR/none"
tap_is "--snapshot of a file that is not there: status 2" "$RC" 2
tap_run "$fb" run "$TAP_DIR/s.ini" --save-snapshot /nonexistent/snap
tap_is "--save-snapshot where nothing can be written: status 2" "$RC" 2
tap_unlike "which is found before the boot" "$ERR" 'guest is up'
tap_run "$fb" run "$TAP_DIR/s.ini" --snapshot "$TAP_DIR/snap" --no-snapshot
tap_is "one option at a time" "$RC" 2

# Damage: in the named file an error, in the cache a warning and a boot.
printf 'damage' | dd of="$TAP_DIR/snap" bs=1 seek=3000 conv=notrunc 2>"$TAP_DIR/dd"
tap_run "$fb" run "$TAP_DIR/s.ini" --snapshot "$TAP_DIR/snap"
tap_is "damaged --snapshot: status 2" "$RC" 2
tap_like "and what to do is said" "$ERR" 'snap: its checksum is wrong.*--save-snapshot makes one'
file=$(find "$cache" -name '????????????????????????????????????????????????????????????????')
truncate -s -4096 "$file"
result damaged
tap_is "damaged file in the cache: boots and saves it again" "$(use damaged)" saved
tap_like "with a warning" "$ERR" 'warning: .*snapshots/[0-9a-f]{64}: .*length'
same "damaged file in the cache: the same result" damaged booted
result restored
tap_is "and then it is restored" "$(use restored)" restored

# Nowhere to keep one: a run is a run all the same.
XDG_CACHE_HOME=/proc/nowhere result homeless
tap_is "no cache: status 0" "$RC" 0
tap_is "no cache: boots" "$(use homeless)" "not saved"
tap_like "no cache: a warning" "$ERR" 'warning: /proc/nowhere'
same "no cache: the same result" homeless booted

tap_done
