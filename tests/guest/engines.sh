#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One guest image on the kvm engine (or nested) and on the soft engine: what the guest is
# told about its machine is the same, and so is what is counted where the load does not
# depend on time. Each difference that is allowed is listed here with its reason;
# anything else fails.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1500

kvm=$(kvm_engine)

# Prints each fact below a line of its own. Without | and commas, which part the settings of [vary].
facts='show() { echo "=== $1"; shift; "$@" 2>&1; }; show cmdline cat /proc/cmdline; show iomem cat /proc/iomem; '
facts+='show acpi md5sum /sys/firmware/acpi/tables/[A-Z]*; show cpuinfo cat /proc/cpuinfo; show meminfo grep MemTotal /proc/meminfo; '
facts+='show vulnerabilities grep -r . /sys/devices/system/cpu/vulnerabilities; show dmesg dmesg; show end true'

cat >same.ini <<EOT
# Does one guest see, do and count the same on two engines?
[vm]
topology = 1x2x2
memory = 256MiB
apic = xapic
[guest]
append = memmap=4M\$0x8000000
[run]
command = true
timeout = 900s
[inject]
ept.count = yes
[vary]
run.command = $facts, fixed-work, multi-fault 4 --rounds 3 --pages 256 --warmup 20ms, ipi-pingpong --count 100 --busy, fault-around, switch-pingpong --count 500
EOT
for engine in soft "$kvm"; do
	[ "$engine" = soft ] && name=soft || name=kvm
	tap_run "$BUILD/faultbed" run --engine "$engine" same.ini -o "$name.json"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$engine: all cells are done" "$(json "$name.json" 'cells.*.status' | tr '\n' ' ')" "0 0 0 0 0 0 "
done

# --- what the guest is told ---

# fact ENGINE NAME: what stands below its line. UARTs end lines with CR LF.
fact()
{
	perl -MJSON::PP -e '
		local $/;
		open my $f, "<", $ARGV[0] or exit 1;
		my $text = JSON::PP->new->utf8->decode(<$f>)->{cells}[0]{end}{console} // "";
		$text =~ s/\r//g;
		print $1 if $text =~ /^=== $ARGV[1]\n(.*?)^=== /ms;
	' "$1.json" "$2"
}

# equal WHAT KVM SOFT: both there, and equal.
equal()
{
	local status=1

	[ -n "$2" ] && [ "$2" = "$3" ] && status=0
	tap_result $status "$1: the same on both"
	[ $status = 0 ] || tap_diag "$(diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") | head -n 40)"
}

for what in cmdline iomem acpi meminfo; do
	equal "$what" "$(fact kvm $what)" "$(fact soft $what)"
done

# The CPU model fixes what a CPU shows, but for this:
#   extd_apicid cmp_legacy 3dnowprefetch topoext vmmcall; ss vme arch_capabilities
#                        AMD's; Intel's. kvm shows a guest the host's maker, nested is AMD, soft is Intel
#   pcid invpcid vme     not in QEMU's TCG, so not on nested
#   tsc_deadline_timer   not with KVM and a local APIC in the VMM
# The rest of the differences is the kernel's own: what it works around on each maker's CPUs.
allowed='extd_apicid|cmp_legacy|3dnowprefetch|topoext|vmmcall|ss|vme|arch_capabilities|pcid|invpcid|tsc_deadline_timer'
allowed+='|pti|cpuid_fault|invpcid_single|null_seg|amd_dcm|lfence_rdtsc'
flags() { fact "$1" cpuinfo | sed -n 's/^flags[^:]*: //p' | sort -u | tr ' ' '\n' | sort; }
tap_ok "every CPU has the same flags" test "$(fact soft cpuinfo | grep '^flags' | sort -u | wc -l)" = 1
equal "CPU flags" "$(flags kvm | grep -Evx "$allowed")" "$(flags soft | grep -Evx "$allowed")"
tap_like "and what they have is a CPU's" " $(flags soft | tr '\n' ' ')" ' cx16 .* nx .* pcid .* sse2 '
fields='processor|physical id|siblings|core id|cpu cores|apicid|initial apicid|fpu|wp|clflush size|cache_alignment|address sizes'
equal "the rest of /proc/cpuinfo that is no maker's" "$(fact kvm cpuinfo | grep -E "^($fields)[[:space:]]*:")" \
	"$(fact soft cpuinfo | grep -E "^($fields)[[:space:]]*:")"
# BHI is a matter of Intel's CPUs.
equal "vulnerabilities" "$(fact kvm vulnerabilities | sed 's/; BHI: .*//')" "$(fact soft vulnerabilities | sed 's/; BHI: .*//')"

