# SPDX-License-Identifier: GPL-2.0-only
#
# Faultbed. `make help` lists the targets.
#
#   O=DIR       where everything goes (build)
#   V=1         show the commands
#   CC=clang    or gcc
#   SAN=asan    or ubsan or asan,ubsan: sanitizers
#   TEST=hard   the soft engine made to fail early: a TLB of 4 entries, blocks of 2 instructions, turns of 1 ns
#   WERROR=0    warnings stay warnings
#   DEPS=no     leave the set-up (host-tools/deps.sh) out
#   KERNEL_TREE=DIR, KERNEL_TARBALL=FILE   the guest kernel's source, if not Debian's
#
# Another compiler, a sanitizer or a test build has folders of its own (build/clang-asan), so
# that nothing is built again when changing to and fro. Guest programs,
# kernel and images are built once, by gcc.

O ?= build
V ?= 0
WERROR ?= 1
SAN ?=
TEST ?=
DEPS ?= yes
ifeq ($(origin CC),default)
CC := gcc
endif

comma := ,
empty :=
space := $(empty) $(empty)
VARIANT := $(if $(findstring clang,$(CC)),clang,gcc)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(TEST),-$(TEST))
B := $(if $(filter gcc,$(VARIANT)),$(O),$(O)/$(VARIANT))

# Use the whole machine, unless told otherwise.
ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' $(1) $(2)
MAKEFLAGS += --no-print-directory
endif

# --- sources, by layer (docs/architecture.md); a file that is on disk and not here fails make check ---

SRC_base := log nearest rng
SRC_x86 := state
SRC_core := clock clock-state cost counters cpuid cpuid-model cpuid-topology dist host inject memory memory-file profile saver \
	symbols topology trace vm
SRC_soft := block clock decode dump engine far interrupt iret kvmclock line-cache line-profile line-queue line-time lines lines-vm mem mmu msr ops-alu \
	ops-atomic ops-bit ops-control ops-decimal ops-flags ops-flow ops-fxsave ops-io ops-mmx ops-mov \
	ops-mul ops-segment ops-shift ops-sse ops-sse-convert ops-sse-fp ops-sse-int \
	ops-sse-move ops-stack ops-string ops-syscall ops-system ops-x87 ops-x87-env profile run \
	second-level segment slab-name snapshot spin state thread-profile tlb tlb-flush tlb-state unwind walk
SRC_peer := engine
SRC_kvm := fault-list kvm-cpuid kvm-state kvm-stats kvm-vcpu kvm-vm userfault
SRC_machine := acpi apicbus bootparams bus channel channel-gates disk fdt image-bzimage image-elf image-multiboot ioapic \
	lapic lapic-msr lapic-timer loader machine machine-state pic pit pmtimer rtc testdev uart \
	virtio-blk virtio-mmio virtqueue
SRC_top := cost-change cost-check cost-file cost-value run-lockstep scenario scenario-check scenario-file scenario-keys scenario-units \
	console dump json-text peer-build peer-guest peer-run placement record record-functions record-lines record-profile record-vm refault report run-threads sample \
	session session-control session-profile session-snapshot snapshot snapshot-cache vcpu vm vmstat
SRC_front := child cmd-bisect-run cmd-compare cmd-cost-model cmd-doctor cmd-experiment cmd-libvirt-xml cmd-list cmd-profile cmd-report cmd-run cmd-sweep cmd-topology compare compare-match compare-show cpio direct emit experiment front host-memory initramfs \
	job measure nested part-file parts peer-libvirt peer-qemu peer-vm peer-xml progress qmp records report-html report-model report-plot report-sheets report-text result-json result-read run-choose run-options sheet show show-profile show-table stats summary version

# Guest programs: guest-tests/NAME.c with the library, static. And bare-metal ones.
GUEST_LIB := about barrier cpu guest hist lines procstat report roi util
GUEST_TESTS := init file-scan multi-fault ipi-pingpong first-touch fixed-work fault-around switch-pingpong topology-check counters-check bad-guest \
	fault-stress mmap-file lock-check kv-server memory-probe
