#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# make ex-vs-ep: every figure of docs/ex-vs-ep.md, which says what they mean. The load is multi-fault, in its two variants, on the
# two boxes of the published message (2x10x2 with 20 threads, 4x15x2 with 60), and in counter-experiments that each take one difference
# between them away. Parts, of which those named run, or all:
#
#	own	the variant in which each thread gives back its own pages
#	first	the variant in which the first thread gives back all
#	scaling	scenarios/ep-ex-scaling-*.ini: faults a second by threads
#	profile	scenarios/ep-ex-profile.ini with --profile: lines, functions, classes of time
#
# Each counter-experiment of the first two is a run of its own, OUT/PART/TABLE-CASE.json. --show prints what an earlier run left in OUT
# and runs nothing. Exit status: 0, or 1 if something did not run to its end.
use strict;
use warnings;
use File::Path qw(make_path);
use Getopt::Long;
use JSON::PP;
use List::Util qw(max min sum0);

my %opt = (faultbed => 'build/faultbed', output => 'out/ex-vs-ep');
GetOptions(\%opt, 'faultbed=s', 'output|o=s', 'jobs=i', 'kernel=s', 'initrd=s', 'show') or exit 2;
my @parts = qw(own first scaling profile);
my %part = map { $_ => 1 } @ARGV ? @ARGV : @parts;
for my $name (keys %part) {
	next if grep { $_ eq $name } @parts;
	print STDERR "error: ex-vs-ep: no part is called $name; there are @parts\n";
	exit 2;
}

# --- the cases ---

sub read_text
{
	my ($file) = @_;
	open my $f, '<', $file or die "error: ex-vs-ep: $file: $!\n";
	local $/;
	return <$f>;
}

sub write_text
{
	my ($file, $text) = @_;
	open my $f, '>', $file or die "error: ex-vs-ep: $file: $!\n";
	print $f $text;
	close $f or die "error: ex-vs-ep: $file: $!\n";
}

# What the smaller box's cost model has.
sub as_on_ep
{
	my $text = read_text('cost-models/ivb-ep.ini');
	my %cost;
	for my $key (@_) {
		($cost{$key}) = $text =~ /^\Q$key\E = (\S+)/m or die "error: ex-vs-ep: cost-models/ivb-ep.ini has no $key\n";
	}
	return \%cost;
}

sub to { my ($end, @keys) = @_; return { map { $_ => $end } @keys } }

my %box = (ep => ['2x10x2', 'ivb-ep', 20], ex => ['4x15x2', 'ivb-ex', 60]);
my $lines_ep = as_on_ep(qw(l3_hit line_socket_clean line_socket_dirty line_remote_clean line_remote_dirty link_line jitter));
my $memory_ep = as_on_ep(qw(dram_local dram_remote dram_line stream_l3 stream_dram stream_remote));
my $rest_ep = as_on_ep(qw(ipi_remote cache_l3_kib));
my $near = { line_remote_clean => '35ns', line_remote_dirty => '42ns', link_line => '0ns' };	# as the own socket's
my $two = '--cpus ' . join(',', 0 .. 9, 15 .. 24);
my $four = '--cpus ' . join(',', map { ($_ .. $_ + 4) } 0, 15, 30, 45);

# Both boxes with some of the estimates at either end of their range.
sub estimates
{
	my ($what, @keys) = @_;
	return map { my $box = $_; map { ["\U$box\E, $what: $_ estimate", $box, cost => to($_, @keys)] } qw(low high) } qw(ep ex);
}

