#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# prove.sh LOG PROVE-ARGUMENTS...: runs prove. What the tests say on stderr (much,
# since they are fed bad input) goes to LOG. If one fails, the last lines of all
# are the points that failed and prove's summary: the end of the output is what
# remains of a run that nobody watched.

set -uo pipefail
log=$1
shift
mkdir -p "$(dirname "$log")"
# The machine's CPUs share the tests: a guest under test, nested or soft, is one busy thread.
prove -j"$(nproc)" --timer --failures "$@" 2>"$log" | tee "$log.prove" && exit 0
echo "--- end of $log:"
tail -n 20 "$log"
echo "--- what failed:"
grep -A 6 '^# failed in' "$log" | cut -c 1-200 | tail -n 60
grep -E '^not ok' "$log.prove"
sed -n '/^Test Summary Report/,$p' "$log.prove"
exit 1
