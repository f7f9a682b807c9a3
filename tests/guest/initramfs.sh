#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# images/initramfs-build.sh: the same bytes from the same inputs, what a user
# adds comes with what it needs, and what cannot be added is refused with one line.

. "$(dirname "$0")/../tap.sh"

SCRIPT=$TOP/images/initramfs-build.sh
build()
{
	tap_run "$SCRIPT" --guest-tests "$BUILD/guest-tests" -o "$TAP_DIR/out.cpio" "$@"
}
names()
{
	cpio --quiet -it <"$TAP_DIR/out.cpio"
}

build
tap_is "it builds" "$RC" 0
tap_like "with init" "$(names)" '^init$'
tap_like "with the programs" "$(names)" '^bin/multi-fault$'
tap_like "with a shell" "$(names)" '^bin/sh$'
tap_is "owned by root, times fixed" \
	"$(cpio --quiet -itvn <"$TAP_DIR/out.cpio" | awk '{ print $3, $4, $NF != "" && $0 ~ / 1970 / }' | sort -u)" "0 0 1"
first=$(sha256sum <"$TAP_DIR/out.cpio")
sleep 1.1
TMPDIR=$TAP_DIR build
tap_is "the same bytes a second later and elsewhere" "$(sha256sum <"$TAP_DIR/out.cpio")" "$first"

mkdir -p "$TAP_DIR/dir/sub"
echo text >"$TAP_DIR/dir/sub/file"
ln -s file "$TAP_DIR/dir/sub/link"
build --add "$(readlink -f "$(command -v gzip)"):/opt/gz" --add "$TAP_DIR/dir" --add "$TAP_DIR/dir/sub/file:/etc/"
tap_is "a dynamic program, a folder and a file are added" "$RC" 0
tap_like "program where it was asked for" "$(names)" '^opt/gz$'
tap_like "with its C library" "$(names)" '^lib.*/libc\.so\.6$'
tap_like "with its interpreter" "$(names)" '^lib64/ld-linux-x86-64\.so\.2$'
tap_like "folder with what is in it" "$(names)" '^dir/sub/file$'
tap_like "links in it as what they point to" "$(names)" '^dir/sub/link$'
tap_like "file into a folder" "$(names)" '^etc/file$'

refused()	# NAME REGEX ARGUMENT...
{
	local name=$1 regex=$2

	shift 2
	rm -f "$TAP_DIR/out.cpio"
	build "$@"
	tap_is "$name: refused" "$RC" 2
	tap_like "$name: says why" "$ERR" "$regex"
	tap_is "$name: in one line" "$(printf '%s\n' "$ERR" | wc -l)" 1
	tap_ok "$name: leaves no result" test ! -e "$TAP_DIR/out.cpio"
}
refused "missing file" '/no/such: no such file' --add /no/such
refused "relative guest path" 'must begin with /' --add /etc/passwd:etc/x
refused "path out of the guest" 'no \.\. in a path' --add /etc/passwd:/../x
refused "init" "the guest's own" --add /etc/passwd:/init
refused "device" 'neither a file nor a folder' --add /dev/null
refused "dynamic busybox" 'is not static' --busybox "$(command -v gzip)"
refused "no init" 'no such program' --guest-tests "$TAP_DIR"

# A program whose library is not there.
if printf 'int f(void) { return 0; }\n' | gcc -shared -x c -o "$TAP_DIR/libgone.so" - &&
   printf 'int f(void);\nint main(void) { return f(); }\n' | gcc -x c -o "$TAP_DIR/prog" - -L"$TAP_DIR" -lgone; then
	rm "$TAP_DIR/libgone.so"
	refused "missing library" 'libraries not found: libgone\.so' --add "$TAP_DIR/prog"
fi

tap_run "$SCRIPT" --guest-tests "$BUILD/guest-tests" -o "$TAP_DIR/out.cpio.gz"
tap_is "compressed by its name" "$(gzip -dc "$TAP_DIR/out.cpio.gz" | sha256sum)" "$first"

tap_done
