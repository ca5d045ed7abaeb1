# One explicit list of objects per program, in each folder's module.mk.  V=1 shows the commands, SAN=1 builds with
# address and undefined-behaviour sanitizers (in build-san/).
#   make            everything, and the guest kernel and image (cached)
#   make programs   the host's programs alone
#   make help       the rest
.DEFAULT_GOAL := all

ifeq ($(SAN),1)
B := build-san
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else
B := build
endif
Q := $(if $(V),,@)
CC := gcc
CPPFLAGS := -I. -I$(B) -D_GNU_SOURCE
CFLAGS := -std=c11 -O2 -g -Wall -Wextra -Wimplicit-fallthrough -Wmissing-prototypes -Werror $(SANFLAGS)
LDFLAGS := $(SANFLAGS)

PROGRAMS :=
UNIT_TESTS :=
CLEAN :=

# $(call program,NAME,OBJECTS,LIBS): build/NAME from objects named without build/
define program
PROGRAMS += $(B)/$(1)
$(B)/$(1): $(addprefix $(B)/,$(2))
	@echo "  LD    $$@"
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

BASE_OBJECTS := base/log.o base/hostshm.o base/wire.o

include $(wildcard */module.mk tests/*/module.mk)

.PHONY: all programs unit clean help
programs: $(PROGRAMS)
unit: $(UNIT_TESTS)
	$(Q)scripts/run-unit-tests $(UNIT_TESTS)
clean:
	$(Q)rm -rf build build-san $(CLEAN)
