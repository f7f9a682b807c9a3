#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Profiles by the front end: taking one changes nothing else, the same run gives the same one,
# its sums are the time that went by, it can be shown again and folded.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=300

cat >s.ini <<'END'
# Where does the time go?
# Expected: much of it into lines of the other socket.
[vm]
engine = soft
topology = 2x2x1
memory = 256MiB
cost_model = ivb-ep
[run]
command = multi-fault 4
warmup = 100us
duration = 1500us
repeat = 2
END

# run NAME OPTION...: NAME.json, and NAME without its provenance, which is the last member.
run()
{
	local name=$1

	shift
	tap_run "$fb" run s.ini -o "$name.json" "$@"
	sed '/^  "provenance": {$/,$d' "$name.json" >"$name"
}

# without_profile FILE: the result but for its provenance and the profiles of its repeats.
without_profile()
{
	perl -MJSON::PP -e '
		local $/;
		my $r = decode_json(<>);
		delete $r->{provenance};
		delete $_->{profile} for map { @{$_->{repeats}} } @{$r->{cells}};
		print JSON::PP->new->canonical->pretty->encode($r);
	' "$1"
}

member()
{
	json one.json "cells.0.repeats.$1"
}

# --- a profile changes nothing else, and is the same again ---

run plain -q
tap_is "without a profile: status 0" "$RC" 0
tap_unlike "and there is none" "$(cat plain)" '"profile"'
run one --profile
tap_is "with a profile: status 0" "$RC" 0
printed=$OUT
run two -q --profile --no-snapshot
tap_ok "the same run, booted, gives the same profile" cmp one two
tap_is "each repeat has one" "$(grep -c '^          "profile": {$' one)" 2
tap_ok "nothing else has changed" cmp <(without_profile plain.json) <(without_profile one.json)

# --- its sums ---