# What it is, box, and what is not the box's own: cost model, numbers of it, threads, further arguments.
my @boxes = (['EP, 20 threads', 'ep'], ['EX, 60 threads', 'ex']);
my @flat = (['EP, flat', 'ep', model => 'flat'], ['EX, flat', 'ex', model => 'flat']);
my @lines = (['EX, lines as on EP', 'ex', cost => $lines_ep]);
my @few = (['EX, 20 threads on two sockets', 'ex', threads => 20, args => $two]);
my @remote = estimates('lines of other sockets', qw(line_remote_clean line_remote_dirty));
my @own = (
	@boxes,
	@lines,
	['EX, other sockets as near as the own', 'ex', cost => $near],
	@few,
	['EX, 20 threads on four sockets', 'ex', threads => 20, args => $four],
	['EX, 15 threads on one socket', 'ex', threads => 15],
	['EP, 10 threads on one socket', 'ep', threads => 10],
	@flat,
	@remote,
	estimates('lines of the own socket', qw(line_socket_clean line_socket_dirty)),
);
my @free = (
	@boxes, @lines, @few, @flat,
	['EX, flat, 20 threads on two sockets', 'ex', model => 'flat', threads => 20, args => $two],
	estimates('cycles per instruction', 'cpi'),
);
my @first_before = (@boxes, @lines, @flat, @remote);
my @first_after = (
	@boxes,
	@lines,
	['EX, memory as on EP', 'ex', cost => $memory_ep],
	['EX, lines, memory and L3 as on EP', 'ex', cost => { %$lines_ep, %$memory_ep, %$rest_ep }],
	@few,
	@flat,
	@remote,
	estimates('cycles per instruction', 'cpi'),
	['EX at 2.2 GHz', 'ex', cost => { clock => '2.2GHz' }],
	['EP at 3.1 GHz', 'ep', cost => { clock => '3.1GHz' }],
);
# Per box: warm-up and duration, of one or two rounds and some three or four.
my %tables = (
	own => [
		['own, fault_path = mmap_lock', 'own', 'mmap_lock', { ep => ['4ms', '9ms'], ex => ['12ms', '30ms'] }, \@own],
		['own, fault_path = speculative', 'own', 'speculative', { ep => ['2ms', '4ms'], ex => ['2ms', '4ms'] }, \@free],
	],
	first => [
		['first, fault_path = mmap_lock', 'first', 'mmap_lock', { ep => ['12ms', '22ms'], ex => ['25ms', '60ms'] }, \@first_before],
		['first, fault_path = speculative', 'first', 'speculative', { ep => ['9ms', '18ms'], ex => ['15ms', '35ms'] },
			\@first_after],
	],
);

