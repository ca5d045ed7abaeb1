# What is measured, against what; see bench/README.md.
build/bench/%: bench/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $<

all: build/bench/pingpong build/bench/devio

# In the guest, and natively its other end.
build/bench/devio: bench/devio.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fopenmp,$(GUEST_CFLAGS)) -o $@ $<

# The page protocol itself, under recorded programs.
$(eval $(call program,bench/tcp_pipe,bench/tcp_pipe.o,))
$(eval $(call program,bench/replay,bench/replay.o $(DSM_OBJECTS) $(DSM_NEEDS)))

.PHONY: bench
bench: all
	$(Q)bench/run
