#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A matrix as work for others: faultbed sweep --emit slurm on a real Slurm of one node, and --emit parallel, here and on "hosts" that share
# no folder with us. Ended in the middle, no cell is lost or run twice, and what is collected is the result of a run left alone.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
# A folder as nobody should call one: what is emitted has to be quoted.
work="$TAP_DIR/it's 100% %j {1} {#} {= die =} \"of\" \$HOME"
mkdir "$work" "$TAP_DIR/bin"
cd "$work" || exit 1

cat >"$TAP_DIR/bin/vmm" <<EOT
#!/bin/bash
for a in "\$@"; do
	[ "\$last" != --cell ] || echo "\$a" >>"$TAP_DIR/started"
	last=\$a
done
sleep "\$(cat "$TAP_DIR/pause")"
exec "$BUILD/faultbed-vmm" "\$@"
EOT
chmod +x "$TAP_DIR/bin/vmm"
export FAULTBED_VMM=$TAP_DIR/bin/vmm
echo 0 >"$TAP_DIR/pause"
cp "$TOP/scenarios/null-pair.ini" "a scenario's.ini"
args=(-q "a scenario's.ini" --set run.repeat=1 --set "run.command=multi-fault 2 --pages 64 # it's {#} {= die =} \"x\"" --vary "topology=1x2x1,2x1x1"
	--vary knob.fault_path=vma_lock,mmap_lock,speculative)

without_provenance()
{
	sed '/^  "provenance": {$/,$d' "$1"
}

started() { echo "$(sort -u "$TAP_DIR/started" | wc -l) of $(wc -l <"$TAP_DIR/started")"; }
finished() { find "$1.parts" -name '*.jsonl' 2>/dev/null | wc -l; }

tap_ok "left alone it runs" "$fb" run "${args[@]}" -o whole.json
# same NAME FILE
same() { tap_ok "$1" diff <(without_provenance whole.json) <(without_provenance "$2"); }

# As same, but that another scenario file was read.
same_but_path()
{
	tap_ok "the result is that of a run left alone" \
		diff <(without_provenance whole.json | sed "s/a scenario's[.]ini/NAME/") <(without_provenance "$1" | sed 's,[.]/-far[.]ini,NAME,')
}

# --- what is missing, and collected ---

tap_run "$fb" sweep "${args[@]}" -o some.json --missing
tap_is "all cells are missing" "$(echo $OUT)" "1 2 3 4 5 6"
tap_ok "looking makes no folder" test ! -e some.json.parts
tap_ok "two are run" "$fb" sweep "${args[@]}" -o some.json --cells 2,5
tap_run "$fb" sweep "${args[@]}" -o some.json --missing
tap_is "the others are missing" "$(echo $OUT)" "1 3 4 6"
tap_run "$fb" sweep "${args[@]}" -o some.json --collect
tap_is "collected, it is no whole result: status 130" "$RC" 130
tap_like "the missing cells are named" "$ERR" 'error: cells 1,3-4,6 are not finished; .* --cells 1,3-4,6 runs them'
tap_is "those that are there are in it" "$(json some.json 'cells.*.repeats.*.seed' | grep -c .)" 2
tap_run "$fb" sweep "${args[@]}" -o some.json --emit slurm
tap_like "only the missing ones are emitted" "$OUT" '^#SBATCH --array=1,3-4,6$'
tap_ok "and are run" "$fb" sweep "${args[@]}" -o some.json --cells 1,3,4,6
tap_run "$fb" sweep "${args[@]}" -o some.json --emit slurm
tap_is "with none missing there is nothing to emit: status 2" "$RC" 2
tap_run "$fb" sweep "${args[@]}" -o some.json --collect
tap_is "collected: status 0" "$RC" 0
same "the result is that of a run left alone" some.json

# --- Slurm ---

