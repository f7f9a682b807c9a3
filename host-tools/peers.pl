#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# peers.pl RESULT.json...: what several engines observe of the same load, a column each, from the first cell's first
# repeat. Below the table: how many of all counters each of them has, and why it has not the others.

use strict;
use warnings;
use JSON::PP;

@ARGV or die "usage: peers.pl RESULT.json...\n";

my @results = map { read_result($_) } @ARGV;

sub read_result
{
	my ($path) = @_;
	local $/;
	open my $f, '<', $path or die "error: $path: $!\n";
	my $o = eval { JSON::PP->new->utf8->decode(<$f>) } or die "error: $path: no JSON: $@";
	my $cell = $o->{cells}[0] or die "error: $path: no cell\n";
	my $repeat = $cell->{repeats}[0] or die "error: $path: no repeat: $cell->{why}\n";
	return { engine => $o->{engine}, repeat => $repeat };
}

# What is reported of the parts of the load, whose work is fixed but where threads run for the first time; then what host and guest count.
my @rows = (
	['page faults of the parts', map { my $r = $_->{repeat}{reports};
		my $sum; $sum += $r->{$_}{value} for grep { /\.guest_page_faults$/ && !/^start\./ } keys %$r; $sum } @results],
	['  that the host reads in the channel', map { value($_, 'guest_page_faults') } @results],
	['  and the guest in /proc/vmstat', map { value($_, 'guest_page_faults@/proc/vmstat') } @results],
	map { my $name = $_; [$name, map { value($_, $name) } @results] }
		qw(tlb_shootdowns tlb_shootdown_ipis_sent tlb_flush_full tlb_flush_page context_switches ipis_sent timer_fires
		   vm_exits ept_violations page_walks instructions),
);

sub value
{
	my ($result, $name) = @_;
	my $c = $result->{repeat}{counters}{$name};
	return $c ? $c->{value} : undef;
}

sub grouped
{
	my ($n) = @_;
	return 'n/a' unless defined $n;
	1 while $n =~ s/^(\d+)(\d{3})/$1,$2/;
	return $n;
}

printf "%-38s" . (' %14s' x @results) . "\n", 'fixed work', map { $_->{engine} } @results;
printf "%-38s" . (' %14s' x @results) . "\n", shift @$_, map { grouped($_) } @$_ for @rows;
printf "%-38s" . (' %14s' x @results) . "\n", 'counters', map { scalar keys %{ $_->{repeat}{counters} } } @results;
printf "%-38s" . (' %14s' x @results) . "\n", 'n/a', map { scalar keys %{ $_->{repeat}{na} } } @results;
for my $r (@results) {
	my %why;
	push @{ $why{ $r->{repeat}{na}{$_} } }, $_ for keys %{ $r->{repeat}{na} };
	print "\nn/a on $r->{engine}:\n" if %why;
	printf "  %3d  %s\n", scalar @{ $why{$_} }, $_ for sort { @{ $why{$b} } <=> @{ $why{$a} } || $a cmp $b } keys %why;
}
