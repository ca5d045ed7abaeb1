# The benchmark's programs; bench/README.md says what they measure.
build/bench/%: bench/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $<

all: build/bench/pingpong build/bench/devio

# devio runs in the guest; natively, it is the network's other end.
build/bench/devio: bench/devio.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fopenmp,$(GUEST_CFLAGS)) -o $@ $<

# replay runs the page protocol itself with the fetches of recorded programs.
$(eval $(call program,bench/tcp_pipe,bench/tcp_pipe.o,))
$(eval $(call program,bench/replay,$(addprefix bench/replay,.o _record.o _model.o) $(DSM_OBJECTS) \
	$(DSM_NEEDS)))

.PHONY: bench
bench: all
	$(Q)bench/run
$(eval $(call unit-test,bench_ports,tests/unit/bench_ports.o))