# Boot messages but for those whose content is a time, a rate or the maker's name, or which a busy host
# provokes. Sorted, since threads of the kernel's own print some. ..TIMER: with TSC deadlines
# nothing is calibrated by the PIT. A guest that cannot calibrate its timer while the host is busy does without.
messages()
{
	fact "$1" dmesg | sed -E 's/^((<[0-9]+>)?\[ *[0-9.]+\] )+//' | sort | grep -Ev \
		-e '^kvm-clock: using sched offset|^tsc: |^TSC deadline timer available|^\.\.TIMER: |^clocksource: tsc' \
		-e '^Calibrating delay loop|^Last level [id]TLB|^smpboot: (CPU0|Total of)|^Performance Events: |^kvm_(intel|amd): ' \
		-e '^sched_clock: |^sched: |^hrtimer: |^clockevents: |^watchdog: |^workqueue: .* hogged|^APIC (delta|timer|calibration|frequency)'
}
tap_ok "there are boot messages" test "$(messages soft | wc -l)" -gt 100
equal "boot messages" "$(messages kvm)" "$(messages soft)"

# --- what is counted ---

counter() { json "$1.json" "cells.$2.repeats.0.counters.$3.value"; }	# NAME CELL COUNTER
report() { json "$1.json" "cells.$2.repeats.0.reports.$(printf '%s' "$3" | sed 's/\./\\./g').value"; }

# "NAME VALUE" of all reports of a cell.
reports()
{
	perl -MJSON::PP -e '
		local $/;
		open my $f, "<", $ARGV[0] or exit 1;
		my $r = JSON::PP->new->utf8->decode(<$f>)->{cells}[$ARGV[1]]{repeats}[0]{reports};
		print "$_ $r->{$_}{value}\n" for sort keys %$r;
	' "$1.json" "$2"
}

# Part by part: faults by kind, shootdowns, the CPUs that each had to consider.
# Whether a page that a child had is copied or reused hangs on when the child is gone; how many there are does not.
all_work() { reports "$1" 1 | grep -v -e '^start\.' -e '^fork\.pf_cow ' -e '^fork\.pf_reuse '; }
equal "fixed-work: all that it reports" "$(all_work kvm)" "$(all_work soft)"
equal "fixed-work: pages copied or reused after fork" "$(($(report kvm 1 fork.pf_cow) + $(report kvm 1 fork.pf_reuse)))" \
	"$(($(report soft 1 fork.pf_cow) + $(report soft 1 fork.pf_reuse)))"
tap_is "fixed-work: first writes" "$(report soft 1 write.pf_anon)" 512
tap_is "fixed-work: page tables freed under three other CPUs" "$(report soft 1 remote_unmap.targets)" 150
# The whole, less the start of its threads, which depends on time. (So do page tables that go between the parts: whether
# another CPU still has the address space of a child that has ended, or of the parent, and has to be told.)
fixed()	# NAME COUNTER
{
	local start

	start=$(report "$1" 1 "start.$2")
	echo $(($(counter "$1" 1 "$2") - ${start:-0}))
}
for name in guest_page_faults guest_page_faults_minor pf_entries pf_user pf_kernel pf_read pf_write pf_exec pf_anon pf_file \
	pf_shared pf_vma_lock pf_vma_lock_retry pf_mmap_lock; do
	equal "fixed-work: $name" "$(fixed kvm $name)" "$(fixed soft $name)"
done
# Who writes first after fork() copies, the other reuses; who that is depends on time.
equal "fixed-work: pf_cow + pf_reuse" "$(($(fixed kvm pf_cow) + $(fixed kvm pf_reuse)))" \
	"$(($(fixed soft pf_cow) + $(fixed soft pf_reuse)))"
for engine in kvm soft; do
	for cell in 1 2; do
		tap_is "$engine, cell $cell: the channel and /proc agree" "$(counter $engine $cell guest_page_faults)" \
			"$(counter $engine $cell guest_page_faults@/proc/vmstat)"
	done
done
tap_is "soft: the engine delivered as many page faults as the guest took" "$(counter soft 1 soft_exceptions)" "$(counter soft 1 pf_entries)"

equal "multi-fault: faults" "$(report kvm 2 faults)" "$(report soft 2 faults)"
for engine in kvm soft; do
	# 4 threads, 3 rounds, 256 pages; waking the threads may cost a few.
	n=$(counter $engine 2 guest_page_faults)
	tap_ok "$engine: multi-fault: the guest counts them ($n)" test "$n" -ge 3072 -a "$n" -le 3080
done

