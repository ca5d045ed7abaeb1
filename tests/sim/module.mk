# The page protocol in a cluster of one process: tests/sim/run, or build/tests/sim/dsm-sim --seeds 10000.
SIM_OBJECTS := tests/sim/main.o tests/sim/events.o tests/sim/cluster.o tests/sim/cpu.o tests/sim/litmus.o
$(eval $(call program,tests/sim/dsm-sim,$(SIM_OBJECTS) tests/sim/hosts.o $(DSM_OBJECTS) $(DSM_NEEDS)))
# The same, with the daemons' code that leads what changes about hosts
$(eval $(call program,tests/sim/daemon-sim,$(SIM_OBJECTS) tests/sim/daemons.o tests/sim/daemon_world.o vmm/hosts.o vmm/hostpart.o \
	vmm/hostplan.o vmm/hostmem.o vmm/moves.o vmm/movequeue.o vmm/handover.o vmm/snapshot/freeze.o vmm/net.o $(DSM_OBJECTS) $(BASE_OBJECTS)))
