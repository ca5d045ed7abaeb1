# The page protocol: a library that the node daemon, the simulator and the unit tests link.
DSM_OBJECTS := dsm/dsm.o dsm/dsm_node.o dsm/home.o dsm/table.o dsm/homes.o dsm/leave.o
DSM_NEEDS := base/log.o base/printable.o base/wire.o base/faultpoint.o
$(eval $(call unit-test,dsm_table,tests/unit/dsm_table.o $(DSM_OBJECTS) $(DSM_NEEDS)))
$(eval $(call unit-test,dsm,tests/unit/dsm.o $(DSM_OBJECTS) $(DSM_NEEDS)))
$(eval $(call unit-test,dsm_homes,tests/unit/dsm_homes.o $(DSM_OBJECTS) $(DSM_NEEDS)))
