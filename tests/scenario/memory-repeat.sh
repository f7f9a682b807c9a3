#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# With a memory model a result is the same to the byte again, booted and restored from a snapshot, with its cells in
# another order; the soft engine of TEST=hard boots with one; the bare-metal tests pass.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export XDG_CACHE_HOME=$TAP_DIR/cache
export TAP_TIMEOUT=300

# scenario COMMANDS...: cells in that order.
scenario()
{
	local IFS=,
	local commands="$*"

	cat <<-EOT
		# Is a result with a memory model the same again?
		# Expected: yes.
		[vm]
		engine = soft
		topology = 2x2x2
		memory = 256MiB
		cost_model = ivb-ep
		[run]
		warmup = 1ms
		duration = 3ms
		timeout = 60s
		[vary]
		run.command =$commands
	EOT
}
scenario " multi-fault 5" " mmap-file 3 200" >one.ini
scenario " mmap-file 3 200" " multi-fault 5" >other.ini

# result NAME SCENARIO ARGS...: NAME has its cells without what differs by where they stand, in the order of their commands.
result()
{
	local name=$1 file=$2

	shift 2
	tap_run "$BUILD/faultbed" run "$file" -q -o "$name.json" "$@"
	[ "$RC" = 0 ] || tap_diag "$ERR"
	tap_is "$name: status 0" "$RC" 0
	python3 - "$name.json" >"$name" 2>&1 <<'END'
import json, sys
cells = json.load(open(sys.argv[1]))["cells"]
for cell in cells:
    for key in ("index", "snapshot"):
        cell.pop(key, None)
print("\n".join(sorted(json.dumps(cell, sort_keys=True) for cell in cells)))
END
}

result booted one.ini --no-snapshot
tap_like "lines went from core to core" "$(json booted.json 'cells.0.repeats.0.counters.soft_line_transfers_remote.value')" \
	'^[1-9]'
tap_is "by the cost model named" "$(json booted.json 'cells.*.vm.cost_model.name' | sort -u)" ivb-ep
result saved one.ini
result restored one.ini
tap_like "the last from a snapshot" "$(cat restored.json)" '"use": "restored"'
result other other.ini --jobs 1
for name in saved restored other; do
	tap_ok "$name: the same cells" cmp "$name" booted
done
tap_is "and there are two" "$(wc -l <booted)" 2

scenario " topology-check -q && multi-fault 5" >hard.ini
FAULTBED_VMM=$BUILD/gcc-hard/faultbed-vmm result hard hard.ini --no-snapshot
tap_like "the hard build's lines go, too" "$(json hard.json 'cells.0.repeats.0.counters.soft_line_transfers_remote.value')" \
	'^[1-9]'

tap_ok "the bare-metal tests pass with it" env BARE_ENGINES=soft BARE_COST_MODEL=ivb-ep \
	BARE_IMAGES="exceptions paging modes strings smc decimal" FAULTBED_BUILD="$BUILD" "$TOP/tests/guest/bare.sh"

tap_done
