# Phoenix, the message library: stands alone, includes nothing of base/.
PHNX_OBJECTS := phoenix/vps.o phoenix/config.o
$(B)/phoenix/%.o $(B)/examples/phoenix/%.o $(B)/tests/unit/phnx_%.o $(B)/tests/sim/phnx_%.o: CPPFLAGS += -Iphoenix/include

$(eval $(call unit-test,phnx_vps,tests/unit/phnx_vps.o phoenix/vps.o))
$(eval $(call unit-test,phnx_config,tests/unit/phnx_config.o phoenix/config.o))
