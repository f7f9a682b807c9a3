#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Page faults against everything that changes what they look at, in each arm of the knob
# fault_path, on the soft engine and on KVM's API (/dev/kvm, or nested): every page holds
# what it has to, and the kernel says nothing. The ways that faults took are those of the arm.

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

# speculative NAME CELL LEAST: each fault of user mode went some way, and many went without a lock.
speculative()
{
	tap_is "$1 $2: every fault of user mode is counted by its way" "$(ways "$1" "$2")" "$(counter "$1" "$2" pf_user)"
	tap_ok "$1 $2: many needed no lock" test "$(counter "$1" "$2" spf_success)" -gt "$3"
	tap_ok "$1 $2: some were tried again" test "$(counter "$1" "$2" spf_retry)" -gt 0
}

# arms NAME CELLS LEAST: all cells went well, each in its arm; LEAST speculative faults without a lock.
arms()
{
	local cell arms=

	tap_is "$1: all cells are there" "$(json "$1.json" 'cells.*.status' | wc -l)" "$2"
	for ((cell = 0; cell < $2; cell++)); do
		good "$1" $cell
		case $(json "$1.json" "cells.$cell.name") in
		*fault_path=speculative*) arms+=s; speculative "$1" $cell "$3" ;;
		*fault_path=mmap_lock*) arms+=m; tap_is "$1 $cell: no fault under a VMA's lock" "$(counter "$1" $cell pf_vma_lock)" 0 ;;
		*) arms+=v; tap_is "$1 $cell: none without a lock" "$(counter "$1" $cell spf_success)" 0 ;;
		esac
	done
	tap_like "$1: each arm is there" "$arms" '^vms'
}

tap_run "$BUILD/faultbed" run soft.ini -o soft.json
[ "$RC" = 0 ] || tap_diag "$ERR"
arms soft 4 500

# All opponents again, where vCPUs are threads and the TLB is the host's. Small, for nested: what makes it slow there is neither
# exits nor IPIs but one emulated CPU for touchers and opponents alike.
cat >kvm.ini <<EOT
# Is memory what it has to be on KVM's API, whatever way page faults take?
[vm]
topology = 2x2x1
memory = 256MiB
nodes = 2
[guest]
[run]
command = fault-stress --rounds 1 --pages 8 --cycles 1 --spread 32
timeout = 240s
[vary]
guest.knob.fault_path = vma_lock, mmap_lock, speculative
EOT
tap_run "$BUILD/faultbed" run kvm.ini --engine "$(kvm_engine)" -o kvm.json
[ "$RC" = 0 ] || tap_diag "$ERR"
arms kvm 3 200
for cell in 0 1 2; do
	tap_is "kvm $cell: every opponent had its turn" \
		"$(json kvm.json "cells.$cell.repeats.0.reports" | perl -ne 'print scalar(() = /"cycles\.[a-z-]+":\{[^}]*"value":[1-9]/g)')" 14
done

tap_done
