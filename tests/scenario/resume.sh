#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed sweep (and run --resume): killed in the middle and run again, no cell is lost or run twice, and the result is that of a run that
# was left alone. A part that is not as it was written, or is of something else, is not taken. Several run some of the cells each.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
cd "$TAP_DIR" || exit 1

# A VMM that tells which cells it was started for.
cat >vmm <<EOT
#!/bin/bash
for a in "\$@"; do
	[ "\$last" != --cell ] || echo "\$a" >>"$TAP_DIR/started"
	last=\$a
done
exec "$BUILD/faultbed-vmm" "\$@"
EOT
chmod +x vmm
export FAULTBED_VMM=$TAP_DIR/vmm
run=("$fb" sweep -q "$TOP/scenarios/null-pair.ini" --set run.repeat=1 --vary "topology=1x2x1,2x1x1" --vary knob.fault_path=vma_lock,mmap_lock,speculative
	--vary memory=256MiB,128MiB)

without_provenance()
{
	sed '/^  "provenance": {$/,$d' "$1"
}

tap_ok "left alone it runs" "$fb" run "${run[@]:2}" -o whole.json
tap_ok "and keeps no parts" test ! -e whole.json.parts
tap_is "each cell once" "$(sort -u started | wc -l) of $(wc -l <started)" "12 of 12"

: >started
"${run[@]}" -o killed.json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 600); do
	[ "$(find killed.json.parts -name '*.jsonl' 2>/dev/null | wc -l)" -lt 4 ] || break
	sleep 0.05
done
kill -9 $pid
{ wait $pid; } 2>/dev/null
kept=$(find killed.json.parts -name '*.jsonl' | wc -l)
tap_ok "killed in the middle ($kept of 12 cells were finished)" test "$kept" -ge 4 -a "$kept" -lt 12
tap_ok "there is no result yet" test ! -e killed.json
: >started
tap_run "${run[@]}" -o killed.json
tap_is "it goes on" "$RC" 0
tap_like "says how much there was" "$ERR" "$kept of 12 were finished before"
tap_is "and runs the others, each once" "$(sort -u started | wc -l) of $(wc -l <started)" "$((12 - kept)) of $((12 - kept))"
tap_ok "the result is that of the run left alone" cmp <(without_provenance whole.json) <(without_provenance killed.json)
: >started
tap_ok "finished, it runs nothing" "${run[@]}" -o killed.json
tap_is "no cell" "$(wc -l <started)" 0
tap_ok "with the same result" cmp <(without_provenance whole.json) <(without_provenance killed.json)

# --- parts that are not to be taken ---

