# Fuzzers: tests/fuzz/run (libFuzzer, clang), and their corpus as unit tests.
$(B)/tests/fuzz/%.o: CPPFLAGS += -Iphoenix/include
FUZZ_TARGETS := wire config gdb standby chips daemon cpu snapshot elf virtqueue vpg ninep monitor \
	handshake web
REPLAYS := $(patsubst %,$(B)/tests/fuzz/replay-%.o,$(FUZZ_TARGETS))
$(REPLAYS): $(B)/tests/fuzz/replay-%.o: tests/fuzz/replay.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DCORPUS='"tests/fuzz/corpus/$*"' -MMD -MP -c -o $@ $<
$(eval $(call unit-test,phnx_fuzz_wire,\
	tests/fuzz/replay-wire.o tests/fuzz/wire.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_fuzz_config,\
	tests/fuzz/replay-config.o tests/fuzz/config.o phoenix/calls/netconf.o))
GDB_OBJECTS := base/log.o base/printable.o \
	$(patsubst %,vmm/cli/gdb/%.o,gdb_session requests breakpoint registers rsp gdb_watch)
$(eval $(call unit-test,gdb_fuzz,tests/fuzz/replay-gdb.o tests/fuzz/gdb.o $(GDB_OBJECTS),))
STANDBY_OBJECTS := vmm/cli/standby/record.o vmm/cli/standby/orders.o \
	vmm/cli/cluster/cluster_file.o \
	vmm/shared/hostmem.o vmm/shared/problem.o base/machine.o base/quantity.o \
	base/log.o base/printable.o
$(eval $(call unit-test,standby_fuzz,\
	tests/fuzz/replay-standby.o tests/fuzz/standby.o $(STANDBY_OBJECTS)))

CHIPS_OBJECTS := $(IOSRV_OBJECTS) \
	base/log.o base/printable.o base/packet.o base/wire.o base/undofile.o
$(eval $(call unit-test,iosrv_fuzz,tests/fuzz/replay-chips.o tests/fuzz/chips.o $(CHIPS_OBJECTS),))

NOT_FUZZED := $(NODE_LOAD) \
	$(patsubst %,vmm/node/%.o,node node_options outside wire/overlay wire/links)
DAEMON_FUZZ_OBJECTS := $(filter-out $(NOT_FUZZED),$(NODE_OBJECTS)) $(DSM_OBJECTS) $(BASE_OBJECTS)
$(eval $(call unit-test,daemon_fuzz,\
	tests/fuzz/replay-daemon.o tests/fuzz/daemon.o $(DAEMON_FUZZ_OBJECTS),-levent_core))
$(eval $(call unit-test,monitor_fuzz,\
	tests/fuzz/replay-virtqueue.o tests/fuzz/virtqueue.o monitor/virtqueue.o monitor/prd.o,))

CPU_FUZZ_OBJECTS := $(VCPU_OBJECTS) monitor/fpstate.o
$(eval $(call unit-test,cpu_fuzz,tests/fuzz/replay-cpu.o tests/fuzz/cpu.o $(CPU_FUZZ_OBJECTS),))
SNAPSHOT_FUZZ_OBJECTS := $(addprefix vmm/cli/snapshot/,kept.o saved.o snapfile.o) \
	vmm/cli/parts/part.o vmm/cli/parts/recordlist.o vmm/shared/problem.o \
	$(addprefix base/,machine.o quantity.o log.o wire.o packet.o faultpoint.o cpufeatures.o \
		printable.o)
$(eval $(call unit-test,snapshot_fuzz,\
	tests/fuzz/replay-snapshot.o tests/fuzz/snapshot.o $(SNAPSHOT_FUZZ_OBJECTS),-lz))
ELF_FUZZ_OBJECTS := vmm/cli/guest/elfdeps.o vmm/cli/guest/ldcache.o \
	vmm/node/load/kernel_load.o vmm/shared/problem.o $(BASE_OBJECTS)
$(eval $(call unit-test,elf_fuzz,\
	tests/fuzz/replay-elf.o tests/fuzz/elf.o $(ELF_FUZZ_OBJECTS),-lelf))

VPG_FUZZ_OBJECTS := vpg/shell/line.o vpg/shell/group.o vpg/wire/message.o vpg/wire/nick.o
$(eval $(call unit-test,vpg_fuzz,tests/fuzz/replay-vpg.o tests/fuzz/vpg.o $(VPG_FUZZ_OBJECTS),))

WEB_FUZZ_OBJECTS := vmm/cli/web/webwords.o vmm/cli/watch/httpgate.o vmm/cli/digest.o \
	vmm/shared/problem.o base/log.o base/printable.o
