#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One scenario, with a load whose work is fixed, on soft, kvm (or nested), QEMU and libvirt: the same guest sees the same machine and
# takes the same faults on each, and each says what it does not observe. And whatever happens to it, nothing of a peer is left.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=900

# Half as large as it is, since the emulated host takes its time.
sed 's/2x4x2/2x2x2/' "$TOP/scenarios/peers-2x4x2.ini" >peers.ini
scenario=$PWD/peers.ini
fb=$BUILD/faultbed
vary='--vary run.command=fixed-work,topology-check'

counter() { json "$1.json" "cells.$2.repeats.0.counters.$3.value"; }	# ENGINE CELL NAME

# "PART VALUE" of the guest's page faults, part by part. Not of `start`, in which threads run for the first time, side by side.
parts()
{
	perl -MJSON::PP -e '
		local $/;
		open my $f, "<", "$ARGV[0].json" or exit 1;
		my $r = JSON::PP->new->utf8->decode(<$f>)->{cells}[0]{repeats}[0]{reports};
		print "$_ $r->{$_}{value}\n" for sort grep { /\.guest_page_faults$/ && !/^start\./ } keys %$r;
	' "$1"
}

# near A B: both are there, and at most 20 apart.
near()
{
	[ -n "$1" ] && [ -n "$2" ] && [ $(($1 - $2)) -le 20 ] && [ $(($2 - $1)) -le 20 ]
}

nested=$(kvm_engine)
# shellcheck disable=SC2086
tap_run "$fb" run "$scenario" --engine soft $vary -o soft.json
tap_is "soft: status 0" "$RC" 0
tap_run "$fb" run "$scenario" --engine "$nested" -o nested.json
tap_is "$nested: status 0" "$RC" 0
# shellcheck disable=SC2086
tap_run "$fb" run "$scenario" --engine qemu $vary -o qemu.json
tap_is "qemu: status 0, and the guest sees its topology" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
# shellcheck disable=SC2086
tap_run "$TOP/host-tools/libvirt-up.sh" "$fb" run "$scenario" --engine libvirt $vary -o libvirt.json
tap_is "libvirt: status 0, and the guest sees its topology" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"

tap_is "the load has parts" "$(parts soft | wc -l)" 10
for engine in nested qemu libvirt; do
	tap_is "$engine: as many page faults as on soft, in each part" "$(parts $engine)" "$(parts soft)"
done
tap_is "soft: what the host reads in the kernel's own counts is the channel's" "$(counter soft 0 guest_page_faults@vm_event_states)" \
	"$(counter soft 0 guest_page_faults)"
# Beside the parts the guest's own threads fault a few times, when they happen to be started.
for engine in nested qemu libvirt; do
	tap_ok "$engine: and nearly so in all" near "$(counter $engine 0 guest_page_faults)" "$(counter soft 0 guest_page_faults)"
	# One after the other is read, while the guest's threads go on.
	[ $engine = nested ] || tap_ok "$engine: what the host reads in the kernel's own counts is the channel's" \
		near "$(counter $engine 0 guest_page_faults@vm_event_states)" "$(counter $engine 0 guest_page_faults)"
	tap_ok "$engine: channel and /proc agree" near "$(counter $engine 0 guest_page_faults)" "$(counter $engine 0 guest_page_faults@/proc/vmstat)"
done
for engine in qemu libvirt; do
	tap_is "$engine: what QEMU does not tell is n/a, with the reason" \
		"$(json $engine.json cells.0.repeats.0.na.vm_exits)" "QEMU's VMM does not tell; kvm and soft count it"
	tap_is "$engine: and no counter" "$(counter $engine 0 vm_exits)" ""
	tap_like "$engine: the host is in the record" "$(json $engine.json 'cells.0.vm.time')" '^host$'
	tap_like "$engine: QEMU's version too" "$(json $engine.json provenance.qemu)" 'QEMU .*[0-9]+\.[0-9]+'
