# The VM process: freestanding, far above 4 GiB. Never built with sanitizers.
PROGRAMS += $(B)/vmproc
VMPROC_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -ffreestanding -fno-stack-protector \
	-fPIE -fvisibility=hidden -fno-asynchronous-unwind-tables -mno-red-zone \
	-mgeneral-regs-only -mfsgsbase -fcf-protection=none -nostdlib -static \
	-Wl,-Ttext-segment=0x700000000000 -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro
VMPROC_SOURCES := vmproc/vmproc.c vmproc/direct.c vmproc/direct_ops.c vmproc/direct_env.c \
	vmproc/direct_space.c vmproc/direct_bare.c vmproc/direct_pages.c vmproc/direct_user.c \
	vmproc/user.c vmproc/user_take.c vmproc/user_stub.S vmproc/gate.S vmproc/memory.c \
	$(ENGINE_OBJECTS:.o=.c) $(VCPU_OBJECTS:.o=.c)
VMPROC_SOURCES := $(filter-out vcpu/window_code.c,$(VMPROC_SOURCES)) vcpu/window_code.S
$(B)/vmproc: $(VMPROC_SOURCES) $(wildcard vmproc/*.h engine/*.h vcpu/*.h vcpu/*.def base/*.h)
	@echo "  LD    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(VMPROC_CFLAGS) -o $@ $(VMPROC_SOURCES)

$(foreach t,user_take direct_user user_signals,$(eval $(call unit-test,$(t),\
	tests/unit/$(t).o tests/unit/vcpu_fake.o $(VCPU_OBJECTS),)))
