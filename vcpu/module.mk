# The virtual CPU: pure code, no libc (the compiler may still call memcpy, memset, memmove and
# memcmp)
VCPU_OBJECTS := vcpu/vcpu.o vcpu/emulate.o vcpu/decode.o vcpu/operand.o vcpu/system.o \
	vcpu/transfer.o vcpu/portio.o vcpu/exception.o vcpu/paging.o vcpu/segments.o vcpu/apic.o \
	vcpu/cpuid.o vcpu/mmio.o vcpu/hypercall.o vcpu/msr.o vcpu/dump.o vcpu/text.o vcpu/state.o \
	vcpu/shadow.o vcpu/spaces.o vcpu/window.o vcpu/window_code.o vcpu/ahead.o vcpu/locked.o \
	vcpu/written.o
$(addprefix $(B)/,$(VCPU_OBJECTS)): CFLAGS += -ffreestanding

# $(call vcpu-test,NAME): tests/unit/vcpu_NAME.c against the machine of arrays
define vcpu-test
$(call unit-test,vcpu_$(1),tests/unit/vcpu_$(1).o tests/unit/vcpu_fake.o $(VCPU_OBJECTS),)
endef
VCPU_TESTS := system transfer exception paging portio apic mmio cpuid hypercall faults window \
	state spaces ahead written locked fresh pae
$(foreach test,$(VCPU_TESTS),$(eval $(call vcpu-test,$(test))))

# Check that the folder is pure: all its objects, linked together, need only the functions that a
# compiler calls by itself.
VCPU_MAY_CALL := memcpy|memset|memmove|memcmp
$(B)/vcpu/all.o: $(addprefix $(B)/,$(VCPU_OBJECTS))
	@echo "  PURE  vcpu"
	$(Q)ld -r -o $@ $^
	$(Q)! nm -u $@ | grep -Evw '$(VCPU_MAY_CALL)|__(asan|ubsan)_\w*|__stack_chk_fail'
	$(Q)! grep -hE '^#include' vcpu/*.[ch] | \
		grep -Ev '"vcpu/\w+\.(h|def)"' | \
		grep -Ev '"base/(barrier|layout|types|limits|guest_abi|mechanisms)\.h"' | \
		grep -Ev '<std(arg|atomic|bool|def|int)\.h>'
unit-tests: $(B)/vcpu/all.o
