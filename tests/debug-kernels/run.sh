#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh debug|kasan IMAGE: the loads of the patches' knobs, in every arm, on a kernel that checks itself (images/
# kernel-debug.config, kernel-kasan.config), on the soft engine: each ends well and the kernel complains of
# nothing. On "debug" also: the figures of mmap_lock are those of lock_stat. Not part of make check: make check-debug-kernels.

. "$(dirname "$0")/../tap.sh"
variant=$1
image=$(realpath "$2") || exit 2
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=3000

# Is it what it is said to be? A kernel without the checks would pass them all.
case $variant in
debug) proof="grep -q 'lock-classes' /proc/lockdep_stats && test -e /proc/lock_stat && zcat /proc/config.gz | grep -qx CONFIG_DEBUG_VM=y" ;;
kasan) proof="zcat /proc/config.gz | grep -qx CONFIG_KASAN_GENERIC=y" ;;
*) echo "usage: run.sh debug|kasan IMAGE" >&2; exit 2 ;;
esac

few='fault-stress --touchers 6 --rounds 1 --pages 12 --cycles 20 --with mprotect,replace,mremap-pte'
all='fault-stress --rounds 1 --pages 48 --cycles 2'
kv='kv-server --pin all --think 100us --slots 32 --requests 60'
scan='file-scan --scale 0.02 4'

# cells "KEY + KEY..." "VALUE + VALUE..."...: lines of [vary], a cell for each list of values.
cells()
{
	local line="$1 = $2" values

	shift 2
	for values in "$@"; do
		line="$line | $values"
	done
	echo "$line"
}