: >"$TAP_DIR/started"
echo 1 >"$TAP_DIR/pause"
"$fb" sweep "${args[@]}" -o array.json --emit slurm --throttle 2 >array.sh
tap_like "a throttle" "$(cat array.sh)" '^#SBATCH --array=1-6%2$'
tap_like "memory and time are asked for" "$(cat array.sh | tr '\n' ' ')" '#SBATCH --mem=[0-9]+M #SBATCH --time=[0-9]+ '
mkdir array.json.logs
cat >"$TAP_DIR/bin/array" <<'EOT'
#!/bin/bash
cd "$1" || exit
id=$(sbatch --parsable array.sh) || exit
for ((i = 0; i < 300; i++)); do
	[ "$(find array.json.parts -name '*.jsonl' 2>/dev/null | wc -l)" -lt 2 ] || break
	sleep 0.1
done
scancel --signal=KILL --full "$id" || exit
for ((i = 0; i < 300; i++)); do
	[ "$(squeue -h -j "$id" 2>/dev/null)" ] || break
	sleep 0.1
done
find array.json.parts -name '*.jsonl' | wc -l
: >"$2"
sbatch --wait array.sh
EOT
chmod +x "$TAP_DIR/bin/array"
tap_run "$TOP/tests/slurm-up.sh" "$TAP_DIR/slurm" "$TAP_DIR/bin/array" "$work" "$TAP_DIR/started"
tap_is "Slurm: ended in the middle, and submitted again" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$OUT$ERR$(tail -n 5 array.json.logs/*)"
kept=$(printf '%s\n' "$OUT" | grep -x '[0-9]*' | head -n 1)
tap_ok "in the middle (${kept:-no} of 6 cells were finished)" test "${kept:-0}" -ge 2 -a "${kept:-6}" -lt 6
tap_is "each task has its log" "$(ls array.json.logs | tr '\n' ' ')" "1.log 2.log 3.log 4.log 5.log 6.log "
tap_is "the others were run, each once" "$(started)" "$((6 - kept)) of $((6 - kept))"
echo 0 >"$TAP_DIR/pause"
: >"$TAP_DIR/started"
tap_run "$fb" sweep "${args[@]}" -o array.json --collect
tap_is "collected: status 0" "$RC" 0
tap_is "without running any" "$(wc -l <"$TAP_DIR/started")" 0
same "the result is that of a run left alone" array.json

# --- parallel ---

# ssh to a host whose /tmp is not ours. It has no terminal, no environment of ours and another folder to begin in, as with ssh.
cat >"$TAP_DIR/bin/ssh" <<EOT
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
echo "\$1" >>"$TAP_DIR/hosts"
shift
[[ \$1 != -- ]] || shift
mkdir -p "$TAP_DIR/elsewhere"
cd / && exec env -i PATH="\$PATH" HOME="$TAP_DIR" XDG_CACHE_HOME="$XDG_CACHE_HOME" TMPDIR="$TAP_DIR/elsewhere" sh -c "\$*" </dev/null
EOT
chmod +x "$TAP_DIR/bin/ssh"
# A result and a scenario of names that might be options; what is said before "--" goes on behind it.
cp "a scenario's.ini" ./-far.ini
"$fb" sweep "${args[@]/#a scenario*/--all}" --emit parallel -qo '-far\b.json' -- -far.ini >far.sh
tap_run bash far.sh --ssh "$TAP_DIR/bin/ssh" -S 1/one,1/two
tap_is "parallel on two hosts: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$OUT$ERR"
tap_ok "both did something" test "$(sort -u "$TAP_DIR/hosts" | grep -cx -e one -e two)" = 2
tap_is "nothing is left there" "$(ls "$TAP_DIR/elsewhere")" ""
same_but_path './-far\b.json'

"$fb" sweep "${args[@]}" -o near.json --emit parallel >near.sh
: >"$TAP_DIR/started"
echo 1 >"$TAP_DIR/pause"
setsid bash near.sh --jobs 2 >/dev/null 2>&1 &
pid=$!
for ((i = 0; i < 300; i++)); do
	[ "$(find near.json.jobs -name '*.tar' -size +0 2>/dev/null | wc -l)" -lt 2 ] || break
	sleep 0.1