parts=(killed.json.parts/*.jsonl)
sed -i 's/"faults_per_s"/"faultz_per_s"/' "${parts[0]}"
truncate -s -100 "${parts[1]}"
: >"${parts[2]}"
head -c 3000 /dev/urandom >"${parts[3]}"
: >started
tap_run "${run[@]}" -o killed.json
tap_is "changed, cut off, empty and rubbish: those four run again" "$RC $(wc -l <started)" "0 4"
tap_is "and each is named" "$(grep -c 'not as it was written' <<<"$ERR")" 4
tap_ok "with the same result" cmp <(without_provenance whole.json) <(without_provenance killed.json)
: >started
tap_ok "other seeds" "${run[@]}" --set run.seed=7 --set vm.topology=1x2x1 --set vm.memory=256MiB -o killed.json
tap_is "are other cells" "$(wc -l <started)" 3
cp "$BUILD/initramfs.cpio" other.cpio
printf '\0\0\0\0' >>other.cpio
: >started
tap_ok "another initramfs by that name" "${run[@]}" --set vm.topology=1x2x1 --set vm.memory=256MiB --initrd other.cpio -o killed.json
printf '\0\0\0\0' >>other.cpio
tap_ok "and other contents" "${run[@]}" --set vm.topology=1x2x1 --set vm.memory=256MiB --initrd other.cpio -o killed.json
tap_is "is another one each time" "$(wc -l <started)" 6

# The axes may grow.
: >started
small=(--set vm.topology=1x2x1 --set vm.memory=256MiB)
tap_run "${run[@]}" "${small[@]}" --vary seed=1,2 -o grown.json
tap_is "two seeds, three knobs" "$RC $(wc -l <started)" "0 6"
: >started
tap_ok "and a third seed" "${run[@]}" "${small[@]}" --vary seed=1,3,2 -o grown.json
tap_is "is all that is run" "$(wc -l <started)" 3

# What a delay is read from is part of what a cell is.
printf '1us\n2us\n' >delays
traced=("${run[@]}" "${small[@]}" --set "inject.ipi.all=trace:$TAP_DIR/delays" -o traced.json)
tap_ok "delays of a file" "${traced[@]}"
printf '3us\n2us\n' >delays
: >started
tap_run "${traced[@]}"
tap_is "that changed: its cells are run again" "$RC $(wc -l <started)" "0 3"
tap_like "and it says why" "$ERR" 'what was kept is not taken: another trace of inject.ipi.all'

# How it ended.
: >started
failing=("${run[@]}" "${small[@]}" --set 'run.command=exit 3' --vary knob.fault_path=vma_lock -o failing.json)
tap_run "${failing[@]}"
tap_is "a cell whose command fails" "$RC" 1
tap_run "${failing[@]}"
tap_is "is finished" "$RC $(wc -l <started)" "1 1"
tap_run "${failing[@]}" --retry
tap_is "unless one wants it again" "$RC $(wc -l <started)" "1 2"

# Some cells each, as several hosts would.
: >started
for some in 1-5 8,6-7 9-12; do
	tap_run "${run[@]}" -o hosts.json --cells $some
	tap_is "cells $some: status 0" "$RC" 0
	tap_ok "cells $some: no result" test ! -e hosts.json
done
tap_is "each cell once" "$(sort -u started | wc -l) of $(wc -l <started)" "12 of 12"
tap_ok "all of them together" "${run[@]}" -o hosts.json
tap_is "without another run" "$(wc -l <started)" 12
tap_ok "are the run left alone" cmp <(without_provenance whole.json) <(without_provenance hosts.json)

# --- memory ---

# How many run at the same time, at most, by what is said of each cell's begin and end.
at_once()
{
	awk '/^cell [0-9]+\/[0-9]+: seed=/ { n++ } /^[0-9]+ of [0-9]+ done/ { n-- } n > most { most = n } END { print most }' <<<"$ERR"
}
few=("${run[@]}" "${small[@]}" --set guest.knob.fault_path=vma_lock --vary seed=1,2,3,4 --jobs 2)
tap_run "${few[@]}" -o few.json
tap_is "two at once" "$RC $(at_once)" "0 2"
tap_unlike "with room enough" "$ERR" 'of memory'
tap_run "${few[@]}" --memory 500MiB -o memory.json
tap_is "room for one cell and more: one at a time" "$RC $(at_once)" "0 1"
tap_like "and it says so" "$ERR" '^cell 2 takes up to 392 MiB of memory, and there are 500 .*: fewer than there are CPUs'
tap_like "progress has the time left" "$ERR" '^2 of 4 done, [0-9]+ s so far, about [0-9]+ s left'
tap_run "${few[@]}" --memory 200MiB -o none.json
tap_is "a cell that never fits: status 3" "$RC" 3
tap_like "by name, and what would be right" "$ERR" '^error: cell 1, seed=1: takes up to 392 MiB .* 200 in all \(--memory\): a smaller vm.memory, '
for bad in 0 -1GiB 12 lots 1e99GiB; do
	tap_run "${run[@]}" -o r.json "--memory=$bad"
	tap_is "--memory $bad: status 2" "$RC" 2
done

# Repeats by turns are parts of their own.
turns=("${run[@]}" --set run.repeat=2 --interleave --set vm.topology=1x2x1 --set vm.memory=256MiB -o turns.json)
tap_ok "repeats by turns" "${turns[@]}"
without_provenance turns.json >turns.part
parts=(turns.json.parts/*.jsonl)
tap_is "a part for each" "${#parts[@]}" 6
rm "${parts[0]}" "${parts[3]}"
: >started
tap_ok "two of which are gone" "${turns[@]}"
tap_is "those two run again" "$(wc -l <started)" 2
tap_ok "and all are in their places" cmp turns.part <(without_provenance turns.json)

# --- what cannot be ---

# locked BYTE KIND COMMAND...: with that byte of the lock file locked, F_WRLCK or F_RDLCK, by another process.
cat >locked <<'EOT'
use Fcntl;
my ($byte, $kind, @command) = @ARGV;
open my $f, "+<", "killed.json.parts/lock" or die;
fcntl($f, F_SETLK, pack("s s x4 q q i x4", $kind eq "F_WRLCK" ? F_WRLCK : F_RDLCK, 0, $byte, 1, 0)) or die "lock: $!";
system @command;
exit $? >> 8;
EOT
tap_run perl locked 0 F_WRLCK "${run[@]}" -o killed.json
tap_is "two at once: refused" "$RC" 2
tap_like "and said why" "$ERR" 'another faultbed is running this matrix'
tap_run perl locked 0 F_RDLCK "${run[@]}" -o killed.json
tap_is "one of all beside one of some: refused" "$RC" 2
tap_run perl locked 0 F_WRLCK "${run[@]}" -o killed.json --cells 1
tap_is "and the other way round" "$RC" 2
tap_run perl locked 3 F_WRLCK "${run[@]}" -o killed.json --cells 2-3
tap_is "one cell twice at once: refused" "$RC" 2
tap_like "by its name" "$ERR" '^error: cell 3, .*topology=1x2x1 .* is being run'
tap_run perl locked 3 F_WRLCK "${run[@]}" -o killed.json --cells 2,4
tap_is "other cells may be run meanwhile" "$RC" 0
tap_run "${run[@]}"
tap_is "without -o: status 2" "$RC" 2
tap_run "${run[@]}" -o r.json --trace t.txt
tap_is "with --trace: status 2" "$RC" 2
tap_run "${run[@]}" -o r.json --engine nested --set vm.cost_model=auto
tap_is "nested: status 3" "$RC" 3
for bad in 0 13 2-1 1- a 1,,2 -1 4294967297; do
	tap_run "${run[@]}" -o r.json "--cells=$bad"
	tap_is "--cells $bad: status 2" "$RC" 2
	tap_like "--cells $bad: what would be right" "$ERR" '1 to 12, such as'
done
tap_run "${run[@]}" -o r.json --cells 1 --interleave
tap_is "--cells of such as take turns: status 2" "$RC" 2
: >file.parts
tap_run "${run[@]}" -o file
tap_is "a file where the folder goes: status 2" "$RC" 2
tap_done
