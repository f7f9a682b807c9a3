#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench-native's script runs to its end where it is started, with a cost model by a path
# from there, and prints all that it promises. What the figures are is no test's affair.

. "$(dirname "$0")/../tap.sh"
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
cd "$TAP_DIR" || exit 1

mkdir work
cp "$TOP/cost-models/ivb-ep.ini" work/host.ini
tap_run "$TOP/host-tools/measure-compare.pl" --faultbed "$BUILD/faultbed" --multi-fault "$BUILD/guest-tests/multi-fault" \
	--work work --model work/host.ini --threads 1 --runs 1 --duration 20
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "it runs" "$RC" 0
tap_like "a line for each number of threads" "$OUT" '^ +1 +[1-9][0-9]* +[0-9]+\.\.[0-9]+ +[1-9][0-9]* +[+-][0-9.]+%$'
tap_like "and one for a single fault" "$OUT" '^A page fault of one thread, ns .*: native [1-9][0-9]*, soft [1-9][0-9]*, error [+-][0-9.]+%$'
tap_run "$TOP/host-tools/measure-compare.pl" --faultbed "$BUILD/faultbed" --work work
tap_like "what is missing is named" "$ERR" 'multi-fault is missing'
tap_done
