# One explicit list of objects per program, in each folder's module.mk.  V=1 shows the commands.
# SAN=1: address and undefined-behaviour sanitizers (build-san/); SAN=thread: its own (build-tsan/).
#   make            everything, and the guest kernel and image (cached)
#   make programs   the host's programs alone
#   make help       the other main targets
.DEFAULT_GOAL := all

ifeq ($(SAN),1)
B := build-san
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(SAN),thread)
B := build-tsan
SANFLAGS := -fsanitize=thread
else
B := build
endif
Q := $(if $(V),,@)
# CCACHE: empty, or ccache, as scripts/check sets it.
CC := $(CCACHE) gcc
CPPFLAGS := -I. -I$(B) -D_GNU_SOURCE
CFLAGS := -std=c11 -O2 -g -Wall -Wextra -Wimplicit-fallthrough -Wmissing-prototypes -Werror
ifdef SAN
# -O1: what sanitizers insert takes -O2 nearly twice as long.  The plain build has the warnings.
CFLAGS := -std=c11 -O1 -g -w $(SANFLAGS)
endif
LDFLAGS := $(SANFLAGS)
ifndef SAN
# The compiler's hardening against writes beside an object; tests/cli/run checks that it is there.
CFLAGS += -fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
LDFLAGS += -pie -Wl,-z,relro,-z,now
endif

PROGRAMS :=
UNIT_TESTS :=
CLEAN :=

# $(call program,NAME,OBJECTS,LIBS): build/NAME from objects named without build/
define program
PROGRAMS += $(B)/$(1)
$(B)/$(1): $(addprefix $(B)/,$(2))
	@echo "  LD    $$@"
	$(Q)mkdir -p $$(@D)
	$(Q)$(CC) $(LDFLAGS) -o $$@ $(addprefix $(B)/,$(2)) $(3)
-include $(addprefix $(B)/,$(2:.o=.d))
endef
# $(call unit-test,NAME,OBJECTS,LIBS): a CUnit program, run by `make unit`
define unit-test
UNIT_TESTS += $(B)/tests/unit/$(1)
$(B)/tests/unit/$(1): $(addprefix $(B)/,$(2))
	@echo "  LD    $$@"
	$(Q)mkdir -p $$(@D)
	$(Q)$(CC) $(LDFLAGS) -o $$@ $(addprefix $(B)/,$(2)) $(3) -lcunit
-include $(addprefix $(B)/,$(2:.o=.d))
endef

$(B)/%.o: %.c
	@echo "  CC    $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: %.S
	@echo "  AS    $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# The rules of every folder; first those whose objects others link. A copy with a few folders alone
# can build those.
FIRST_RULES := $(wildcard base/module.mk vcpu/module.mk engine/module.mk dsm/module.mk \
	vmm/shared/module.mk)
include $(FIRST_RULES) \
	$(filter-out $(FIRST_RULES),$(wildcard */module.mk vmm/*/module.mk tests/*/module.mk))

.PHONY: all programs guest guest-pae web picture setup run \
	unit-tests unit check check-quick soak lint tour clean help
all: programs guest

programs: $(PROGRAMS)

# The guest kernel, the guest's base image and its libgomp: built once, kept in
# ${XDG_CACHE_HOME:-~/.cache}/vmp.
guest: programs
	$(Q)scripts/guest-links $(B)

guest-pae: programs
	$(Q)scripts/guest-links $(B) pae

# The terminal in the page of `vmp web`, from npm; kept where the guest kernel is.
web:
	$(Q)scripts/web-libraries $(B)

# install/picture.png, anew from a real run (needs chromium).
picture: all web
	$(Q)scripts/picture

setup:
	$(Q)scripts/setup

# Install what is missing, build what a machine needs and no test, boot 2 CPUs over 2 hosts, run EP
# class W on both.
RUN_PROGRAMS := $(addprefix $(B)/,vmp vmp-node vmp-monitor vmproc vmp-iosrv vmp-net vmp-share \
	vmp-host vmp-image vmp-tunnel)
run:
	$(Q)scripts/setup run
	@echo "building the programs (a minute), and, once, the guest kernel (some minutes)"
	$(Q)$(MAKE) --no-print-directory $(RUN_PROGRAMS) $(B)/examples/ep $(B)/examples/fib
	$(Q)scripts/guest-links $(B) least
	./vmp run --hosts 2 --cpus 2 --summary --env OMP_NUM_THREADS=2 -- $(B)/examples/ep W

check: setup
	$(Q)scripts/check

# Below three minutes: for each change.
check-quick: setup
	$(Q)scripts/check --quick

# Hours rather than minutes (HOURS=4): fifty boots, long litmus runs, the largest machines, Linux's
# own tests of RCU and locks in interrupt storms, storms of losses; many random instructions, many
# seeds.  Goes on where it was interrupted.
soak:
	$(Q)scripts/soak --hours $(or $(HOURS),4)

lint:
	$(Q)scripts/check-includes
	$(Q)scripts/check-abi
	$(Q)scripts/check-tricks
	$(Q)scripts/tour --check
	$(Q)scripts/check-faults
	$(Q)scripts/check-columns
	$(Q)scripts/check-house
	$(Q)scripts/check-calls
	$(Q)scripts/check-circles

# Four walks through the code.
tour:
	@scripts/tour

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -5 | tail -3
	@echo "  make run        boot two hosts and run EP class W on both"
	@echo "  make guest      the guest kernel, image and libgomp, cached;" \
		"make guest-pae: the kernel for more than 3 GiB"
	@echo "  make web        fetch xterm.js, from npm, for the console in the page of vmp web"
	@echo "  make picture    the README's picture, from a real run"
	@echo "  make check      all tests; scripts/check --list: its stages," \
		"scripts/check STAGE: one of them"
	@echo "  make check-quick    less than three minutes of them, for each change"
	@echo "  make soak       the long runs, four hours of them (HOURS=4);" \
		"goes on where it was interrupted"
	@echo "  make unit       unit tests alone"
	@echo "  make diff       random instructions on both engines and QEMU:" \
		"SEQUENCES=100000 SEED=..."
	@echo "  make bench      figures (bench/README.md)"
	@echo "  make tour       four walks through the code:" \
		"a page, a trap, a key press, a lost host"
	@echo "  make lint       include rules, names, ABI numbers, columns"
	@echo "  make install    below PREFIX=/usr/local, with DESTDIR= before it; make uninstall"
	@echo "  make install-phoenix    the library libphnx alone, in the same way"
	@echo "  make clean      remove what was built here; the cache stays"

unit-tests: $(UNIT_TESTS)

unit: unit-tests
	$(Q)scripts/run-unit-tests $(UNIT_TESTS)
clean:
	$(Q)rm -rf build build-san build-tsan $(CLEAN)
