#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# How far does a result hang on numbers that nobody has measured? A scenario is run again and again, each time with one thing
# of its cost models changed ([cost] of docs/scenario.md), and what its figures do is printed, the largest move first:
#
#   moves     each cost up and down by 20%
#   ranges    each estimate at either end of the range that its cost model gives
#   quantum   half and a quarter of how far one vCPU may be ahead of another: a result that depends on it is an artefact
#   overlap   one miss at a time and no look-ahead
#   clock     the core clock up and down by 20%; what is in cycles moves with it, what is in ns does not
#   seeds     other seeds: how far chance moves it
#
# Figures are one number of each cell (--figure), and of each axis of [vary] the ratios of its values to its first. What moves are moves
# from is the median of the runs with nothing changed but the seed.
#
#	bench-sensitivity.pl --faultbed build/faultbed [OPTION]... SCENARIO.ini
#
#	--figure NAME       a rate, report or counter of a cell's summary (faults_per_s)
#	--parts P,P...      some of those above (all)
#	--keys KEY,KEY...   moves and ranges of these only (all that are costs)
#	--fast              a few keys, and two seeds besides the scenario's instead of four
#	--set KEY=VALUE     as of faultbed run; may be repeated
#	--jobs N            runs side by side (as many as there are CPUs)
#	--out DIR           all numbers, as DIR/SCENARIO.tsv; results as DIR/SCENARIO/*.json
#
# Exit status: 0 done, with n/a where a run failed; 2 bad input; else that of the run with nothing changed, which has to work.
use strict;
use warnings FATAL => 'uninitialized';
use FindBin;
use File::Basename qw(basename dirname);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use Getopt::Long;
use JSON::PP;
use List::Util qw(max min);
use POSIX qw(:sys_wait_h);

my @all_parts = qw(moves ranges quantum overlap clock seeds);
my @fast_keys = qw(cpi exception line_socket_clean line_remote_dirty dram_local);
my %opt = (figure => 'faults_per_s', set => [], jobs => 0);
GetOptions(\%opt, 'faultbed=s', 'figure=s', 'parts=s', 'keys=s', 'fast', 'set=s@', 'jobs=i', 'out=s') && @ARGV == 1
	or refuse('one scenario, and options as the head of this script lists them');
my $scenario = $ARGV[0];
my $name = basename($scenario, '.ini');
my %child;	# pid to run

sub refuse
{
	print STDERR "error: bench-sensitivity: $_[0]\n";
	exit 2;
}

