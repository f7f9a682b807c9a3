#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed experiment: runs, checks, and says what is wrong where something is. Experiments of
# this test's own; those of the tree are checked for being whole, not run.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
fb=$BUILD/faultbed

# --- those of the tree ---

tap_run "$fb" experiment --list
tap_is "--list: status 0" "$RC" 0
list=$OUT
for d in "$TOP"/experiments/*/; do
	name=$(basename "$d")
	[ "$name" != lib ] || continue
	tap_like "--list has $name and its title" "$list" "^$name +[A-Z].* scenarios?\\)"
	tap_ok "$name: the check compiles" perl -I"$TOP/experiments/lib" -c "$d/check"
	tap_is "$name: README, published figures, an executable check" \
		"$(cd "$d" && ls README.md published*.tsv check >/dev/null 2>&1 && test -x check && echo all)" all
	for f in "$d"*.ini; do
		tap_run "$fb" run --check "$f"
		tap_is "$name/$(basename "$f") is sound" "$RC" 0
		tap_like "$name/$(basename "$f") says what answer it expects" "$(sed -n '/^\[/q;p' "$f")" '^# Expected'
	done
done

# --- bad input ---

mkdir -p tree/scenarios tree/experiments/alpha
cp -r "$TOP/cost-models" tree
cp -r "$TOP/experiments/lib" tree/experiments
printf '#!/bin/sh\n' >tree/experiments/alpha/check
chmod +x tree/experiments/alpha/check
tap_run env FAULTBED_HOME="$TAP_DIR/tree" "$fb" experiment alhpa
tap_is "an unknown name: status 2" "$RC" 2
tap_like "and the nearest that there is" "$ERR" 'no experiment is called "alhpa"; did you mean alpha\?'
tap_run env FAULTBED_HOME="$TAP_DIR/tree" "$fb" experiment alpha
tap_is "an experiment without scenarios: status 2" "$RC" 2
tap_like "and why" "$ERR" 'without a scenario'
rm -r tree/experiments/alpha
tap_run "$fb" experiment
tap_is "no name: status 2" "$RC" 2
tap_run "$fb" experiment --all fault-around
tap_is "a name beside --all: status 2" "$RC" 2
tap_run "$fb" experiment --engine soff fault-around
tap_is "an unknown engine: status 2" "$RC" 2
tap_like "and the nearest" "$ERR" '--engine soff: .*did you mean soft'
mkdir empty
tap_run "$fb" experiment ./empty
tap_is "a folder that is no experiment: status 2" "$RC" 2
tap_like "and why" "$ERR" 'has no check'

# --- experiments of our own ---

# new NAME: a scenario for soft and one for nested; the check comes from standard input.
new()
{
	mkdir -p "$1"
	cat >"$1/small.ini" <<-EOT
	# Does a guest do nothing? Expected: yes.
	[vm]
	topology = 1x1x1
	memory = 128MiB
	[run]
	command = ${2:-fixed-work}
	EOT
	sed 's/^memory/engine = nested\nmemory/' "$1/small.ini" >"$1/other.ini"
	printf '# A comment\nquantity\tvalue\nfaults\t7\n' >"$1/published.tsv"
	printf '# What a test is for\n' >"$1/README.md"
	{
		printf '#!/usr/bin/perl\nuse Experiment;\n'
		cat
	} >"$1/check"
	chmod +x "$1/check"
}

new good <<'EOT'
my ($cell) = cells(result('small'));
note('left out') unless defined result('other');
my ($p) = published();
row('faults', $p->{value}, need($cell, 'guest_page_faults'), 'a note');
row('nothing', undef, value($cell, 'no_such_figure'));
claim('there are faults', value($cell, 'guest_page_faults') > 500, 'more than 500');
claim('a setting is what it is', setting($cell, 'vm.memory') eq '128MiB');
expected('it is as it was', 1, '7 as 7', 'another kernel');
expected('it is what it was', 0, '8, not 7', 'another kernel');
row('one repeat has no interval', undef, plus_minus('%d', 8, (interval($cell, 'guest_page_faults'))[1]));
row('a ratio has one', undef, plus_minus('%.2f', ratio(10, 1, 5, 0.5)));
finish();
EOT
tap_run "$fb" experiment ./good -o o
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "a good one: status 0" "$RC" 0
tap_like "its title is printed" "$OUT" '^ good: What a test is for$'
tap_like "published beside measured" "$OUT" '^ faults +7 +[0-9]{3,}  a note$'
tap_like "what is not there is n/a, not 0" "$OUT" '^ nothing +n/a +n/a$'
tap_like "a claim and its detail" "$OUT" '^ holds +there are faults \(more than 500\)$'
tap_like "how many hold" "$OUT" '1 experiment, 2 of 2 claims hold, 1 of 2 expectations missed'
tap_like "an expectation that is met" "$OUT" '^ as published +it is as it was \(7 as 7\)$'
tap_like "one that is missed is shown, with its reason, and fails nothing" "$OUT" '^ MISS +it is what it was \(8, not 7; another kernel\)$'
tap_like "no interval of one repeat" "$OUT" '^ one repeat has no interval +n/a +8$'
tap_like "an interval of a ratio" "$OUT" '^ a ratio has one +n/a +2.00 ± 0.28$'
tap_like "a scenario for another engine is left out" "$OUT" '^ note +left out$'
tap_like "which is said" "$ERR" 'other.ini is not for engine soft: left out'
tap_is "the result is where it belongs" "$(json o/good/small.json engine)" soft

# The same results under checks that are broken, one way each.
again()	# WHAT, the check from standard input; sets RC, OUT, ERR
{
	printf '#!/usr/bin/perl\nuse Experiment;\n' >good/check
	cat >>good/check
	tap_run perl -I"$TOP/experiments/lib" good/check o/good
}

again <<'EOT'
my ($cell) = cells(result('small'));
claim('it grows', value($cell, 'no_such_figure') + 1 > 0);
finish();
EOT
tap_is "arithmetic with a figure that is not there: status 2" "$RC" 2
tap_like "is an error that names figure, cell and the nearest" "$OUT" \
	'^error.*line 4.*small.json, cell .* has no figure no_such_figure; the nearest is [a-z_]+'
again <<'EOT'
my ($cell) = cells(result('small'));
claim('there are some', need($cell, 'guest_page_fault') > 0);
finish();
EOT
tap_is "a figure that must be there: status 2" "$RC" 2
tap_like "with the nearest name" "$OUT" 'no figure guest_page_fault; the nearest is guest_page_faults'
again <<'EOT'
result('smal');
finish();
EOT
tap_is "a result that is missing: status 2" "$RC" 2
tap_like "and which" "$OUT" '^error.no result o/good/smal.json'
again <<'EOT'
setting((cells(result('small')))[0], 'vm.memry');
finish();
EOT
tap_like "a key that the scenario lacks" "$OUT" '^error.*the scenario has no key vm.memry'
again <<'EOT'
expected('all is well', 0, 'it is not');
finish();
EOT
tap_is "an expectation without a reason to miss it: status 2" "$RC" 2
again <<'EOT'
claim('the end is reached', 1);
EOT
tap_is "a check without finish(): status 2" "$RC" 2
for broken in 'quantity\tvalue\nfaults\n' 'quantity\tquantity\nfaults\t1\n' 'quantity\tvalue\n' 'quantity value\nfaults 1\n'; do
	# shellcheck disable=SC2059
	printf "$broken" >good/published.tsv
	again <<-'EOT'
	published();
	claim('', 1);
	finish();
	EOT
	tap_is "published.tsv is broken ($broken): status 2" "$RC" 2
	tap_like "and the error names the file" "$OUT" '^error.*published.tsv'
done

# A result of which a part is missing.
perl -pi -e 's/"complete"\s*:\s*true/"complete": false/' o/good/small.json
again <<'EOT'
my $r = result('small');
claim('a cell is there', scalar(cells($r)));
finish();
EOT
tap_is "a result that is not complete: status 1" "$RC" 1
tap_like "fails a claim of its own" "$OUT" '^claim.small: every repeat of every cell is there.*does not hold$'

# --- failures do not take others along ---

new fails <<'EOT'
my ($cell) = cells(result('small'));
claim('there are no faults', need($cell, 'guest_page_faults') == 0);
claim('there are some', 1);
finish();
EOT
new silent <<'EOT'
note('nothing claimed');
finish();
EOT
new liar <<'EOT'
claim('false', 0);
print "rubbish\n";
finish();
EOT
new command false <<'EOT'
my ($cell) = cells(result('small'));
claim('there is a figure', defined value($cell, 'guest_page_faults'));
finish();
EOT
new last <<'EOT'
claim('it ran', scalar(cells(result('small'))));
finish();
EOT
tap_run "$fb" experiment ./fails ./last -o o
tap_is "a claim that does not hold: status 1" "$RC" 1
tap_like "is shown" "$OUT" '^ DOES NOT HOLD +there are no faults$'
tap_like "beside those that hold" "$OUT" '^ holds +there are some$'
tap_like "and the next experiment ran" "$OUT" '^ holds +it ran$'
tap_like "how many hold" "$OUT" '2 experiments, 2 of 3 claims hold'
tap_run "$fb" experiment ./silent -o o
tap_is "a check that claims nothing: status 2" "$RC" 2
tap_run "$fb" experiment ./liar -o o
tap_is "a check that prints rubbish: status 2" "$RC" 2
tap_like "which is shown" "$OUT$ERR" '1 column where 5 belong: "rubbish"'
tap_run "$fb" experiment ./command -o o
tap_is "the guest's command failed: status 1" "$RC" 1
tap_like "which a claim says" "$OUT" '^ DOES NOT HOLD +small: every repeat of every cell is there'
tap_like "and without figures nothing is a figure" "$OUT" '^ DOES NOT HOLD +there is a figure'
echo 'nonsense = 1' >>last/small.ini
tap_run "$fb" experiment ./last ./fails -o o
tap_is "a scenario that is unsound: status 2" "$RC" 2
tap_like "its old result is not taken for a new one" "$OUT" 'no result o/last/small.json: its run ended with status 2'
tap_like "and the next experiment ran" "$OUT" '^ holds +there are some$'

# Nothing runs here: one scenario is for soft, the other too large for one emulated CPU.
new large <<'EOT'
claim('never', 0);
finish();
EOT
sed -i 's/^topology.*/topology = 2x6x2/' large/small.ini
sed -i 's/^engine.*/engine = soft/' large/other.ini
tap_run "$fb" experiment ./large --engine nested -o o
tap_is "an experiment that does not fit the engine, by name: status 2" "$RC" 2
tap_like "what is too large is said" "$ERR" 'small.ini is too large for engine nested \(24 vCPUs, 8 at most\): left out'
tap_like "beside what is for another engine" "$ERR" 'other.ini is not for engine nested: left out'
tap_like "and that nothing is left" "$OUT$ERR" '^error: experiment large: no scenario is for engine nested'
mkdir -p fits/experiments
cp -r tree/cost-models tree/scenarios fits
cp -r tree/experiments/lib fits/experiments
mv large fits/experiments/large
tap_run env FAULTBED_HOME="$TAP_DIR/fits" "$fb" experiment --all --engine nested -o fit
tap_is "one of all that does not fit: status 0" "$RC" 0
tap_like "the table says so, and claims nothing" "$OUT" '^ note +nothing was run: no scenario is for engine nested$'
tap_like "nor does the sum" "$OUT" '1 experiment, 0 of 0 claims hold'

# --all, of a tree of its own: the table of all goes to a file as well.
mv fails tree/experiments/a
mv silent tree/experiments/b
tap_run env FAULTBED_HOME="$TAP_DIR/tree" "$fb" experiment --all -o all --set run.command=true \
	--kernel "$BUILD/kernel/bzImage" --initrd "$BUILD/initramfs.cpio"
tap_is "--all: the worst status" "$RC" 2
tap_is "--all: summary.tsv has each line of each check" "$(cut -f1,2,3,6 all/summary.tsv)" \
	"$(printf 'experiment\tkind\ttext\tverdict\na\tclaim\tthere are no faults\tdoes not hold\na\tclaim\tthere are some\tholds\n'
	   printf 'b\tnote\tnothing claimed\t\nb\terror\t%s/tree/experiments/b/check claims nothing, so it cannot fail\tfailed\n' "$TAP_DIR")"

tap_done
