#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The soft engine's instructions under a memory model, against the host's: other CPUs take the lines of a snippet's memory
# away between its instructions, so that those wait and are begun anew, and nothing else may come of it.

. "$(dirname "$0")/../tap.sh"
timeout -k 5 900 "$BUILD/tests/isa/isa-test" --memory --count 1000
