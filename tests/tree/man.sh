#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The man pages: a page for each command, sound troff, every option that a program takes and every key that a scenario has in its page; and
# completion, which asks the programs.

. "$(dirname "$0")/../tap.sh"
cd "$TOP" || exit 1
fb=$BUILD/faultbed
man=$TAP_DIR/man

tap_ok "they are made" man/make-man.pl "$fb" "$BUILD/faultbed-vmm" "$man"
tap_is "mandoc has nothing to say" "$(mandoc -Tlint -Wwarning "$man"/* 2>&1)" ""
commands=$("$fb" --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
tap_ok "there are commands" test "$(printf '%s\n' "$commands" | wc -l)" -ge 14
for command in $commands; do
	tap_ok "$command has a page" test -s "$man/faultbed-$command.1"
	shown=$(mandoc -Tutf8 "$man/faultbed-$command.1" 2>/dev/null | sed 's/.\x08//g')
	for option in $("$fb" "$command" --help 2>&1 | grep -o '^  \(-., \)\{0,1\}--[a-z-]*' | grep -o -- '--.*'); do
		printf '%s\n' "$shown" | grep -qE "(^|[ ,])$option([=, ]|\$)" || echo "$option"
	done >"$TAP_DIR/lacks"
	tap_is "$command: with every option" "$(cat "$TAP_DIR/lacks")" ""
	tap_like "$command: and what it does" "$shown" "^ +faultbed-$command . [a-z]"
	tap_like "$command: it is in faultbed(1)" "$(mandoc -Tutf8 "$man/faultbed.1" | sed 's/.\x08//g')" "faultbed-$command\\(1\\)"
done
shown=$(mandoc -Tutf8 "$man/faultbed-scenario.5" | sed 's/.\x08//g')
for key in $("$fb" list --keys); do
	printf '%s\n' "$shown" | grep -qE "^ +${key#*.}( |\$)" || echo "$key"
done >"$TAP_DIR/lacks"
tap_is "every key is in faultbed-scenario(5)" "$(cat "$TAP_DIR/lacks")" ""
tap_like "with what it means" "$shown" 'siblings-last'
tap_unlike "no Markdown is left" "$shown" '`|\]\('
for template in man/faultbed-*.1.in; do
	name=$(basename "$template" .1.in)
	tap_ok "$template is some command's" test "$name" = faultbed-vmm -o -n "$(printf '%s\n' "$commands" | grep -x "${name#faultbed-}")"
done
# What examples say has to be an option.
sed -n '/^\.nf/,/^\.fi/p' man/*.in | sed 's/\\-/-/g' | grep '^faultbed' >"$TAP_DIR/examples"
tap_ok "there are examples" test "$(wc -l <"$TAP_DIR/examples")" -ge 10
while read -r _ command rest; do
	for option in $(printf '%s\n' "$rest" | grep -o -- '--[a-z-]*'); do
		"$fb" "$command" --help 2>&1 | grep -qE -- "$option([= ]|\$)" || echo "$command $option"
	done
done <"$TAP_DIR/examples" >"$TAP_DIR/lacks"
tap_is "whose options there are" "$(cat "$TAP_DIR/lacks")" ""

# --- completion ---

# complete WORD...: what is offered for the last one, as bash cuts them.
complete_for()
{
	PATH=$BUILD:$PATH bash -c '
		. completion/faultbed.bash
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_faultbed 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"
	' bash "$@" | sort | tr '\n' ' '
}

tap_is "commands" "$(complete_for faultbed co)" "compare cost-model "
tap_is "all of them" "$(complete_for faultbed "" | tr ' ' '\n' | grep -c '^[a-z]')" "$(printf '%s\n' "$commands" | wc -l)"
tap_is "options, with = where a value follows" "$(complete_for faultbed run --tra)" "--trace-events= --trace-from= --trace= "
tap_is "of the command that it is" "$(complete_for faultbed sweep --em)" "--emit= "
tap_is "values" "$(complete_for faultbed sweep --emit = "")" "parallel slurm "
tap_is "engines" "$(complete_for faultbed run -e s)" "soft "
tap_is "keys to set" "$(complete_for faultbed run --set vm.cp)" "vm.cpu_model= vm.cpu_order= "
tap_is "keys to vary" "$(complete_for faultbed run --vary = topo)" "topology= "
tap_is "experiments" "$(complete_for faultbed experiment i-)" "i-mmap "
tap_is "cost models" "$(complete_for faultbed cost-model ivb-e)" "ivb-ep ivb-ex "
tap_is "files" "$(complete_for faultbed run scenarios/first)" "scenarios/first-run.ini "

tap_done
