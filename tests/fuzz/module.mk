# Fuzzers: tests/fuzz/run (libFuzzer, clang), and their corpus as unit tests.
$(B)/tests/fuzz/%.o: CPPFLAGS += -Iphoenix/include
$(foreach t,wire config gdb standby chips,$(B)/tests/fuzz/replay-$(t).o): $(B)/tests/fuzz/replay-%.o: tests/fuzz/replay.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DCORPUS='"tests/fuzz/corpus/$*"' -MMD -MP -c -o $@ $<
$(eval $(call unit-test,phnx_fuzz_wire,tests/fuzz/replay-wire.o tests/fuzz/wire.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_fuzz_config,tests/fuzz/replay-config.o tests/fuzz/config.o phoenix/config.o))
GDB_OBJECTS := vmm/cli/gdb/gdb_session.o vmm/cli/gdb/requests.o vmm/cli/gdb/breakpoint.o vmm/cli/gdb/registers.o vmm/cli/gdb/rsp.o vmm/cli/gdb/gdb_watch.o base/log.o
$(eval $(call unit-test,gdb_fuzz,tests/fuzz/replay-gdb.o tests/fuzz/gdb.o $(GDB_OBJECTS),))
STANDBY_OBJECTS := vmm/cli/standby/record.o vmm/cli/standby/orders.o vmm/cli/cluster/cluster_file.o \
	vmm/shared/hostmem.o vmm/shared/problem.o base/machine.o base/quantity.o base/log.o
$(eval $(call unit-test,standby_fuzz,tests/fuzz/replay-standby.o tests/fuzz/standby.o $(STANDBY_OBJECTS)))

CHIPS_OBJECTS := $(IOSRV_OBJECTS) base/log.o base/packet.o base/wire.o
$(eval $(call unit-test,iosrv_fuzz,tests/fuzz/replay-chips.o tests/fuzz/chips.o $(CHIPS_OBJECTS),))

# The fuzzers themselves, with the sanitizers.
FUZZ_FLAGS := -std=gnu11 -O1 -g -D_GNU_SOURCE $(WIRE_HASH) -I. -Iphoenix/include -fsanitize=fuzzer,address,undefined \
	      -fno-sanitize-recover=undefined
build/fuzz/wire: tests/fuzz/wire.c $(PHNX_CORE:.o=.c)
build/fuzz/config: tests/fuzz/config.c phoenix/config.c
build/fuzz/gdb: tests/fuzz/gdb.c $(GDB_OBJECTS:.o=.c)
build/fuzz/standby: tests/fuzz/standby.c $(STANDBY_OBJECTS:.o=.c)
build/fuzz/chips: tests/fuzz/chips.c $(CHIPS_OBJECTS:.o=.c)
build/fuzz/%: tests/fuzz/fuzz.h
	@echo "  FUZZ  $@"
	$(Q)mkdir -p $(@D)
	$(Q)clang $(FUZZ_FLAGS) -o $@ $(filter %.c,$^) -lcrypto -levent