done
kill -KILL -- -$pid
{ wait $pid; } 2>/dev/null
# Its jobs, which parallel puts into groups of their own, would go on.
left() { for process in /proc/[0-9]*; do [ "$(readlink "$process/cwd")" != "$work" ] || [ "${process#/proc/}" = $$ ] || echo "${process#/proc/}"; done 2>/dev/null; }
for ((i = 0; i < 50; i++)); do
	# One that is killed may just have started another. The subshell that looks is gone by the time.
	kill -KILL $(left) 2>/dev/null || break
	sleep 0.1
done
sleep 0.5
echo 0 >"$TAP_DIR/pause"
cp "$TAP_DIR/started" "$TAP_DIR/before"
: >"$TAP_DIR/started"
tap_run bash near.sh --jobs 2
tap_is "parallel, killed in the middle and started again: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$OUT$ERR"
tap_ok "those that were finished are not run again ($(started) were)" test "$(wc -l <"$TAP_DIR/started")" -le 4
same "the result is that of a run left alone" near.json
truncate -s 1000 near.json.jobs/3.tar
rm -r near.json.parts
: >"$TAP_DIR/started"
tap_run bash near.sh
tap_is "an answer that was cut off: only that cell is run again" "$(wc -l <"$TAP_DIR/started")" 1
same "and the result is the same" near.json

# --- cells that did not end well ---

failing=(-q "a scenario's.ini" --set run.repeat=1 --set "run.command=/no/such" --vary topology=1x2x1,2x1x1 -o failing.json)
tap_run "$fb" sweep "${failing[@]}"
tap_is "a command that is not there: status 1" "$RC" 1
tap_run "$fb" sweep "${failing[@]}" --emit parallel
tap_is "it was finished all the same" "$RC" 2
"$fb" sweep "${failing[@]}" --retry --emit parallel >failing.sh
: >"$TAP_DIR/started"
tap_run bash failing.sh
tap_is "with --retry both are run again" "$(started)" "2 of 2"
tap_is "and what became of them is collected: status 1" "$RC" 1

# --- other hosts' engines ---

tap_run "$fb" sweep "$TOP/scenarios/boot-2x6x2.ini" --engine kvm -o x.json --emit slurm
tap_is "jobs for hosts with KVM are written where there may be none" "$RC" 0
tap_like "with a CPU for each vCPU" "$OUT" '^#SBATCH --cpus-per-task=24$'
tap_run "$fb" sweep "$TOP/scenarios/first-run.ini" -o x.json --emit parallel
tap_like "an engine that each host chooses for itself is warned of" "$ERR" '^warning: .*engine = auto: .*--engine'

# --- bad input ---

# bad NAME PATTERN ARGUMENT...
bad()
{
	local name=$1 pattern=$2

	shift 2
	tap_run "$fb" sweep "${args[@]}" "$@"
	tap_is "$name: status 2" "$RC" 2
	tap_like "$name: what is wrong" "$ERR" "$pattern"
}

bad "an unknown kind" '--emit slrum: slurm or parallel; did you mean slurm\?' -o x.json --emit slrum
bad "no result" 'name that, -o FILE.json' --emit slurm
bad "two things at once" 'exclude each other' -o x.json --emit slurm --collect
bad "a throttle of nothing" 'slurm at once, 1 or more' -o x.json --throttle 2
bad "cells that are collected" 'collect is for all cells' -o x.json --collect --cells 1
bad "a line break" 'line break in "x' -o $'x\ntouch y' --emit slurm
bad "a backslash" 'no name of a log with a backslash, as in .*; another -o' -o 'x\y.json' --emit slurm
bad "turns" 'take turns on one host' -o x.json --interleave --emit slurm

tap_done
