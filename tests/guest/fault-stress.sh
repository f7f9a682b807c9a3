#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Page faults against everything that changes what they look at, in each arm of the knob
# fault_path, on the soft engine: every page holds what it has to, and the kernel says
# nothing. The ways that faults took are those of the arm.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=900

# The races that are decided by one look at vm_lock_seq, made frequent: what counts is how often the opponents strike (--cycles),
# and a kernel without that look fails it with each of six seeds. Then all opponents at once.
few='fault-stress --touchers 6 --rounds 1 --pages 12 --cycles 100 --with mprotect,replace,mremap-pte'
all='fault-stress --rounds 1 --pages 48 --cycles 2'
cat >soft.ini <<EOT
# Is memory what it has to be, whatever way page faults take?
[vm]
engine = soft
topology = 2x2x2
memory = 512MiB
nodes = 2
[guest]
[run]
command = $all
timeout = 120s
[vary]
guest.knob.fault_path + guest.knob.fault_window_us + run.command = vma_lock + 5 + $all | mmap_lock + 5 + $all | speculative + 5 + $all | speculative + 20 + $few
EOT
counter() { json "$1.json" "cells.$2.summary.counters.$3.mean"; }	# NAME CELL COUNTER
# All ways of a speculative fault, added up.
ways()
{
	local sum=0 name n

	for name in success fallback_{present,no_vma,vma_locked,kind,access,mlock,uffd,policy,anon_vma,thp,no_table,pte,nomem,unstable,ptl,changed}; do
		n=$(counter "$1" "$2" "spf_$name")
		[ -n "$n" ] || { echo "no spf_$name"; return; }
		sum=$((sum + n))
	done
	echo $sum
}

# good NAME CELL: it went well, and the kernel was quiet.
good()
{
	tap_is "$1 $2: status 0" "$(json "$1.json" "cells.$2.status")" 0
	tap_like "$1 $2: every page was what it had to be" "$(json "$1.json" "cells.$2.end.console")" 'FAULT-STRESS OK'
	tap_is "$1 $2: the kernel said nothing" "$(json "$1.json" "cells.$2.end.marked")" "[]"
}

# speculative NAME CELL: each fault of user mode went some way, and many went without a lock.
speculative()
{
	tap_is "$1 $2: every fault of user mode is counted by its way" "$(ways "$1" "$2")" "$(counter "$1" "$2" pf_user)"
	tap_ok "$1 $2: many needed no lock" test "$(counter "$1" "$2" spf_success)" -gt 500
	tap_ok "$1 $2: some were tried again" test "$(counter "$1" "$2" spf_retry)" -gt 0
}

tap_run "$BUILD/faultbed" run soft.ini -o soft.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "soft: all cells are there" "$(json soft.json 'cells.*.status' | wc -l)" 4
for cell in 0 1 2 3; do
	good soft $cell
	case $(json soft.json "cells.$cell.name") in
	*fault_path=speculative*) speculative soft $cell ;;
	*fault_path=mmap_lock*) tap_is "soft $cell: no fault under a VMA's lock" "$(counter soft $cell pf_vma_lock)" 0 ;;
	*) tap_is "soft $cell: none without a lock" "$(counter soft $cell spf_success)" 0 ;;
	esac
done

tap_done
