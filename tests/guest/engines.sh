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
ADDRESS=0x8000000 UNTOUCHED=4MiB PAGES=1024

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
append = memmap=4M\$$ADDRESS
[run]
command = true
timeout = 900s
[inject]
ept.count = yes
[vary]
run.command = $facts, fixed-work, fixed-work --untouched $UNTOUCHED@$ADDRESS, multi-fault 4 --rounds 3 --pages 256 --warmup 20ms, ipi-pingpong --count 100 --busy, fault-around, switch-pingpong --count 500
EOT
for engine in soft "$kvm"; do
	[ "$engine" = soft ] && name=soft || name=kvm
	tap_run "$BUILD/faultbed" run --engine "$engine" same.ini -o "$name.json"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$engine: all cells are done" "$(json "$name.json" 'cells.*.status' | tr '\n' ' ')" "0 0 0 0 0 0 0 "
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
	fact "$1" dmesg | sed -E 's/^(<[0-9]+>)?\[[^]]*\] //' | sort | grep -Ev \
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
equal "fixed-work: all that it reports" "$(reports kvm 1 | grep -v '^start\.')" "$(reports soft 1 | grep -v '^start\.')"
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
	for cell in 1 3; do
		tap_is "$engine, cell $cell: the channel and /proc agree" "$(counter $engine $cell guest_page_faults)" \
			"$(counter $engine $cell guest_page_faults@/proc/vmstat)"
	done
done
tap_is "soft: the engine delivered as many page faults as the guest took" "$(counter soft 1 soft_exceptions)" "$(counter soft 1 pf_entries)"

for engine in kvm soft; do
	tap_is "$engine: each page never touched is one second-level fault" "$(counter $engine 2 ept_first_touch)" $PAGES
	tap_is "$engine: and none is a refault" "$(counter $engine 2 ept_refault)" 0
done

equal "multi-fault: faults" "$(report kvm 3 faults)" "$(report soft 3 faults)"
for engine in kvm soft; do
	# 4 threads, 3 rounds, 256 pages; waking the threads may cost a few.
	n=$(counter $engine 3 guest_page_faults)
	tap_ok "$engine: multi-fault: the guest counts them ($n)" test "$n" -ge 3072 -a "$n" -le 3080
done

equal "ipi-pingpong: IPIs meant" "$(report kvm 4 ipi_events)" "$(report soft 4 ipi_events)"
for engine in kvm soft; do
	guest=$(($(counter $engine 4 ipis_reschedule) + $(counter $engine 4 ipis_call_single) + $(counter $engine 4 ipis_call_many)))
	# Where the guest could not calibrate its timer the PIT ticks for all CPUs, by IPIs that the kernel's counters leave out.
	ticks=$((3 * $(counter $engine 4 irq_0 | grep . || echo 0)))
	sent=$(counter $engine 4 ipis_sent)
	tap_ok "$engine: the host counts the IPIs that the guest counts ($sent, $guest + $ticks)" \
		test "$sent" -ge $((guest + ticks - ticks / 50 - 2)) -a "$sent" -le $((guest + ticks + ticks / 50 + 2))
done
# One reader of 2048 pages, windows of 16 (the default): 128 faults, whichever way it goes through them.
# start_up_apart ENGINE NAME GOT EXPECTED: a run's faults without those of an empty run. In host time two starts of a
# program can differ by a fault.
start_up_apart()
{
	local slack=1

	[ "$1" != soft ] || slack=0
	tap_ok "$1: $2 ($3)" test "$3" -ge $(($4 - slack)) -a "$3" -le $(($4 + slack))
}
for engine in kvm soft; do
	for arm in one many; do
		for pattern in sequential random; do
			start_up_apart $engine "fault-around, $pattern, $arm: pages / 16 faults, and start-up" \
				$(($(report $engine 5 $pattern.$arm.1.minor_faults) - $(report $engine 5 empty.$arm.1.minor_faults))) 128
		done
		start_up_apart $engine "fault-around, stride, $arm: a fault each, and start-up" \
			$(($(report $engine 5 stride.$arm.1.minor_faults) - $(report $engine 5 empty.$arm.1.minor_faults))) 4
	done
	# Other tasks of the guest run now and then.
	n=$(counter $engine 6 context_switches)
	tap_ok "$engine: switch-pingpong: a switch for each wake-up ($n)" test "$n" -ge 1000 -a "$n" -le 1200
done

tap_is "soft: every IPI sent is delivered" "$(counter soft 4 ipis_delivered)" "$(counter soft 4 ipis_sent)"

tap_done