equal "ipi-pingpong: IPIs meant" "$(report kvm 3 ipi_events)" "$(report soft 3 ipi_events)"
# vectors NAME CELL PATTERN: IPIs sent with the vectors that match.
vectors()
{
	perl -MJSON::PP -e '
		local $/;
		open my $f, "<", $ARGV[0] or exit 1;
		my $c = JSON::PP->new->utf8->decode(<$f>)->{cells}[$ARGV[1]]{repeats}[0]{counters};
		my $sum = 0;
		$sum += $c->{$_}{value} for grep { /^ipis_sent_vector_$ARGV[2]$/ } keys %$c;
		print $sum;
	' "$1.json" "$2" "$3"
}
# By the vectors of those that the kernel counts. It sends others, to itself as well (irq_work, where it has to complain of a
# busy host; ticks for all CPUs where it could not calibrate its timer), and leaves these out.
for engine in kvm soft; do
	guest=$(($(counter $engine 3 ipis_reschedule) + $(counter $engine 3 ipis_call_single) + $(counter $engine 3 ipis_call_many)))
	n=$(vectors $engine 3 '0xf[bcd]')
	tap_ok "$engine: the host counts the IPIs that the guest counts ($n, $guest)" test "$n" -ge $((guest - 2)) -a "$n" -le $((guest + 2))
	sent=$(counter $engine 3 ipis_sent)
	n=$(vectors $engine 3 '.*')
	tap_ok "$engine: and all have a vector ($n, $sent)" test "$n" -ge $((sent - 2)) -a "$n" -le $((sent + 2))
done
# One reader of 2048 pages, windows of 16 (the default): 128 faults, whichever way it goes through them.
# The pass's own faults; start-up, which is not the same each time in host time, is not in them.
for engine in kvm soft; do
	for arm in one many; do
		for pattern in sequential random; do
			tap_is "$engine: fault-around, $pattern, $arm: pages / 16 faults" "$(report $engine 4 $pattern.$arm.1.pass_faults)" 128
		done
		tap_is "$engine: fault-around, stride, $arm: a fault each" "$(report $engine 4 stride.$arm.1.pass_faults)" 4
	done
	# Other tasks of the guest run now and then.
	n=$(counter $engine 5 context_switches)
	tap_ok "$engine: switch-pingpong: a switch for each wake-up ($n)" test "$n" -ge 1000 -a "$n" -le 1200
done

tap_is "soft: every IPI sent is delivered" "$(counter soft 3 ipis_delivered)" "$(counter soft 3 ipis_sent)"

# --- memory never touched ---

# The pages are a node of their own, which the guest's kernel leaves alone, and only that node has a rule. So what the kernel touches
# elsewhere between the marks (a worker is started, a page allocated), which on a host's time nothing excludes, is not among them. In
# the second cell each fault waits, and most are kicked meanwhile by the vCPU's own timer.
cat >untouched.ini <<'EOT'
# Is each page never touched one second-level fault, whatever else the guest does?
[vm]
topology = 2x2x1
memory = 256MiB
node_memory = 240MiB,16MiB
apic = xapic
[guest]
append = memmap=16M$0xF000000
[run]
command = true
timeout = 900s
[inject]
ept.count = yes
[vary]
run.command + inject.ept.node.1 = fixed-work --untouched 4MiB@0xF000000 + fixed:0ns, fixed-work --untouched 1MiB@0xF000000 + fixed:5ms
EOT
PAGES=(1024 256) DELAY=(0 5000000)
for engine in soft "$kvm"; do
	[ "$engine" = soft ] && name=soft || name=kvm
	tap_run "$BUILD/faultbed" run --engine "$engine" untouched.ini -o "$name.json"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$engine: memory never touched: all cells are done" "$(json "$name.json" 'cells.*.status' | tr '\n' ' ')" "0 0 "
done
hist() { json "$1.json" "cells.$2.repeats.0.histograms.injected_ept_ns\.first_touch.$3"; }	# NAME CELL FIELD
for engine in kvm soft; do
	for cell in 0 1; do
		pages=${PAGES[$cell]} ns=$((PAGES[cell] * DELAY[cell]))
		tap_is "$engine, ${DELAY[$cell]} ns: each page never touched is one second-level fault" "$(hist $engine $cell count)" "$pages"
		tap_is "$engine, ${DELAY[$cell]} ns: delayed once" "$(hist $engine $cell sum)" "$ns"
		tap_is "$engine, ${DELAY[$cell]} ns: as the vCPUs' counters have it" "$(counter $engine $cell ept_injected_ns)" "$ns"
		n=$(counter $engine $cell ept_first_touch)
		tap_ok "$engine, ${DELAY[$cell]} ns: the VM counts these, and others ($n)" test "$n" -ge "$pages"
		tap_is "$engine, ${DELAY[$cell]} ns: none is a refault" "$(counter $engine $cell ept_refault)" 0
	done
done
tap_is "soft: with no delay there is no time for others" "$(counter soft 0 ept_first_touch)" "${PAGES[0]}"
n=$(counter kvm 1 exits_kick)
tap_ok "kvm: kicks came while faults waited ($n)" test "$n" -ge 20
tap_ok "kvm: and each waited long enough" test "$(counter kvm 1 ept_service_ns)" -ge $((PAGES[1] * DELAY[1]))

