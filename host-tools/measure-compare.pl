#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench-native: where virtual time meets a machine that can be touched. A cost model is measured on this host
# (faultbed cost-model --measure), and the soft engine under it is compared with multi-fault natively, at 1 to N threads.
# The error is all that is between them: the model's, and that the host's kernel is not the guest's.
use strict;
use warnings;
use File::Spec;
use Getopt::Long;
use JSON::PP;
use POSIX qw(uname);

my %opt = (runs => 5, duration => 200);
GetOptions(\%opt, 'faultbed=s', 'multi-fault=s', 'work=s', 'model=s', 'threads=i', 'runs=i', 'duration=i') or exit 2;
for (qw(faultbed multi-fault work)) {
	die "error: measure-compare.pl: --$_ is missing\n" unless defined $opt{$_};
}
my $model = $opt{model} // "$opt{work}/host.ini";
my $cpus = () = glob '/sys/devices/system/cpu/cpu[0-9]*';
my $threads = $opt{threads} // $cpus;

sub run
{
	my (@command) = @_;

	open my $pipe, '-|', @command or die "error: $command[0]: $!\n";
	my @lines = <$pipe>;
	close $pipe or die "error: @command: status " . ($? >> 8) . "\n";
	return @lines;
}

sub median { my @v = sort { $a <=> $b } @_; return $v[@v / 2]; }

sub read_line
{
	my ($path) = @_;

	open my $f, '<', $path or return '';
	my $line = <$f>;
	chomp $line;
	return $line;
}

# Sockets and threads a core, for a guest of the same shape.
sub shape
{
	my (%socket, %core);

	for my $cpu (glob '/sys/devices/system/cpu/cpu[0-9]*') {
		$socket{read_line("$cpu/topology/physical_package_id")} = 1;
		$core{read_line("$cpu/topology/core_cpus_list")} = 1;
	}
	my ($s, $c) = (scalar keys %socket, scalar keys %core);
	return sprintf '%dx%dx%d', $s, $c / $s, $cpus / $c;
}

sub native
{
	my ($n) = @_;
	my @rates;

	local $ENV{FAULTBED_WARMUP_NS} = 50_000_000;
	local $ENV{FAULTBED_DURATION_NS} = $opt{duration} * 1_000_000;
	for (1 .. $opt{runs}) {
		my ($rate) = map { /^report faults_per_s (\S+)/ ? $1 : () } run($opt{'multi-fault'}, $n);
		die "error: multi-fault $n reported no faults_per_s\n" unless defined $rate;
		push @rates, $rate;
	}
	return @rates;
}

sub soft_result
{
	my ($name, $command, $shape) = @_;
	my ($ini, $json) = ("$opt{work}/native-$name.ini", "$opt{work}/native-$name.json");

	open my $f, '>', $ini or die "error: $ini: $!\n";
	print $f "# How long does it take on this host's cost model? Expected: as long as natively.\n",
		"[vm]\nengine = soft\ntopology = $shape\nmemory = 1GiB\ncost_model = $model\n",
		"[run]\ncommand = $command\nwarmup = 1ms\nduration = 20ms\nrepeat = 3\ntimeout = 60s\n";
	close $f;
	run($opt{faultbed}, 'run', $ini, '-q', '-o', $json);
	open $f, '<', $json or die "error: $json: $!\n";
	local $/;
	return JSON::PP->new->utf8->decode(<$f>);
}

sub soft
{
	my ($n, $shape) = @_;
	my $result = soft_result($n, "multi-fault $n", $shape);

	return map { $_->{reports}{faults_per_s}{value} } @{ $result->{cells}[0]{repeats} };
}

# A page fault of one thread by memory-probe: a median over rounds of a millisecond, which other work on the host moves little.
sub probe_native
{
	(my $probe = $opt{'multi-fault'}) =~ s{[^/]*$}{memory-probe};
	return median(map { map { /^report fault_ns (\S+)/ ? $1 : () } run($probe, '--rounds', 5000, 'fault') } 1 .. $opt{runs});
}

sub probe_soft
{
	my ($shape) = @_;
	my $result = soft_result('probe', 'memory-probe --rounds 5000 fault', $shape);

	return $result->{cells}[0]{repeats}[0]{reports}{fault_ns}{value};
}

my $load = (split ' ', read_line('/proc/loadavg'))[0];
run($opt{faultbed}, 'cost-model', '--measure', '-o', $model) unless defined $opt{model};
# The scenarios lie in --work, and a path in a scenario is beside it.
$model = File::Spec->rel2abs($model);
my $shape = shape();
my ($system, undef, $release) = uname();
printf "multi-fault, page faults a second: this host beside soft, cost model %s, topology %s\n", $model, $shape;
printf "%7s %14s %22s %14s %8s\n", 'threads', 'native', 'least..most', 'soft', 'error';
for my $n (1 .. $threads) {
	my @native = native($n);
	my ($is, $of) = (median(soft($n, $shape)), median(@native));
	my @sorted = sort { $a <=> $b } @native;

	printf "%7d %14.0f %22s %14.0f %+7.1f%%\n", $n, $of, sprintf('%.0f..%.0f', @sorted[0, -1]), $is, 100 * ($is / $of - 1);
}
my ($is, $of) = (probe_soft($shape), probe_native());
printf "A page fault of one thread, ns (memory-probe): native %.0f, soft %.0f, error %+.1f%%\n", $of, $is, 100 * ($is / $of - 1);
print "The host's kernel is $system $release, the guest's is the project's 6.12: other code for the same fault.\n",
	"Native: median of $opt{runs} runs of $opt{duration} ms.\n";
print "The host had a load of $load when this began: other work took its CPUs, and native rates are no result.\n" if $load > $cpus / 4;
