#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed compare on results of real runs: the same thing with other seeds is no difference, a slowdown of some 2% is one, what differs
# besides kernel and knobs is refused. And git bisect run finds the commit that turned a knob.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
cd "$TAP_DIR" || exit 1
scenario=$TOP/scenarios/null-pair.ini

for run in base:run.seed=1 null:run.seed=1001 slow:cost.cpi=*1.04 knob:guest.knob.fault_path=mmap_lock; do
	tap_ok "${run%%:*} runs" "$fb" run -q "$scenario" --set "${run#*:}" -o "${run%%:*}.json"
done

# --- verdicts ---

tap_run "$fb" compare --fail-on different base.json null.json
tap_is "other seeds: no difference that counts" "$RC" 0
tap_like "and a sentence says so" "$OUT" '^ Verdict: no difference of faults_per_s that reaches 1%: [-+]0\.[0-9]+% \(.* faults/s \('
tap_unlike "none of the other figures is marked" "$OUT" ' \* \['
tap_run "$fb" compare --fail-on worse base.json slow.json
tap_is "another cost model: refused" "$RC" 2
tap_like "it is named" "$ERR" 'differs: cost\.cpi: \(not there\) \| \*1\.04'
tap_like "and that it may be told" "$ERR" '^error: .*--anyway'
tap_run "$fb" compare --anyway --fail-on worse base.json slow.json
tap_is "some 2% slower: found" "$RC" 6
tap_like "the verdict says which way, with its interval" "$OUT" 'is lower, and so worse: -[12]\.[0-9]+% \(-[0-9.]+% to -[0-9.]+%\)'
tap_run "$fb" compare --anyway --least 5 --fail-on worse base.json slow.json
tap_is "below a threshold of 5% it does not count" "$RC" 0
tap_run "$fb" compare --anyway --least-by 1e6 --fail-on worse base.json slow.json
tap_is "nor below an absolute one" "$RC" 0
tap_run "$fb" compare base.json knob.json null.json
tap_is "a knob is what one compares; several at once" "$RC" 0
tap_is "each with a verdict" "$(grep -c '^ Verdict: ' <<<"$OUT")" 2
tap_like "corrected for two headlines" "$OUT" "over 2 headlines"
tap_run "$fb" compare --headline pf_vma_lock base.json knob.json
tap_like "a headline named afterwards is said to be one" "$OUT" 'named after the run'
tap_run "$fb" compare --headline pf_vma_lock --fail-on worse base.json knob.json
tap_is "of a count neither more nor less is worse: refused" "$RC" 2
tap_like "and it is said why" "$ERR" '^error: pf_vma_lock is in events'
tap_run "$fb" compare --headline nothing base.json null.json
tap_is "one that is not there: no verdict" "$RC" 1
tap_run "$fb" compare base.json
tap_is "a result without a factor, alone: refused" "$RC" 2
for bad in "--fail-on never" "--confidence 1" "--least -1" "--least nan"; do
	# shellcheck disable=SC2086
	tap_run "$fb" compare $bad base.json null.json
	tap_is "$bad: refused" "$RC" 2
	tap_like "$bad: says what would be right" "$ERR" '^error: .*(worse or different|0\.95|0 or more|--help)'
done

# --- within one result ---

tap_ok "a scenario that varies a knob runs" "$fb" run -q "$scenario" --set run.repeat=3 --vary knob.fault_path=vma_lock,mmap_lock -o two.json
tap_run "$fb" compare two.json
tap_like "its cells are compared with the first" "$OUT" 'second: knob\.fault_path=mmap_lock'
tap_ok "axes of the command line, one of two keys" "$fb" run -q "$scenario" --set run.repeat=1 --vary topology=1x2x1,2x1x1 \
	--vary "knob.fault_path + memory = vma_lock + 128MiB, mmap_lock + 256MiB" -o four.json
tap_is "make cells of all combinations" "$(json four.json 'cells|*|name')" "$(printf '%s\n' \
	'topology=1x2x1 knob.fault_path=vma_lock memory=128MiB' 'topology=1x2x1 knob.fault_path=mmap_lock memory=256MiB' \
	'topology=2x1x1 knob.fault_path=vma_lock memory=128MiB' 'topology=2x1x1 knob.fault_path=mmap_lock memory=256MiB')"

# --- by turns ---

# The same kernel under another name: a null pair.
cp "$BUILD/kernel/bzImage" other

for i in 1 2; do
	tap_ok "repeats run by turns ($i)" "$fb" run -q "$scenario" --interleave --set run.repeat=4 --set run.seed=5 \
		--set vary.guest.knob.fault_path=vma_lock,mmap_lock -o turns-$i.json
	sed '/^  "provenance": {$/,$d' turns-$i.json >turns-$i.part
done
tap_ok "the same again, to the byte" cmp turns-1.part turns-2.part
for c in 0 1; do
	tap_is "each cell has its repeats in order" "$(json turns-1.json "cells|$c|repeats|*|repeat" | tr '\n' ' ')" "0 1 2 3 "
	tap_is "with their seeds" "$(json turns-1.json "cells|$c|repeats|*|seed" | tr '\n' ' ')" "5 6 7 8 "
	tap_is "and the record of the cell is the cell's" "$(json turns-1.json "cells|$c|vm|scenario|run\\.repeat")" 4