# Costs by name: { kind, memory }, as the VMM has them.
sub cost_keys
{
	my (%cost, @order);

	open my $f, '<', "$FindBin::Bin/../vmm/core/cost.def" or refuse("cost.def: $!");
	while (<$f>) {
		/^(COST|MEMORY)\((\w+), (\w+),/ or next;
		$cost{$2} = { kind => $3, memory => $1 eq 'MEMORY' };
		push @order, $2;
	}
	return \%cost, @order;
}

my ($cost, @cost_order) = cost_keys();
# What takes time; sizes and the clock are no costs, and the quantum is none of the machine's.
my @moved = grep { $cost->{$_}{kind} =~ /^(?:CYCLES|NS|PS|RATIO)$/ && $_ ne 'quantum' } @cost_order;
my @parts = $opt{parts} ? split(/,/, $opt{parts}) : @all_parts;
for my $p (@parts) {
	grep { $_ eq $p } @all_parts or refuse("--parts: $p is none of " . join(', ', @all_parts));
}
my @keys = $opt{keys} ? split(/,/, $opt{keys}) : $opt{fast} ? @fast_keys : @moved;
for my $k (@keys) {
	grep { $_ eq $k } @moved or refuse("--keys: $k is no cost (vmm/core/cost.def; sizes are none)");
}
defined $opt{faultbed} or refuse('--faultbed is missing');
-x $opt{faultbed} or refuse("--faultbed $opt{faultbed}: not there, or not to be run");
-r $scenario or refuse("$scenario: $!");
$opt{jobs} >= 0 or refuse('--jobs: 1 or more');
chomp($opt{jobs} = `nproc`) unless $opt{jobs};

my $work = tempdir(CLEANUP => 1);
my $dir = $opt{out} ? "$opt{out}/$name" : "$work/results";
make_path($dir);
$SIG{INT} = $SIG{TERM} = sub { kill 'TERM', keys %child; exit 130 };

# --- runs ---

# Start one: { label, set }. What it says goes to a file, of which the last line explains a failure.
sub start
{
	my ($run, $jobs) = @_;
	my @command = ($opt{faultbed}, 'run', $scenario, '-q', '-o', "$dir/$run->{file}.json", '--jobs', $jobs, map { ('--set', $_) } @{$opt{set}}, @{$run->{set}});
	my $pid = fork // refuse("fork: $!");

	if (!$pid) {
		# Nobody else boots under these costs: what was booted serves this run's cells and goes with it.
		$ENV{XDG_CACHE_HOME} = "$work/cache-$run->{file}" unless $run->{keep};
		open STDOUT, '>', "$dir/$run->{file}.log";
		open STDERR, '>&', \*STDOUT;
		exec @command or POSIX::_exit(4);
	}
	$child{$pid} = $run;
}

# The error that ended a run, on one line.
sub why
{
	my ($run) = @_;

	open my $f, '<', "$dir/$run->{file}.log" or return '';
	my @lines = grep { /^error: / } <$f>;
	chomp @lines;
	return @lines ? $lines[0] =~ s/^error: //r : 'no word of why';
}

sub read_result
{
	my ($run) = @_;

	open my $f, '<', "$dir/$run->{file}.json" or return undef;
	local $/;
	return eval { JSON::PP->new->utf8->decode(<$f>) };
}

sub progress
{
	my ($done, $of, $text) = @_;

	print STDERR -t STDERR ? sprintf("\r %d of %d runs, %-40.40s", $done, $of, $text) : sprintf(" %d of %d runs: %s\n", $done, $of, $text);
}

sub run_all
{
	my @wait = @_;
	my ($of, $done) = (scalar @wait, 0);

	while (@wait || %child) {
		start(shift @wait, 1) while @wait && keys %child < $opt{jobs};
		my $pid = waitpid(-1, 0);
		my $run = delete $child{$pid} // next;
		$run->{status} = $? & 127 ? 4 : $? >> 8;
		remove_tree("$work/cache-$run->{file}");
		progress(++$done, $of, $run->{label});
	}
	print STDERR "\n" if $of && -t STDERR;
}

# --- figures ---

# A cell's figure; undef if it has none.
sub cell_figure
{
	my ($cell) = @_;

	for my $kind (qw(rates reports counters)) {
		my $f = $cell->{summary}{$kind}{$opt{figure}};
		return $f->{mean} if $f && defined $f->{mean};
	}
	return undef;
}

# [values, cells from one value to the next] of each axis, in the scenario's order: the first changes slowest.
sub axes
{
	my ($result) = @_;
	my @cells = @{$result->{cells}};
	my @axes;

	for my $names (keys %{$result->{vary}}) {
		my $n = @{$result->{vary}{$names}};
		# Keys that go together may share some values, but not all.
		my $value = sub { join ' + ', map { $_[0]{set}{$_} // '' } split / \+ /, $names };
		my ($stride) = grep { $value->($cells[$_]) ne $value->($cells[0]) } 1 .. $#cells;

		push @axes, [$n, $stride] if $n > 1;
	}
	return sort { $b->[1] <=> $a->[1] } @axes;
}

# [name, value or undef] of each cell, then the ratios along each axis.
sub figures
{
	my ($result) = @_;
	my @cells = @{$result->{cells}};
	my @value = map { cell_figure($_) } @cells;
	my @out = map { [$cells[$_]{name}, $value[$_]] } 0 .. $#cells;
	my $axis = 0;

	for (axes($result)) {
		my ($n, $stride) = @$_;

		for my $i (0 .. $#cells) {
			my $at = int($i / $stride) % $n or next;
			my $first = $i - $at * $stride;
			my ($a, $b) = @value[$i, $first];

			push @out, ["$cells[$i]{name} / $cells[$first]{name}", defined $a && defined $b && $b ? $a / $b : undef,
				    $axis];
		}
		$axis++;
	}
	return @out;
}

# The median of each figure over some runs with nothing changed.
sub reference
{
	my @all = @_;

	return map {
		my $i = $_;
		my @v = sort { $a <=> $b } grep { defined } map { $_->[$i][1] } @all;
		my ($name, undef, @axis) = @{$all[0][$i]};
		[$name, @v ? ($v[$#v / 2] + $v[@v / 2]) / 2 : undef, @axis];
	} 0 .. $#{$all[0]};
}

sub number
{
	my ($v) = @_;

	return 'n/a' unless defined $v;
	return sprintf '%.4g', $v if abs($v) < 1000;
	my $text = sprintf '%.0f', $v;
	1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
	return $text;
}

sub letter { return $_[0] < 26 ? chr(ord('A') + $_[0]) : letter(int($_[0] / 26) - 1) . chr(ord('A') + $_[0] % 26) }

# --- what to change ---

# Models of the base run's cells: those that have a range, by key; and whether all have a memory model.
sub models
{
	my ($base) = @_;
	my (%range, %seen);
	my $memory = 1;

	for my $cell (@{$base->{cells}}) {
		my $model = $cell->{vm}{scenario}{'vm.cost_model'};

		$memory &&= $cell->{vm}{cost_model}{memory_model};
		next if $seen{$model}++;
		$model = 'simple' if $model eq 'auto';
		$model = dirname($scenario) . "/$model" if $model =~ m{/} && $model !~ m{^/};
		open my $f, '-|', $opt{faultbed}, 'cost-model', $model or refuse("$opt{faultbed}: $!");
		while (<$f>) {
			$range{$1} = 1 if /^  (\w+) +\S+(?: \S+)?  \(\S.*\.\./;
		}
		close $f or refuse("faultbed cost-model $model failed");
	}
	return $memory, %range;
}

my $number = 0;

sub change
{
	my ($part, $label, @set) = @_;

	return { part => $part, label => $label, set => \@set, file => sprintf('%03d', ++$number) };
}

# One key to `value`. A line that comes sooner takes the quantum along, which it must not be shorter than.
sub change_key
{
	my ($part, $key, $label, $value, $down) = @_;
	my @quantum = $down && $key =~ /^line_(?:socket|remote)_/ ? ('cost.quantum=auto') : ();

	return change($part, "$key $label", "cost.$key=$value", @quantum);
}

sub plan
{
	my ($base) = @_;
	my ($memory, %range) = models($base);
	my %own = map { /^cost\.(.*)/ ? ($1 => 1) : () } map { keys %{$_->{vm}{scenario}} } @{$base->{cells}};
	my @use = grep { $memory || !$cost->{$_}{memory} } @keys;
	my $seed = $base->{cells}[0]{vm}{scenario}{'run.seed'};
	my @runs;

	for my $part (@parts) {
		if ($part eq 'moves') {
			push @runs, map { change_key($part, $_, '+20%', '*1.2', 0), change_key($part, $_, '-20%', '*0.8', 1) } @use;
		} elsif ($part eq 'ranges') {
			push @runs, map { change_key($part, $_, 'low', 'low', 1), change_key($part, $_, 'high', 'high', 0) }
				grep { $range{$_} } @use;
		} elsif ($part eq 'quantum') {
			push @runs, change($part, 'quantum, half', 'cost.quantum=*0.5'),
				change($part, 'quantum, a quarter', 'cost.quantum=*0.25');
		} elsif ($part eq 'overlap') {
			push @runs, change($part, 'overlap off', 'cost.misses=1', 'cost.miss_window=1') if $memory;
		} elsif ($part eq 'clock') {
			push @runs, change($part, 'clock +20%', 'cost.clock=*1.2'), change($part, 'clock -20%', 'cost.clock=*0.8');
		} else {
			push @runs, map { { %{change($part, "seed $_", "run.seed=$_")}, keep => 1 } }
				$seed, map { $seed + 1000 * $_ } 1 .. ($opt{fast} ? 2 : 4);
		}
	}
	# A factor is one of the model's number, not of what the scenario has made of it.
	for my $run (@runs) {
		my @mine = grep { $own{$_} } map { /^cost\.(\w+)=/ ? $1 : () } @{$run->{set}};
		$run->{why} = "the scenario changes cost.$mine[0] itself" if @mine;
	}
	return @runs;
}

# --- print ---

sub print_base
{
	my @figures = @_;

	print " $opt{figure} of $scenario, and ratios of it along each axis; what each change does to them, in percent:\n\n";
	printf "   %-3s %14s  %s\n", letter($_), number($figures[$_][1]), $figures[$_][0] for 0 .. $#figures;
	print "\n";
}

# Percent by figure; undef where there is none.
sub moves_of
{
	my ($run, $base) = @_;

	return [map {
		my ($was, $is) = ($base->[$_][1], $run->{figures}[$_][1]);
		defined $was && defined $is && $was ? 100 * ($is / $was - 1) : undef;
	} 0 .. $#$base];
}

# Moves of less than chance's are no moves.
sub print_table
{
	my ($runs, $base, $chance) = @_;
	my @head = headline($base);
	my $rank = sub { max(map { abs($_[0]{moves}[$_] // 0) } @head) };
	my @good = sort { $rank->($b) <=> $rank->($a) || $a->{file} cmp $b->{file} } grep { $_->{moves} } @$runs;

	printf " %-28s%s\n", 'change', join '', map { sprintf ' %8s', letter($_) } 0 .. $#$base;
	for my $run (@good, grep { !$_->{moves} } @$runs) {
		printf " %-28s%s%s\n", $run->{label},
			join('', map { my $m = $run->{moves} && $run->{moves}[$_]; sprintf ' %8s', defined $m ? sprintf('%+.2f', $m) =~ s/^-(0\.00)$/+$1/r : 'n/a' } 0 .. $#$base),
			$run->{moves} ? $run->{part} ne 'seeds' && $rank->($run) && $rank->($run) <= $chance ? '  ~' : '' : "  $run->{why}";
	}
	printf "\n ~ less than the largest move by another seed, %.2f%%\n", $chance if $chance;
}

# Which figures rows are sorted by: the ratios along the first axis that has any, or else the cells.
sub headline
{
	my ($base) = @_;
	my @axis = sort { $a <=> $b } map { defined $_->[2] ? $_->[2] : () } @$base;

	return grep { @axis ? defined $base->[$_][2] && $base->[$_][2] == $axis[0] : 1 } 0 .. $#$base;
}

# Each figure over the ranges of its estimates: one at a time, and as if all were independent.
sub print_ranges
{
	my ($runs, $base) = @_;
	my @runs = grep { $_->{part} eq 'ranges' && $_->{moves} } @$runs;

	return unless @runs;
	print "\n over the ranges of the estimates: one at a time, and all as if independent (root of the sum of squares)\n";
	for my $i (0 .. $#$base) {
		my ($was, %down, %up) = $base->[$i][1];

		next unless defined $was;
		for my $run (@runs) {
			my ($key, $m) = ($run->{label} =~ /^(\w+)/, $run->{moves}[$i] // next);
			$down{$key} = min($down{$key} // 0, $m);
			$up{$key} = max($up{$key} // 0, $m);
		}
		my ($least, $most) = (min(0, values %down), max(0, values %up));
		my ($below, $above) = map { my $s = 0; $s += $_ ** 2 for @$_; sqrt $s } [values %down], [values %up];
		printf "   %-3s %14s  %s to %s, %s to %s\n", letter($i), number($was),
			map { number($was * (1 + $_ / 100)) } $least, $most, -min($below, 100), $above;
	}
}

sub write_tsv
{
	my ($path, $base, @runs) = @_;

	open my $f, '>', $path or refuse("$path: $!");
	print $f join("\t", 'part', 'change', map { $_->[0] } @$base), "\n";
	print $f join("\t", 'base', '', map { $_->[1] // 'n/a' } @$base), "\n";
	print $f join("\t", $_->{part}, $_->{label}, map { $_->[1] // 'n/a' } @{$_->{figures} // [map { ['', undef] } @$base]}), "\n"
		for @runs;
	close $f or refuse("$path: $!");
}

# --- all of it ---

my $first = { label => 'nothing changed', set => [], file => 'base', keep => 1 };
progress(0, 1, $first->{label}) if -t STDERR;
start($first, $opt{jobs});
waitpid((keys %child)[0], 0);
%child = ();
if ($?) {
	print STDERR 'error: bench-sensitivity: ', why($first), "\n";
	exit($? & 127 ? 4 : $? >> 8);
}
my $result = read_result($first) // refuse("$dir/$first->{file}.json: no result");
refuse("$scenario ran on $result->{engine}, which has no cost model; vm.engine = soft") if $result->{engine} ne 'soft';
my @base = figures($result);
grep { defined $_->[1] } @base or refuse("--figure $opt{figure}: no cell has it");
my @runs = plan($result);
run_all(grep { !$_->{why} } @runs);
for my $run (grep { !$_->{why} } @runs) {
	my $r = $run->{status} ? undef : read_result($run);

	if ($r && @{$r->{cells}} == @{$result->{cells}}) {
		$run->{figures} = [figures($r)];
	} else {
		$run->{why} = why($run);
	}
}
my @seeds = grep { $_->{part} eq 'seeds' && $_->{figures} } @runs;
@base = reference(map { $_->{figures} } @seeds) if @seeds;
$_->{moves} = moves_of($_, \@base) for grep { $_->{figures} } @runs;
my @head = headline(\@base);
my $chance = max(0, map { my $run = $_; map { abs($run->{moves}[$_] // 0) } @head } @seeds);
print_base(@base);
print_table(\@runs, \@base, $chance);
print_ranges(\@runs, \@base);
if ($opt{out}) {
	write_tsv("$opt{out}/$name.tsv", \@base, @runs);
	print "\n wrote $opt{out}/$name.tsv\n";
}
