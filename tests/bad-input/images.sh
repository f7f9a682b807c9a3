#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Kernel images and initramfs that are malformed, truncated or huge: status 2 and
# one message that names the file. All in one run, a cell each; a good image at the
# end shows that a bad one harms none of the others. (The unit test of the loader does the same at each field.)

. "$(dirname "$0")/../tap.sh"
cd "$TAP_DIR" || exit 1
export TAP_TIMEOUT=300

good=$BUILD/kernel/bzImage
bare=$BUILD/guest-tests/bare/exit.elf
for f in "$good" "$bare"; do
	[ -r "$f" ] || { echo "Bail out! $f is not there: make all images"; exit 1; }
done

# put FILE OFFSET HEX...: bytes into a file.
put()
{
	local file=$1 at=$2

	shift 2
	printf "$(printf '\\x%s' "$@")" | dd of="$file" bs=1 seek=$((at)) conv=notrunc status=none
}

# Offsets of the bzImage's setup header: Documentation/arch/x86/boot.rst; of ELF32: the System V ABI.
: >empty
printf 'not a kernel\n' >text
head -c 65536 /dev/urandom >random
head -c 100 "$good" >cut-100
head -c 600 "$good" >cut-header
head -c $(($(stat -Lc %s "$good") / 2)) "$good" >cut-half
cp "$good" bad-magic && put bad-magic 0x202 00 00 00 00
cp "$good" no-64bit && put no-64bit 0x236 00 00
cp "$good" huge-init-size && put huge-init-size 0x260 ff ff ff ff
cp "$bare" elf-phnum && put elf-phnum 44 ff ff
cp "$bare" elf-phoff && put elf-phoff 28 ff ff ff ff
cp "$bare" elf-filesz && put elf-filesz $((52 + 16)) ff ff ff 7f
cp "$bare" elf-memsz && put elf-memsz $((52 + 20)) ff ff ff 7f
cp "$bare" elf-paddr && put elf-paddr $((52 + 12)) 00 00 00 f0
bad="empty text random cut-100 cut-header cut-half bad-magic no-64bit huge-init-size elf-phnum
	elf-phoff elf-filesz elf-memsz elf-paddr"

cat >images.ini <<EOT
# What becomes of kernels that are none?
[vm]
topology = 1x1x1
memory = 128MiB
[run]
command = true
timeout = 60s
[vary]
guest.kernel = $(echo $bad | sed 's/ /, /g'), $bare
EOT

tap_run "$BUILD/faultbed" run images.ini -o images.json
said=$ERR
[ -s images.json ] || tap_diag "$ERR"
# "NAME STATUS WHY"
paste -d' ' <(json images.json 'cells.*.name' | sed 's,.*[/=],,') <(json images.json 'cells.*.status') \
	<(json images.json 'cells.*.why') >cells
for k in $bad; do
	tap_like "kernel $k: status 2" "$(grep "^$k " cells)" "^$k 2 "
	tap_like "kernel $k: a message names it" "$said" "^error: .*/$k:"
done
# The bare-metal image leaves with value 3, and no init ever speaks: that is a guest's end, not bad input.
tap_unlike "a sound image after them is run" "$(grep '^exit.elf ' cells)" "^exit.elf [234] "
tap_unlike "no name of the appliance's own is shown" "$said" "/job/"

# Initramfs.
truncate -s 3G sparse-3g
mkdir folder
cat >initrd.ini <<EOT
# What becomes of an initramfs that is none?
[vm]
topology = 1x1x1
memory = 128MiB
[guest]
initrd = sparse-3g
[run]
command = true
timeout = 60s
EOT
for i in sparse-3g folder nowhere; do
	tap_run "$BUILD/faultbed" run initrd.ini --set "guest.initrd=$TAP_DIR/$i"
	tap_is "initramfs $i: status 2" "$RC" 2
	tap_like "initramfs $i: a message names it" "$ERR" "error: .*$i"
done
tap_run "$BUILD/faultbed" run initrd.ini --set guest.initrd=default --set "guest.kernel=$TAP_DIR/sparse-3g"
tap_is "a kernel of 3 GiB: status 2" "$RC" 2
tap_like "a kernel of 3 GiB: a message names it" "$ERR" "error: .*sparse-3g"

tap_done