$(eval $(call unit-test,web_fuzz,tests/fuzz/replay-web.o tests/fuzz/web.o $(WEB_FUZZ_OBJECTS),))

# tests/fuzz/handshake.c includes enrol.c, identity.c, joining.c and tunnel.c.
HANDSHAKE_FUZZ_OBJECTS := vpg/peer/invitation.o vpg/peer/members.o vpg/peer/pieces.o \
	$(VPG_WIRE_ALL) base/confine.o base/log.o base/printable.o
$(eval $(call unit-test,vpg_handshake_fuzz,\
	tests/fuzz/replay-handshake.o tests/fuzz/handshake.o $(HANDSHAKE_FUZZ_OBJECTS),\
	-levent -levent_openssl -lssl -lcrypto))

# tests/fuzz/monitor.c includes pages.c, process.c and direct_serve.c.
MONITOR_FUZZ_OBJECTS := $(addprefix monitor/,ptrace_run.o env.o guestmem.o insn.o \
	fpregs.o fpstate.o process_fpu.o cpu_state.o cpu_freeze.o cpu_debug.o cpu_handover.o \
	unheard.o) \
	$(ENGINE_OBJECTS) $(VCPU_OBJECTS) $(BASE_OBJECTS)
$(eval $(call unit-test,monitor_calls_fuzz,\
	tests/fuzz/replay-monitor.o tests/fuzz/monitor.o $(MONITOR_FUZZ_OBJECTS),-lZydis))

$(eval $(call unit-test,ninep_fuzz,tests/fuzz/replay-ninep.o tests/fuzz/ninep.o $(NINEP_OBJECTS),))

# The fuzzers themselves, with the sanitizers.
FUZZ_FLAGS := -std=gnu11 -O1 -g -D_GNU_SOURCE $(WIRE_HASH) -I. -Iphoenix/include \
	      -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
# $(call fuzzer,NAME,OBJECTS,OPTIONS): build/fuzz/NAME from tests/fuzz/NAME.c and the objects'
# sources.  What these include, .c files among it, is in build/fuzz-needs/NAME.d.
define fuzzer
build/fuzz/$(1): FUZZ_SOURCES := tests/fuzz/$(1).c \
	$(patsubst vcpu/window_code.c,vcpu/window_code.S,$(patsubst %.o,%.c,$(2)))
build/fuzz/$(1): FUZZ_MORE := $(3)
build/fuzz/$(1): tests/fuzz/$(1).c \
	$(patsubst vcpu/window_code.c,vcpu/window_code.S,$(patsubst %.o,%.c,$(2)))
-include build/fuzz-needs/$(1).d
endef
$(eval $(call fuzzer,wire,$(PHNX_CORE)))
$(eval $(call fuzzer,config,phoenix/calls/netconf.o))
$(eval $(call fuzzer,gdb,$(GDB_OBJECTS)))
$(eval $(call fuzzer,standby,$(STANDBY_OBJECTS)))
$(eval $(call fuzzer,chips,$(CHIPS_OBJECTS)))
$(eval $(call fuzzer,daemon,$(DAEMON_FUZZ_OBJECTS)))
$(eval $(call fuzzer,cpu,$(CPU_FUZZ_OBJECTS)))
$(eval $(call fuzzer,snapshot,$(SNAPSHOT_FUZZ_OBJECTS)))
$(eval $(call fuzzer,elf,$(ELF_FUZZ_OBJECTS)))
$(eval $(call fuzzer,virtqueue,monitor/virtqueue.o monitor/prd.o))
$(eval $(call fuzzer,handshake,$(HANDSHAKE_FUZZ_OBJECTS),-levent_openssl -lssl))
$(eval $(call fuzzer,monitor,$(MONITOR_FUZZ_OBJECTS),-fsanitize-coverage=trace-loads -lZydis))
$(eval $(call fuzzer,ninep,$(NINEP_OBJECTS)))
$(eval $(call fuzzer,web,$(WEB_FUZZ_OBJECTS)))
$(eval $(call fuzzer,vpg,$(VPG_FUZZ_OBJECTS)))
build/fuzz/%:
	@echo "  FUZZ  $@"
	$(Q)mkdir -p $(@D) build/fuzz-needs
	$(Q)clang $(FUZZ_FLAGS) -MM -MP -MT $@ $(FUZZ_SOURCES) >build/fuzz-needs/$*.d
	$(Q)clang $(FUZZ_FLAGS) -o $@ $(FUZZ_SOURCES) -lcrypto -levent -lelf -lz $(FUZZ_MORE)
