# SPDX-License-Identifier: GPL-2.0-only
#
# What the check of an experiment needs: results read, figures taken from them, published
# figures beside them, claims that hold or do not. A check is
#
#	#!/usr/bin/perl
#	# What must hold, stated in advance.
#	use FindBin;
#	use lib "$FindBin::Bin/../lib";
#	use Experiment;
#	...
#	finish();
#
# and runs as `check DIR`, where DIR has a result for each scenario of the experiment and
# run.tsv, by which `faultbed experiment` says what became of each. It prints lines of five
# fields parted by tabs, kind, text, published, measured, verdict:
#
#	row	QUANTITY	PUBLISHED	MEASURED	NOTE
#	claim	WHAT MUST HOLD		DETAIL	holds | does not hold
#	expect	WHAT WAS PUBLISHED, IN WORDS		DETAIL	holds | missed
#	note	TEXT
#	error	WHY THE CHECK COULD NOT GO ON			failed
#
# Exit status: 0 all claims hold, 1 one does not, 2 the check could not be made. An expectation that
# is missed fails nothing, but is counted, and shown as MISS with its reason.
#
# Here a figure that is not there is never a number: value() gives undef, arithmetic on undef ends the
# check with an error that names the figure (strict, and this warning as an error, are switched on
# in the check as well), and row() prints n/a.
package Experiment;
use strict;
use utf8;
use warnings FATAL => 'uninitialized';
use FindBin;
use JSON::PP;

my @EXPORT = qw(result cells value need interval ratio plus_minus repeats setting published row claim expected note finish);
my $dir = $ARGV[0];
my (%read, %run, $run_read, @lines, $lacking, $error, $finished);
my $failed = 0;

sub import
{
	my $into = caller;
	no strict 'refs';
	*{"${into}::$_"} = \&$_ for @EXPORT;
	strict->import;
	warnings->import;
	warnings->import(FATAL => 'uninitialized');
	binmode STDOUT, ':encoding(UTF-8)';
}

# --- output ---

