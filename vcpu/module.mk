# The virtual CPU: pure code, no libc (the compiler may still call memcpy, memset, memmove and memcmp)
VCPU_OBJECTS := vcpu/vcpu.o vcpu/emulate.o vcpu/decode.o vcpu/operand.o vcpu/system.o vcpu/transfer.o vcpu/portio.o \
	vcpu/exception.o vcpu/paging.o vcpu/segments.o vcpu/apic.o vcpu/cpuid.o vcpu/mmio.o vcpu/hypercall.o vcpu/msr.o \
	vcpu/dump.o vcpu/text.o
$(addprefix $(B)/,$(VCPU_OBJECTS)): CFLAGS += -ffreestanding
