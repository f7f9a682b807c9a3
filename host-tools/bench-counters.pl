#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# What the kernel patches cost with every knob at its default: instructions per page fault and per
# context switch of a kernel with the series beside one without, on the soft engine, which counts each. With one
# vCPU and no sampling the counts are exact: another run gives the same. At most 1% more is allowed.
#
#	bench-counters.pl --faultbed build/faultbed --with DIR/bzImage --without DIR/bzImage
#
# Exit status: 0 within the limit, 1 above it, 2 bad input, else as faultbed run.
use strict;
use warnings FATAL => 'uninitialized';
use File::Temp qw(tempdir);
use Getopt::Long;
use JSON::PP;

my %opt = (limit => 1, initrd => undef);
GetOptions(\%opt, 'faultbed=s', 'with=s', 'without=s', 'initrd=s', 'limit=f') or exit 2;
for (qw(faultbed with without)) {
	defined $opt{$_} or refuse("--$_ is missing");
}
for (qw(with without)) {
	-r $opt{$_} or refuse("--$_ $opt{$_}: cannot be read");
}

# What one event is called, the load, and what it reports of its events.
my @loads = (
	{ per => 'page fault, first touch', command => 'multi-fault 1 --rounds 40 --warmup 1ms', events => 'faults' },
	{ per => 'page fault, file', command => 'fault-around --patterns random --mm one --words one', events => 'runs.minor_faults',
	  knob => 'echo 4096 >/sys/kernel/debug/fault_around_bytes' },
	{ per => 'context switch', command => 'switch-pingpong --count 10000', events => 'switches' },
);
my $dir = tempdir(CLEANUP => 1);
my $over = 0;

sub refuse
{
	print STDERR "error: bench-counters: $_[0]\n";
	exit 2;
}

# Instructions an event takes.
sub measure
{
	my ($kernel, $load) = @_;
	my $before = $load->{knob} ? "mount -t debugfs none /sys/kernel/debug 2>/dev/null; $load->{knob} && " : '';
	open my $ini, '>', "$dir/load.ini" or refuse("$dir: $!");
	print $ini "# What does an event cost?\n[vm]\ntopology = 1x1x1\nmemory = 256MiB\n",
		"[run]\ncommand = $before$load->{command}\n";
	close $ini;
	my $status = system($opt{faultbed}, qw(run --quiet --engine soft --kernel), $kernel, '-o', "$dir/load.json",
			    ($opt{initrd} ? ('--initrd', $opt{initrd}) : ()), "$dir/load.ini");
	exit($status >> 8 || 4) if $status;
	open my $f, '<', "$dir/load.json" or refuse("$dir/load.json: $!");
	local $/;
	my $s = JSON::PP->new->utf8->decode(<$f>)->{cells}[0]{summary};
	my ($instructions, $events) = ($s->{counters}{instructions}{mean}, $s->{reports}{$load->{events}}{mean});
	refuse("$kernel: no $load->{events} in the result of $load->{command}") unless $instructions && $events;
	return $instructions / $events;
}

my @rows = map {
	my ($without, $with) = (measure($opt{without}, $_), measure($opt{with}, $_));
	my $percent = 100 * ($with / $without - 1);
	$over ||= $percent > $opt{limit};
	[$_->{per}, $without, $with, $percent];
} @loads;
printf " %-28s %12s %12s %9s\n", 'instructions a', 'without', 'with', 'more';
printf " %-28s %12.1f %12.1f %+8.2f%%%s\n", @$_, $_->[3] > $opt{limit} ? "  above $opt{limit}%" : '' for @rows;
exit $over;
