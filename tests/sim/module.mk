# The page protocol in a cluster of one process: tests/sim/run, or build/tests/sim/dsm-sim --seeds 10000.
SIM_OBJECTS := tests/sim/main.o tests/sim/events.o tests/sim/cluster.o tests/sim/cpu.o tests/sim/litmus.o
$(eval $(call program,tests/sim/dsm-sim,$(SIM_OBJECTS) tests/sim/hosts.o $(DSM_OBJECTS) $(DSM_NEEDS)))
# The same, with the daemons' code that leads what changes about hosts
$(eval $(call program,tests/sim/daemon-sim,$(SIM_OBJECTS) tests/sim/daemons.o tests/sim/daemon_owner.o tests/sim/daemon_world.o \
	tests/sim/daemon_children.o tests/sim/daemon_io.o tests/sim/daemon_guest.o tests/sim/daemon_user.o $(IOSRV_OBJECTS) vmm/node/hosts/hosts.o vmm/node/hosts/hostcomes.o vmm/node/hosts/hostgoes.o vmm/node/hosts/hostpart.o vmm/node/hosts/hostplan.o vmm/shared/hostcpu.o vmm/node/moves/moves.o vmm/node/moves/movequeue.o \
	vmm/node/moves/handover.o vmm/node/wire/dispatch.o vmm/node/wire/route.o vmm/node/stages.o vmm/node/wire/net.o vmm/shared/problem.o vmm/cli/run/go_back.o vmm/cli/run/yield.o vmm/cli/run/load_flow.o vmm/cli/streams.o vmm/node/cut/freeze.o vmm/node/cut/turn.o vmm/node/cut/copy.o \
	vmm/node/cut/restore.o vmm/cli/snapshot/pull.o vmm/cli/snapshot/kept.o vmm/cli/snapshot/saved.o vmm/cli/snapshot/checkpoint.o \
	vmm/cli/snapshot/load.o vmm/cli/snapshot/snapfile.o vmm/cli/snapshot/savefile.o vmm/cli/snapshot/keptfile.o $(DSM_OBJECTS) $(BASE_OBJECTS),-lz))
