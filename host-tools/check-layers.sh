#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check-layers.sh [TREE]: proves the layer order of docs/architecture.md from the
# #include lines. A file under vmm/ includes its own folder and lower layers only:
#
#   base < x86 < core < kvm, soft, peer < machine < vmm/*.c
#
# and besides: kvm/, soft/ and peer/ do not include each other, nor machine/ any of
# them; only vmm/kvm/ sees <linux/kvm.h>; only vmm/vm.c names an engine; the front
# end (host-tools/) never includes an engine; guest programs share nothing
# with the VMM but the channel's layout. One line
# for each violation, exit status 1 if there is any.

set -euo pipefail

tree=${1:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$tree"

list=$(mktemp)
trap 'rm -f "$list"' EXIT
find vmm host-tools guest-tests \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.S' \) 2>/dev/null |
	sort >"$list"
if [ ! -s "$list" ]; then
	echo "error: check-layers: no sources under $tree" >&2
	exit 1
fi

# Names of the tree have no blanks, so the list may be split.
# shellcheck disable=SC2046
awk '
function bad(why)
{
	printf "%s:%d: %s\n", FILENAME, FNR, why
	n++
}
function exists(path,   line, there)
{
	if (!(path in seen)) {
		there = (getline line < path) >= 0
		close(path)
		seen[path] = there
	}
	return seen[path]
}
# The layer of a path below vmm/: its first folder, "top" if it has none.
function layer(path)
{
	return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "top"
}
BEGIN {
	rank["base"] = 0; rank["x86"] = 1; rank["core"] = 2; rank["kvm"] = 3
	rank["soft"] = 3; rank["peer"] = 3; rank["machine"] = 4; rank["top"] = 5
}
FNR == 1 {
	part = substr(FILENAME, 1, index(FILENAME, "/") - 1)
	dir = FILENAME; sub(/[^\/]*$/, "", dir)
	own = part == "vmm" ? layer(substr(FILENAME, 5)) : part
	if (part == "vmm" && !(own in rank)) {
		bad("vmm/" own "/ has no place in the layer order")
		rank[own] = 5
	}
	files++
}
part == "vmm" && /^[ \t]*#[ \t]*include[ \t]*<linux\/kvm\.h>/ && own != "kvm" {
	bad("<linux/kvm.h> belongs to vmm/kvm/")
}
part == "vmm" && /(^|[^a-z_])(kvm|soft|qemu|libvirt)_engine([^a-z_]|$)/ && FILENAME != "vmm/vm.c" &&
FILENAME != "vmm/core/engine.h" && own != "kvm" && own != "soft" && own != "peer" && $0 !~ /^[ \t]*(\/\*|\*|\/\/)/ {
	bad("names an engine; only vmm/vm.c does")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	path = q[2]
	if (path ~ /(^|\/)\.\.\//)
		bad("#include \"" path "\": no .. in an include")
	if (exists(dir path))		# beside the file
		target = dir path
	else if (exists(part "/" path))
		target = part "/" path
	else if (exists("vmm/" path))
		target = "vmm/" path
	else {
		bad("#include \"" path "\": no such file")
		next
	}
	if (target !~ /^vmm\//) {
		if (part == "vmm")
			bad("#include \"" path "\": the VMM includes nothing of " target)
		next
	}
	to = layer(substr(target, 5))
	if (part == "host-tools") {
		if (to == "kvm" || to == "soft" || to == "peer")
			bad("#include \"" path "\": the front end includes no engine")
	} else if (part == "guest-tests") {
		if (target != "vmm/machine/channel-abi.h")
			bad("#include \"" path "\": guest programs share only machine/channel-abi.h")
	} else if (to != own) {
		if (rank[to] >= rank[own])
			bad("#include \"" path "\": " own " may not include " to)
		else if (own == "machine" && (to == "kvm" || to == "soft" || to == "peer"))
			bad("#include \"" path "\": machine never includes an engine")
	}
}
END {
	if (!n) printf "check-layers: %d files in order\n", files
	exit n > 0
}' $(cat "$list")
