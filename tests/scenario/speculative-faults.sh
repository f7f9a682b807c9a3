#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The check of experiments/speculative-faults judges rates as its head says: results of this test's own making, one thing of them
# wrong at a time. And host-tools/ex-vs-ep.pl asks for what there is.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1

# results DIR [BOX/VARIANT/ARM=RATE]...: rates in M/s, all else as it should be; two seeds that differ by 1%.
results()
{
	mkdir -p "$1"
	printf 'small\tleft out\tnot for this test\n' >"$1/run.tsv"
	perl -MJSON::PP -e '
		my ($dir, @set) = @ARGV;
		my %rate = map { split /=/ } @set;
		my %threads = (ep => 20, ex => 60);
		sub figure { my ($mean, $error) = @_; return { mean => $mean, stderr => $error // 0, n => 2 } }
		for my $box (qw(ep ex)) {
			my @cells;
			for my $zap (qw(own first)) {
				for my $arm (qw(mmap_lock vma_lock speculative)) {
					my $rate = 1e6 * ($rate{"$box/$zap/$arm"} // die "$box/$zap/$arm");
					my %n = (faults => 1000, guest_page_faults => 1000, pf_mmap_lock => $arm eq "mmap_lock" ? 1000 : 0,
						vma_lock_read => $arm eq "vma_lock" ? 1000 : 0, spf_success => $arm eq "speculative" ? 1000 : 0,
						spf_retry => 0, llc_misses => 4000, soft_line_transfers_remote => 3000, soft_lines_dram_local => 900,
						soft_lines_dram_remote => 100, zap_ns => 1000);
					$n{"spf_fallback_$_"} = 0 for qw(present no_vma vma_locked kind access mlock uffd policy anon_vma thp
						no_table pte nomem unstable ptl changed);
					push @cells, { name => "$zap $arm", status => 0, repeats => [map { { reports => { rounds => { value => 10 } } } } 1, 2],
						set => { "guest.knob.fault_path" => $arm, "run.command" => "multi-fault $threads{$box} --zap $zap" },
						summary => { repeats => 2, na => {}, reports => {}, counters => { map { $_ => figure($n{$_}) } keys %n },
							rates => { faults_per_s => figure($rate, $rate / 2000) } } };
				}
			}
			open my $f, ">", "$dir/$box.json" or die;
			print $f JSON::PP->new->encode({ schema => "faultbed-result/1", complete => JSON::PP::true, status => 0, cells => \@cells });
		}' "$@"
}

judge()	# DIR [SET]...; sets RC, OUT, ERR
{
	results "$@"
	tap_run perl -I"$TOP/experiments/lib" "$TOP/experiments/speculative-faults/check" "$1"
}

own=(ep/own/mmap_lock=3.6 ep/own/vma_lock=3.7 ep/own/speculative=11 ex/own/mmap_lock=2.6 ex/own/vma_lock=3 ex/own/speculative=20)
first=(ep/first/mmap_lock=2.5 ep/first/vma_lock=2.6 ep/first/speculative=3.9 ex/first/mmap_lock=1.8 ex/first/vma_lock=2
	ex/first/speculative=3.1)
judge good "${own[@]}" "${first[@]}"
[ "$RC" = 0 ] || tap_diag "$OUT"
tap_is "the shape that was published: status 0" "$RC" 0
tap_like "a miss is shown as one" "$OUT" '^expect.own: the larger box is slower after, too.*1\.818.*missed$'
tap_like "what was published is not" "$OUT" '^expect.first: the larger box is slower after, too.*0\.795.*holds$'
tap_like "gains, with intervals" "$OUT" '^row.first: gain of ivb-ex, after/before	1\.77	1\.722 ± '
tap_is "misses of all cells stand before any rate" "$(echo "$OUT" | grep -E 'LLC misses|faults a second' |
	sed 's/.*\(LLC misses\|faults a second\).*/\1/' | uniq | tr '\n' ' ')" "LLC misses faults a second "
tap_like "a deviation is said" "$OUT" '^row.ivb-ep, own, mmap_lock: M faults a second	2\.49	3\.600 ± [0-9.]+	\+45%, 10 rounds'

judge fast "${own[@]/ex\/own\/mmap_lock=2.6/ex\/own\/mmap_lock=3.7}" "${first[@]}"
tap_is "the larger box is faster before: status 1" "$RC" 1
tap_like "which a claim says" "$OUT" '^claim.own: the larger box is slower before.*does not hold$'
judge near "${own[@]/ex\/own\/mmap_lock=2.6/ex\/own\/mmap_lock=3.59}" "${first[@]}"
tap_is "slower by less than the interval: status 1" "$RC" 1
judge same "${own[@]}" "${first[@]/ex\/first\/speculative=3.1/ex\/first\/speculative=1.8}"
tap_is "the larger box gains nothing: status 1" "$RC" 1
tap_is "two claims say it" "$(echo "$OUT" | grep -c '^claim.first.*does not hold$')" 2

# --- its counter-experiments ---

tap_run "$TOP/host-tools/ex-vs-ep.pl" thirst
tap_is "a part that there is not: status" "$RC" 2
tap_like "and those that there are" "$ERR" 'no part is called thirst; there are own first scaling profile'

tap_done
