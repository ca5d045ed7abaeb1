# Fuzzers: tests/fuzz/run (libFuzzer, clang), and their corpus as unit tests.
$(B)/tests/fuzz/%.o: CPPFLAGS += -Iphoenix/include
$(B)/tests/fuzz/replay-wire.o $(B)/tests/fuzz/replay-config.o $(B)/tests/fuzz/replay-gdb.o $(B)/tests/fuzz/replay-standby.o: $(B)/tests/fuzz/replay-%.o: tests/fuzz/replay.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DCORPUS='"tests/fuzz/corpus/$*"' -MMD -MP -c -o $@ $<
$(eval $(call unit-test,phnx_fuzz_wire,tests/fuzz/replay-wire.o tests/fuzz/wire.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_fuzz_config,tests/fuzz/replay-config.o tests/fuzz/config.o phoenix/config.o))
GDB_OBJECTS := vmm/gdb/session.o vmm/gdb/requests.o vmm/gdb/breakpoint.o vmm/gdb/registers.o vmm/gdb/rsp.o vmm/gdb/watch.o base/log.o
$(eval $(call unit-test,gdb_fuzz,tests/fuzz/replay-gdb.o tests/fuzz/gdb.o $(GDB_OBJECTS),))
# Most of it for the one function of options.o that reads a size.
STANDBY_OBJECTS := vmm/standby/record.o vmm/standby/orders.o vmm/cluster/file.o vmm/hostmem.o vmm/problem.o vmm/options.o vmm/placement.o \
	vmm/gdb/server.o vmm/client.o base/wire.o $(GDB_OBJECTS)
$(eval $(call unit-test,standby_fuzz,tests/fuzz/replay-standby.o tests/fuzz/standby.o $(STANDBY_OBJECTS),-levent))

# The fuzzers themselves, with the sanitizers.
FUZZ_FLAGS := -std=gnu11 -O1 -g -D_GNU_SOURCE -I. -Iphoenix/include -fsanitize=fuzzer,address,undefined \
	      -fno-sanitize-recover=undefined
build/fuzz/wire: tests/fuzz/wire.c $(PHNX_CORE:.o=.c)
build/fuzz/config: tests/fuzz/config.c phoenix/config.c
build/fuzz/gdb: tests/fuzz/gdb.c $(GDB_OBJECTS:.o=.c)
build/fuzz/standby: tests/fuzz/standby.c $(STANDBY_OBJECTS:.o=.c)
build/fuzz/%: tests/fuzz/fuzz.h
	@echo "  FUZZ  $@"
	$(Q)mkdir -p $(@D)
	$(Q)clang $(FUZZ_FLAGS) -o $@ $(filter %.c,$^) -lcrypto -levent
