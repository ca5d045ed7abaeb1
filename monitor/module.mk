# The ptrace engine.
MONITOR_OBJECTS := monitor/main.o monitor/run.o monitor/process.o monitor/shadow.o monitor/guestmem.o monitor/insn.o \
	monitor/env.o monitor/channel.o
$(eval $(call program,vmp-monitor,$(MONITOR_OBJECTS) $(VCPU_OBJECTS) $(BASE_OBJECTS),-lZydis))