# run NAME COMMAND GUEST-LINES: with [inject] and [vary] from standard input; every cell has to end well. Sets "names".
run()
{
	local statuses i

	{
		printf '# %s on a kernel that checks itself\n[vm]\nengine = soft\n' "$1"
		printf 'topology = 2x2x2\nmemory = 768MiB\nnodes = 2\n'
		printf '[run]\ntimeout = 200s\nhost_timeout = 900s\nwarmup = 5ms\ncommand = %s\n' "$2"
		printf '[guest]\nkernel = %s\n%s\n' "$image" "$3"
		cat
	} >"$1.ini"
	tap_run "$BUILD/faultbed" run "$1.ini" -o "$1.json"
	[ "$RC" = 0 ] || tap_diag "$OUT"$'\n'"$ERR"
	readarray -t names < <(json "$1.json" 'cells.*.name')
	readarray -t statuses < <(json "$1.json" 'cells.*.status')
	tap_ok "$1: has its cells" test ${#names[@]} -gt 0
	for i in "${!names[@]}"; do
		tap_is "$1, ${names[i]}: ends well" "${statuses[i]}" 0
	done
}

# go, as run: and the kernel has to be quiet.
go()
{
	local i

	run "$@"
	for i in "${!names[@]}"; do
		tap_is "$1, ${names[i]}: the kernel complains of nothing" "$(json "$1.json" "cells.$i.end.marked")" "[]"
	done
}

go proof "$proof" "" </dev/null

cat >complain <<'EOT'
#!/bin/sh
# What lockdep, RCU, WARN_ON() and the check of who sleeps where say, at the levels at which they do: the kernel
# was booted with "quiet", which would keep back the first three.
for line in '<4>WARNING: possible recursive locking detected' '<4>WARNING: suspicious RCU usage' \
	'<4>WARNING: CPU: 0 PID: 1 at mm/memory.c:1' '<3>BUG: sleeping function called from invalid context'; do
	echo "$line" >/dev/kmsg
done
EOT
chmod +x complain
run complain complain "add = ./complain" </dev/null
tap_is "complaints of every kind are seen" "$(json complain.json 'cells.0.end.marked.*' | grep -c 'WARNING: \|BUG: ')" 4

go fault-path true "" <<EOT
[vary]
$(cells "guest.knob.fault_path + guest.knob.fault_window_us + run.command" "vma_lock + 0 + $all" "mmap_lock + 0 + $all" \
	"speculative + 5 + $all" "speculative + 20 + $few" "speculative + 0 + multi-fault 8 --rounds 2")
EOT
for i in "${!names[@]}"; do
	[[ ${names[i]} == *=speculative* ]] || continue
	spf=$(json fault-path.json "cells.$i.repeats.0.counters.spf_success.value")
	tap_ok "fault-path, ${names[i]}: faults were speculative (${spf:-none})" test "${spf:-0}" -gt 500
done
go locks true "" <<EOT
[vary]
$(cells "guest.knob.i_mmap + guest.knob.mmap_lock_stat + run.command" "rwsem + time + lock-check" "spin + count + mmap-file 4 100" \
	"mutex + time + mmap-file 4 100" "rwsem + off + mmap-file 4 100")
EOT
go lazy-tlb "$kv" "" <<EOT
[vary]
guest.knob.lazy_tlb = off, ipi, skip
EOT
go fault-retry "$scan" "disk = default" <<EOT
[inject]
blk.read = fixed:5ms
[vary]
guest.knob.fault_path = mmap_lock, vma_lock, speculative
guest.knob.fault_retry = on, off
EOT
go fault-around "fault-around --threads 2 --scale 8192" "" </dev/null

# --- lock_stat's figures of mmap_lock, and ours, of the same load at the same time ---
#
# Two of them are not of the same thing, and so the loads are chosen such that they are:
# - read: lock_stat also counts what might_fault() pretends for lockdep, one a copy from or to user memory. Faults make
#   none, so acquisitions are compared where there is little else (touch).
# - write: of a writer that turns reader lock_stat forgets the writer, count and hold time; we have both. munmap()
#   does that, so the figures of writing are of mprotect() and fork() (change). The mm of a child is locked as
#   "/1", a class of its own there.
# What starts and ends a program has some of either: each load is run short and long, and the differences compared.

cat >both <<'EOT'
#!/bin/sh
# "report ours_LOAD_LENGTH_NAME VALUE x" and "report theirs_LOAD_LENGTH_NAME VALUE x".
ours=/sys/kernel/debug/faultbed/mmap_lock
part()
{
	p=$1
	shift
	echo 0 >$ours
	echo 0 >/proc/lock_stat
	"$@" >/dev/null || exit 1
	cat $ours /proc/lock_stat >/tmp/figures
	awk -v p="$p" 'NF == 2 { print "report ours_" p "_" $1, $2, "x" }
	$1 ~ /^&mm->mmap_lock(\/[0-9])?(-[RW])?:$/ {
		n = $1 ~ /R:$/ ? "read" : "write"
		v[n] += $9; v[n "_contended"] += $3; v[n "_wait_ns"] += $6 * 1000; v[n "_hold_ns"] += $12 * 1000
	}
	END { for (n in v) printf "report theirs_%s_%s %.0f x\n", p, n, v[n] }' /tmp/figures >&"$FAULTBED_REPORT_FD"
}
part touch_short multi-fault 8 --rounds 1
part touch_long multi-fault 8 --rounds 5
stress='fault-stress --rounds 1 --pages 24 --with mprotect,fork --cycles'
part change_short $stress 2
part change_long $stress 20
EOT

value() { json lock-stat.json "cells.0.repeats.0.reports.$1.value"; }

# same LOAD NAME SLACK: the long run has as much more of it than the short one by our count as by lock_stat's.
same()
{
	local load=$1 name=$2 slack=$3 ours theirs

	ours=$(($(value "ours_${load}_long_$name") - $(value "ours_${load}_short_$name")))
	theirs=$(($(value "theirs_${load}_long_$name") - $(value "theirs_${load}_short_$name")))
	tap_diag "$load, $name: ours $ours, lock_stat $theirs"
	tap_is "$load: $name is lock_stat's, within $slack" "$(awk -v a="$ours" -v b="$theirs" -v s="$slack" \
		'BEGIN { d = a - b; print (b > 100 && d * d <= (s * b) ^ 2) ? "yes" : a " and " b }')" yes
}

if [ "$variant" = debug ]; then
	chmod +x both
	go lock-stat both "$(printf 'add = ./both\nknob.mmap_lock_stat = time\nknob.fault_path = mmap_lock')" </dev/null
	same touch read 0.01
	same change write 0.01
	same change read_contended 0.01
	same change write_contended 0.01
	# Times as far as the two look at the clock at other moments: where nobody waited, lock_stat's hold begins
	# before the lock is taken, and it ends later.
	same change read_wait_ns 0.02
	same change write_wait_ns 0.02
	same touch read_hold_ns 0.1
	same change read_hold_ns 0.1
	same change write_hold_ns 0.1
fi
tap_done
