# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# TAP for shell tests, run by prove: source this, call the checks, end with
# tap_done. $TAP_DIR is a scratch folder, removed at the end. A test that dies
# half-way prints no plan, which prove reports as a failure.

TAP_N=0
TAP_FAILED=0
TAP_DIR=$(mktemp -d)
trap 'rm -rf "$TAP_DIR"' EXIT
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${FAULTBED_BUILD:-$TOP/build}

tap_diag()
{
	printf '%s\n' "$*" | sed 's/^/# /' >&2
}

# tap_why NAME TEXT: why the point NAME is about to fail. tests/prove.sh looks for the first line.
tap_why()
{
	tap_diag "failed in ${0##*/}: $1"$'\n'"$2"
}

# tap_result STATUS NAME: one test point.
tap_result()
{
	TAP_N=$((TAP_N + 1))
	if [ "$1" = 0 ]; then
		echo "ok $TAP_N - $2"
	else
		TAP_FAILED=$((TAP_FAILED + 1))
		echo "not ok $TAP_N - $2"
	fi
}

# tap_ok NAME COMMAND...: the command succeeds.
tap_ok()
{
	local name=$1 status=0

	shift
	"$@" >"$TAP_DIR/.out" 2>&1 || status=$?
	[ $status = 0 ] || tap_why "$name" "exit status $status: $*"$'\n'"$(tail -n 20 "$TAP_DIR/.out")"
	tap_result $status "$name"
}

# tap_is NAME GOT EXPECTED
tap_is()
{
	local status=0

	[ "$2" = "$3" ] || status=1
	[ $status = 0 ] || tap_why "$1" "got:"$'\n'"$2"$'\n'"expected:"$'\n'"$3"
	tap_result $status "$1"
}

# tap_like NAME TEXT REGEX (extended, any line)
tap_like()
{
	local status=0

	printf '%s\n' "$2" | grep -Eq -e "$3" || status=1
	[ $status = 0 ] || tap_why "$1" "no match for $3 in:"$'\n'"$(printf '%s\n' "$2" | tail -n 20)"
	tap_result $status "$1"
}

# tap_unlike NAME TEXT REGEX
tap_unlike()
{
	local status=0

	! printf '%s\n' "$2" | grep -Eq -e "$3" || status=1
	[ $status = 0 ] || tap_why "$1" "match for $3 in:"$'\n'"$(printf '%s\n' "$2" | grep -E -e "$3" | head -n 20)"
	tap_result $status "$1"
}

# tap_run COMMAND...: sets RC, OUT (stdout) and ERR (stderr). A command that does
# not end within 60 s (or $TAP_TIMEOUT) counts as RC=124.
tap_run()
{
	RC=0
	timeout -k 5 "${TAP_TIMEOUT:-60}" "$@" >"$TAP_DIR/.out" 2>"$TAP_DIR/.err" </dev/null || RC=$?
	OUT=$(tr -d '\0' <"$TAP_DIR/.out")
	# shellcheck disable=SC2034
	ERR=$(tr -d '\0' <"$TAP_DIR/.err")
}

tap_done()
{
	echo "1..$TAP_N"
	[ $TAP_FAILED = 0 ]
}

# The kvm engine as this host has it: on its own /dev/kvm, or on that of an emulated host.
kvm_engine()
{
	if "$BUILD/faultbed-vmm" probe >/dev/null 2>&1; then echo kvm; else echo nested; fi
}

# json FILE PATH: what is there, one value a line; * stands for every member ("cells.*.status").
json()
{
	perl -e '
		# A result can be megabytes, and is read once for each figure: the fast one, if it is there.
		my $json = eval { require JSON::XS; "JSON::XS" } || do { require JSON::PP; "JSON::PP" };
		my ($file, @path) = ($ARGV[0], split /\|/, $ARGV[1]);
		open my $f, "<", $file or exit 1;
		local $/;
		my @at = ($json->new->utf8->decode(<$f>));
		for my $p (@path) {
			@at = map {
				ref $_ eq "HASH" ? ($p eq "*" ? @{$_}{sort keys %$_} : exists $_->{$p} ? $_->{$p} : ()) :
				ref $_ eq "ARRAY" ? ($p eq "*" ? @$_ : $p < @$_ ? $_->[$p] : ()) : ()
			} @at;
		}
		for (@at) {
			my $text = ref $_ ? $json->new->canonical->encode($_) : $_ // "null";
			$text =~ s/\s+/ /g;
			print "$text\n";
		}
	' "$1" "$(printf '%s' "$2" | sed 's/\([^\\]\)\./\1|/g; s/\\\././g')"
}
