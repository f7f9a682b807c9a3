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

# go NAME COMMAND GUEST-LINES: with [inject] and [vary] from standard input; every cell has to be quiet and to end well.
go()
{
	local names statuses i

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
		tap_is "$1, ${names[i]}: the kernel complains of nothing" "$(json "$1.json" "cells.$i.end.marked")" "[]"
	done
}

go proof "$proof" "" </dev/null
go fault-path true "" <<EOT
[vary]
$(cells "guest.knob.fault_path + guest.knob.fault_window_us + run.command" "vma_lock + 0 + $all" "mmap_lock + 0 + $all" \
	"speculative + 5 + $all" "speculative + 20 + $few" "speculative + 0 + multi-fault 8 --rounds 2")
EOT
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

cat >both <<'EOT'
#!/bin/sh
# Each figure, ours and then lock_stat's: "ours NAME VALUE" and "theirs NAME VALUE".
ours=/sys/kernel/debug/faultbed/mmap_lock
echo 0 >$ours
echo 0 >/proc/lock_stat
multi-fault 8 --rounds 2 >/dev/null
fault-stress --rounds 1 --pages 24 --cycles 2 --with mprotect,fork,munmap >/dev/null
cat $ours >/tmp/ours
cat /proc/lock_stat >/tmp/theirs
awk '{ print "report ours_" $1, $2, "x" }' /tmp/ours >&$FAULTBED_REPORT_FD
awk '$1 ~ /^&mm->mmap_lock-[RW]:$/ { n = $1 ~ /R/ ? "read" : "write"
	print "report theirs_" n, $9, "x"; print "report theirs_" n "_contended", $3, "x"
	print "report theirs_" n "_wait_ns", $6 * 1000, "x"; print "report theirs_" n "_hold_ns", $12 * 1000, "x" }' \
	/tmp/theirs >&$FAULTBED_REPORT_FD
EOT
if [ "$variant" = debug ]; then
	chmod +x both
	go lock-stat both "$(printf 'add = ./both\nknob.mmap_lock_stat = time\nknob.fault_path = mmap_lock')" </dev/null
	value() { json lock-stat.json "cells.0.repeats.0.reports.$1.value"; }
	for name in read write read_contended write_contended read_wait_ns write_wait_ns read_hold_ns write_hold_ns; do
		a=$(value "ours_$name") b=$(value "theirs_$name")
		tap_diag "$name: ours $a, lock_stat $b"
		# Acquisitions to a few, of the shell between two resets; times as far as the two look at the clock at other moments.
		case $name in read | write) slack=0.01 ;; *) slack=0.1 ;; esac
		tap_is "$name is lock_stat's, within $slack" \
			"$(awk -v a="$a" -v b="$b" -v s=$slack 'BEGIN { d = a - b; print (a != "" && b > 0 && d * d <= (s * b + 30) ^ 2) ? "yes" : "no" }')" yes
	done
fi
tap_done