# A program's other files.
GUEST_PARTS := fault-stress-ops kv-server-threads memory-probe-cpu memory-probe-line memory-probe-memory
GUEST_BARE := cli-hlt exit garbage mmio-exec silent spin triple-fault
# Tests in long mode: guest-tests/bare/NAME.c with guest-tests/bare/lib/.
GUEST_BARE64 := apic decimal bad exceptions modes paging smc strings tsc
BARE64_LIB := boot.S console.c pages.c smp.c traps.c
# The same, for host-tools/bench.sh, not in the initramfs.
GUEST_TOOLS := stopwatch

# Unit tests: tests/unit/test-NAME.c, linked with their layer and those below it, so that a layer that
# leans on a higher one does not even link.
UNIT_LIB := fake-engine images virtio-fixture
# The soft engine's tests have the upcalls from here, instead of a machine's fakes.
UNIT_LIB_soft := soft-fixture soft-host
UNIT_base := rng nearest
UNIT_x86 := state
UNIT_core := clock clock-state counters cpuid dist inject memory memory-file saver topology trace
UNIT_machine := acpi apicbus bus channel devices fdt garbage ioapic lapic lapic-timer loader loader-bad machine-state pit uart \
	virtio-blk virtqueue
UNIT_kvm := fault-list userfault
UNIT_soft := line-cache line-profile line-random line-time line-wait lines mmu soft-interrupt soft-list soft-simd soft-control soft-msr soft-spin soft-system soft-time soft-x87 tlb
UNIT_top := console cost-change cost-file json-text lockstep peer report scenario snapshot vmstat
UNIT_front := compare host-memory measure progress records report-axis sheet summary

# The soft engine's instructions against the host's: one program, tests/isa/NAME.c.
ISA := compare families flags generate hand isa-test maker native soft special values

# --- tests that are not C: executables that speak TAP ---

