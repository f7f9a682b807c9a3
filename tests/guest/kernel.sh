#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel patches without our VMM: what the guest counts, what the host reads in
# the channel, and that the two agree (images/kernel-test.sh, on the built kernel).

exec "$(dirname "$0")/../../images/kernel-test.sh" "${FAULTBED_BUILD:-build}/kernel"