done
order=$(json turns-1.json 'provenance|order|*')
tap_is "each repeat of each cell once" "$(sort <<<"$order" | uniq -c | grep -c '^ *1 knob')" 8
tap_is "a round of all before the next one" "$(sed 's/.*repeat //' <<<"$order" | tr '\n' ' ')" "1 1 2 2 3 3 4 4 "
tap_is "not always in the same order" "$(awk 'NR % 2 { print $1 }' <<<"$order" | sort -u | wc -l)" 2
tap_run "$fb" run -q "$scenario" --interleave --engine nested --set vm.cost_model=auto
tap_is "nested cannot: status 3" "$RC" 3

# What kvm does by itself, on a VMM that says it has KVM, runs guests on soft and tells when.
cat >vmm <<EOT
#!/bin/bash
[ "\$1" != probe ] || { echo "kvm: yes: a test says so"; exit 0; }
args=() last=
for a in "\$@"; do
	[ "\$last" != --engine ] || { echo "\$a" >>"$TAP_DIR/engines"; a=soft; }
	args+=("\$a") last=\$a
done
echo begin >>"$TAP_DIR/turns"
"$BUILD/faultbed-vmm" "\${args[@]}" --cost-model "$TOP/cost-models/simple.ini" --no-snapshot
rc=\$?
echo end >>"$TAP_DIR/turns"
exit \$rc
EOT
chmod +x vmm
kvm=(env FAULTBED_VMM="$TAP_DIR/vmm" "$fb" run -q "$scenario" --engine kvm --set vm.cost_model=auto --set run.repeat=3)
tap_ok "kernels compared on kvm" "${kvm[@]}" --vary "kernel=$BUILD/kernel/bzImage,$TAP_DIR/other" -o kvm.json
tap_is "are run on kvm" "$(sort -u engines)" kvm
tap_is "take turns" "$(json kvm.json 'provenance|order|*' | sed 's/.*repeat //' | tr '\n' ' ')" "1 1 2 2 3 3 "
tap_is "one at a time" "$(tr '\n' ' ' <turns)" "$(yes 'begin end' | head -6 | tr '\n' ' ')"
: >turns
tap_ok "what is no kernel and no knob" "${kvm[@]}" --vary memory=128MiB,256MiB -o kvm.json
tap_is "has a VM for all its repeats" "$(tr '\n' ' ' <turns)" "begin end begin end "
tap_is "and no turns" "$(json kvm.json 'provenance|order')" ""

# --- bisect ---

export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@localhost GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@localhost
tap_ok "a good commit's result" "$fb" run -q "$scenario" --set guest.knob.fault_path=speculative --set run.repeat=6 -o good.json
mkdir tree
cd tree || exit 1
git init -q -b main .
for i in 1 2 3 4 5 6 7; do
	echo "$i" >number
	if [ "$i" -ge 5 ]; then echo vma_lock; else echo speculative; fi >fault_path
	echo true >build
	[ "$i" != 4 ] || echo false >build
	git add . && git commit -qm "change $i"
done
git bisect start HEAD HEAD~6 >/dev/null 2>&1
# The 4th does not build, the 5th is slower: git cannot tell them apart by one that is skipped, and says so.
tap_run git bisect run sh -c "exec '$fb' bisect-run --build 'sh build' --set guest.knob.fault_path=\$(cat fault_path) --set run.repeat=6 --good ../good.json --least 2 '$scenario'"
tap_like "git bisect run comes down to the one that does not build and the one that turned the knob" "$(grep -A3 "only .skip.ped commits left" <<<"$OUT" | grep -cE "^($(git rev-parse main~3)|$(git rev-parse main~2))$")" "^2$"
tap_like "the one that does not build was skipped" "$ERR" 'build ended with status 1: this commit is skipped'
git bisect reset >/dev/null 2>&1
git bisect start HEAD HEAD~6 >/dev/null 2>&1
tap_run git bisect run sh -c "exec '$fb' bisect-run --build 'cp $BUILD/kernel/bzImage .' --kernel bzImage --set guest.knob.fault_path=\$(cat fault_path) --set run.repeat=6 --good ../good.json --least 2 '$scenario'"
tap_like "where all build it is the commit itself" "$OUT" "^$(git rev-parse main~2) is the first bad commit"
cd ..
for bad in "" "--good nowhere.json" "--good base.json --bad never" "--good base.json --set vm.memory=64MiB"; do
	# shellcheck disable=SC2086
	tap_run "$fb" bisect-run $bad "$scenario"
	tap_is "bisect-run $bad: no verdict" "$RC" 125
	tap_like "bisect-run $bad: and why" "$ERR" '^error: '
done
tap_run "$fb" bisect-run --headline pf_entries --set run.repeat=2 --set guest.knob.fault_path=speculative --good good.json "$scenario"
tap_is "what cannot be worse is not good for that: no verdict" "$RC" 125
tap_like "and why" "$ERR" '^error: pf_entries is in events'
tap_run "$fb" bisect-run --good base.json nowhere.ini
tap_is "no scenario: no verdict" "$RC" 125
tap_done
