#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# The part `soft` of make bench (host-tools/bench.sh): the soft engine beside QEMU's TCG, on one host thread each, with
# the same kernel and initramfs, by turns. Boot to init, a loop of page faults on all vCPUs, and for the soft engine the
# same loop on one vCPU while the others idle, in a guest restored from a snapshot.
#
# Both are timed from outside, from just before the process starts. Init speaks the control protocol (docs/records.md) on
# ttyS1 of either machine; on QEMU it is answered from here. The loop is timed between its marks: by the VMM, and on
# QEMU by a debug console at the marks' port, each byte of which comes through a FIFO. Guest clocks play no part in
# any figure, so it does not matter what time means on either side. What an instruction costs is also given by CPU
# time, which other jobs on the host disturb less.
#
# Under icount most of a boot is one loop: the calibration of the local APIC's timer, 100 ms that are 100 million
# instructions then, with a PAUSE every few of them, at each of which TCG leaves its translated code.
use strict;
use warnings;
use Getopt::Long;
use IO::Select;
use JSON::PP;
use List::Util qw(min);
use POSIX qw(mkfifo WNOHANG);
use Fcntl qw(O_RDWR O_NONBLOCK);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

my %opt = (runs => 5, limit => 900, sizes => '1x1x1 2x10x2 4x15x2', who => 'soft tcg icount');
GetOptions(\%opt, 'vmm=s', 'qemu=s', 'kernel=s', 'initrd=s', 'cost-model=s', 'work=s', 'runs=i', 'limit=i',
	   'sizes=s', 'who=s', 'quick') or exit 2;
for (qw(vmm qemu kernel initrd cost-model work)) {
	die "error: bench: bench-soft.pl: --$_ is missing\n" unless defined $opt{$_};
}

my @sizes = split ' ', $opt{sizes};
my %wanted = map { $_ => 1 } split ' ', $opt{who};
my %title = (soft => 'soft', tcg => 'QEMU TCG, thread=single', icount => 'QEMU TCG, -icount shift=0');
my (%value, @remarks);	# $value{WHO}{SIZE}{NAME} = [one a run]
my $child;		# the process that runs now

for (@sizes) {
	/^[1-9]\d*x[1-9]\d*x[1-9]\d*$/ or die "error: bench: BENCH_SIZES: $_ is not SOCKETSxCORESxTHREADS\n";
}
for (keys %wanted) {
	$title{$_} or die "error: bench: BENCH_WHO: soft, tcg and icount there are, not $_\n";
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }
sub say_progress { print STDERR "  ... @_\n" }

sub note
{
	my ($text) = @_;

	push @remarks, $text unless grep { $_ eq $text } @remarks;
	say_progress($text);
}

sub keep
{
	my ($who, $size, $name, $number) = @_;

	push @{$value{$who}{$size}{$name}}, $number if defined $number;
}

# What a topology is given: much work for a steady figure, little enough for an end.
sub shape
{
	my ($size) = @_;
	my ($s, $c, $t) = split /x/, $size;
	my $cpus = $s * $c * $t;
	my $ms = $opt{quick} ? 20 : 240;
	my $all = $ms / $cpus;

	return {
		size => $size, sockets => $s, cores => $c, threads => $t, cpus => $cpus,
		mib => $cpus <= 8 ? 512 : $cpus <= 40 ? 2048 : 4096,
		# Virtual ms of the loop; no shorter than a few rounds of one thread.
		one_ms => $ms, all_ms => $all < 4 ? 4 : int($all),
		# On TCG, host time, and under icount, 1 ns an instruction of whichever vCPU. Enough for some rounds of
		# every thread: none has given pages back, and so flushed other vCPUs' TLBs, before its first one ends.
		tcg_ms => $opt{quick} ? 500 + 50 * $cpus : 2000 + 250 * $cpus,
		icount_ms => $opt{quick} ? 20 + 10 * $cpus : 200 + 10 * $cpus,
		# One of TCG's runs takes minutes where one of ours takes seconds.
		tcg_runs => $cpus > 64 ? 1 : $cpus > 8 ? min(2, $opt{runs}) : $opt{runs},
		icount_runs => $cpus > 8 ? 1 : $opt{runs},
	};
}

# --- children ---

sub stop_child
{
	return unless $child;
	kill 'KILL', $child;
	waitpid $child, 0;
	undef $child;
}

