# What all programs share.

# The version of the messages: a hash of all files that define their layout (base/wire.h).
WIRE_FILES := $(wildcard base/msg.def base/wire.h base/types.h base/limits.h base/trace.h \
	base/virtio_abi.h base/cpufeatures.h base/machine.h base/machine.def vmm/shared/stats.h \
	vmm/shared/snapshot_machine.h monitor/cpu_state.h monitor/fpstate.h vcpu/state.h)
WIRE_HASH := -DWIRE_HASH=$(shell scripts/wire-hash $(WIRE_FILES))u
$(B)/base/wire.o: CPPFLAGS += $(WIRE_HASH)
$(B)/base/wire.o: $(WIRE_FILES)

BASE_OBJECTS := $(addprefix base/,confine.o log.o hostshm.o machine.o packet.o quantity.o wire.o \
	faultpoint.o schedule.o beside.o cpufeatures.o filepass.o killed.o \
	printable.o undofile.o)
$(eval $(call unit-test,confine,tests/unit/confine.o base/confine.o,-lpthread))
$(eval $(call unit-test,confine_others,tests/unit/confine_others.o base/confine.o,))
$(eval $(call unit-test,printable,tests/unit/printable.o base/printable.o))
$(eval $(call unit-test,barrier,tests/unit/barrier.o))
$(eval $(call unit-test,filepass,tests/unit/filepass.o base/filepass.o))
$(eval $(call unit-test,touch,tests/unit/touch.o,-lpthread))
$(eval $(call unit-test,machine,tests/unit/machine.o base/machine.o base/quantity.o \
	base/log.o base/printable.o))
$(eval $(call unit-test,netspec,tests/unit/netspec.o base/netspec.o))
$(eval $(call unit-test,packet,tests/unit/packet.o base/packet.o base/wire.o))
$(eval $(call unit-test,base,tests/unit/base.o $(BASE_OBJECTS),-lpthread))