sub line
{
	my @fields = map { my $t = $_ // 'n/a'; $t =~ s/[\t\r\n]+/ /g; $t } @_;
	push @lines, join("\t", @fields) . "\n";
}

# A figure as text: at most three decimals, or three digits that count.
sub figure
{
	my ($f) = @_;
	return $f unless defined $f && $f =~ /^-?\d+\.\d{4,}(e[-+]?\d+)?$/i;
	return sprintf abs($f) >= 1 ? '%.3f' : '%.3g', $f;
}

# A figure of the publication beside ours; undef is shown as n/a.
sub row
{
	my ($quantity, $published, $measured, $note) = @_;
	line('row', $quantity, figure($published), figure($measured), $note // '');
}

# What must hold. Without a true value it does not.
sub claim
{
	my ($text, $holds, $detail) = @_;
	$failed = 1 unless $holds;
	line('claim', $text, '', $detail // '', $holds ? 'holds' : 'does not hold');
	return $holds ? 1 : 0;
}

# What the published result lets one expect of this machine and kernel, where a miss is a finding and no defect: then it is shown
# as a miss, and $why, which must be known before the run, says how it comes about and where that is shown.
sub expected
{
	my ($text, $holds, $detail, $why) = @_;
	die "expected \"$text\": without a reason why it may be missed it is a claim\n" unless length($why // '');
	line('expect', $text, '', $holds ? $detail // '' : join('; ', grep { length } $detail // '', $why), $holds ? 'holds' : 'missed');
	return $holds ? 1 : 0;
}

sub note
{
	line('note', $_[0], '', '', '');
}

sub finish
{
	$finished = 1;
	print @lines;
	exit $failed;
}

$SIG{__DIE__} = sub { $error //= $_[0] unless $^S };

END {
	unless ($finished) {
		my $why = $error // 'the check ended without finish()';
		$why .= "; before: $lacking" if $lacking && $why =~ /uninitialized/;
		$why =~ s/\s+$//;
		line('error', $why, '', '', 'failed');
		print @lines;
		$? = 2;
	}
}

# --- results ---

sub read_run
{
	return if $run_read++;
	die "usage: check DIR, the folder with the experiment's results (faultbed experiment NAME makes it)\n"
		unless defined $dir && -d $dir;
	open my $f, '<', "$dir/run.tsv" or return;
	while (defined(my $text = <$f>)) {
		chomp $text;
		my ($name, $status, $why) = split /\t/, $text;
		$run{$name} = { status => $status, why => $why };
	}
}

# The result of scenario NAME.ini. undef if the run left it out, since it is not for this engine. One that is not complete
# fails a claim of its own, and can be used for what it has.
sub result
{
	my ($name) = @_;
	read_run();
	return $read{$name} if exists $read{$name};
	my $file = "$dir/$name.json";
	if (!-e $file) {
		my $run = $run{$name};
		return $read{$name} = undef if $run && $run->{status} eq 'left out';
		die "no result $file: " . ($run ? "its run ended with status $run->{status}, $run->{why}\n" :
			"faultbed experiment NAME makes it from $name.ini\n");
	}
	open my $f, '<', $file or die "$file: $!\n";
	local $/;
	my $r = eval { JSON::PP->new->utf8->decode(<$f>) };
	die "$file is no JSON: $@" unless $r;
	die "$file is no result of schema faultbed-result/1\n"
		unless ref $r eq 'HASH' && ($r->{schema} // '') eq 'faultbed-result/1' && ref $r->{cells} eq 'ARRAY';
	$_->{file} = $file for @{$r->{cells}};
	if (!$r->{complete} || $r->{status}) {
		my @bad = grep { $_->{status} } @{$r->{cells}};
		claim("$name: every repeat of every cell is there", 0, @bad ?
			scalar(@bad) . ' of ' . @{$r->{cells}} . " are not, the first: $bad[0]{name}: $bad[0]{why}" :
			"status $r->{status}");
	}
	return $read{$name} = $r;
}

# Its cells; none of undef.
sub cells
{
	my ($r) = @_;
	return $r ? @{$r->{cells}} : ();
}

sub is_number { defined $_[0] && !ref $_[0] }

# Single changes that make one word of another, for hints.
sub distance
{
	my ($x, $y) = @_;
	my @row = 0 .. length $y;
	for my $i (1 .. length $x) {
		my ($before, @next) = ($row[0], $i);
		for my $j (1 .. length $y) {
			my $least = $row[$j - 1] + (substr($x, $i - 1, 1) ne substr($y, $j - 1, 1));
			for ($row[$j] + 1, $next[$j - 1] + 1) {
				$least = $_ if $_ < $least;
			}
			push @next, $least;
		}
		@row = @next;
	}
	return $row[-1];
}

# Why a cell has no such figure.
sub why_not
{
	my ($cell, $name) = @_;
	my $s = $cell->{summary};
	my $at = "$cell->{file}, cell $cell->{name}";
	return "$at: $name is n/a: $s->{na}{$name}" if exists $s->{na}{$name};
	return "$at has no figures at all: $cell->{why}" unless $s->{repeats};
	my ($near) = sort { distance($name, $a) <=> distance($name, $b) || $a cmp $b }
		map { keys %{$s->{$_}} } qw(counters reports rates);
	return "$at has no figure $name" . (defined $near ? "; the nearest is $near" : '');
}

# A figure's mean over the repeats: a counter, or what the load reports, or a rate. undef if the cell lacks it.
sub value
{
	my ($cell, $name) = @_;
	die "value: no cell was given, but a figure $name asked for\n" unless ref $cell eq 'HASH';
	for my $of (qw(counters reports rates)) {
		my $figures = $cell->{summary}{$of};
		return $figures->{$name}{mean} if exists $figures->{$name} && is_number($figures->{$name}{mean});
	}
	$lacking = why_not($cell, $name);
	return undef;
}

# The same, and the check ends where there is none.
sub need
{
	my ($cell, $name) = @_;
	return value($cell, $name) // die "$lacking\n";
}

# Student's t of 95%, by degrees of freedom from 1; beyond the table the last one, which is a little too wide.
my @student = (undef, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086);

# The mean of a figure that must be there, and half the width of its 95% interval: undef with a single repeat.
sub interval
{
	my ($cell, $name) = @_;
	my $mean = need($cell, $name);
	for my $of (qw(counters reports rates)) {
		my $f = $cell->{summary}{$of}{$name};
		next unless $f && is_number($f->{mean});
		return ($mean, undef) unless is_number($f->{stderr}) && $f->{n} > 1;
		return ($mean, $f->{stderr} * $student[$f->{n} - 1 > $#student ? $#student : $f->{n} - 1]);
	}
}

# a / b of two means that were measured apart, and half the width of its interval, to first order; undef if one has none.
sub ratio
{
	my ($a, $half_a, $b, $half_b) = @_;
	return ($a / $b, undef) unless defined $half_a && defined $half_b;
	return ($a / $b, abs($a / $b) * sqrt(($half_a / $a) ** 2 + ($half_b / $b) ** 2));
}

# The two as text.
sub plus_minus
{
	my ($format, $mean, $half) = @_;
	return sprintf($format, $mean) . (defined $half ? ' ± ' . sprintf($format, $half) : '');
}

# A figure repeat by repeat, of those that have it.
sub repeats
{
	my ($cell, $name) = @_;
	return map { $_->{value} } grep { defined && is_number($_->{value}) }
		map { exists $_->{counters}{$name} ? $_->{counters}{$name} : $_->{reports}{$name} } @{$cell->{repeats}};
}

# What a key of the scenario was in this cell: as [vary] set it, or as the scenario has it for all.
sub setting
{
	my ($cell, $key) = @_;
	return $cell->{set}{$key} // $cell->{vm}{scenario}{$key} //
		die "$cell->{file}, cell $cell->{name}: the scenario has no key $key\n";
}

# --- what was published ---

# The rows of published.tsv (or another file of the experiment's folder), each a hash by the names in its first line that
# is no comment.
sub published
{
	my $file = "$FindBin::Bin/" . ($_[0] // 'published.tsv');
	open my $f, '<', $file or die "$file: $!\n";
	my (@names, @rows);
	while (defined(my $text = <$f>)) {	# not $_, which may be the caller's own
		chomp $text;
		next if $text =~ /^#/ || $text =~ /^\s*$/;
		my @fields = split /\t/, $text, -1;
		if (!@names) {
			my %seen;
			die "$file:$.: a header of one column: columns are parted by tabs\n" if @fields < 2;
			for (@fields) {
				die "$file:$.: column \"$_\" stands twice, or has no name\n" if !length || $seen{$_}++;
			}
			@names = @fields;
			next;
		}
		die "$file:$.: " . @fields . ' fields, where the header has ' . @names . "\n" if @fields != @names;
		my %row;
		@row{@names} = @fields;
		push @rows, \%row;
	}
	die "$file: no rows\n" unless @rows;
	return @rows;
}

1;