$SIG{INT} = $SIG{TERM} = sub { stop_child(); exit 130 };
$SIG{PIPE} = 'IGNORE';
END { my $status = $?; stop_child(); $? = $status }

# Starts a command with its standard input, output and error at these handles.
sub start
{
	my ($in, $out, $err, @command) = @_;

	$child = fork // die "error: bench: fork: $!\n";
	return if $child;
	open STDIN, '<&', $in or POSIX::_exit(126);
	open STDOUT, '>&', $out or POSIX::_exit(126);
	open STDERR, '>&', $err or POSIX::_exit(126);
	exec { $command[0] } @command or POSIX::_exit(127);
}

# Reads these handles, line by line or for the handle `bytes` byte by byte, until a callback returns true, all
# handles are at their end or the time is over. Callback: (handle, text, when it came). True if a callback ended it.
sub watch
{
	my ($until, $callback, $bytes, @handles) = @_;
	my $select = IO::Select->new(@handles);
	my %left = map { $_ => '' } @handles;
	my $open = grep { !$bytes || $_ != $bytes } @handles;

	while ($open && now() < $until) {
		for my $h ($select->can_read($until - now() < 1 ? 0.1 : 1)) {
			my $n = sysread $h, my $data, 65536;
			my $at = now();

			if (!$n) {
				$select->remove($h);
				$open--;
			} elsif ($bytes && $h == $bytes) {
				for (split //, $data) {
					return 1 if $callback->($h, $_, $at);
				}
			} else {
				$left{$h} .= $data;
				while ($left{$h} =~ s/^([^\n]*)\n//) {
					return 1 if $callback->($h, $1, $at);
				}
			}
		}
		# A FIFO that we hold open ourselves has no end: see whether its writer is there.
		if (waitpid($child, WNOHANG) == $child) {
			undef $child;
			$open = 0;
		}
	}
	return 0;
}

# --- the soft engine ---

# Runs the VMM once; what the records say, with `up_s`: wall time until the guest took commands.
sub run_soft
{
	my ($shape, $command, @options) = @_;
	my ($ini, $records) = ("$opt{work}/soft.ini", "$opt{work}/soft.records");
	my ($up, @last, %got);

	open my $f, '>', $ini or die "error: bench: $ini: $!\n";
	print $f "# How fast is the soft engine?\n[vm]\nengine = soft\ntopology = $shape->{size}\nmemory = $shape->{mib}MiB\n",
		"[run]\ncommand = $command\ntimeout = 600s\nhost_timeout = $opt{limit}s\n";
	close $f;
	unlink $records;
	open my $null, '<', '/dev/null' or die "error: bench: /dev/null: $!\n";
	open my $console, '>', "$opt{work}/soft.console" or die "error: bench: $opt{work}/soft.console: $!\n";
	pipe my $err_r, my $err_w or die "error: bench: pipe: $!\n";
	my $begin = now();
	start($null, $console, $err_w, $opt{vmm}, 'run', $ini, '--engine', 'soft', '--kernel', $opt{kernel}, '--initrd',
	      $opt{initrd}, '--cost-model', $opt{'cost-model'}, '-o', $records, @options);
	close $err_w;
	watch($begin + $opt{limit} + 30, sub {
		my (undef, $line, $at) = @_;

		$up //= $at - $begin if $line =~ /guest is up/;
		say_progress("soft $shape->{size}: $1") if $line =~ /: ((still booting|repeat \d+ of \d+ goes on).*)/;
		push @last, $line;
		shift @last if @last > 10;
		return 0;
	}, undef, $err_r);
	if ($child) {
		# Its standard error is closed: it is about to end, unless the time is over.
		for (my $i = 0; $i < 100 && waitpid($child, WNOHANG) != $child; $i++) {
			usleep(20000);
		}
		stop_child();
	}
	if (open my $r, '<', $records) {
		while (<$r>) {
			my $o = eval { decode_json($_) } or next;

			$got{$o->{record}} = $o;
		}
	}
	if (!$got{end} || $got{end}{status}) {
		print STDERR map { "| $_\n" } @last;
		return;
	}
	$got{up_s} = $up;
	return \%got;
}

sub keep_speed
{
	my ($size, $name, $n, $ns, $cpu_ns) = @_;

	keep('soft', $size, "${name}_mips", $n * 1e3 / $ns);
	keep('soft', $size, "${name}_cpu_mips", $n * 1e3 / $cpu_ns) if $cpu_ns;
	keep('soft', $size, "${name}_ns", $cpu_ns / $n) if $cpu_ns;
}

