#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed cost-model: it lists what lies in cost-models/, prints every key of a model with the
# file's value, unit and source, and says what is wrong with a name or a file. No guest is started.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export FAULTBED_HOME=$TOP

tap_run "$BUILD/faultbed" cost-model
tap_is "cost-model: status" "$RC" 0
tap_is "cost-model: lists the models there are" "$(cut -d' ' -f1 <<<"$OUT")" "$(
	cd "$TOP/cost-models" && printf '%s\n' *.ini | sed 's/\.ini$//' | LC_ALL=C sort
)"
tap_like "cost-model: with what each is" "$OUT" '^ivb-ep  *two sockets of ten cores'

tap_run "$BUILD/faultbed" cost-model ivb-ep
tap_is "cost-model NAME: status" "$RC" 0
tap_is "cost-model NAME: every key once" "$(sed -n 's/^  \([a-z][a-z0-9_]*\)  .*/\1/p' <<<"$OUT" | sort)" "$(
	sed -n 's/^\(COST\|MEMORY\)(\([a-z0-9_]*\),.*/\2/p' "$TOP/vmm/core/cost.def" | sort
)"
# The unit is set off from the number, and of a count it is the name's: what is left is the file's.
tap_is "cost-model NAME: the file's values, with the ranges of estimates" "$(
	sed -n 's/^  \([a-z][a-z0-9_]*\)  *\([0-9.]*\) \?\(GHz\|ns\|us\|KiB\|cycles\?\|\)  \((.*)\)\? .*/\1 = \2\3 \4/p' <<<"$OUT" |
		sed 's/\(KiB\|cycles\?\) / /; s/ \(ns\|us\)\>/\1/g; s/600ns/0.6us/; s/700ns/0.7us/; s/800ns/0.8us/; s/ $//' | sort
)" "$(grep '^[a-z0-9_]* = ' "$TOP/cost-models/ivb-ep.ini" | sort)"
tap_like "cost-model NAME: the range of an estimate" "$OUT" '^  line_remote_clean  *90 ns  \(63 ns\.\.105 ns\) '
tap_like "cost-model NAME: and of cycles" "$OUT" '^  cpi  *1 cycle  \(0\.5\.\.1\.3\) '
tap_like "cost-model NAME: where a number comes from" "$OUT" "^  # The E5-2680 v2's base frequency"
first=$(grep -n '^  # .*page walk penalty' <<<"$OUT" | cut -d: -f1)
tap_like "cost-model NAME: once for all the keys below it" "$(sed -n "$((first + 1)),$((first + 2))p" <<<"$OUT" | tr '\n' ' ')" \
	'walk_step .*walk_start '
short=$(wc -l <<<"$OUT")
tap_run "$BUILD/faultbed" cost-model --sources ivb-ep
tap_like "cost-model --sources: in full" "$OUT" '^  # prefetcher of L2 at its best, which can have 16 lines under way'
tap_is "cost-model --sources: longer than without" "$(($(wc -l <<<"$OUT") > short))" 1

tap_run "$BUILD/faultbed" cost-model simple
tap_like "cost-model simple: no memory model" "$OUT" 'no memory model'
tap_is "cost-model simple: no [memory]" "$(grep -c '^\[memory\]' <<<"$OUT")" 0

sed 's/^dram_local = .*/dram_local = 500ns/' "$TOP/cost-models/ivb-ep.ini" >mine.ini
line=$(grep -n '^dram_local' mine.ini | cut -d: -f1)
tap_run "$BUILD/faultbed" cost-model ./mine.ini
tap_is "bad: local memory slower than remote" "$RC" 2
tap_like "bad: local memory slower than remote: file, line and what is right" "$ERR" \
	"error: \./mine\.ini:$line: memory\.dram_local: 500ns is more than the 122ns of dram_remote; it is that at most"
tap_is "bad: nothing printed" "$OUT" ""
for range in "200 (210..220)" "200 (100..150)" "200 (100)" "200 100..300" "200 (..300)" "200 (100..300" "200 (100..1e9)"; do
	sed "s/^cr3_write = .*/cr3_write = $range/" "$TOP/cost-models/ivb-ep.ini" >mine.ini
	line=$(grep -n '^cr3_write' mine.ini | cut -d: -f1)
	tap_run "$BUILD/faultbed" cost-model ./mine.ini
	tap_is "bad: cr3_write = $range: status" "$RC" 2
	tap_like "bad: cr3_write = $range: file and line" "$ERR" "^error: \./mine\.ini:$line: cost\.cr3_write: "
done
tap_run "$BUILD/faultbed" cost-model ivbep
tap_is "bad: a name there is not" "$RC" 2
tap_like "bad: a name there is not: the nearest" "$ERR" 'no cost model "ivbep"; did you mean ivb-ep\?'
tap_run "$BUILD/faultbed" cost-model mine.ini
tap_like "bad: a file without a slash: said so" "$ERR" 'a file of your own is written with a slash'
tap_run "$BUILD/faultbed" cost-model ''
tap_is "bad: no name" "$RC" 2
tap_run "$BUILD/faultbed" cost-model ./nowhere.ini
tap_is "bad: no such file" "$RC" 2
tap_run timeout 10 "$BUILD/faultbed" cost-model /dev/zero
tap_is "bad: no regular file" "$RC" 2
tap_run "$BUILD/faultbed" cost-model ivb-ep ivb-ex
tap_is "bad: two models" "$RC" 2
tap_run "$BUILD/faultbed" cost-model --sources
tap_is "bad: sources of no model" "$RC" 2
tap_run "$BUILD/faultbed" cost-model --frobnicate
tap_is "bad: an unknown option" "$RC" 2

tap_done
