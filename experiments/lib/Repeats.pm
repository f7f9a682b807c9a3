# SPDX-License-Identifier: GPL-2.0-only
#
# Figures of a cell repeat by repeat, for what has to be computed in each repeat before a mean of it means anything: CPU time by the
# engine's clock, and ratios of two cells whose repeats have their seeds in common. As with Experiment's
# interval(), a mean comes with half the width of its 95% interval, undef where there are fewer than two values.
package Repeats;
use strict;
use warnings FATAL => 'uninitialized';
use Exporter 'import';

our @EXPORT = qw(each_repeat mean_of paired_ratio under over cpu_cycles user_cycles);

# Student's t of 95%, by degrees of freedom from 1; beyond the table the last one, which is a little too wide.
my @T = (undef, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086);

sub student { $T[$_[0] > $#T ? $#T : $_[0]] }

# What fn makes of each repeat. It is given a function that has a figure of that repeat by its name, and ends the check where there is none.
sub each_repeat
{
	my ($cell, $fn) = @_;
	my @values = map {
		my $repeat = $_;
		$fn->(sub { ($repeat->{counters}{$_[0]} // $repeat->{reports}{$_[0]} //
			die "$cell->{file}, cell $cell->{name}, repeat $repeat->{repeat}: no figure $_[0]\n")->{value} }, $repeat);
	} grep { defined } @{$cell->{repeats}};
	die "$cell->{file}, cell $cell->{name}: no repeats\n" unless @values;
	return @values;
}

# Mean of the values, and half its interval.
sub mean_of
{
	my $n = @_;
	my ($mean, $square) = (0, 0);
	$mean += $_ / $n for @_;
	$square += ($_ - $mean) ** 2 for @_;
	return ($mean, $n > 1 ? student($n - 1) * sqrt($square / ($n - 1) / $n) : undef);
}

# Of a over b, where the i-th value of the one has its seed, and so its work, in common with the i-th of the other.
sub paired_ratio
{
	my ($a, $b) = @_;
	die @$a . ' values beside ' . @$b . ": no pairs\n" if @$a != @$b;
	return mean_of(map { $a->[$_] / $b->[$_] } 0 .. $#$a);
}

# All of the interval lies under (over) the limit. Without an interval it does not.
sub under
{
	my ($limit, $mean, $half) = @_;
	return defined $half && $mean + $half < $limit;
}

sub over
{
	my ($limit, $mean, $half) = @_;
	return defined $half && $mean - $half > $limit;
}

# --- the engine's clock, of all vCPUs together (docs/profile.md, "Time by class"), in a repeat of each_repeat() ---

sub classes
{
	my ($repeat) = @_;
	return map { /^soft_time_(\w+)$/ ? ($1 => $repeat->{counters}{$_}{value}) : () } keys %{$repeat->{counters}};
}

# As a kernel accounts for CPU time: neither halted nor on the way out of it, which is before the first instruction.
sub cpu_cycles
{
	my %time = classes($_[0]);
	my $sum = 0;
	$sum += $time{$_} for grep { $_ ne 'idle' && $_ ne 'wake' } keys %time;
	return $sum || die "this engine does not tell what vCPUs' time went to\n";
}

# Of this what a user program's own instructions took. What they wait for is the rest's.
sub user_cycles
{
	my %time = classes($_[0]);
	return $time{user} // 0;
}

1;
