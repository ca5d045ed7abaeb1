# The test kernel of the differential test (tests/diff/run), by vmp's conventions and plain.
DIFF_SOURCES := entry.S main.c code.c kinds_plain.c kinds_system.c kinds_fpu.c machine.c spaces.c \
	trap.c record.c random.c text.c
DIFF_CFLAGS := -m32 -march=i686 -mgeneral-regs-only -std=gnu11 -O2 -ffreestanding -fno-pic \
	-fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables -fno-strict-aliasing \
	-Wall -Wextra -Wmissing-prototypes -Werror
DIFF_KERNELS := build/tests/diff/kernel-vmp build/tests/diff/kernel-plain
build/tests/diff/kernel-vmp: DIFF_CFLAGS += -DDIFF_VMP

$(DIFF_KERNELS): base/guest_abi.h $(addprefix tests/diff/,$(DIFF_SOURCES) diff.h emit.h platform.h \
	kinds.def kernel.lds)
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(DIFF_CFLAGS) -I. -nostdlib -static \
		-Wl,--build-id=none,--no-warn-rwx-segments,-T,tests/diff/kernel.lds -o $@ \
		$(addprefix tests/diff/,$(DIFF_SOURCES))

.PHONY: diff-kernels diff
diff-kernels: $(DIFF_KERNELS)

# make diff SEQUENCES=100000 SEED=...
diff: programs
	$(Q)tests/diff/run --sequences $(or $(SEQUENCES),100000) \
		--seed $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
