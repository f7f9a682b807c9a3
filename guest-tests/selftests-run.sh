#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: run the kernel's selftests under /selftests, each with a time-out, and
# print a line for each: "selftest SET/NAME VERDICT SECONDS | DETAIL". pass, fail STATUS, skip
# (the kselftest status 4, or nothing but skipped points), time-out. Their output follows
# a failure, cut short.
#
# usage: selftests-run [-t SECONDS] [SET/NAME ...]

limit=60
if [ "$1" = -t ]; then
	limit=$2
	shift 2
fi
cd /selftests || exit 2
mkdir -p /tmp/selftests /dev/shm
[ $# -gt 0 ] || set -- x86/* mm/*

# The arguments that run_vmtests.sh gives.
arguments()
{
	case $1 in
	mm/uffd-stress) echo anon 20 16 ;;
	mm/transhuge-stress) echo -d 1 ;;
	mm/mremap_test) echo ;;
	mm/va_high_addr_switch) echo ;;
	esac
}

# Hundredths of a second since the start.
now()
{
	read -r up _ </proc/uptime
	echo $((${up%.*} * 100 + 1${up#*.} - 100))
}

for test; do
	[ -x "$test" ] || continue
	out=/tmp/selftests/out
	begin=$(now)
	# shellcheck disable=SC2046
	(cd "${test%/*}" && exec timeout -s KILL "$limit" "./${test##*/}" $(arguments "$test")) >$out 2>&1 </dev/null
	status=$?
	took=$(($(now) - begin))
	case $status in
	0)
		if grep -q '^ok [0-9].*# SKIP' $out && ! grep -q '^ok [0-9]' $out; then verdict=skip; else verdict=pass; fi ;;
	4) verdict=skip ;;
	137) verdict=time-out ;;
	*) verdict="fail $status" ;;
	esac
	case $verdict in
	pass) detail= ;;
	skip) detail=$(grep -i -m1 skip $out | tr -d '\r' | cut -c1-100) ;;
	*) detail=$(grep -iE -m1 'not ok|fail|error|bail' $out | tr -d '\r' | cut -c1-100) ;;
	esac
	echo "selftest $test $verdict $((took / 100)).$((took / 10 % 10))$((took % 10)) s${detail:+ | $detail}"
	case $verdict in
	fail* | time-out) tail -n 8 $out | sed 's/^/    /' | cut -c1-160 ;;
	esac
done
echo "selftests: done"
