#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tree is in layer order, and the checker would see it if it were not.

. "$(dirname "$0")/../tap.sh"

check()
{
	tap_run "$TOP/host-tools/check-layers.sh" "$@"
}

tree()
{
	T=$TAP_DIR/t
	rm -rf "$T"
	mkdir -p "$T"/vmm/{base,x86,core,kvm,soft,machine} "$T/host-tools" "$T/guest-tests"
	for f in base/b core/c kvm/k soft/s machine/m machine/channel-abi top; do
		: >"$T/vmm/$f.h"
	done
	printf '#include "base/b.h"\n#include <linux/kvm.h>\n' >"$T/vmm/kvm/k.c"
	printf '#include "core/c.h"\n#include "k.h"\n' >>"$T/vmm/kvm/k.c"
	printf '#include "machine/m.h"\n#include "kvm/k.h"\n' >"$T/vmm/vm.c"
	printf 'const void *e = &kvm_engine;\n' >>"$T/vmm/vm.c"
	printf '#include "top.h"\n' >"$T/host-tools/h.c"
	printf '#include "machine/channel-abi.h"\n' >"$T/guest-tests/g.c"
}

violation()	# NAME FILE LINE-OF-CODE MESSAGE
{
	tree
	printf '%s\n' "$3" >"$T/$2"
	check "$T"
	tap_is "$1: seen" "$RC" 1
	tap_like "$1: said where and why" "$OUT" "^$2:1: .*$4"
}

check
tap_is "the tree is in order" "$RC:$(printf '%s' "$OUT" | grep -v 'files in order')" "0:"

tree
check "$T"
tap_is "a tree in order passes" "$RC" 0

violation "core includes an engine" vmm/core/x.c '#include "kvm/k.h"' "core may not include kvm"
violation "base includes core" vmm/base/x.h '#  include "core/c.h"' "base may not include core"
violation "machine includes an engine" vmm/machine/x.c '#include "kvm/k.h"' "machine never includes an engine"
violation "kvm includes machine" vmm/kvm/x.c '#include "machine/m.h"' "kvm may not include machine"
violation "kvm includes soft" vmm/kvm/x.c '#include "soft/s.h"' "kvm may not include soft"
violation "core includes the top" vmm/core/x.c '#include "top.h"' "core may not include top"
violation "a way round by .." vmm/core/x.c '#include "../kvm/k.h"' "no .. in an include"
violation "KVM's header above the engine" vmm/machine/x.c '#include <linux/kvm.h>' "belongs to vmm/kvm/"
violation "an engine named outside vm.c" vmm/run.c 'ops = &kvm_engine;' "names an engine"
violation "the front end includes an engine" host-tools/x.c '#include "kvm/k.h"' "front end includes no engine"
violation "a guest program includes the VMM" guest-tests/x.c '#include "base/b.h"' "share only"
violation "an include that is not there" vmm/core/x.c '#include "core/gone.h"' "no such file"

tree
mkdir "$T/vmm/extra"
: >"$T/vmm/extra/x.c"
echo 'int x;' >"$T/vmm/extra/x.c"
check "$T"
tap_like "a folder outside the order" "$OUT" "has no place in the layer order"

check "$TAP_DIR/nowhere"
tap_is "no tree at all is a failure" "$RC" 1

tap_done
