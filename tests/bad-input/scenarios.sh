#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Scenarios that are wrong: exit status 2, and one message for each mistake, with
# file, line and what would be right. No guest is started, so this needs no engine.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1

# base LINE...: s.ini; "key = value" replaces the key, "[section] key = value" adds one.
base()
{
	local line section

	cat >s.ini <<-'EOT'
	# Is bad input refused?
	[vm]
	engine = kvm
	topology = 2x2x1
	memory = 512MiB
	[run]
	command = true
	EOT
	for line; do
		case $line in
		"["*)
			section=${line%%]*}]
			grep -q -x -F "$section" s.ini || echo "$section" >>s.ini
			awk -v s="$section" -v l="${line#*] }" '{ print } $0 == s { print l }' s.ini >s.new
			;;
		*)
			awk -v k="${line%% =*}" -v l="$line" '$1 == k { print l; next } { print }' s.ini >s.new
			;;
		esac
		mv s.new s.ini
	done
}

run()
{
	tap_run "$BUILD/faultbed" run --check "$@"
}

# good NAME LINE...
good()
{
	local name=$1

	shift
	base "$@"
	run s.ini
	[ "$RC" = 3 ] || tap_diag "$ERR"
	tap_is "good: $name" "$RC" 0
}

# bad NAME REGEX LINE...: status 2 and a message that fits.
bad()
{
	local name=$1 regex=$2

	shift 2
	base "$@"
	run s.ini
	tap_is "bad: $name" "$RC" 2
	tap_like "bad: $name: said so" "$ERR" "$regex"
}

good "the base"
good "a matrix of distances" "[vm] distance = 10,21;21,10"
good "every distribution" "[inject] ipi.self = fixed:50us" "[inject] ipi.smt = uniform:50us..80us" \
	"[inject] ipi.socket = exp:50us" "[inject] ipi.remote = lognormal:50us,0.5" "[inject] ept.all = pareto:1us,2.5"
good "rates" "[inject] ept.refault = 1/s" "[inject] ept.write_protect = 10000000/s" "[inject] ept.write_protect_delay = none"
good "no rate" "[inject] ept.write_protect = none"

# names
bad "an unknown key" 's\.ini:3: .*memry.*memory' "[vm] memry = 1GiB"
bad "an unknown section" 's\.ini:[0-9]+: .*injekt.*inject' "[injekt] ipi.all = fixed:1us"
bad "a duplicate key" 's\.ini:[0-9]+: .*topology' "[vm] topology = 1x1x1"
bad "an unknown engine" 's\.ini:3: .*"kvn".*kvm' "engine = kvn"
bad "an unknown injection" 's\.ini:[0-9]+: .*ipi\.remot.*ipi\.remote' "[inject] ipi.remot = fixed:1us"
bad "a key that comes later" 's\.ini:[0-9]+: .*modules' "[guest] modules = x"
bad "a delay of a disk that is not there" 's\.ini:[0-9]+: inject\.blk\.read: the guest has no disk' "[inject] blk.read = fixed:1ms"
bad "a disk that is not there" 's\.ini:[0-9]+: guest\.disk: .*no/such\.img: no such file' "[guest] disk = no/such.img"

# topology
bad "no sockets" 's\.ini:4: .*0x1x1' "topology = 0x1x1"
bad "two numbers" 's\.ini:4: .*2x10' "topology = 2x10"
bad "not a number" 's\.ini:4: .*axbxc' "topology = axbxc"
bad "a number that overflows" 's\.ini:4: ' "topology = 99999999999999999999x1x1"
bad "300 vCPUs under xAPIC" 's\.ini:[0-9]+: .*(254|APIC id)' "topology = 2x150x1" "memory = 4GiB" "[vm] apic = xapic"
bad "too many vCPUs" 's\.ini:[0-9]+: .*512' "topology = 4x128x2" "memory = 4GiB"
bad "less memory than the nodes need" 's\.ini:[0-9]+: .*(memory|MiB)' "topology = 4x2x1" "memory = 20MiB"
bad "a distance matrix of the wrong size" 's\.ini:[0-9]+: .*distance' "[vm] distance = 10,21,30"
bad "a distance that is not 10 on the diagonal" 's\.ini:[0-9]+: .*distance|s\.ini:[0-9]+: .*diagonal' "[vm] distance = 11,21;21,10"
bad "a node count that divides nothing" 's\.ini:[0-9]+: .*node' "topology = 4x2x1" "[vm] nodes = 3"
bad "node memory that does not add up" 's\.ini:[0-9]+: .*(memory|add|sum)' "[vm] node_memory = 100MiB,100MiB"

