#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench-compare: is `faultbed compare` to be believed? Pairs of runs of one scenario that differ in nothing but seeds, compared with no
# threshold: a difference is claimed of one in twenty, and a table has any figure marked in no more than that. Then each run
# against one in which every instruction takes longer, by what slows its headline by some 2%: it is to be found in nearly all.
# With --slow '' only the pairs of the same.
#
#	bench-compare.pl --faultbed build/faultbed [--pairs N] [--slow KEY=VALUE] [--jobs N] [--work DIR] [SCENARIO]
#
# Exit status: 0 done, 2 bad input, 4 a run failed.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Getopt::Long;
use List::Util qw(sum0);

my %opt = (pairs => 20, slow => 'cost.cpi=*1.04', seeds => 1000);
GetOptions(\%opt, 'faultbed=s', 'pairs=i', 'slow=s', 'jobs=i', 'work=s') && @ARGV <= 1 or refuse('options are listed at the head of this script');
my $scenario = $ARGV[0] // 'scenarios/null-pair.ini';
defined $opt{faultbed} or refuse('--faultbed is missing');
$opt{pairs} >= 1 or refuse('--pairs: 1 or more');
chomp($opt{jobs} = `nproc`) unless $opt{jobs};
my $work = $opt{work} // tempdir(CLEANUP => 1);
make_path($work);

sub refuse
{
	print STDERR "error: bench-compare: $_[0]\n";
	exit 2;
}

# Files by name, --set of each; as many at once as there are CPUs.
sub run_all
{
	my @todo = @_;
	my ($of, $done, %child) = (scalar @todo, 0);

	while (@todo || %child) {
		while (@todo && keys %child < $opt{jobs}) {
			my ($file, @set) = @{ shift @todo };
			my $pid = fork // die "fork: $!";

			if (!$pid) {
				open STDERR, '>', "$file.log";
				exec $opt{faultbed}, 'run', '-q', '--jobs', 1, $scenario, '-o', $file, map { ('--set', $_) } @set;
				exit 127;
			}
			$child{$pid} = $file;
		}
		my $pid = waitpid -1, 0;
		my $file = delete $child{$pid} // next;
		if ($?) {
			print STDERR "error: bench-compare: a run failed, see $file.log\n";
			kill 'TERM', keys %child;
			exit 4;
		}
		printf STDERR " %d of %d runs\n", ++$done, $of;
	}
}

# { claimed, marked, percent }: a difference of the headline; how many other figures are marked; the headline's difference.
sub compare
{
	my @args = @_;
	open my $p, '-|', $opt{faultbed}, 'compare', '--fail-on', 'different', @args or die "$opt{faultbed}: $!";
	my @lines = <$p>;
	close $p;
	my $status = $? >> 8;
	if ($status == 2) {
		print STDERR "error: bench-compare: faultbed compare @args refused\n";
		exit 4;
	}
	my @marked = grep { / \* +\[/ } @lines;
	my ($head) = grep { /\[.*\]$/ } @lines;
	my ($percent) = ($head // '') =~ /([-+]\d+\.\d+)%/;
	return { claimed => $status == 6, marked => @marked - ($head && $head =~ / \* +\[/ ? 1 : 0), percent => $percent // 0 };
}

# The two ends of the 95% interval of a chance of which k of n were seen (Wilson 1927), in percent.
sub interval
{
	my ($k, $n) = @_;
	my ($z, $p) = (1.959964, $k / $n);
	my $half = $z * sqrt($p * (1 - $p) / $n + $z ** 2 / (4 * $n ** 2));
	return map { 100 * ($p + $z ** 2 / (2 * $n) + $_ * $half) / (1 + $z ** 2 / $n) } -1, 1;
}

sub line
{
	my ($what, $k, $n, $aim) = @_;
	printf " %-62s %3d of %d, %3.0f%% (%.0f to %.0f%%); %s\n", $what, $k, $n, 100 * $k / $n, interval($k, $n), $aim;
}

my $n = $opt{pairs};
my $file = sub { "$work/$_[0]-$_[1].json" };
run_all(map { my $i = $_;
	([$file->('a', $i), 'run.seed=' . (1 + 2 * $i * $opt{seeds})], [$file->('b', $i), 'run.seed=' . (1 + (2 * $i + 1) * $opt{seeds})],
	 $opt{slow} ? [$file->('slow', $i), 'run.seed=' . (1 + (2 * $i + 1) * $opt{seeds}), $opt{slow}] : ()) } 1 .. $n);
my @null = map { compare('--least', 0, $file->('a', $_), $file->('b', $_)) } 1 .. $n;

print "$scenario, $n pairs that differ in seeds alone, no threshold:\n";
line('a difference of the headline is claimed', scalar(grep { $_->{claimed} } @null), $n, 'the level is 5%');
line('some other figure is marked (after Holm)', scalar(grep { $_->{marked} } @null), $n, 'at most 5%');
exit 0 unless $opt{slow};

my @slow = map { compare('--anyway', $file->('a', $_), $file->('slow', $_)) } 1 .. $n;
printf "The same against runs with %s, threshold 1%%; the headline is %+.2f%% in the mean of all:\n", $opt{slow},
	sum0(map { $_->{percent} } @slow) / $n;
line('a difference is claimed', scalar(grep { $_->{claimed} } @slow), $n, 'all would be best');