# What a case is, as --set.
sub settings
{
	my ($table, $case) = @_;
	my (undef, $zap, $knob, $times) = @$table;
	my (undef, $box, %own) = @$case;
	my ($topology, $model, $threads) = @{$box{$box}};
	my %cost = %{$own{cost} // {}};
	$cost{quantum} = 'auto' if grep { /^line_/ } keys %cost;
	return ("vm.topology=$topology", 'vm.cost_model=' . ($own{model} // $model), "guest.knob.fault_path=$knob",
		'run.command=' . join(' ', grep { defined } 'multi-fault', $own{threads} // $threads, "--zap $zap", $own{args}),
		"run.warmup=$times->{$box}[0]", "run.duration=$times->{$box}[1]", map { "cost.$_=$cost{$_}" } sort keys %cost);
}

my $base = <<EOT;
# Which difference between the two boxes makes the difference between their rates? host-tools/ex-vs-ep.pl sets the rest.
# Expected: see docs/ex-vs-ep.md.
[vm]
engine = soft
topology = 2x10x2
memory = 2GiB
cost_model = ivb-ep
distance = 10,21
[cost]
# The published machines ran no hypervisor.
ept_violation = 0ns
[run]
command = true
timeout = 20s
host_timeout = 7200s
EOT

# --- running ---

my $failed = 0;

sub run_argv
{
	my ($ini, $json, @more) = @_;
	my @argv = ($opt{faultbed}, 'run', '--quiet', "--output=$json", @more);
	for (qw(kernel initrd)) {
		push @argv, "--$_=$opt{$_}" if defined $opt{$_};
	}
	return (@argv, $ini);
}

sub run_scenario
{
	return if $opt{show};
	system(run_argv(@_, defined $opt{jobs} ? "--jobs=$opt{jobs}" : ())) == 0 or $failed = 1;
}

sub case_file
{
	my ($part, $table, $case) = @_;
	return sprintf '%s/%s/%d-%02d.json', $opt{output}, $part, $table, $case;
}

# The cases of a part, as many side by side as there are jobs: each is a run of one cell.
sub run_cases
{
	my ($part) = @_;
	my $jobs = $opt{jobs} // max(1, int(`nproc`));
	my $running = 0;
	my $wait = sub { wait > 0 or return; $failed = 1 if $?; $running-- };

	return if $opt{show};
	make_path("$opt{output}/$part");
	write_text("$opt{output}/case.ini", $base);
	for my $t (0 .. $#{$tables{$part}}) {
		my $table = $tables{$part}[$t];
		my $cases = $table->[4];
		for my $c (0 .. $#$cases) {
			my $json = case_file($part, $t, $c);
			$wait->() while $running >= $jobs;
			unlink $json;
			print STDERR "$table->[0]: $cases->[$c][0]\n";
			my $pid = fork // die "error: ex-vs-ep: fork: $!\n";
			if (!$pid) {
				open STDERR, '>', "$json.log";
				exec run_argv("$opt{output}/case.ini", $json, map { "--set=$_" } settings($table, $cases->[$c])) or exit 4;
			}
			$running++;
		}
	}
	$wait->() while $running;
}

# Its cells, the one repeat of each, or undef where that is not there.
sub cells
{
	my ($json) = @_;
	my $r = eval { JSON::PP->new->utf8->decode(read_text($json)) };
	die "error: ex-vs-ep: $json is no result; without --show it is made\n" unless $r;
	return map { { %$_, r => $_->{repeats}[0] } } @{$r->{cells}};
}

# Per fault, from one repeat.
sub figures
{
	my ($r) = @_;
	my $faults = $r->{reports}{faults}{value};
	my $ns = $r->{time_ns} / $faults;
	my $zap = $r->{reports}{zap_ns};
	my $c = sub { ($r->{counters}{$_[0]} // {})->{value} // 0 };
	return {
		rate => $r->{reports}{faults_per_s}{value} / 1e6,
		us => $ns * $r->{reports}{threads}{value} / 1000,
		zap => $zap && $zap->{value} / $faults,
		touch => $zap && $ns - $zap->{value} / $faults,
		misses => $c->('llc_misses') / $faults,
		rounds => $r->{reports}{rounds}{value},
	};
}

# What estimates leave open of the ratio of the two boxes: moved together, and each its own way.
sub print_ratios
{
	my ($rate) = @_;
	my ($ep, $ex) = @$rate{'EP, 20 threads', 'EX, 60 threads'};
	return unless $ep && $ex;
	printf "\n EX/EP %.3f\n", $ex / $ep;
	for my $what (sort map { /^EX, (.*): low estimate$/ ? $1 : () } keys %$rate) {
		my @ep = map { $rate->{"EP, $what: $_ estimate"} // return } qw(low high);
		my @ex = map { $rate->{"EX, $what: $_ estimate"} // return } qw(low high);
		my @apart = sort { $a <=> $b } map { my $x = $_; map { $x / $_ } @ep } @ex;
		printf "   %s: %.3f with both low, %.3f with both high, %.3f to %.3f each its own way\n", $what, $ex[0] / $ep[0], $ex[1] / $ep[1],
			@apart[0, -1];
	}
	printf "   EX at 2.2 GHz: %.3f, and EP at 3.1 GHz: %.3f\n", $rate->{'EX at 2.2 GHz'} / $ep,
		$rate->{'EX at 2.2 GHz'} / $rate->{'EP at 3.1 GHz'} if $rate->{'EX at 2.2 GHz'} && $rate->{'EP at 3.1 GHz'};
}

sub print_tables
{
	my ($name) = @_;
	for my $t (0 .. $#{$tables{$name}}) {
		my $table = $tables{$name}[$t];
		my ($title, $zap, undef, undef, $cases) = @$table;
		my $first = $zap eq 'first';
		printf "\n %s\n\n %-50s %10s %7s %10s%s %7s\n", $title, '', 'M faults/s', 'to EP', 'us a fault',
			$first ? sprintf(' %9s %9s', 'give back', 'touch') : '', 'rounds';
		printf " %-50s %10s %7s %10s%s\n", '', '', '', 'and thread', $first ? sprintf(' %9s %9s', 'ns/fault', 'ns/fault') : '';
		my ($base, %rate);
		for my $c (0 .. $#$cases) {
			my $case = $cases->[$c];
			my $file = case_file($name, $t, $c);
			my ($cell) = -e $file ? cells($file) : ();
			if (!$cell || !$cell->{r} || !$cell->{r}{reports}{faults}) {
				printf " %-50s %10s\n", $case->[0], 'n/a';
				next;
			}
			my $f = figures($cell->{r});
			$base = $f->{rate} if !$c;	# EP's
			$rate{$case->[0]} = $f->{rate};
			printf " %-50s %10.3f %7s %10.2f%s %7d\n", $case->[0], $f->{rate},
				defined $base ? sprintf('%.3f', $f->{rate} / $base) : 'n/a', $f->{us},
				$first ? sprintf(' %9.0f %9.0f', $f->{zap}, $f->{touch}) : '', $f->{rounds};
		}
		print_ratios(\%rate);
	}
}

# --- scaling ---

sub print_scaling
{
	my (%rate, %rounds);
	for my $topology (qw(2x10x2 4x15x2)) {
		for my $cell (cells("$opt{output}/scaling-$topology.json")) {
			next unless $cell->{r} && $cell->{r}{reports}{faults};
			my $f = figures($cell->{r});
			my $of = join ' ', ($topology eq '2x10x2' ? 'EP' : 'EX') . ($cell->{set}{'vm.cost_model'} eq 'flat' ? ' flat' : ''),
				$cell->{set}{'guest.knob.fault_path'};
			$rate{$of}{$cell->{r}{reports}{threads}{value}} = $f->{rate};
		}
	}
	my @columns = map { my $arm = $_; map { "$_ $arm" } 'EP', 'EX', 'EP flat', 'EX flat' } qw(mmap_lock speculative);
	my %threads = map { map { $_ => 1 } keys %{$rate{$_} // {}} } @columns;
	my $tsv = join("\t", 'threads', @columns) . "\n";
	print "\n M faults a second by threads, own: fault_path = mmap_lock, then speculative\n\n";
	printf " %7s" . ' %8s' x 8 . "\n", 'threads', map { s/ (mmap_lock|speculative)//r } @columns;
	for my $n (sort { $a <=> $b } keys %threads) {
		my @v = map { $rate{$_}{$n} } @columns;
		printf " %7d%s\n", $n, join '', map { defined $_ ? sprintf(' %8.3f', $_) : sprintf(' %8s', '') } @v;
		$tsv .= join("\t", $n, map { defined $_ ? sprintf('%.4f', $_) : '' } @v) . "\n";
	}
	write_text("$opt{output}/scaling.tsv", $tsv);
}

# --- profile ---

sub print_profile
{
	for my $cell (cells("$opt{output}/profile.json")) {
		my $r = $cell->{r};
		my $p = $r && $r->{profile} or next;
		my $faults = $r->{reports}{faults}{value};
		my $ns = 1e9 / ($p->{hz} * $faults);	# of a cycle, by fault
		my $f = figures($r);
		my %of;
		printf "\n %s\n   %.3f M faults/s, %.2f us a fault and thread, of which in ns:\n", $cell->{name}, $f->{rate}, $f->{us};
		for (keys %{$p->{time}}) {
			$of{$_} = $p->{time}{$_}{total} * $ns;
		}
		print '   ', join(', ', map { sprintf '%s %.0f', $_, $of{$_} }
			grep { !/^(idle|wake)$/ && $of{$_} >= 10 } sort { $of{$b} <=> $of{$a} } keys %of), "\n";
		for my $entry ('page fault', 'syscall madvise') {
			my $cycles = sum0 map { $_->{entries}{$entry} // 0 } @{$p->{functions}};
			my @top = grep { $_->{entries}{$entry} } @{$p->{functions}};
			@top = (sort { $b->{entries}{$entry} <=> $a->{entries}{$entry} } @top)[0 .. min(7, $#top)];
			printf "   %s %.0f ns: %s\n", $entry, $cycles * $ns,
				join ', ', map { sprintf '%s %.0f', $_->{function}, $_->{entries}{$entry} * $ns } @top;
		}
		for my $l (@{$p->{lines}}[0 .. min(4, $#{$p->{lines}})]) {
			printf "   line %s: %.2f transfers a fault, %.0f ns each and %.0f in the queue; busy %.0f%% of the time; %s\n", $l->{name},
				$l->{transfers} / $faults, ($l->{wait} - $l->{queued}) / $l->{transfers} / $p->{hz} * 1e9,
				$l->{queued} / $l->{transfers} / $p->{hz} * 1e9,
				100 * ($l->{wait} - $l->{queued}) / ($p->{hz} * $r->{time_ns} / 1e9),
				join ', ', map { sprintf '%s %.2f', $_->{function}, $_->{accesses} / $faults } @{$l->{users}}[0 .. min(2, $#{$l->{users}})];
		}
	}
}

# --- all ---

make_path($opt{output});
for my $name (grep { $part{$_} } qw(own first)) {
	run_cases($name);
	print_tables($name);
}
if ($part{scaling}) {
	run_scenario("scenarios/ep-ex-scaling-$_.ini", "$opt{output}/scaling-$_.json") for qw(2x10x2 4x15x2);
	print_scaling();
}
if ($part{profile}) {
	run_scenario('scenarios/ep-ex-profile.ini', "$opt{output}/profile.json", '--profile');
	print_profile();
}
exit $failed;
