#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ring 0, paging, interrupts and local APICs, which no program run natively can
# check: the images of guest-tests/bare/ on the soft engine, on nested KVM and on plain
# QEMU TCG. Each image speaks TAP. A point that fails must be in bare.expect, with the
# reason; where CPUs disagree about one, that is printed (BARE_ENGINES="soft tcg": some
# of them only; BARE_IMAGES likewise; BARE_EXPECT: another file; BARE_COST_MODEL: for soft).

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=1800

expect=${BARE_EXPECT:-$TOP/tests/guest/bare.expect}
images=${BARE_IMAGES:-exceptions paging modes strings smc tsc apic decimal}
engines=${BARE_ENGINES:-tcg nested soft}

# One image by QEMU: NAME.tcg is what it said.
run_tcg()
{
	for image in $images; do
		timeout -k 5 300 qemu-system-x86_64 -nodefaults -no-user-config -M pc -accel tcg -cpu max \
			-smp 4,sockets=2,cores=2,threads=1 -m 128 -kernel "$BUILD/guest-tests/bare/$image.elf" \
			-append "cpus=4 under=tcg" -display none -no-reboot -serial "file:$image.tcg" -monitor none \
			-device isa-debug-exit,iobase=0xf4,iosize=1 </dev/null >/dev/null 2>&1
	done
}

# All images as the cells of one run. NAME.LABEL is what they said; false if the engine is not there.
run_faultbed()	# LABEL ENGINE APIC WORDS
{
	local i=0 list=

	for image in $images; do
		list="$list${list:+, }$BUILD/guest-tests/bare/$image.elf"
	done
	cat >"$1.ini" <<-EOT
	# What do the bare-metal tests say of this engine?
	[vm]
	engine = $2
	topology = 2x2x1
	memory = 128MiB
	${BARE_COST_MODEL:+cost_model = $BARE_COST_MODEL}
	nodes = 1
	apic = $3
	[guest]
	append = cpus=4 $4
	[run]
	command = true
	timeout = 120s
	[vary]
	guest.kernel = $list
	EOT
	tap_run "$BUILD/faultbed" run "$1.ini" -o "$1.json"
	if [ "$RC" = 3 ]; then
		tap_diag "$ERR"
		return 1
	fi
	[ -s "$1.json" ] || tap_diag "$ERR"
	for image in $images; do
		perl -MJSON::PP -e '
			open my $f, "<", $ARGV[0] or exit 1;
			local $/;
			print JSON::PP->new->utf8->decode(<$f>)->{cells}[$ARGV[1]]{end}{console} // "";
		' "$1.json" $i >"$image.$1" 2>/dev/null
		i=$((i + 1))
	done
}

# The reason in bare.expect why a point may fail, nothing if there is none.
reason()	# CPU IMAGE NAME
{
	local cpus image pattern why

	while IFS='|' read -r cpus pattern why; do
		case $cpus in '' | '#'*) continue ;; esac
		image=${cpus#* }
		image=${image// /}
		cpus=,${cpus%% *},
		pattern=${pattern# }
		pattern=${pattern% }
		# Brackets and braces stand for themselves; * is the only wildcard.
		pattern=${pattern//\[/\\[}
		# shellcheck disable=SC2254
		case $3 in
		$pattern) [[ $image = "$2" && $cpus = *,"$1",* ]] && { echo "${why# }"; return; } ;;
		esac
	done <"$expect"
}

# "VERDICT NAME" of each point of a file: ok, not, skip, info.
points()
{
	sed -n -E 's/^(ok|not ok) [0-9]+ - (.*)$/\1 \2/p' "$1" | tr -d '\r' |
		sed -E 's/^not ok /not /; s/^ok (.*[^ ]) *# SKIP.*$/skip \1/; s/^ok (.*[^ ]) *# info: (.*)$/info \1/'
}

# LABEL CPU: each image came to its end, and what failed may.
judge()
{
	local image failed planned n

	for image in $images; do
		local file=$image.$1

		[ -f "$file" ] || : >"$file"
		planned=$(tr -d '\r' <"$file" | sed -n 's/^1\.\.//p')
		n=$(points "$file" | wc -l)
		[ "${planned:-none}" = "$n" ] || tap_diag "$(tail -n 3 "$file")"
		tap_is "$1 $image: it comes to its end" "${planned:-none}" "$n"
		failed=
		while read -r name; do
			[ -n "$(reason "$2" "$image" "$name")" ] || failed="$failed$name"$'\n'
		done < <(points "$file" | sed -n 's/^not //p')
		if [ -n "$failed" ]; then
			tap_diag "$(grep -B1 '^not ok' "$file" | grep '^#' | head -n 40)"
		fi
		tap_is "$1 $image: nothing fails but what bare.expect lists" "$failed" ""
	done
}

skip_engine()
{
	TAP_N=$((TAP_N + 1))
	echo "ok $TAP_N - $1 # SKIP not on this machine or in this version"
}

labels=
for engine in $engines; do
	case $engine in
	tcg) run_tcg; judge tcg tcg; labels="$labels tcg" ;;
	nested)
		if run_faultbed nested nested xapic under=tcg; then
			judge nested nested
			labels="$labels nested"
		else
			skip_engine nested
		fi ;;
	soft)
		for apic in xapic x2apic; do
			if run_faultbed soft-$apic soft $apic stale=must; then
				judge soft-$apic soft
				labels="$labels soft-$apic"
			else
				skip_engine "soft, apic = $apic"
			fi
		done ;;
	esac
done

# Where they disagree: for whoever reads, no verdict.
for image in $images; do
	for label in $labels; do
		[ ! -f "$image.$label" ] || points "$image.$label" | awk -v l="$label" '$1 == "ok" || $1 == "not" { v = $1; $1 = ""; print substr($0, 2) "\t" l "=" v }'
	done | awk -F'\t' -v image="$image" '
		{ said[$1] = said[$1] " " $2; if ($2 ~ /=ok$/) good[$1] = 1; else bad[$1] = 1 }
		END { for (n in said) if (good[n] && bad[n]) print "# disagree: " image ": " n ":" said[n] }' | sort
done

tap_done