sums=$(perl -MJSON::PP -e '
	local $/;
	open my $f, "<", "one.json" or die;
	my ($bad, $n, $stalls, $rest) = (0, 0, 0, 0);
	for my $r (@{decode_json(<$f>)->{cells}[0]{repeats}}) {
		my $p = $r->{profile};
		my @e = @{$p->{elapsed}};
		for my $cpu (0 .. $#e) {
			my $sum = 0;
			$sum += $_->{per_vcpu}[$cpu] for values %{$p->{time}};
			# A vCPU may be a quantum ahead of the mark; 32 ns at both ends, and its instruction.
			my $off = $e[$cpu] - $r->{time_ns} * $p->{hz} / 1e9;
			$bad++ if $sum != $e[$cpu] || abs($off) > 2000;
			$n++;
		}
		my ($all, $found) = (0, $p->{functions_other});
		$all += $_->{total} for values %{$p->{time}};
		$all -= ($p->{time}{$_}{total} // 0) for qw(idle wake);
		$found += $_->{self} for @{$p->{functions}};
		for my $f (@{$p->{functions}}) {
			my $sum = 0;
			$sum += $_ for values %{$f->{entries}};
			$bad++ if abs($sum - $f->{self}) > 5 || $f->{stall} > $f->{self};
		}
		# Each entry of the lists is cut to whole cycles.
		$bad++ if abs($found - $p->{sampled}) > 100 || $p->{sampled} > $all + 100 || $p->{sampled} < 0.99 * $all;
		my $in = $p->{stacks_other};
		$in += $_->{self} for @{$p->{stacks}};
		$bad++ if abs($in - $p->{sampled}) > 300;
		$bad++ for grep { $_->{total} < $_->{self} || $_->{total} > $p->{sampled} } @{$p->{functions}};
		for my $l (@{$p->{lines}}) {
			my $sockets = 0;
			$sockets += $_ for @{$l->{sockets}};
			$bad++ if $sockets != $l->{transfers} || $l->{queued} > $l->{wait};
			# The matrix, function by socket, is of all accesses but those of code that made way.
			my $seen = $l->{others};
			for my $u (@{$l->{users}}) {
				my ($reads, $writes) = (0, 0);
				$reads += $_ for @{$u->{reads_by_socket}};
				$writes += $_ for @{$u->{writes_by_socket}};
				$bad++ if $writes != $u->{writes} || $reads + $writes != $u->{accesses};
				$seen += $u->{accesses};
			}
			$bad++ if $seen != $l->{transfers};
			my $region = (sort { $b <=> $a } @e)[0];
			$bad++ if abs($l->{queue} - $l->{queued} / $region) > 1e-4;
		}
		# Time by thread is that by class, but for what is cut off to whole cycles.
		my %by = map { $_ => $p->{time}{$_}{total} } keys %{$p->{time}};
		for my $t (@{$p->{threads}}) {
			my $busy = 0;
			for (keys %{$t->{time}}) {
				$by{$_} -= $t->{time}{$_};
				$busy += $t->{time}{$_} if $_ ne "idle";
			}
			$bad++ if abs($busy - $t->{busy}) > 25;
		}
		delete $by{idle};	# threads that were only idle are left out
		$bad++ for grep { abs($_) > 50 } values %by;
		$bad++ if $p->{threads_other};
		$bad++ if @{$p->{lines}} > 20 || @{$p->{functions}} > 60;
	}
	print "$bad bad of $n\n";
')
tap_is "of each vCPU the classes sum up to its time, to the cycle; functions and lines agree" "$sums" "0 bad of 8"
tap_like "lines come from the other socket" "$(member 0.profile.time.stall_remote.total)" '^[1-9][0-9]{4,}$'
tap_like "page faults bring the vCPUs to the page that is cleared" \
	"$(member '0.profile.functions.*' | grep '"function":"clear_page_[a-z]*"')" '"page fault":[0-9]{5,}'
tap_unlike "and nothing else to the unmapping" \
	"$(member '0.profile.functions.*' | grep '"function":"unmap_page_range"')" 'page fault'
tap_like "which madvise() does" \
	"$(member '0.profile.functions.*' | grep '"function":"unmap_page_range"')" '"syscall madvise":[0-9]{4,}'
tap_like "callers are known" "$(member '0.profile.stacks.*.stack')" \
	'^page fault;asm_exc_page_fault;exc_page_fault;handle_mm_fault;.*;clear_page_[a-z]+$'
tap_like "also of system calls" "$(member '0.profile.stacks.*.stack')" \
	'^syscall madvise;entry_SYSCALL_64[a-z_]*;do_syscall_64;.*;unmap_page_range$'
tap_like "the counters of all VMs are in a line with a name" "$(member '0.profile.lines.*.name')" '^vm_node_stat\+0x'
tap_like "the lock that they take is in an object with a name" "$(member '0.profile.lines.*.name')" '^vma_lock\+0x0, accessed by down_read_trylock$'
tap_like "so are the kernel's own" "$(member '0.profile.lines.*.name')" '^[a-z_0-9-]+\+0x[0-9a-f]+, accessed by _*[a-z_.0-9]+$'
tap_is "lines are in the order of their waits" "$(member '0.profile.lines.*.wait' | sort -c -n -r 2>&1)" ""

# --- threads ---

# A thread may sleep for a lock meanwhile, so of what its vCPU was busy.
tap_is "each of the load's threads has all but a hundredth of what its vCPU was busy" "$(perl -MJSON::PP -e '
	local $/;
	open my $f, "<", "one.json" or die;
	my $p = decode_json(<$f>)->{cells}[0]{repeats}[0]{profile};
	print join " ", sort map { $_->{vcpu} } grep {
		my $all = $p->{elapsed}[$_->{vcpu}] - ($p->{time}{idle}{per_vcpu}[$_->{vcpu}] // die);
		$_->{thread} eq "multi-fault" && $_->{busy} > 0.99 * $all && $_->{busy} <= $all;
	} @{$p->{threads}};
')" "0 1 2 3"
tap_like "threads of the kernel, too" "$(member '0.profile.threads.*.thread')" '^swapper/[0-3]$'
tap_like "which are idle" "$(member '0.profile.threads.*' | grep swapper/)" '"idle":[0-9]+'

# --- misses of the last-level cache, a counter beside the faults ---

misses=$(perl -MJSON::PP -e '
	local $/;
	open my $f, "<", "one.json" or die;
	my $bad = 0;
	for my $r (@{decode_json(<$f>)->{cells}[0]{repeats}}) {
		my %c = map { $_ => $r->{counters}{$_}{value} // 0 } keys %{$r->{counters}};
		my ($sum, $from) = (0, 0);
		$sum += $_ for @{$r->{counters}{llc_misses}{per_vcpu}};
		$from += $c{"soft_$_"} // 0 for qw(line_transfers_remote lines_dram_local lines_dram_remote);
		# A page that is cleared has 64 lines that are taken but not fetched: some were there, in L3.
		$bad++ if !$sum || $sum != $c{llc_misses} || $sum > $from || $sum / $c{guest_page_faults} > 64;
	}
	print "$bad bad\n";
')
tap_is "llc_misses is of all vCPUs, and part of the lines from other sockets and memory" "$misses" "0 bad"

# --- shown again ---

tap_run "$fb" profile one.json
tap_is "profile: status 0" "$RC" 0
tap_is "profile prints what the run did" "$(sed 1d <<<"$OUT")" "$(sed -n '/^ Where time went/,$p' <<<"$printed")"
tap_like "with who reads and writes a line from where" "$OUT" \
	'^        up_read .* accesses, [0-9]+ writes, [0-9]+% of the wait; read/written by socket 0/[1-9][0-9]* 0/[1-9][0-9]*$'
tap_like "how many wait for it" "$OUT" ' in the queue; queue 0\.[0-9]+; by socket '
tap_like "and by thread" "$OUT" '^   multi-fault, [0-3] +[0-9,]+ .*kernel [0-9]+% '
tap_like "with the classes" "$OUT" '^   stall_remote +[0-9,]+ +[0-9.]+%$'
first=$OUT
tap_run "$fb" profile one.json --cell 1 --repeat 2
tap_is "the other repeat: status 0" "$RC" 0
tap_ok "is another" test "$OUT" != "$first"
tap_run "$fb" profile one.json --folded folded.txt
tap_is "folded: status 0" "$RC" 0
tap_is "every line is frames, a blank, a number" "$(grep -Evn -m 3 '^[^;]+(;[^;]+)* [1-9][0-9]*$' folded.txt)" ""
tap_like "entry, function" "$(cat folded.txt)" '^page fault;.*;clear_page_[a-z]+ [0-9]+$'
tap_like "user code" "$(cat folded.txt)" '^\[user\] [0-9]+$'
tap_run "$fb" profile one.json --folded -
tap_is "folded to standard output: the same" "$OUT" "$(cat folded.txt)"

# --- phases ---

cat >mark.c <<'END'
#include <sys/io.h>
int main(void)
{
	if (ioperm(0xf5, 1, 1))
		return 1;
	outb(16, 0xf5);
	for (volatile int i = 0; i < 100000; i++)
		;
	outb(17, 0xf5);
	return 0;
}
END
tap_ok "a program that marks phases" cc -O1 -static -o mark mark.c
run phases -q --profile --set run.repeat=1 --set guest.add="$TAP_DIR/mark:/bin/mark" --set run.command=mark
tap_is "phases: status 0" "$RC" 0
tap_is "a phase ends with each mark, the last with the region" \
	"$(json phases.json 'cells.0.repeats.0.profile.phases.*.until' | tr '\n' ' ')" "16 17 end "
tap_like "which is user code" "$(json phases.json 'cells.0.repeats.0.profile.phases.1.functions.[user]')" '^[1-9][0-9]{5}$'
tap_unlike "in the last most is the kernel's" "$(json phases.json 'cells.0.repeats.0.profile.phases.2.functions.[user]')" '^[1-9][0-9]{5}$'
tap_run "$fb" profile phases.json
tap_like "printed, with its functions" "$(tr '\n' ' ' <<<"$OUT")" 'phase until mark 17: [0-9,]+ cycles: user [0-9]+% idle [0-9]+% +in \[user\] (99|100)% '
tap_like "and the thread that made them" "$OUT" '^   mark, [0-3]  +[0-9,]+ +user '
tap_like "the loop is in the second" "$(json phases.json 'cells.0.repeats.0.profile.phases.1.time.user')" '^[1-9][0-9]{5}$'
tap_like "and not in the last" "$(json phases.json 'cells.0.repeats.0.profile.phases.2.time.user')" '^([0-9]{1,5})?$'

# --- a model without lines, a kernel without names ---

cp "$BUILD/kernel/bzImage" .
run simple --profile --set vm.cost_model=simple --set run.repeat=1 --kernel bzImage
tap_is "no memory model, no System.map: status 0" "$RC" 0
tap_is "no lines" "$(json simple.json 'cells.0.repeats.0.profile.lines')" "[]"
tap_is "nor threads" "$(json simple.json 'cells.0.repeats.0.profile.threads')" ""
tap_like "no misses of the last-level cache, which there is none of" "$(json simple.json 'cells.0.repeats.0.na.llc_misses')" '\[memory\]'
tap_is "which are not 0" "$(json simple.json 'cells.0.repeats.0.counters.llc_misses')" ""
tap_like "addresses for names" "$(json simple.json 'cells.0.repeats.0.profile.functions.*.function')" '^0xffffffff8[0-9a-f]{7}$'

# --- what is refused ---

# refused NAME STATUS REGEX COMMAND...
refused()
{
	local name=$1 status=$2 regex=$3

	shift 3
	tap_run "$fb" "$@"
	tap_is "refused: $name: status $status" "$RC" "$status"
	tap_like "refused: $name: the message" "$ERR" "$regex"
}
refused "a result without one" 2 'plain\.json: no profile of any cell, repeat 1; faultbed run --profile takes them' profile plain.json
refused "a cell that is not there" 2 '--cell 2: one\.json has 1 cell' profile one.json --cell 2
refused "a repeat that is not there" 2 'no profile of any cell, repeat 3' profile one.json --repeat 3
refused "no repeat" 2 'count from 1' profile one.json --repeat 0
refused "no file" 2 'takes one result file' profile
refused "no result" 2 's\.ini: .*Parse error' profile s.ini
refused "a folder" 2 'folded .*: Is a directory' profile one.json --folded "$TAP_DIR"
refused "a full disk" 2 'folded /dev/full: No space left' profile one.json --folded /dev/full
refused "nested" 3 'engine nested cannot tell where time goes' run s.ini --profile --engine nested --set vm.cost_model=auto

# Shapes that a profile of ours does not have.
perl -pe 's/"functions": \[/"functions": [7, "x", null, {"function": 3, "self": "x", "entries": [1]},/ if /"functions": \[/;
	s/"stacks": \[/"stacks": [1, {"stack": 2, "self": 3}, {"stack": "a\\u001bb;\\n", "self": 4}, / if /"stacks": \[/;
	s/"lines": \[/"lines": [1, {"transfers": 2, "sockets": ["a", null], "users": [2, {"reads_by_socket": [1, "x"], "writes_by_socket": 3}]},/ if /"lines": \[/;
	s/"threads": \[/"threads": [1, null, {"time": 3}, {"thread": 4, "busy": "x", "time": {"user": "x"}},/ if /"threads": \[/;
	s/"elapsed": \[/"elapsed": ["a", null,/' one.json >odd.json
tap_run "$fb" profile odd.json
tap_is "odd shapes: status 0" "$RC" 0
tap_run "$fb" profile odd.json --folded -
tap_is "odd shapes, folded: status 0" "$RC" 0
tap_like "a name that is two lines is one" "$OUT" '^a\?b;\? 4$'
sed "s/\"clear_page_[a-z]*\"/\"\\\\u001b[31m;x\"/" one.json >esc.json
tap_run "$fb" profile esc.json
tap_unlike "what could drive a terminal does not reach it" "$OUT" $'\033'

tap_done
