# The VM process: freestanding, far above 4 GiB. Never built with sanitizers.
PROGRAMS += $(B)/vmproc
VMPROC_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -ffreestanding -fno-stack-protector -fPIC -fvisibility=hidden \
	-fno-asynchronous-unwind-tables -mno-red-zone -mgeneral-regs-only -fcf-protection=none -nostdlib -static \
	-Wl,-Ttext-segment=0x700000000000 -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro
$(B)/vmproc: vmproc/vmproc.c vmproc/vmproc.h
	@echo "  LD    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(VMPROC_CFLAGS) -o $@ vmproc/vmproc.c
