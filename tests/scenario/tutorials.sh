#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tutorials, docs/tutorial-*.md: what they tell people to paste into a shell works, block by block, as it stands there. Blocks that say
# "sh long" want a kernel's tree and are not run. Scenarios are made short, but for the one that is compared.

. "$(dirname "$0")/../tap.sh"
export XDG_CACHE_HOME=$TAP_DIR/cache
cd "$TAP_DIR" || exit 1
ln -s "$BUILD" build
ln -s "$TOP/scenarios" scenarios

# blocks FILE: block-1, block-2, ... of its commands.
blocks()
{
	rm -f block-*
	awk '/^```sh$/ { n++; on = 1; next } /^```/ { on = 0 } on { print > ("block-" n) }' "$1"
}

for tutorial in topology kernels ex-vs-ep; do
	blocks "$TOP/docs/tutorial-$tutorial.md"
	tap_ok "$tutorial: it has commands" test -e block-4 -o -e block-3
	for block in $(ls block-* | sort -V); do
		grep -q headline "$block" || sed -i 's/^repeat = .*/repeat = 1/' "$block"
		tap_run bash -e "$block"
		tap_is "$tutorial, $block: $(grep -o 'build/faultbed [a-z-]*' "$block" | head -n 1)" "$RC" 0
		[ "$RC" = 0 ] || tap_diag "$(cat "$block")"$'\n'"$OUT"$'\n'"$ERR"
		tap_ok "$tutorial, $block: and says something, or writes it" test -n "$OUT$(printf '%s\n' "$ERR" | grep wrote)"
		printf '%s\n' "$OUT" >>said-"$tutorial"
	done
done
tap_like "topology: the guest sees it" "$(cat said-topology)" 'TOPOLOGY OK cpus=40 topology=2x10x2 nodes=2'
tap_like "kernels: there is a verdict" "$(cat said-kernels)" 'Verdict: faults_per_s of the second is higher, and so better: \+[0-9]'
tap_like "EX against EP: most time is standing in line" "$(cat said-ex-vs-ep)" 'stall_queue +[0-9,]+ +[6-8][0-9]\.'
tap_like "for the lock's line" "$(cat said-ex-vs-ep)" '1\. mm_struct\+0x88, accessed by down_read_trylock'

tap_done
