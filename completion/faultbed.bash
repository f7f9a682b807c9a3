# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Completion of faultbed for bash; for zsh: autoload -U bashcompinit && bashcompinit, then source this. Commands and options are asked of
# faultbed itself, so that this file need not know them.

# _faultbed_words COMMAND...: the first words of the lines that are lists.
_faultbed_options()
{
	"$@" --help 2>/dev/null | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\)\(=\{0,1\}\).*/\2\3/p'
}

_faultbed()
{
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words=

	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		words="$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p') --help --version"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
		return
	fi
	# "--engine=so" comes as three words.
	if [ "$word" = = ]; then
		word=
	elif [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $previous in
	--engine | -e) words="auto kvm soft nested qemu libvirt" ;;
	--set | -s) words=$("$program" list --keys 2>/dev/null | sed 's/$/=/') ;;
	--vary | -v) words=$("$program" list --keys 2>/dev/null | sed 's/^[a-z]*\.//; s/$/=/') ;;
	--format | -f) words="html md csv junit" ;;
	--emit) words="slurm parallel" ;;
	--order) words="siblings-last siblings-adjacent" ;;
	--fail-on | --bad) words="worse different" ;;
	-*)
		if [ -n "$word" ] || [[ $previous == --* ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		;;
	esac
	if [ -n "$words" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
		[[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
		return
	fi
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_faultbed_options "$program" "$command")" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
		return
	fi
	case $command in
	experiment) words=$("$program" experiment --list 2>/dev/null | sed 's/ .*//') ;;
	cost-model) words=$("$program" cost-model 2>/dev/null | sed -n 's/^ *\([a-z0-9-]*\) .*/\1/p') ;;
	kernel) words="build check" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
	compopt -o filenames 2>/dev/null
}

complete -F _faultbed faultbed
