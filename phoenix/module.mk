# Phoenix, the message library: stands alone, includes nothing of base/.
PHNX_CORE := phoenix/vps.o phoenix/config.o phoenix/link.o phoenix/route.o phoenix/flow.o phoenix/node.o phoenix/detect.o \
	     phoenix/migrate.o
$(B)/phoenix/%.o $(B)/examples/phoenix/%.o $(B)/tests/unit/phnx_%.o $(B)/tests/sim/phnx_%.o: CPPFLAGS += -Iphoenix/include

$(eval $(call unit-test,phnx_vps,tests/unit/phnx_vps.o phoenix/vps.o))
$(eval $(call unit-test,phnx_config,tests/unit/phnx_config.o phoenix/config.o))
$(eval $(call unit-test,phnx_cluster,tests/sim/phnx_cluster.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
