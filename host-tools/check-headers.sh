#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check-headers.sh [TREE]: each header of vmm/, host-tools/ and guest-tests/
# compiles alone (twice in a row, so include guards are proved too), with gcc and,
# where it is there, clang. Exit status 1 with the compiler's messages if not.
#
# Environment: CC_LIST compilers to use; PKG_CFLAGS flags for the libraries.

set -euo pipefail

tree=${1:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$tree"

warn="-std=gnu11 -fsyntax-only -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
	-Wold-style-definition -Wpointer-arith -Wvla -Wno-unused-parameter -Werror"
libs=${PKG_CFLAGS-$(pkg-config --cflags glib-2.0 json-glib-1.0)}
compilers=${CC_LIST-gcc $(command -v clang >/dev/null && echo clang)}

check()
{
	local status=0 header

	for header in $(find vmm host-tools guest-tests -name '*.h' 2>/dev/null | sort); do
		for cc in $compilers; do
			# shellcheck disable=SC2086
			printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
				$cc $warn $libs -I. -Ivmm -Ihost-tools -Iguest-tests -x c - ||
				{ echo "$header: does not compile alone ($cc)"; status=1; }
		done
		n=$((n + 1))
	done
	return $status
}

n=0
check
if [ $n = 0 ]; then
	echo "error: check-headers: no headers under $tree" >&2
	exit 1
fi
echo "check-headers: $n headers compile alone with" $compilers