done
tap_run "$TOP/host-tools/peers.pl" soft.json nested.json qemu.json libvirt.json
tap_like "the table has a column for each" "$OUT" "soft +$nested +qemu +libvirt"
sums=$(printf '%s\n' "$OUT" | sed -n 's/^page faults of the parts *//p' | tr -s ' ' '\n' | sort -u | grep -c .)
tap_is "and one sum of faults" "$sums" 1

# --- ends ---

small=(--set vm.topology=1x1x1 --set vm.memory=128MiB)
left() { pgrep -f "$TAP_DIR/emulator" ; ls -d "$TAP_DIR"/tmp/* 2>/dev/null; }

# A QEMU that can be told from others'. Started by a wrapper, it keeps its process.
ln -s "${FAULTBED_QEMU:-$(command -v qemu-system-x86_64)}" emulator
mkdir tmp
export FAULTBED_QEMU=$TAP_DIR/emulator TMPDIR=$TAP_DIR/tmp

# until_up FILE: the command runs.
until_up()
{
	for ((i = 0; i < 600; i++)); do
		! grep -q "repeat 1 of 1: sleep" "$1" || return 0
		sleep 0.1
	done
	return 1
}

# ended NAME SIGNAL: a run whose front end gets the signal in the middle of its command.
ended()
{
	"$fb" run "$scenario" --engine qemu "${small[@]}" --set run.command="sleep 600" -o "$1.json" >/dev/null 2>"$1.txt" &
	tap_ok "$1: the command runs" until_up "$1.txt"
	kill "-$2" $!
	RC=0
	wait $! || RC=$?
}

ended interrupted INT
tap_is "Ctrl-C: status 130" "$RC" 130
tap_is "nothing is left" "$(left)" ""
ended killed KILL
sleep 1
tap_is "SIGKILL: no QEMU is left" "$(pgrep -f "$TAP_DIR/emulator")" ""
rm -rf tmp/*

"$fb" run "$scenario" --engine qemu "${small[@]}" --set run.command="sleep 600" -o gone.json >/dev/null 2>gone.txt &
run=$!
tap_ok "the command runs" until_up gone.txt
pkill -KILL -f "$TAP_DIR/emulator"
RC=0
wait $run || RC=$?
tap_is "a QEMU that is killed: the guest died" "$RC" 5
tap_like "how is said" "$(json gone.json cells.0.why)" 'the guest is gone, .*; QEMU was ended by signal 9'
tap_is "nothing is left of it either" "$(left)" ""


"$fb" run "$scenario" --engine qemu "${small[@]}" --set run.command="sleep 600" -o vmm.json >/dev/null 2>vmm.txt &
run=$!
tap_ok "the command runs again" until_up vmm.txt
pkill -KILL -P $run -f faultbed-vmm
RC=0
wait $run || RC=$?
tap_is "a VMM that is killed: an internal error" "$RC" 4
tap_is "which is said" "$(json vmm.json cells.0.why)" "the VMM was ended by signal 9"
tap_is "and no QEMU is left" "$(left)" ""

tap_run "$fb" run "$scenario" --engine qemu "${small[@]}" --vary run.command="bad-guest panic,bad-guest triple-fault,bad-guest marks" -o ends.json
tap_is "a panic, a triple fault, rubbish for marks: statuses" "$(json ends.json 'cells.*.status' | tr '\n' ' ')" "5 5 0 "
tap_like "QEMU tells what it saw of a triple fault" "$(json ends.json cells.1.why)" 'QEMU: shut down, guest-reset'
tap_run "$fb" run "$scenario" --engine qemu "${small[@]}" --set run.command='sleep 600' --set run.timeout=30s -o late.json
tap_is "a timeout: status 5" "$RC" 5
tap_like "with its reason" "$(json late.json cells.0.why)" 'still busy after 30 s'
tap_is "and nothing left" "$(left)" ""

printf '#!/bin/sh\n[ "$1" = --version ] && exec "%s" --version\necho "no such machine" >&2\nexit 1\n' "$FAULTBED_QEMU" >broken
chmod +x broken
tap_run env FAULTBED_QEMU="$PWD/broken" "$fb" run "$scenario" --engine qemu "${small[@]}" -o broken.json
tap_is "a QEMU that does not start: status 3" "$RC" 3
tap_like "what it said is said" "$ERR" 'error: QEMU left with status 1: no such machine'

# A VM's own libvirtd, and nobody's.
tap_run "$fb" run "$scenario" --engine libvirt --connect "qemu:///system?socket=$PWD/none" "${small[@]}"
tap_is "no libvirtd: status 3" "$RC" 3
tap_like "and what to look at" "$ERR" 'is libvirtd or virtqemud running\?'
tap_run "$fb" run "$scenario" --engine libvirt --connect qemu+ssh://elsewhere/system "${small[@]}"
tap_is "another host's: status 3" "$RC" 3
tap_like "and what to do" "$ERR" 'ssh HOST faultbed run'
cat >inside <<EOF
#!/bin/bash
: >lv.txt
"$fb" run "$scenario" --engine libvirt ${small[*]} --set run.command="sleep 600" -o lv.json >/dev/null 2>lv.txt &
for ((i = 0; i < 600; i++)); do ! grep -q "repeat 1 of 1: sleep" lv.txt || break; sleep 0.1; done
virsh -q list --all --name
case \$2 in
front) kill -\$1 \$! ;;
vmm) kill -\$1 \$(pgrep -P \$! -f faultbed-vmm) ;;
esac
wait \$!
echo "status \$?"
for ((i = 0; i < 100; i++)); do [ "\$(virsh -q list --all --name)" ] || break; sleep 0.1; done
virsh -q list --all --name | grep .
echo "folders: \$(ls $TAP_DIR/tmp | grep -c ^faultbed)"
EOF
chmod +x inside
for how in "INT front" "KILL front" "KILL vmm"; do
	# shellcheck disable=SC2086
	tap_run "$TOP/host-tools/libvirt-up.sh" ./inside $how
	tap_like "libvirt, SIG$how: there was a domain" "$(printf '%s\n' "$OUT" | head -n 1)" '^faultbed-[0-9]+-1$'
	tap_is "and none is left" "$(printf '%s\n' "$OUT" | grep -c '^faultbed-')" 1
	tap_is "nor its QEMU" "$(pgrep -f "guest=$(printf '%s\n' "$OUT" | head -n 1)")" ""
	[ "$how" != "INT front" ] || tap_is "status 130, and no folder" "$(printf '%s\n' "$OUT" | tail -n 2 | tr '\n' ' ')" "status 130 folders: 0 "
	[ "$how" != "KILL vmm" ] || tap_is "status 4, and no folder" "$(printf '%s\n' "$OUT" | tail -n 2 | tr '\n' ' ')" "status 4 folders: 0 "
	rm -rf tmp/*
done

# A user's own daemon, too; the one above was the system's, if this is root.
tap_run "$TOP/host-tools/libvirt-up.sh" --session "$fb" run "$scenario" --engine libvirt "${small[@]}" -o session.json
tap_is "an ordinary user's libvirt: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_like "which it was" "$(json session.json provenance.qemu)" 'qemu:///session'

# In QEMU's options a comma parts; a socket's address is short.
mkdir -p "tmp/a,b" "tmp/$(printf 'x%.0s' {1..100})"
tap_run env TMPDIR="$PWD/tmp/a,b" "$fb" run "$scenario" --engine qemu "${small[@]}"
tap_is "a TMPDIR with a comma: status 0" "$RC" 0
tap_run env TMPDIR="$PWD/tmp/$(printf 'x%.0s' {1..100})" "$fb" run "$scenario" --engine qemu "${small[@]}"
tap_is "one that is too long: status 3" "$RC" 3
tap_like "and what would do" "$ERR" 'a shorter TMPDIR'

tap_done
