# The ptrace engine.
MONITOR_OBJECTS := monitor/main.o monitor/run.o monitor/process.o monitor/pages.o monitor/guestmem.o monitor/insn.o \
	monitor/env.o monitor/channel.o monitor/direct.o monitor/fpstate.o monitor/fpregs.o \
	monitor/state.o monitor/freeze.o monitor/debug.o monitor/watch.o monitor/handover.o
$(eval $(call program,vmp-monitor,$(MONITOR_OBJECTS) $(VCPU_OBJECTS) $(BASE_OBJECTS),-lZydis))

$(eval $(call unit-test,monitor_engine,tests/unit/monitor_engine.o tests/unit/monitor_guest.o $(BASE_OBJECTS),))
$(B)/tests/unit/monitor_engine: $(B)/vmp-monitor $(B)/vmproc
$(eval $(call unit-test,monitor_fpstate,tests/unit/monitor_fpstate.o monitor/fpstate.o monitor/fpregs.o,))
$(eval $(call unit-test,monitor_insn,tests/unit/monitor_insn.o tests/unit/vcpu_fake.o monitor/insn.o $(VCPU_OBJECTS),-lZydis))
