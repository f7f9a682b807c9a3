#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed libvirt-xml: a scenario's guest as a libvirt domain. Each is valid by libvirt's own schema and says what the scenario
# says; what QEMU cannot do is refused by name. No libvirtd runs here: tests/guest/peers.sh starts such domains.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
fb=$BUILD/faultbed
scenario=$TOP/scenarios/peers-2x4x2.ini

# at XPATH: what is there in the last domain.
at() { xmllint --xpath "string($1)" xml 2>&1; }
count() { xmllint --xpath "count($1)" xml 2>&1; }

# domain NAME OPTION...: there is one, and it is valid.
domain()
{
	local name=$1

	shift
	tap_run "$fb" libvirt-xml "$scenario" "$@"
	tap_is "$name: status 0" "$RC" 0
	[ "$RC" = 0 ] || tap_diag "$ERR"
	printf '%s\n' "$OUT" >xml
	tap_ok "$name: valid by virt-xml-validate" virt-xml-validate xml domain
}

domain "as it is"
tap_is "a name" "$(at /domain/name)" faultbed
tap_is "RAM" "$(at /domain/memory)$(at /domain/memory/@unit)" 524288KiB
tap_is "vCPUs" "$(at /domain/vcpu)" 16
tap_is "sockets, cores, threads" "$(at //topology/@sockets)x$(at //topology/@cores)x$(at //topology/@threads)" 2x4x2
tap_is "a cell's CPUs: threads of a core are neighbours" "$(at '//cell[@id=0]/@cpus') $(at '//cell[@id=1]/@cpus')" "0-7 8-15"
tap_is "its share of RAM" "$(at '//cell[@id=1]/@memory')" 262144
tap_is "distances" "$(at '//cell[@id=0]//sibling[@id=0]/@value') $(at '//cell[@id=0]//sibling[@id=1]/@value')" "10 21"
tap_is "RAM that others can map" "$(at //memoryBacking/source/@type) $(at //memoryBacking/access/@mode)" "file shared"
tap_is "no pins that nobody asked for" "$(count //cputune)" 0
tap_is "three serial ports" "$(count '//serial[@type="unix" and source/@mode="bind"]')" 3
tap_is "in order" "$(for i in 0 1 2; do basename "$(at "//serial[target/@port=$i]/source/@path")"; done | tr '\n' ' ')" "console control marks "
tap_is "kernel and initramfs by their whole paths" "$(at //os/kernel | cut -c 1)$(at //os/initrd | cut -c 1)" "//"
tap_like "the channel on the command line" "$(at //os/cmdline)" 'faultbed\.channel=0x[0-9a-f]+,0x[0-9a-f]+ memmap='
tap_like "the test device, which libvirt has no word for" "$(at "//*[name()='qemu:arg'][2]/@value")" '^isa-debug-exit,iobase=0xf4'

matrix='10,20,30,20; 25,10,20,30; 30,20,10,20; 20,30,20,10'
domain "four sockets" --set vm.topology=4x15x2 --set vm.memory=2GiB --set vm.distance="$matrix"
tap_is "four cells, and each distance" "$(count //cell) $(for i in 0 1 2 3; do for j in 0 1 2 3; do
	at "//cell[@id=$i]//sibling[@id=$j]/@value"; done | paste -sd,; done | paste -sd';')" "4 $(echo "$matrix" | tr -d ' ')"
domain "one node for both sockets" --set vm.nodes=1
tap_is "one cell with all CPUs" "$(count //cell) $(at //cell/@cpus)" "1 0-15"
domain "a node without RAM" --set vm.node_memory=512MiB,0
tap_is "has none" "$(at '//cell[@id=1]/@memory')" 0
domain "pins" --set vm.topology=1x1x1 --set vm.memory=128MiB --set vm.pin=0
tap_is "are pins" "$(at '//cputune/vcpupin[@vcpu=0]/@cpuset')" 0
domain "what XML takes for its own" --name "a<&'b" --sockets "/tmp/a&'\"b" --set "guest.append=x<y>&'\"z"
tap_is "is what it was: a name" "$(at /domain/name)" "a<&'b"
tap_is "a path" "$(at '//serial[1]/source/@path')" "/tmp/a&'\"b/console"
tap_like "a command line" "$(at //os/cmdline)" "x<y>&'\"z$"

# refused NAME STATUS REGEX OPTION...
refused()
{
	local name=$1 status=$2 regex=$3

	shift 3
	tap_run "$fb" libvirt-xml "$scenario" "$@"
	tap_is "$name: status $status" "$RC" "$status"
	tap_like "$name: why" "$ERR" "$regex"
	tap_is "$name: no domain" "$OUT" ""
}

refused "another order of CPUs" 2 'vm\.cpu_order = siblings-last: .* set vm\.cpu_order = siblings-adjacent' --set vm.cpu_order=siblings-last
refused "an injected delay" 3 'inject\.ipi\.remote: engine = libvirt cannot: .*kvm and soft' --set inject.ipi.remote=fixed:5ms
tap_is "and said once" "$(printf '%s\n' "$ERR" | grep -c "engine = libvirt cannot")" 1
refused "counted second-level faults" 3 'inject\.ept\.count: engine = libvirt cannot' --set inject.ept.count=yes
refused "a local APIC" 3 'vm\.apic: engine = libvirt cannot' --set vm.apic=xapic
refused "a cost model" 2 'vm\.cost_model: .*soft' --set vm.cost_model=simple
refused "several cells" 2 '2 cells, and a domain is one' --set vary.vm.memory=256MiB,512MiB
refused "a name that libvirt does not take" 2 'without control characters and slashes' --name a/b
refused "one that XML does not" 2 'without control characters' --name $'a\tb'
tap_run "$fb" libvirt-xml
tap_is "no scenario: status 2" "$RC" 2

tap_done
