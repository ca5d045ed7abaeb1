# The page protocol in a cluster of one process: tests/sim/run, or build/tests/sim/dsm-sim --seeds 10000.
SIM_OBJECTS := tests/sim/main.o tests/sim/events.o tests/sim/cluster.o tests/sim/cpu.o tests/sim/litmus.o
$(eval $(call program,tests/sim/dsm-sim,$(SIM_OBJECTS) tests/sim/hosts.o $(DSM_OBJECTS) $(DSM_NEEDS)))
# The same, with the daemons' code that leads what changes about hosts
$(eval $(call program,tests/sim/daemon-sim,$(SIM_OBJECTS) tests/sim/daemons.o tests/sim/daemon_owner.o tests/sim/daemon_world.o \
	tests/sim/daemon_children.o tests/sim/daemon_io.o tests/sim/daemon_guest.o tests/sim/daemon_user.o iosrv/serve.o $(IOSRV_CHIPS) vmm/hosts.o vmm/hostcomes.o vmm/hostgoes.o vmm/hostpart.o vmm/hostplan.o vmm/hostcpu.o vmm/moves.o vmm/movequeue.o \
	vmm/handover.o vmm/route.o vmm/stages.o vmm/net.o vmm/problem.o vmm/run/back.o vmm/run/yield.o vmm/run/flow.o vmm/streams.o vmm/snapshot/freeze.o vmm/snapshot/turn.o vmm/snapshot/copy.o \
	vmm/snapshot/restore.o vmm/snapshot/pull.o vmm/snapshot/kept.o vmm/snapshot/saved.o vmm/snapshot/checkpoint.o \
	vmm/snapshot/load.o vmm/snapshot/snapfile.o vmm/snapshot/savefile.o vmm/snapshot/keptfile.o $(DSM_OBJECTS) $(BASE_OBJECTS),-lz))
