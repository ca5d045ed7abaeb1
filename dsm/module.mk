# The page protocol: a library that the node daemon, the simulator and the unit tests link.
DSM_OBJECTS := dsm/dsm.o dsm/node.o dsm/home.o dsm/table.o
