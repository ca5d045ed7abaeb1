# The page protocol in a cluster of one process: tests/sim/run, or build/tests/sim/dsm-sim --seeds 10000.
SIM_OBJECTS := tests/sim/main.o tests/sim/events.o tests/sim/cluster.o tests/sim/cpu.o tests/sim/hosts.o tests/sim/litmus.o
$(eval $(call program,tests/sim/dsm-sim,$(SIM_OBJECTS) $(DSM_OBJECTS) $(DSM_NEEDS)))