# units and numbers
bad "memory without a unit" 's\.ini:5: .*512.*[KMG]iB' "memory = 512"
bad "memory in an unknown unit" 's\.ini:5: .*[KMG]iB' "memory = 512MB"
bad "negative memory" 's\.ini:5: ' "memory = -1GiB"
bad "a time without a unit" 's\.ini:[0-9]+: .*(ns|us|ms)' "[run] duration = 200"
bad "a time in an unknown unit" 's\.ini:[0-9]+: .*(ns|us|ms)' "[run] duration = 200min"
bad "no repeats" 's\.ini:[0-9]+: .*repeat' "[run] repeat = 0"
bad "a seed that is no number" 's\.ini:[0-9]+: .*seed' "[run] seed = lucky"

# rates
bad "a rate without its second" 's\.ini:[0-9]+: .*write_protect: .*2000/s' "[inject] ept.write_protect = 2000"
bad "a rate of nothing" 's\.ini:[0-9]+: .*write_protect: .*from 1/s' "[inject] ept.write_protect = 0/s"
bad "a rate beyond all measure" 's\.ini:[0-9]+: .*write_protect: .*10000000/s' "[inject] ept.write_protect = 10000001/s"
bad "a delay in place of a rate" 's\.ini:[0-9]+: .*write_protect: .*pages a second' "[inject] ept.write_protect = fixed:3us"
bad "a rate in place of a delay" 's\.ini:[0-9]+: .*write_protect_delay: .*fixed' "[inject] ept.write_protect_delay = 2000/s"
bad "a misspelt rate" 's\.ini:[0-9]+: .*write_protct.*ept\.write_protect' "[inject] ept.write_protct = 2000/s"

# distributions
bad "a delay without a unit" 's\.ini:[0-9]+: .*(ns|us|ms)' "[inject] ept.all = fixed:300"
bad "a distribution that is none" 's\.ini:[0-9]+: .*(gauss|fixed)' "[inject] ept.all = gauss:3us"
bad "uniform with its ends reversed" 's\.ini:[0-9]+: ' "[inject] ept.all = uniform:8us..2us"
bad "a delay beyond 10 s" 's\.ini:[0-9]+: .*10 ?s' "[inject] ept.all = fixed:11s"
bad "a trace that is not there" 's\.ini:[0-9]+: .*none\.txt' "[inject] ept.all = trace:none.txt"
printf '5us\n7 bananas\n' >trace.txt
bad "a trace with a bad line" 's\.ini:[0-9]+: .*trace\.txt.*2' "[inject] ept.all = trace:trace.txt"
: >empty.txt
bad "an empty trace" 's\.ini:[0-9]+: .*empty' "[inject] ept.all = trace:empty.txt"

# form
printf '# q\n[vm]\nthis is no line of a scenario\n' >s.ini
run s.ini
tap_is "bad: a line without =" "$RC" 2
tap_like "bad: a line without =: said where" "$ERR" 's\.ini:3: '
printf '# q\nengine = kvm\n' >s.ini
run s.ini
tap_is "bad: a key before any section" "$RC" 2
: >s.ini
run s.ini
tap_is "bad: an empty file" "$RC" 2
head -c 300000 /dev/urandom >s.ini
run s.ini
tap_is "bad: rubbish" "$RC" 2
tap_ok "bad: rubbish does not drown its reader" test "$(printf '%s\n' "$ERR" | wc -l)" -lt 40
yes '# a long file of comments' | head -c 20000000 >s.ini
run s.ini
tap_is "bad: a huge file" "$RC" 2
run "$TAP_DIR/nowhere.ini"
tap_is "bad: no such file" "$RC" 2
tap_like "bad: no such file: named" "$ERR" 'nowhere\.ini'
run "$TAP_DIR"
tap_is "bad: a folder" "$RC" 2

