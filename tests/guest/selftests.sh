#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Linux's own selftests (x86, mm) in the guest, on the soft engine: what they say of a
# CPU is more than we could write. A program passes, or selftests.expect names the
# verdict and the reason. Those that it calls long are run with SELFTESTS=all only.
# SELFTESTS_ENGINE=nested (or kvm) runs the same elsewhere.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=3600

expect=$TOP/tests/guest/selftests.expect
engine=${SELFTESTS_ENGINE:-soft}
# Seconds of the guest for each program. On soft one costs its host about a quarter of a minute for each busy CPU.
limit=60
[ "$engine" != soft ] || limit=3

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

# The engine first: building the programs takes minutes.
printf '%s\n' "# Is the engine there?" "[vm]" "engine = $engine" "topology = 1x1x1" "memory = 128MiB" "[run]" "command = true" \
	>probe.ini
tap_run "$BUILD/faultbed" run probe.ini
[ "$RC" != 3 ] || skip_all "engine = $engine is not on this machine or in this version"
tap_is "the engine runs a guest" "$RC" 0

tap_run "$TOP/images/selftests-build.sh" --guest-tests "$BUILD/guest-tests" -o selftests.cpio
[ "$RC" != 2 ] || skip_all "no kernel source: $(printf '%s\n' "$ERR" | tail -n 1)"
tap_is "the programs are built" "$RC" 0
programs=$(printf '%s\n' "$OUT" | tail -n 1)
tap_diag "not built:"$'\n'"$(cat "$programs/not-built")"

# What selftests.expect lets a program end as, and why.
allowed()	# SET/NAME
{
	sed -n "s,^$1 *| *\([^|]*[^| ]\) *|.*,\1,p" "$expect"
}
reason()	# SET/NAME
{
	sed -n "s,^$1 *|[^|]*| *,,p" "$expect"
}

list=
left=
for name in $(cd "$programs" && printf '%s\n' x86/* mm/*); do
	case "${SELFTESTS:-}, $(allowed "$name")," in
	all,*) list="$list $name" ;;
	*", long,"*) left="$left $name" ;;
	*) list="$list $name" ;;
	esac
done

cat >selftests.ini <<EOT
# Do the kernel's selftests find anything wrong with this CPU?
[vm]
engine = $engine
topology = 1x2x1
memory = 1GiB
[guest]
initrd = selftests.cpio
[run]
command = selftests-run -t $limit$list
timeout = 3000s
EOT
tap_run "$BUILD/faultbed" run selftests.ini -o selftests.json
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "all are run" "$RC" 0
perl -MJSON::PP -e 'local $/; open my $f, "<", "selftests.json" or exit 1;
	print JSON::PP->new->utf8->decode(<$f>)->{cells}[0]{end}{console} // ""' | tr -d '\r' >console
tap_like "to the end" "$(cat console)" '^selftests: done'
tap_is "each of them" "$(grep -c '^selftest ' console)" "$(wc -w <<<"$list")"

while read -r _ name verdict detail; do
	if [ "$verdict" = pass ]; then
		tap_result 0 "$name"
		continue
	fi
	case ", $(allowed "$name")," in
	*", $verdict,"*)
		TAP_N=$((TAP_N + 1))
		echo "ok $TAP_N - $name # SKIP $verdict: $(reason "$name")" ;;
	*)
		tap_diag "$name: $verdict $detail"$'\n'"$(sed -n "/^selftest ${name//\//\\/} /,/^selftest/p" console | grep '^    ')"
		tap_result 1 "$name: $verdict" ;;
	esac
done < <(grep '^selftest ' console)
for name in $left; do
	TAP_N=$((TAP_N + 1))
	echo "ok $TAP_N - $name # SKIP long (SELFTESTS=all): $(reason "$name")"
done

tap_done