# --- loads of a fixed number of loops, requests, pages ---

cat >loads.ini <<EOT
# Is the work of each load the same on two engines?
[vm]
topology = 1x2x2
memory = 256MiB
apic = xapic
[guest]
disk = default
knob.i_mmap_stat = on
[run]
command = true
timeout = 300s
[vary]
run.command = mmap-file 4 100, kv-server --pin all --workers 1 --clients 2 --think 5ms --flush-share 0.26 --slots 64 --requests 40, file-scan --scale 0.01 --how mixed --no-writer 2
EOT
for engine in soft "$kvm"; do
	[ "$engine" = soft ] && name=soft || name=kvm
	tap_run "$BUILD/faultbed" run --engine "$engine" loads.ini -o "$name.json"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$engine: all loads are done" "$(json "$name.json" 'cells.*.status' | tr '\n' ' ')" "0 0 0 "
done

# mmap-file: a file is mapped and unmapped 400 times, and what processes and their ends do to the locks of their files is the same, too.
for name in loops_done parent_page_faults; do
	equal "mmap-file: $name" "$(report kvm 0 $name)" "$(report soft 0 $name)"
done
tap_is "mmap-file: loops" "$(report soft 0 loops_done)" 400
equal "mmap-file: i_mmap_write" "$(counter kvm 0 i_mmap_write)" "$(counter soft 0 i_mmap_write)"
tap_ok "mmap-file: twice a loop ($(counter soft 0 i_mmap_write))" test "$(counter soft 0 i_mmap_write)" -ge 800
# Five processes, whose start can differ by a fault each in host time.
a=$(counter kvm 0 guest_page_faults) b=$(counter soft 0 guest_page_faults)
tap_ok "mmap-file: faults, and start-ups ($a, $b)" test $((a - b)) -le 5 -a $((b - a)) -le 5

# kv-server: requests are drawn by seed and client alone. Who comes first, a client's read or the other's request that gives the memory
# back, is a matter of time, and so is one fault for each such request at most.
for name in requests requests_{get,set,dontneed,free,map,remap} flushes; do
	equal "kv-server: $name" "$(report kvm 1 "$name")" "$(report soft 1 "$name")"
done
tap_is "kv-server: requests" "$(report soft 1 requests)" 80
n=$(report soft 1 flushes)
a=$(counter kvm 1 guest_page_faults) b=$(counter soft 1 guest_page_faults)
tap_ok "kv-server: faults differ by no more than the requests that flush ($a, $b)" test $((a - b)) -le "$n" -a $((b - a)) -le "$n"
for engine in kvm soft; do
	targets=$(counter $engine 1 tlb_shootdown_targets)
	came=$(counter $engine 1 tlb_flush_received)
	tap_ok "$engine: kv-server: every CPU told came to flush ($targets, $came)" test $((targets - came)) -le 2 -a $((came - targets)) -le 2
	flushes=$(counter $engine 1 tlb_shootdowns)
	# None for memory that is not there, one more for a first write to memory that was read.
	tap_ok "$engine: kv-server: shootdowns are those of requests that flush ($flushes)" test "$flushes" -ge $((n / 2)) -a "$flushes" -le $((2 * n))
	# Six a request, fewer where requests meet.
	switches=$(counter $engine 1 context_switches)
	tap_ok "$engine: kv-server: switches ($switches)" test "$switches" -ge 320 -a "$switches" -le 640
done

# file-scan: 40 pages of a disk, 16 of them by read(); each is a request, and each of the others a fault that waited for it.
for name in pages bytes faults faults_major; do
	equal "file-scan: $name" "$(report kvm 2 $name)" "$(report soft 2 $name)"
done
for name in blk_requests blk_read_bytes guest_page_faults guest_page_faults_major fault_wait_dropped fault_wait_mmap_lock fault_wait_vma_lock; do
	equal "file-scan: $name" "$(counter kvm 2 $name)" "$(counter soft 2 $name)"
done
tap_is "file-scan: each page is a request" "$(counter soft 2 blk_requests)" "$(report soft 2 pages)"
tap_is "file-scan: each major fault waited once" "$(counter soft 2 fault_wait_dropped)" "$(report soft 2 faults_major)"

# What no one counted is n/a on both, not 0.
for engine in kvm soft; do
	tap_like "$engine: a counter whose knob is off is n/a" "$(json $engine.json cells.0.repeats.0.na.mmap_lock_read)" 'mmap_lock_stat = off'
	tap_is "$engine: and has no value" "$(counter $engine 0 mmap_lock_read)" ""
	tap_like "$engine: one whose knob is on has" "$(counter $engine 0 i_mmap_sleeps)" '^[0-9]+$'
done

tap_done