# two mistakes, two messages
base "memory = 512" "[vm] cpu_ordr = siblings-last"
run s.ini
tap_is "all mistakes are told" "$(printf '%s\n' "$ERR" | grep -c 's\.ini:[0-9]*: ')" 2

# [vary] and --set
bad "an axis that is no key" 's\.ini:[0-9]+: ' "[vary] vm.topologie = 1x1x1, 2x1x1"
bad "a value of an axis that is wrong" 's\.ini:[0-9]+: .*0x1x1' "[vary] vm.topology = 1x1x1, 0x1x1"
base
run s.ini --set vm.memory=12parsecs
tap_is "bad: --set" "$RC" 2
tap_like "bad: --set: said so" "$ERR" '--set.*12parsecs'
run s.ini --set novalue
tap_is "bad: --set without a value" "$RC" 2
for axis in topolgy=1x1x1 topology topology= knob.x= =1x1x1 a.b=1 vm.topology=0x1x1 topology+seed=1x1x1; do
	run s.ini --vary "$axis"
	tap_is "bad: --vary $axis" "$RC" 2
	tap_like "bad: --vary $axis: said so" "$ERR" 'error: '
done
run s.ini --vary topolgy=1x1x1
tap_like "bad: --vary: the nearest" "$ERR" 'did you mean topology\?'

# limits of what the guest and the parser take
bad "an axis without values" 's\.ini:[0-9]+: .*no values' "[vary] vm.topology ="
bad "half a distribution in an axis" 's\.ini:[0-9]+: .*fixed:0\.5us.*separated by \|' \
	"[vary] inject.ipi.remote = none, lognormal:2us,0.5"
bad "a knob's long value" 's\.ini:[0-9]+: .*31' "[guest] knob.a = abcdefghijklmnopqrstuvwxyz0123456789"
bad "a hexadecimal CPU" 's\.ini:[0-9]+: .*pin' "[vm] pin = 0x0,1,2,3"
truncate -s 1T huge.txt
bad "a huge trace" 's\.ini:[0-9]+: .*larger' "[inject] ept.all = trace:huge.txt"
rm -f huge.txt
mkfifo pipe.ini
tap_run timeout 10 "$BUILD/faultbed" run pipe.ini
tap_is "bad: a FIFO" "$RC" 2
tap_like "bad: a FIFO: said so" "$ERR" 'pipe\.ini: not a regular file'
base
echo "no kernel" >nokernel
run s.ini --kernel nokernel
tap_is "bad: a kernel that is none" "$RC" 2
tap_like "bad: a kernel that is none: said so" "$ERR" 'nokernel: not a kernel'

# where the result goes, before anything runs
for to in "" . nowhere/ s.ini/r.json; do
	base
	run s.ini -o "$to"
	tap_is "bad: -o '$to'" "$RC" 2
	tap_like "bad: -o '$to': said so" "$ERR" 'error: '
done

# options and commands
run s.ini --frobnicate
tap_is "bad: an unknown option" "$RC" 2
run
tap_is "bad: no file" "$RC" 2
tap_run "$BUILD/faultbed" rum
tap_is "bad: an unknown command" "$RC" 2
tap_like "bad: an unknown command: the nearest" "$ERR" 'run'
tap_run "$BUILD/faultbed" topology 0x1x1
tap_is "bad: topology 0x1x1" "$RC" 2
tap_like "bad: topology 0x1x1: says which argument" "$ERR" 'error: faultbed topology 0x1x1: '
tap_run "$BUILD/faultbed" topology 2x1x1 --memory 12
tap_like "bad: topology --memory: says which option" "$ERR" 'error: --memory: '
tap_run "$BUILD/faultbed" compare "$TAP_DIR/nowhere.json" "$TAP_DIR/nowhere.json"
tap_is "bad: compare with no file" "$RC" 2
printf '{"schema":' >broken.json
tap_run "$BUILD/faultbed" compare broken.json broken.json
tap_is "bad: compare with broken JSON" "$RC" 2
printf '%0100000d' 0 | tr 0 '[' >deep.json
tap_run "$BUILD/faultbed" show deep.json
tap_is "bad: show with JSON without bottom" "$RC" 2
tap_run "$BUILD/faultbed" show /dev/zero
tap_is "bad: show with a device" "$RC" 2

tap_done
