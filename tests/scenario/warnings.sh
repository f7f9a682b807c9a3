#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a kernel complains of marks the result, though "quiet" keeps it off the console: while a command
# runs, and in the boot, before init is there. And programs that harm their machine run in a guest only.

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=300

# Process 1 until it becomes init.
cat >early <<'EOT'
#!/bin/sh
mount -t devtmpfs dev /dev
echo "<4>WARNING: possible circular locking dependency detected" >/dev/kmsg
echo "<6>BUG: said at a level that is nobody's business" >/dev/kmsg
exec /init
EOT
chmod +x early
cat >warn.ini <<'EOT'
# Is what a kernel complains of in the result?
[vm]
engine = soft
topology = 1x2x1
memory = 128MiB
[guest]
add = ./early
[run]
timeout = 60s
[vary]
guest.append + run.command = loglevel=4 + bad-guest warn | rdinit=/bin/early + true | loglevel=4 + true | loglevel=7 + bad-guest warn
EOT
tap_run "$BUILD/faultbed" run warn.ini -o warn.json
tap_is "none of them fails a run" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
marked() { json warn.json "cells.$1.end.marked"; }
tap_like "a WARN() of the command's time" "$(marked 0)" '^\["\[ +[0-9]+\.[0-9]{6}\] WARNING: CPU: 0 PID: 1 at [^,]*"\]$'
tap_like "lockdep in the boot" "$(marked 1)" '^\["\[ +[0-9]+\.[0-9]{6}\] WARNING: possible circular [^,]*"\]$'
tap_is "a kernel that is content" "$(marked 2)" "[]"
tap_like "a console that shows all of it has it once" "$(marked 3)" '^\["[^"]* WARNING: CPU: 0 [^,]*"\]$'
tap_run "$BUILD/faultbed" show warn.json
tap_like "and whoever looks at the result sees it" "$OUT" 'WARNING: possible circular'

for program in "fault-stress --rounds 1" "file-scan 1" "bad-guest oom"; do
	# shellcheck disable=SC2086
	tap_run "$BUILD"/guest-tests/$program
	tap_is "${program%% *} does not run on a host" "$RC" 77
	tap_like "${program%% *} says why" "$ERR" 'runs in a test guest only'
done
tap_done
