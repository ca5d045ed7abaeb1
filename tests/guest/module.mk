# Programs that run inside the guest; static, except those about this computer's libraries.
GUEST_TESTS := $(addprefix build/tests/guest/,threads processes signals pipes memory fpstate \
	timers altpages wildptr hostile dynamic micro halves stress storm witness contended flags \
	computes passes cputime fsops watch openmp escape high fresh fills turns discards \
	jobs wakes frames answers selectors)
GUEST_LINK := -static
build/tests/guest/dynamic build/tests/guest/openmp: GUEST_LINK := -rdynamic

build/tests/guest/%: tests/guest/%.c tests/guest/check.h
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -static,$(GUEST_CFLAGS)) $(GUEST_LINK) -I. -fopenmp -pthread -o $@ \
		$< -lm -Wl,--no-warnings

.PHONY: guest-tests
guest-tests: $(GUEST_TESTS) build/tests/machine/unframe \
	$(addprefix build/tests/machine/bug-,triple nowhere stack fault halt)
all: guest-tests

build/tests/machine/bug-%: tests/machine/bug.S base/guest_abi.h
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -m32 -I. -DBUG_$* -nostdlib -static \
		-Wl,--build-id=none,-Ttext=0x1000000,-e,entry -o $@ $<

build/tests/machine/%: tests/machine/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -lm

# The guest's first process, as far as it is pure.
$(eval $(call unit-test,guest_disks,tests/unit/guest_disks.o guest/guest_disks.o))
