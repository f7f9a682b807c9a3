#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench-sweep.sh FAULTBED [RUNS]: a sweep of 24 cells on all CPUs against one after the other, in turns, RUNS (5) times each, and one that is
# killed in the middle and goes on. Guests are booted before the first. Wants an idle host.

set -euo pipefail
fb=$1
runs=${2:-5}
tree=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
args=(-q "$tree/scenarios/null-pair.ini" --set run.repeat=5 --vary topology=1x2x1,2x1x1
	--vary knob.fault_path=vma_lock,mmap_lock,speculative --vary memory=256MiB,128MiB --vary run.seed=1,101)

without_provenance()
{
	sed '/^  "provenance": {$/,$d' "$1"
}

# seconds JOBS: of one sweep.
seconds()
{
	local from to

	rm -rf "$dir"/r.json*
	from=$(date +%s.%N)
	"$fb" sweep "${args[@]}" --jobs "$1" -o "$dir/r.json" >/dev/null 2>&1
	to=$(date +%s.%N)
	awk "BEGIN { printf \"%.2f\n\", $to - $from }"
}

# "MEDIAN (LEAST..MOST)" of what is on standard input.
spread()
{
	sort -n | awk '{ v[NR] = $1 } END { printf "%.2f (%.2f..%.2f)", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR] }'
}

echo "bench-sweep: 24 cells on $(nproc) CPUs, $runs times in turns with one after the other"
seconds "$(nproc)" >/dev/null
cp "$dir/r.json" "$dir/whole.json"
for ((i = 0; i < runs; i++)); do
	one=$(seconds 1)
	all=$(seconds "$(nproc)")
	echo "$one" >>"$dir/one"
	echo "$all" >>"$dir/all"
	awk "BEGIN { printf \"%.3f\n\", $one / $all }" >>"$dir/ratio"
	echo "bench-sweep: $((i + 1)) of $runs: $one s and $all s"
done
echo "one after the other  $(spread <"$dir/one") s"
echo "on $(nproc) CPUs            $(spread <"$dir/all") s"
echo "speed-up             $(spread <"$dir/ratio")"

rm -rf "$dir"/r.json*
"$fb" sweep "${args[@]}" -o "$dir/r.json" >/dev/null 2>&1 &
pid=$!
while [ "$(find "$dir/r.json.parts" -name '*.jsonl' 2>/dev/null | wc -l)" -lt 10 ]; do sleep 0.05; done
kill -KILL $pid
wait $pid 2>/dev/null || :
kept=$(find "$dir/r.json.parts" -name '*.jsonl' | wc -l)
said=$("$fb" sweep "${args[@]}" -o "$dir/r.json" 2>&1 >/dev/null | grep -o '[0-9]* of 24 were finished before' || :)
parts=$(find "$dir/r.json.parts" -name '*.jsonl' | wc -l)
same=no
! cmp -s <(without_provenance "$dir/whole.json") <(without_provenance "$dir/r.json") || same=yes
echo "killed in the middle: $kept of 24 cells were finished; then: ${said:-none was taken}; $parts cells in the end, same result as of a run left alone: $same"
[ "$kept of 24 were finished before" = "$said" ] && [ "$parts" = 24 ] && [ $same = yes ]
