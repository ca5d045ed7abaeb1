# The page protocol in a cluster of one process: tests/sim/run, or
# build/tests/sim/dsm-sim --seeds 10000.
SIM_OBJECTS := tests/sim/main.o tests/sim/events.o tests/sim/cluster.o tests/sim/cpu.o \
	tests/sim/litmus.o
$(eval $(call program,tests/sim/dsm-sim,$(SIM_OBJECTS) tests/sim/hosts.o \
	tests/sim/pages.o $(DSM_OBJECTS) $(DSM_NEEDS)))
# The same, with the daemons' own code that leads changes of hosts.
SIM_DAEMON_OBJECTS := tests/sim/daemons.o tests/sim/unserved.o \
	$(patsubst %,tests/sim/daemon_%.o,requests owner parts world loop outside children \
		io guest pages policy user) \
	$(patsubst %,vmm/node/pages/%.o,pagestore wants misses both hold room share \
		spill spin spin_sees starts starts_choice batch batch_choice extract barriers \
		pagetrace) \
	$(patsubst %,vmm/node/hosts/%.o,hosts hostcomes hostgoes hostpart hostplan) \
	$(patsubst %,vmm/node/moves/%.o,moves movequeue handover policy processors) \
	$(patsubst %,vmm/node/wire/%.o,clients conn dispatch route net) \
	$(patsubst %,vmm/node/%.o,agenda agenda_look debugger halted stages supervise) \
	$(patsubst %,vmm/node/cut/%.o,freeze turn copy restore) \
	$(patsubst %,vmm/cli/run/%.o,go_back yield load_flow owner_life quorum gather) \
	vmm/cli/streams.o vmm/cli/parts/part.o vmm/cli/parts/recordlist.o \
	$(patsubst %,vmm/cli/snapshot/%.o,pull kept saved checkpoint load snapfile savefile \
		keptfile) \
	$(patsubst %,vmm/shared/%.o,hostcpu placement presence private_folder problem tsc vote)
$(eval $(call program,tests/sim/daemon-sim,$(SIM_OBJECTS) $(SIM_DAEMON_OBJECTS) \
	$(IOSRV_OBJECTS) $(DSM_OBJECTS) $(BASE_OBJECTS),-lz))

# The faults of a run, from the table of all faults.
$(B)/tests/sim/faults.inc: tests/faults.table scripts/fault-list
	@echo "  GEN   $@"
	$(Q)mkdir -p $(@D)
	$(Q)scripts/fault-list >$@
$(B)/tests/sim/daemons.o: $(B)/tests/sim/faults.inc

# The handlers of all messages.
$(B)/tests/sim/unserved.inc: base/msg.def
	@echo "  GEN   $@"
	$(Q)mkdir -p $(@D)
	$(Q)sed -nE 's/^\t[A-Z_]+\([A-Z0-9_]+, (take|pass), (\w+)\)$$/X(\2)/p' $< | sort -u >$@
$(B)/tests/sim/unserved.o: $(B)/tests/sim/unserved.inc