sub keep_loop
{
	my ($size, $name, $got) = @_;
	my $r = $got->{repeat};
	my ($ns, $n) = ($r->{provenance}{host_ns}, $r->{counters}{instructions}{value});

	return unless $ns && $n;
	keep_speed($size, $name, $n, $ns, $r->{provenance}{host_cpu_ns});
	keep('soft', $size, "${name}_faults", $r->{reports}{faults}{value} * 1e9 / $ns);
}

sub soft
{
	my ($shape, $run) = @_;
	my ($size, $cpus) = ($shape->{size}, $shape->{cpus});
	my $snapshot = "$opt{work}/$size.snapshot";
	my $got = run_soft($shape, "multi-fault $cpus --warmup 2ms --duration $shape->{all_ms}ms", '--no-snapshot');
	my @from = ('--no-snapshot');

	if (!$got) {
		note("soft $size: run $run failed or took more than $opt{limit} s");
		return;
	}
	my $vm = $got->{vm};
	keep('soft', $size, 'boot_s', $got->{up_s});
	if ($vm->{boot}{instructions}) {
		keep('soft', $size, 'boot_minsn', $vm->{boot}{instructions} / 1e6);
		keep_speed($size, 'boot', $vm->{boot}{instructions}, @{$vm->{provenance}}{qw(boot_host_ns boot_host_cpu_ns)});
	}
	keep('soft', $size, 'boot_mib', $vm->{provenance}{resident_beyond_ram} / 1048576);
	keep('soft', $size, 'loop_mib', $got->{repeat}{provenance}{resident_beyond_ram} / 1048576);
	keep_loop($size, 'all', $got);
	say_progress(sprintf "soft %s, run %d: up in %.2f s, %.1f M instructions a second", $size, $run, $got->{up_s},
		     $value{soft}{$size}{all_mips}[-1] // 0);

	if (!-e $snapshot) {
		run_soft($shape, 'true', '--save-snapshot', $snapshot);
		note("soft $size: no snapshot could be saved") unless -e $snapshot;
	}
	@from = ('--snapshot', $snapshot) if -e $snapshot;
	$got = run_soft($shape, "multi-fault 1 --warmup 2ms --duration $shape->{one_ms}ms", @from);
	if (!$got) {
		note("soft $size: run $run with one busy vCPU failed");
		return;
	}
	keep('soft', $size, 'restore_s', $got->{up_s}) if -e $snapshot;
	keep_loop($size, 'one', $got);
}

# --- QEMU ---

sub qemu_command
{
	my ($who, $shape, $fifo) = @_;
	my ($s, $cpus) = ($shape->{sockets}, $shape->{cpus});
	my @numa;

	for my $n (0 .. $s - 1) {
		push @numa, '-object', "memory-backend-ram,id=m$n,size=" . int($shape->{mib} / $s) . 'M', '-numa',
			sprintf('node,nodeid=%d,memdev=m%d,cpus=%d-%d', $n, $n, $n * $cpus / $s, ($n + 1) * $cpus / $s - 1);
	}
	return ($opt{qemu}, qw(-nodefaults -no-user-config -M pc -cpu max -accel), 'tcg,thread=single',
		($who eq 'icount' ? qw(-icount shift=0) : ()), '-m', "$shape->{mib}M", @numa,
		'-smp', "$cpus,sockets=$s,cores=$shape->{cores},threads=$shape->{threads}",
		'-kernel', $opt{kernel}, '-initrd', $opt{initrd}, qw(-display none -no-reboot -append),
		'console=ttyS0 quiet panic=-1 oops=panic reboot=k nokaslr cpuhp.parallel=0 mitigations=off tsc=reliable',
		'-chardev', "file,id=console,path=$opt{work}/qemu.console", '-serial', 'chardev:console',
		'-chardev', 'stdio,id=control,signal=off', '-serial', 'chardev:control',
		'-device', 'isa-debug-exit,iobase=0xf4,iosize=1',
		'-chardev', "file,id=marks,path=$fifo", '-device', 'isa-debugcon,iobase=0xf5,chardev=marks');
}

sub qemu
{
	my ($who, $shape, $run) = @_;
	my ($size, $cpus) = ($shape->{size}, $shape->{cpus});
	my ($ms, $warmup) = $who eq 'tcg' ? ($shape->{tcg_ms}, 100) : ($shape->{icount_ms}, 10);
	my $fifo = "$opt{work}/marks";
	my (%report, $up, $from, $to, $done);
	my $what = 'booting';

	-p $fifo or mkfifo $fifo, 0600 or die "error: bench: $fifo: $!\n";
	sysopen my $marks, $fifo, O_RDWR | O_NONBLOCK or die "error: bench: $fifo: $!\n";
	pipe my $in_r, my $in_w or die "error: bench: pipe: $!\n";
	pipe my $out_r, my $out_w or die "error: bench: pipe: $!\n";
	open my $err, '>', "$opt{work}/qemu.err" or die "error: bench: $opt{work}/qemu.err: $!\n";
	my $begin = now();
	start($in_r, $out_w, $err, qemu_command($who, $shape, $fifo));
	close $_ for $in_r, $out_w;
	my $told = $begin;
	my $each = sub {
		my ($h, $text, $at) = @_;

		if ($h == $marks) {
			$from = $at if $text eq "\1";
			$to = $at if $text eq "\2";
			return 0;
		}
		$text =~ s/\r$//;
		if ($text eq 'ready' && !defined $up) {
			$up = $at - $begin;
			$what = 'in the loop';
			syswrite $in_w, "run multi-fault $cpus --warmup ${warmup}ms --duration ${ms}ms\n";
		}
		$report{$1} = $2 if $text =~ /^report (\S+) (\S+)/;
		$done = $1 if $text =~ /^done (\d+)/;
		return defined $done;
	};
	# In slices, for a word in between now and then.
	while ($child && !defined $done && now() < $begin + $opt{limit}) {
		watch(now() + 15 < $begin + $opt{limit} ? now() + 15 : $begin + $opt{limit}, $each, $marks, $out_r, $marks);
		say_progress(sprintf "%s %s: %s, %.0f s", $who, $size, $what, now() - $begin) if $child && !defined $done;
	}
	my $early = !$child && !defined $done;
	stop_child();
	keep($who, $size, 'boot_s', $up);
	if ($early) {
		note("$who $size: QEMU ended early, $what; its last words:");
		system 'tail', '-n', '5', "$opt{work}/qemu.err", "$opt{work}/qemu.console";
	} elsif (!defined $done) {
		note("$who $size: still $what after $opt{limit} s; ended");
	} elsif ($done || !defined $from || !defined $to || !$report{faults}) {
		note("$who $size: the loop ended with status $done" . (defined $to ? '' : ', without its marks'));
	} else {
		keep($who, $size, 'all_faults', $report{faults} / ($to - $from));
		note(sprintf "%s %s: the loop was stopped after %d whole rounds, %d faults in %.1f s: too high a rate if few",
		     $who, $size, $report{rounds} // 0, $report{faults}, $to - $from) if $report{partial};
		say_progress(sprintf "%s %s, run %d: up in %.2f s, %.0f faults a second", $who, $size, $run, $up,
			     $value{$who}{$size}{all_faults}[-1]);
	}
}

# --- table ---

sub median
{
	my ($who, $size, $name) = @_;
	my @v = sort { $a <=> $b } @{$value{$who}{$size}{$name} // []};

	return @v ? ($v[(@v - 1) / 2] + $v[@v / 2]) / 2 : undef;
}

sub number
{
	my ($v) = @_;

	return 'n/a' unless defined $v;
	return sprintf $v >= 1000 ? '%.0f' : $v >= 100 ? '%.1f' : $v >= 10 ? '%.2f' : '%.3f', $v;
}

# A line of the table: cell(SIZE) gives a number and perhaps of how many runs.
sub row
{
	my ($name, $aim, $cell) = @_;

	printf '  %-34s', $name;
	for my $size (@sizes) {
		my ($v, $n) = $cell->($size);

		printf '%16s', number($v) . (defined $v && $n ? " [$n]" : $n ? '    ' : '');
	}
	print $aim ? "   $aim\n" : "\n";
}

sub row_of
{
	my ($name, $aim, $who, $key, $scale) = @_;

	row($name, $aim, sub {
		my ($size) = @_;
		my $v = median($who, $size, $key);

		return (defined $v ? $v * ($scale ? $scale->($size) : 1) : undef, scalar @{$value{$who}{$size}{$key} // []});
	});
}

sub ratio
{
	my ($name, $aim, $above, $below) = @_;

	row($name, $aim, sub {
		my ($size) = @_;
		my ($a, $b) = ($above->($size), $below->($size));

		return defined $a && $b ? $a / $b : undef;
	});
}

sub of { my ($who, $key) = @_; return sub { median($who, $_[0], $key) } }
sub at_first { my ($key) = @_; return sub { median('soft', $sizes[0], $key) } }

sub table
{
	my $per_vcpu = sub { 1 / shape($_[0])->{cpus} };

	printf "\n%-36s%s   aim\n", 'medians [runs]', join '', map { sprintf '%16s', $_ } @sizes;
	print "boot to init, wall s\n";
	row_of($title{soft}, 'below 25 at 2x10x2, 75 at 4x15x2', 'soft', 'boot_s');
	row_of($title{$_}, '', $_, 'boot_s') for qw(tcg icount);
	ratio("TCG / soft", '', of('tcg', 'boot_s'), of('soft', 'boot_s'));
	row_of('soft, restored from a snapshot', 'below 1', 'soft', 'restore_s');
	print "soft: million guest instructions a host second\n";
	row_of('boot', 'at least 150 at 1x1x1', 'soft', 'boot_mips');
	row_of('fault loop on all vCPUs', 'at least 150 at 1x1x1', 'soft', 'all_mips');
	row_of('fault loop on one, others idle', '', 'soft', 'one_mips');
	row_of('for scale: the boot, millions', '', 'soft', 'boot_minsn');
	print "soft: the same of a second of CPU time\n";
	row_of('boot', '', 'soft', 'boot_cpu_mips');
	row_of('fault loop on all vCPUs', '', 'soft', 'all_cpu_mips');
	row_of('fault loop on one, others idle', '', 'soft', 'one_cpu_mips');
	print "soft: CPU time of a guest instruction, $sizes[0] = 1\n";
	ratio('boot', '', of('soft', 'boot_ns'), at_first('boot_ns'));
	ratio('fault loop on all vCPUs', 'at most 1.3', of('soft', 'all_ns'), at_first('all_ns'));
	ratio('fault loop on one, others idle', 'at most 1.3', of('soft', 'one_ns'), at_first('one_ns'));
	print "guest faults a wall second, loop on all vCPUs\n";
	row_of($title{$_}, '', $_, 'all_faults') for qw(soft tcg icount);
	ratio('soft / TCG', '1 at 1x1x1, else hundreds', of('soft', 'all_faults'), of('tcg', 'all_faults'));
	ratio('soft / TCG with icount', '', of('soft', 'all_faults'), of('icount', 'all_faults'));
	print "soft: resident beyond guest RAM, MiB a vCPU\n";
	row_of('booted', 'at most 3', 'soft', 'boot_mib', $per_vcpu);
	row_of('after the loop', 'at most 3', 'soft', 'loop_mib', $per_vcpu);
	row('each vCPU more, after the loop', '', sub {
		my ($size) = @_;
		my ($more, $base) = (median('soft', $size, 'loop_mib'), median('soft', $sizes[0], 'loop_mib'));
		my $cpus = shape($size)->{cpus} - shape($sizes[0])->{cpus};

		return defined $more && defined $base && $cpus > 0 ? ($more - $base) / $cpus : undef;
	});
	row_of('after the loop, the whole VMM', '', 'soft', 'loop_mib');
	print "remarks\n" if @remarks;
	print "  $_\n" for @remarks;
}

sub host_line
{
	my ($version) = qx{\Q$opt{qemu}\E --version} =~ /version (\S+)/;
	my ($model) = qx{cat /proc/cpuinfo} =~ /model name\s*:\s*(.*)/;
	my ($load) = qx{cat /proc/loadavg} =~ /^(\S+)/;
	my $cpus = () = qx{cat /proc/cpuinfo} =~ /^processor/mg;

	printf "soft and QEMU %s, one host thread each; host: %d CPUs, %s\n", $version // '?', $cpus, $model // '?';
	note("the host was busy when this began (load $load): times mean little") if $load > 0.7;
}

host_line();
for my $run (1 .. $opt{runs}) {
	for my $size (@sizes) {
		my $shape = shape($size);

		soft($shape, $run) if $wanted{soft};
		for my $who (grep { $wanted{$_} } qw(tcg icount)) {
			qemu($who, $shape, $run) if $run <= $shape->{"${who}_runs"};
		}
	}
}
table();
exit(@sizes && ($value{soft} || !$wanted{soft}) ? 0 : 1);
