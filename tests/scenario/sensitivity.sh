#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench-sensitivity: a row for each thing that is changed, figures that move as they must, the same table again,
# n/a where a run fails, and clear words where it is misused.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=600
tool=("$TOP/host-tools/bench-sensitivity.pl" --faultbed "$BUILD/faultbed")

cat >s.ini <<'END'
# How far do estimates move the page faults of one and of two threads?
# Expected: by no more than they are moved themselves.
[vm]
engine = soft
topology = 1x2x1
memory = 128MiB
cost_model = ivb-ep
[run]
command = multi-fault 2 --rounds 2
warmup = 50us
duration = 300us
[vary]
run.command = multi-fault 2 --rounds 2, multi-fault 1 --rounds 2
END

# row LABEL: its moves, of standard output of the latest run.
row()
{
	sed -n "s/^ $1  *\([-+n].*\)$/\1/p" <<<"$OUT"
}

tap_run "${tool[@]}" --fast --keys cpi,line_socket_clean --out out s.ini
tap_is "status 0" "$RC" 0
first=$OUT
tap_is "progress, one line a run where there is no terminal" "$(grep -c '^ [0-9]* of 16 runs: ' <<<"$ERR")" 16
for label in "cpi +20%" "cpi -20%" "cpi low" "cpi high" "line_socket_clean +20%" "line_socket_clean -20%" "line_socket_clean low" \
	"line_socket_clean high" "quantum, half" "quantum, a quarter" "overlap off" "clock +20%" "clock -20%" "seed 1" "seed 1001" "seed 2001"; do
	tap_like "a row: $label" "$(row "$label")" '^[-+][0-9.]+ +[-+][0-9.]+ +[-+][0-9.]+'
done
tap_is "and no others" "$(grep -cE '^ [a-z].* [-+][0-9.]+ +[-+][0-9.]+ +[-+][0-9.]+' <<<"$OUT")" 16
tap_like "instructions that take longer make it slower" "$(row "cpi +20%")" '^-[1-9]'
tap_like "and faster if they do not" "$(row "cpi low")" '^\+[1-9]'
tap_like "so does a faster clock" "$(row "clock +20%")" '^\+[1-9]'
tap_like "one thread does not see the other's lines" "$(row "line_socket_clean +20%")" '^[-+][0-9.]+ +[-+]0\.[0-9]+ '
tap_is "the largest move of the ratio is first" "$(
	sed -n '/^ change /,/^$/p' <<<"$OUT" | sed -n 's/^ [a-z].* [-+]\([0-9.]*\)\(  ~\)\?$/\1/p' | sort -c -g -r 2>&1)" ""
tap_like "figures as ranges over the estimates" "$OUT" '^   C +0\.[0-9]+  0\.[0-9]+ to 0\.[0-9]+, 0\.[0-9]+ to 0\.[0-9]+$'
tap_is "all numbers in a table" "$(wc -l <out/s.tsv)" 18
tap_is "the results beside" "$(find out/s -name '*.json' | wc -l)" 17

# --- again, of parts ---

tap_run "${tool[@]}" --parts moves,seeds --fast --keys cpi --jobs 1 s.ini
tap_is "again: status 0" "$RC" 0
for label in "cpi +20%" "cpi -20%" "seed 1001"; do
	tap_is "again: the same: $label" "$(row "$label")" "$(OUT=$first && row "$label")"
done

# --- runs that fail ---

tap_run "${tool[@]}" --parts moves --keys cpi,dram_local --set cost.dram_local=100ns --figure instructions --set 'run.command=true' s.ini
tap_is "changed by the scenario itself: status 0" "$RC" 0
tap_like "changed by the scenario itself: n/a, and why" "$(row "dram_local +20%")" '^n/a  the scenario changes cost.dram_local itself$'
tap_like "others are not" "$(row "cpi +20%")" '^[-+]'
sed 's/^smt_slowdown = .*/smt_slowdown = 1.1 (1..1.2)/' "$TOP/cost-models/ivb-ep.ini" >odd.ini
tap_run "${tool[@]}" --parts moves --keys smt_slowdown --set vm.cost_model=./odd.ini --figure instructions --set 'run.command=true' s.ini
tap_is "a number that is refused: status 0" "$RC" 0
tap_like "a number that is refused: n/a, and the run's own words" "$(row "smt_slowdown -20%")" '^n/a  --set: cost.smt_slowdown: 0.88[0-9]* is not between 1 and 8'

# --- misuse ---

# refused NAME REGEX OPTION...
refused()
{
	local name=$1 regex=$2

	shift 2
	tap_run "${tool[@]}" "$@"
	tap_is "refused: $name: status 2" "$RC" 2
	tap_like "refused: $name: the message" "$ERR" "$regex"
}
refused "no scenario" 'one scenario'
refused "a scenario that is not there" 'no.ini: No such file' no.ini
refused "a part that there is not" '--parts: mooves is none of moves, ' --parts mooves s.ini
refused "a key that is no cost" '--keys: cache_l1_kib is no cost' --keys cache_l1_kib s.ini
refused "a setting that is wrong" '^error: bench-sensitivity: --set: run.repeat: ' --set run.repeat=x s.ini
refused "a figure that there is not" 'no cell has it' --figure frobs --set run.command=true s.ini

tap_done