TESTS_tree := $(wildcard tests/tree/*.sh)
TESTS_bad_input := $(wildcard tests/bad-input/*.sh)
TESTS_scenario := $(wildcard tests/scenario/*.sh)
TESTS_guest := $(wildcard tests/guest/*.sh)

# --- flags ---

PKGS := glib-2.0 gio-2.0 json-glib-1.0
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lfdt -lZydis -lm -pthread
# The front end's alone.
FRONT_LIBS := $(shell pkg-config --libs libvirt libvirt-qemu 2>/dev/null)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wpointer-arith -Wvla -Wno-unused-parameter
ifneq ($(WERROR),0)
WARN += -Werror
endif
SAN_FLAGS :=
ifneq ($(SAN),)
SAN_KINDS := $(subst asan,address,$(subst ubsan,undefined,$(subst $(comma),$(space),$(SAN))))
ifneq ($(filter-out address undefined,$(SAN_KINDS)),)
$(error SAN=$(SAN): asan, ubsan or asan,ubsan)
endif
SAN_FLAGS := $(foreach k,$(SAN_KINDS),-fsanitize=$(k)) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
TEST_FLAGS :=
ifneq ($(TEST),)
ifneq ($(TEST),hard)
$(error TEST=$(TEST): hard)
endif
TEST_FLAGS := -DFAULTBED_HARD
endif

CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(SAN_FLAGS) $(TEST_FLAGS) -pthread -Ivmm -Ihost-tools $(PKG_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(LDFLAGS) $(SAN_FLAGS)
# musl's C library makes programs of 80 KiB, glibc's of 800, and each page of the initramfs costs the guest.
GUEST_CC ?= $(if $(shell command -v musl-gcc),musl-gcc,gcc)
GUEST_CFLAGS = -std=gnu11 -O2 -g -D_GNU_SOURCE $(WARN) -static -pthread -Iguest-tests -Ivmm -MMD -MP
# musl-gcc has no -m32.
BARE_CC ?= gcc
BARE64_CFLAGS = -std=gnu11 -O1 -g $(WARN) -Iguest-tests -Iguest-tests/bare -m64 -ffreestanding -mno-red-zone -mgeneral-regs-only \
	-mcmodel=small -fno-pic -fno-pie -fno-stack-protector -fomit-frame-pointer -fcf-protection=none \
	-fno-asynchronous-unwind-tables -MMD -MP
BARE64_LDFLAGS = -m elf_x86_64 -static --build-id=none -z noexecstack -z max-page-size=4096 --no-warn-rwx-segments
BARE_CFLAGS = -m32 -nostdlib -static -no-pie -Wl,-m,elf_i386,--build-id=none -Wl,-z,noexecstack -Iguest-tests/bare

# --- what there is to build ---

LAYERS := base x86 core kvm soft peer machine top front
dir_base := vmm/base/
dir_x86 := vmm/x86/
dir_core := vmm/core/
dir_kvm := vmm/kvm/
dir_soft := vmm/soft/
dir_peer := vmm/peer/
dir_machine := vmm/machine/
dir_top := vmm/
dir_front := host-tools/
objs = $(patsubst %,$(B)/obj/$(dir_$(1))%.o,$(SRC_$(1)))
lib = $(B)/lib/$(1).a

# What a unit test of each layer is linked with: its own, then the lower ones.
links_base := base
links_x86 := x86 base
links_core := core x86 base
links_soft := soft core x86 base
links_machine := machine core x86 base
links_kvm := kvm core x86 base
links_peer := peer core x86 base
links_top := top machine kvm soft peer core x86 base
links_front := front top machine kvm soft peer core x86 base

VMM := $(B)/faultbed-vmm
FRONT := $(B)/faultbed
UNIT_TESTS := $(foreach l,$(LAYERS),$(patsubst %,$(B)/tests/unit/test-%,$(UNIT_$(l))))
ISA_TEST := $(B)/tests/isa/isa-test
GUEST_BINS := $(patsubst %,$(O)/guest-tests/%,$(GUEST_TESTS)) \
	$(patsubst %,$(O)/guest-tests/bare/%.elf,$(GUEST_BARE) $(GUEST_BARE64))
GUEST_TOOL_BINS := $(patsubst %,$(O)/guest-tools/%,$(GUEST_TOOLS))
INITRAMFS := $(O)/initramfs.cpio
APPLIANCE := $(O)/appliance.cpio
KERNEL := $(O)/kernel
DISK := $(O)/disk.img

.PHONY: all vmm front guest-tests unit-tests kernel initramfs appliance disk images
all: vmm front guest-tests unit-tests

vmm: $(VMM)
front: $(FRONT)
guest-tests: $(GUEST_BINS) $(GUEST_TOOL_BINS)
unit-tests: $(UNIT_TESTS) $(ISA_TEST)
initramfs: $(INITRAMFS)
appliance: $(APPLIANCE)
disk: $(DISK)
images: kernel initramfs appliance disk

# Objects are built again when the flags change, not whenever this file does.
FLAGS_STAMP := $(B)/.flags
FLAGS_TEXT := $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)
ifneq ($(FLAGS_TEXT),$(file <$(FLAGS_STAMP)))
.PHONY: $(FLAGS_STAMP)
endif
$(FLAGS_STAMP):
	$(shell mkdir -p $(@D))$(file >$@,$(FLAGS_TEXT))@:

$(B)/obj/%.o: %.c $(FLAGS_STAMP)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The commit that a binary is of, for its one file that says so.
COMMIT_STAMP := $(B)/.commit
COMMIT_TEXT := $(shell git describe --always --dirty --exclude '*' 2>/dev/null)
ifneq ($(COMMIT_TEXT),$(file <$(COMMIT_STAMP)))
.PHONY: $(COMMIT_STAMP)
endif
$(COMMIT_STAMP):
	$(shell mkdir -p $(@D))$(file >$@,$(COMMIT_TEXT))@:
$(B)/obj/host-tools/version.o: $(COMMIT_STAMP)
$(B)/obj/host-tools/version.o: ALL_CFLAGS += -DFAULTBED_COMMIT='"$(COMMIT_TEXT)"'

define layer_lib
$(call lib,$(1)): $(call objs,$(1))
	$$(call say,AR,$$@)
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer_lib,$(l))))

$(call lib,unit): $(patsubst %,$(B)/obj/tests/unit/%.o,$(UNIT_LIB))
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^

$(call lib,unit-soft): $(patsubst %,$(B)/obj/tests/unit/%.o,$(UNIT_LIB_soft))
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^

$(VMM): $(B)/obj/vmm/main.o $(foreach l,$(links_top),$(call lib,$(l)))
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS)

# The front end shares scenario and topology with the VMM; the linker takes just what it names.
$(FRONT): $(B)/obj/host-tools/main.o $(foreach l,$(links_front),$(call lib,$(l)))
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS) $(FRONT_LIBS)

define unit_test
$(B)/tests/unit/test-$(2): $(B)/obj/tests/unit/test-$(2).o $(foreach l,$(if $(UNIT_LIB_$(1)),unit-$(1),unit) $(links_$(1)),$(call lib,$(l)))
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$< -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(PKG_LIBS) $(if $(filter front,$(1)),$$(FRONT_LIBS))
endef
$(foreach l,$(LAYERS),$(foreach t,$(UNIT_$(l)),$(eval $(call unit_test,$(l),$(t)))))

$(B)/obj/tests/isa/%.o: ALL_CFLAGS += -Itests/unit
$(ISA_TEST): $(patsubst %,$(B)/obj/tests/isa/%.o,$(ISA)) $(foreach l,unit-soft $(links_soft),$(call lib,$(l)))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS)

# --- guest programs ---

.PRECIOUS: $(O)/obj-guest/%.o
$(O)/obj-guest/%.o: guest-tests/%.c
	$(call say,GUESTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) $(GUEST_CFLAGS) -c -o $@ $<

$(O)/guest-tests/%: $(O)/obj-guest/%.o $(patsubst %,$(O)/obj-guest/lib/%.o,$(GUEST_LIB))
	$(call say,GUESTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) -static -pthread -o $@ $^ -lm

$(O)/guest-tests/fault-stress: $(O)/obj-guest/fault-stress-ops.o
$(O)/guest-tests/kv-server: $(O)/obj-guest/kv-server-threads.o
$(O)/guest-tests/memory-probe: $(patsubst %,$(O)/obj-guest/memory-probe-%.o,cpu line memory)

$(O)/guest-tools/%: $(O)/obj-guest/%.o $(patsubst %,$(O)/obj-guest/lib/%.o,$(GUEST_LIB))
	$(call say,GUESTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) -static -pthread -o $@ $^

$(O)/guest-tests/bare/%.elf: guest-tests/bare/%.S guest-tests/bare/bare.ld guest-tests/bare/bare.h
	$(call say,BARE,$@)
	@mkdir -p $(@D)
	$(Q)$(BARE_CC) $(BARE_CFLAGS) -T guest-tests/bare/bare.ld -o $@ $<

BARE64_LIB_OBJS := $(foreach f,$(BARE64_LIB),$(O)/obj-guest/bare/lib/$(basename $(f)).o)
.PRECIOUS: $(O)/obj-guest/bare/%.o
$(O)/obj-guest/bare/%.o: guest-tests/bare/%.c
	$(call say,BARE,$<)
	@mkdir -p $(@D)
	$(Q)$(BARE_CC) $(BARE64_CFLAGS) -c -o $@ $<
$(O)/obj-guest/bare/lib/%.o: guest-tests/bare/lib/%.S
	$(call say,BARE,$<)
	@mkdir -p $(@D)
	$(Q)$(BARE_CC) $(BARE64_CFLAGS) -c -o $@ $<

# Multiboot 1 loaders take ELF32, in which all that these images have fits.
$(patsubst %,$(O)/guest-tests/bare/%.elf,$(GUEST_BARE64)): $(O)/guest-tests/bare/%.elf: $(O)/obj-guest/bare/%.o \
		$(BARE64_LIB_OBJS) guest-tests/bare/bare64.ld
	$(call say,BARE,$@)
	@mkdir -p $(@D)
	$(Q)ld $(BARE64_LDFLAGS) -T guest-tests/bare/bare64.ld -o $(<:.o=.elf64) $(filter %.o,$^)
	$(Q)objcopy -O elf32-i386 $(<:.o=.elf64) $@

# --- kernel and images ---

# The script finds its result in the cache unless something that goes in has changed.
kernel:
	@mkdir -p $(O)
	$(Q)+dir=$$(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS V=$(V) images/kernel-build.sh) && ln -sfn "$$dir" $(KERNEL)

$(INITRAMFS): images/initramfs-build.sh $(GUEST_BINS)
	$(call say,INITRD,$@)
	$(Q)images/initramfs-build.sh --guest-tests $(O)/guest-tests -o $@

$(APPLIANCE): images/appliance-build.sh images/appliance-init.c $(O)/faultbed-vmm
	$(call say,INITRD,$@)
	$(Q)images/appliance-build.sh --vmm $(O)/faultbed-vmm -o $@

# The same: in the cache, and a link to it here.
$(DISK): images/disk-build.sh
	$(call say,DISK,$@)
	@mkdir -p $(@D)
	$(Q)img=$$(images/disk-build.sh) && ln -sfn "$$img" $@

# --- run, check, bench ---

.PHONY: run check check-unit check-isa check-kvm check-layers check-headers check-tree check-bad-input check-scenario \
	check-clang check-san bench deps deps-undo clean distclean help print-sources

# Set-up first, alone, since the build needs what it installs; then all the rest at once, the kernel
# (the long pole) beside the C code.
ifeq ($(DEPS),no)
SETUP := @:
else
SETUP := @host-tools/deps.sh install
endif

# What the tests and the nested engine need besides is left to them.
run:
	$(SETUP)
	@$(MAKE) vmm front kernel initramfs
	@mkdir -p out
	$(Q)$(O)/faultbed run scenarios/first-run.ini -o out/first-run.json

# What TEST=hard makes difficult: the soft engine. tests/scenario/hard.sh boots guests on it. (Its other
# unit tests pass as well, but are the same there.)
HARD_TESTS := $(patsubst %,$(B)/tests/unit/test-%,$(UNIT_soft) snapshot) $(ISA_TEST)
.PHONY: hard check-hard
hard: $(VMM) $(HARD_TESTS)

# One prove for all, so that its last lines count all. The other variants are parts of it.
PROVE = FAULTBED_BUILD=$(abspath $(O)) tests/prove.sh $(O)/check.log $(if $(filter 1,$(V)),-v)
check:
ifneq ($(VARIANT),gcc)
	$(error make check builds the clang and sanitizer variants itself; check-unit takes CC= and SAN=)
endif
	$(SETUP)
	@$(MAKE) all images
	@$(MAKE) SAN=asan,ubsan unit-tests
	@$(MAKE) CC=clang vmm front unit-tests
	@$(MAKE) TEST=hard hard
	$(Q)$(PROVE) $(UNIT_TESTS) $(UNIT_TESTS:$(O)/%=$(O)/gcc-asan-ubsan/%) $(ISA_TEST) \
		$(HARD_TESTS:$(O)/%=$(O)/gcc-hard/%) $(TESTS_tree) \
		$(TESTS_bad_input) $(TESTS_scenario) $(TESTS_guest) :: --tap

check-unit: unit-tests
	$(Q)$(PROVE) $(UNIT_TESTS) :: --tap
check-isa: $(ISA_TEST)
	$(Q)$(PROVE) $(ISA_TEST)
check-tree:
	$(Q)$(PROVE) $(TESTS_tree)
check-bad-input: all images
	$(Q)$(PROVE) $(TESTS_bad_input)
check-scenario: all images
	@$(MAKE) TEST=hard vmm
	$(Q)$(PROVE) $(TESTS_scenario)
check-kvm: all images
	$(Q)$(PROVE) $(TESTS_guest)
check-san:
	@$(MAKE) SAN=asan,ubsan check-unit
check-hard: all images
	@$(MAKE) TEST=hard hard
	$(Q)$(PROVE) $(HARD_TESTS:$(O)/%=$(O)/gcc-hard/%) tests/scenario/hard.sh :: --tap
check-clang:
	@$(MAKE) CC=clang vmm front unit-tests
	@$(MAKE) CC=clang check-unit
check-layers:
	$(Q)host-tools/check-layers.sh
check-headers:
	$(Q)host-tools/check-headers.sh

# The published results, one table of all at the end. ENGINE=nested runs the scenarios that fit it.
ENGINE ?= soft
EXPERIMENTS_OUT ?= out/experiments
.PHONY: experiments
experiments: all images
	$(Q)$(O)/faultbed experiment --all --engine $(ENGINE) -o $(EXPERIMENTS_OUT)

# The figures of docs/ex-vs-ep.md; EX_VS_EP_PARTS: some of own, first, scaling, profile.
EX_VS_EP_PARTS ?=
.PHONY: ex-vs-ep
ex-vs-ep: all images
	$(Q)host-tools/ex-vs-ep.pl --faultbed $(O)/faultbed $(EX_VS_EP_PARTS)

bench: all images
	$(Q)host-tools/bench.sh

# The patches on kernels that check themselves, which are built first: two builds of the kernel, and some minutes of guests.
.PHONY: check-debug-kernels
check-debug-kernels: all images $(DISK)
	$(Q)+for v in debug kasan; do \
		dir=$$(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS V=$(V) images/kernel-build.sh --variant $$v) && \
		prove -v tests/debug-kernels/run.sh :: $$v "$$dir/bzImage" || exit 1; \
	done

# What the kernel patches cost at default knobs, against a kernel without them, which is built first.
.PHONY: bench-counters
bench-counters: all images
	$(Q)+without=$$(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS V=$(V) images/kernel-build.sh --no-series) && \
		host-tools/bench-counters.pl --faultbed $(O)/faultbed --with $(KERNEL)/bzImage --without "$$without/bzImage"

# How far a result hangs on numbers that nobody has measured: by default the difference of the EP and the EX box, in short runs.
# SCENARIO=FILE: of another one; FAST=1: a few numbers only; SENSITIVITY="--parts ...": options of the script.
SCENARIO ?= scenarios/ep-ex.ini --set run.warmup=1ms --set run.duration=2ms --set run.repeat=1
SENSITIVITY ?=
.PHONY: bench-sensitivity
bench-sensitivity: all images
	@mkdir -p out/sensitivity
	$(Q)host-tools/bench-sensitivity.pl --faultbed $(O)/faultbed --out out/sensitivity $(if $(FAST),--fast) $(SENSITIVITY) $(SCENARIO)

# Soft under a cost model measured on this host, against this host. Wants an idle one.
.PHONY: bench-native
bench-native: all images
	@mkdir -p out/native
	$(Q)host-tools/measure-compare.pl --faultbed $(O)/faultbed --multi-fault $(O)/guest-tests/multi-fault --work out/native

# One load on every engine that this host has, and what each observes of it. Some minutes.
.PHONY: peers
peers: all images
	@mkdir -p out/peers
	$(Q)for engine in soft $$($(O)/faultbed-vmm probe >/dev/null 2>&1 && echo kvm || echo nested) qemu; do \
		$(O)/faultbed run -q scenarios/peers-2x4x2.ini --engine $$engine -o out/peers/$$engine.json || exit; done
	$(Q)host-tools/libvirt-up.sh $(O)/faultbed run -q scenarios/peers-2x4x2.ini --engine libvirt -o out/peers/libvirt.json
	$(Q)host-tools/peers.pl out/peers/soft.json $$(ls -t out/peers/kvm.json out/peers/nested.json 2>/dev/null | head -n 1) out/peers/qemu.json out/peers/libvirt.json

# The drawings of README.md, from results of the experiments: those in out/experiments if there are, else they are run, which takes half an hour.
.PHONY: pictures
pictures: all images
	$(Q)test -s out/experiments/speculative-faults/ex.json -a -s out/experiments/i-mmap/i-mmap.json || \
		$(O)/faultbed experiment speculative-faults i-mmap
	@mkdir -p out/pictures
	$(Q)$(O)/faultbed report out/experiments/speculative-faults/ex.json out/experiments/i-mmap/i-mmap.json -o out/pictures/report.html --figures out/pictures
	$(Q)cp out/pictures/ex-where-the-vcpus-time-went-percent.svg out/pictures/i-mmap-guest-page-faults-per-s-by-command.svg docs/pictures/

# What do several CPUs bring a sweep, and does it survive SIGKILL? Some minutes.
.PHONY: bench-sweep
bench-sweep: all images
	$(Q)host-tools/bench-sweep.sh $(O)/faultbed

# Is faultbed compare to be believed? Some minutes of two CPUs.
.PHONY: bench-compare
bench-compare: all images
	$(Q)host-tools/bench-compare.pl --faultbed $(O)/faultbed

# Man pages, from what the programs say of themselves.
MAN := $(O)/man/faultbed.1
.PHONY: man
man: $(MAN)
$(MAN): man/make-man.pl $(wildcard man/*.in) docs/scenario.md $(FRONT) $(VMM)
	$(call say,MAN,$(@D))
	$(Q)man/make-man.pl $(FRONT) $(VMM) $(@D) && touch $@

# PREFIX=/usr/local, DESTDIR=: where to, and what that is called until it is there.
.PHONY: install uninstall
install: vmm front guest-tests images man
	@host-tools/install.sh install $(O)
uninstall:
	@host-tools/install.sh uninstall $(O)

deps:
	@host-tools/deps.sh install
deps-undo:
	@host-tools/deps.sh undo

# What the build knows of, for the test that compares it with what is on disk.
print-sources:
	@printf '%s\n' $(foreach l,$(LAYERS),$(patsubst %,$(dir_$(l))%.c,$(SRC_$(l)))) vmm/main.c host-tools/main.c \
		$(patsubst %,guest-tests/%.c,$(GUEST_TESTS) $(GUEST_PARTS) $(GUEST_TOOLS)) $(patsubst %,guest-tests/lib/%.c,$(GUEST_LIB)) \
		$(patsubst %,guest-tests/bare/%.S,$(GUEST_BARE)) $(patsubst %,guest-tests/bare/%.c,$(GUEST_BARE64)) \
		$(addprefix guest-tests/bare/lib/,$(BARE64_LIB)) \
		$(patsubst %,tests/unit/%.c,$(UNIT_LIB) $(UNIT_LIB_soft)) $(patsubst %,tests/isa/%.c,$(ISA)) \
		$(foreach l,$(LAYERS),$(patsubst %,tests/unit/test-%.c,$(UNIT_$(l))))

clean:
	rm -rf $(O)
distclean: clean
	rm -rf out
	@echo "the kernel's cache, outside the tree, stays: see images/kernel-build.sh"

help:
	@echo "make run            set-up, build, boot the first scenario, print its table, write out/first-run.json"
	@echo "make check          all tests (check-unit, check-isa, check-tree, check-bad-input, check-scenario, check-kvm: parts)"
	@echo "make all            the VMM, the front end, guest programs, unit tests"
	@echo "make man            man pages, in build/man"
	@echo "make install        to DESTDIR PREFIX (/usr/local); make uninstall takes it away"
	@echo "make kernel initramfs appliance   what boots in the guest, and for the nested engine around it"
	@echo "make check-layers check-headers   the order of the layers; headers that compile alone"
	@echo "make check-clang check-san        unit tests by clang; under the sanitizers"
	@echo "make check-debug-kernels  the kernel patches on kernels with lockdep, DEBUG_VM and KASAN"
	@echo "make check-hard     the soft engine with a tiny TLB, tiny blocks, tiny turns (TEST=hard)"
	@echo "make experiments    the published results, before and after, measured beside published (ENGINE=soft, nested, kvm)"
	@echo "make ex-vs-ep       the figures of docs/ex-vs-ep.md: why the larger box of speculative-faults is the slower one"
	@echo "make bench          boot time and IPI floor against QEMU on the same host; soft against QEMU's TCG; soft with caches, by vCPUs"
	@echo "make bench-counters what the kernel patches cost, instructions per fault and context switch, against a kernel without"
	@echo "make bench-sensitivity  how far a result (SCENARIO=FILE) hangs on the cost models' estimates, on the quantum, on chance"
	@echo "make bench-native   soft under a cost model measured on this host, against this host's own page faults"
	@echo "make pictures       the drawings of README.md, from results of the experiments"
	@echo "make peers          one load on soft, kvm or nested, QEMU and libvirt, and what each observes"
	@echo "make bench-sweep    a matrix on all CPUs against one cell after the other, and one that is killed in the middle"
	@echo "make bench-compare  how often faultbed compare claims a difference that is not there, and finds one that is"
	@echo "make deps deps-undo install what the build needs; take that back"
	@echo "make clean distclean"
	@echo "Variables: see the head of Makefile."

-include $(shell find $(B)/obj $(O)/obj-guest -name '*.d' 2>/dev/null)
