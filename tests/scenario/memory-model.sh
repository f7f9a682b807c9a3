#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The memory model, measured from inside the guest: what memory-probe finds has to be what the cost model says, within
# 10%. The cost model is made up, of numbers that no machine and no other model has, and of small caches, which take
# little to fill. FAULTBED_MEMORY_MODEL=NAME or FILE: another one.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=300

made_up()
{
	sed '/^\[memory\]/,$d; s/^quantum = .*/quantum = 25ns/' "$TOP/cost-models/simple.ini"
	cat <<'EOT'
[memory]
cache_l1_kib = 32
cache_l1_ways = 8
cache_l2_kib = 256
cache_l2_ways = 8
cache_l3_kib = 2048
cache_l3_ways = 16
l2_hit = 9
l3_hit = 11.3ns
line_sibling = 9.1ns
line_socket_clean = 31ns
line_socket_dirty = 43ns
line_remote_clean = 97ns
line_remote_dirty = 127ns
line_hop = 40ns
socket_links = 3
dram_local = 79ns
dram_remote = 139ns
dram_line = 1.1ns
link_line = 2.3ns
l3_line = 1ns
stream_l2 = 1.7ns
stream_l3 = 3.1ns
stream_dram = 5.3ns
stream_remote = 9.7ns
miss_window = 168
misses = 10
lock = 19
fence = 37
pause = 11
smt_slowdown = 1.45
jitter = 0ns
EOT
}

case ${FAULTBED_MEMORY_MODEL:-} in
"") made_up >model.ini ;;
*/*) cp "$FAULTBED_MEMORY_MODEL" model.ini ;;
*) cp "$TOP/cost-models/$FAULTBED_MEMORY_MODEL.ini" model.ini ;;
esac

# key NAME: its number in the cost model, in the unit that it is written in; GHz in MHz, us in ns.
key()
{
	sed -n "s/^$1 *= *//p" model.ini |
		perl -ne '/^([\d.]+)(\w*)/ or exit 1; print $1 * ($2 eq "GHz" || $2 eq "us" ? 1000 : 1)'
}

cat >probe.ini <<EOT
# Does memory cost what the cost model says? Expected: each figure is the model's within 10%.
[vm]
engine = soft
topology = 2x2x2
memory = 1GiB
cost_model = $TAP_DIR/model.ini
[run]
command = memory-probe --l1 $(key cache_l1_kib)KiB --l2 $(key cache_l2_kib)KiB --l3 $(key cache_l3_kib)KiB
timeout = 60s
EOT
tap_run "$BUILD/faultbed" run probe.ini -o probe.json -q
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "the probe ran" "$RC" 0
json probe.json 'cells.0.repeats.0.reports' >all.json
perl -MJSON::PP -0e '$r = decode_json(<>); print map { "$_ $r->{$_}{value} $r->{$_}{unit}\n" } sort keys %$r' all.json >reports
tap_ok "and reported" test "$(wc -l <reports)" -gt 50
[ -z "$TAP_KEEP" ] || cp model.ini probe.json reports "$TAP_KEEP"

figure()
{
	awk -v name="$1" '$1 == name { print $2 }' reports
}

# calc EXPRESSION: in perl, k("KEY") being the cost model's and f("NAME") the probe's figure.
calc()
{
	perl -e '
		my (%f, %k);
		open my $r, "<", "reports"; while (<$r>) { $f{$1} = $2 if /^(\S+) (\S+)/ }
		open my $m, "<", "model.ini"; while (<$m>) { $k{$1} = $2 if /^(\w+) *= *([\d.]+)/ }
		sub f { $f{$_[0]} // die "no figure $_[0]\n" }
		sub k { $k{$_[0]} // die "no key $_[0]\n" }
		sub max { $_[0] > $_[1] ? $_[0] : $_[1] }
		sub cycles { $_[0] / f("tsc_mhz") * 1000 }
		printf "%.3f\n", eval $ARGV[0] // die $@' -- "$1"
}

# near NAME GOT WANT: within 10%.
near()
{
	# shellcheck disable=SC2016
	tap_ok "$1: $2, the cost model says $3" perl -e \
		'my ($got, $want) = @ARGV; exit !($got ne "" && $want ne "" && abs($got - $want) <= 0.1 * $want)' -- "$2" "$3"
}

near "the TSC, MHz" "$(figure tsc_mhz)" "$(key clock)"
for k in cpi l2_hit l3_hit dram_local dram_remote stream_l2 stream_l3 stream_dram stream_remote rep_bytes misses lock \
	fence pause smt_slowdown l2_tlb_hit; do
	near "$k" "$(figure "model.$k")" "$(key $k)"
done
# Jitter moves a transfer to both sides alike.
for k in line_socket_clean line_socket_dirty line_remote_clean line_remote_dirty; do
	near "$k" "$(figure "model.$k")" "$(key $k)"
done
# The same by another way: loads that follow a chain through lines that another CPU wrote.
for class in smt:sibling socket:socket_dirty remote:remote_dirty; do
	near "a chain through lines that another CPU wrote, ${class%:*}" "$(figure "line.${class%:*}.dirty_ns")" \
		"$(calc "k('line_${class#*:}') + cycles(k('cpi'))")"
done
# Threads of a core hand a line to each other faster than a quantum lets others see it.
near "two threads of a core that change a word in turn" "$(figure line.smt.pingpong_ns)" "$(key line_sibling)"
# A REP string waits for the stream or for its own bytes, whichever takes longer.
for where in l2 l3 dram remote; do
	near "REP STOSB in $where" "$(figure stream.$where.stosb_ns)" \
		"$(calc "max(k('stream_$where'), cycles(64 * k('rep_bytes')))")"
done
tap_is "pages that the first-level TLB reaches" "$(figure tlb.reach_first | cut -d. -f1)" "$(key l1d_4k_entries)"
tap_is "pages that the second-level TLB reaches" "$(figure tlb.reach_second | cut -d. -f1)" "$(key l2_entries)"
near "a walk whose entries are in L1" "$(figure tlb.walk_cycles)" "$(calc 'k("walk_start") + k("walk_step")')"
# Three instructions each, which pass while the first of them is waited for.
near "misses that hang on nothing overlap" "$(figure chase.dram_overlapped_ns)" \
	"$(calc 'k("dram_local") / k("misses") + cycles(3 * k("cpi"))')"
tap_ok "a page fault takes more than its exception and IRET ($(figure fault_cycles) cycles)" test \
	"$(figure fault_cycles | cut -d. -f1)" -gt "$(($(key exception) + $(key iret)))"

# What the probe says hangs on the model: where there is none, every place is as near as L1.
sed 's/^cost_model = .*/cost_model = simple/' probe.ini >flat.ini
tap_run "$BUILD/faultbed" run flat.ini -o flat.json -q
for k in l3_hit dram_remote line_remote_clean; do
	tap_is "with no memory model $k is nothing" \
		"$(json flat.json "cells.0.repeats.0.reports.model\\.$k.value" | cut -d. -f1)" 0
done

tap_done
