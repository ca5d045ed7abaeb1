# The monitor: the ptrace engine, and what serves the direct engine.
MONITOR_OBJECTS := monitor/monitor.o monitor/ptrace_run.o monitor/process.o monitor/pages.o \
	monitor/guestmem.o monitor/insn.o monitor/env.o monitor/rings.o monitor/virtqueue.o \
	monitor/localdisk.o monitor/localnet.o monitor/dma.o monitor/prd.o monitor/channel.o \
	monitor/direct_serve.o monitor/unheard.o \
	monitor/fpstate.o monitor/fpregs.o \
	monitor/cpu_state.o monitor/cpu_freeze.o monitor/cpu_debug.o monitor/watch.o \
	monitor/cpu_handover.o monitor/process_fpu.o
$(eval $(call program,vmp-monitor,\
	$(MONITOR_OBJECTS) $(ENGINE_OBJECTS) $(VCPU_OBJECTS) $(BASE_OBJECTS),-lZydis))

$(eval $(call unit-test,monitor_engine,\
	$(patsubst %,tests/unit/monitor_%.o,engine moves debug machine guest) $(BASE_OBJECTS),))
$(B)/tests/unit/monitor_engine: $(B)/vmp-monitor $(B)/vmproc
$(eval $(call unit-test,monitor_fpstate,\
	tests/unit/monitor_fpstate.o monitor/fpstate.o monitor/fpregs.o,))
$(eval $(call unit-test,monitor_insn,\
	tests/unit/monitor_insn.o tests/unit/vcpu_fake.o monitor/insn.o $(VCPU_OBJECTS),-lZydis))
$(eval $(call unit-test,monitor_localdisk,\
	tests/unit/monitor_localdisk.o monitor/localdisk.o monitor/virtqueue.o,))
$(eval $(call unit-test,monitor_localnet,\
	tests/unit/monitor_localnet.o monitor/localnet.o monitor/virtqueue.o,))
$(eval $(call unit-test,monitor_prd,tests/unit/monitor_prd.o monitor/prd.o,))
$(eval $(call unit-test,monitor_virtqueue,tests/unit/monitor_virtqueue.o monitor/virtqueue.o,))
