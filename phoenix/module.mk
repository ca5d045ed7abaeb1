# Phoenix, the message library: stands alone, includes nothing of base/.
PHNX_CORE := phoenix/vps.o phoenix/config.o phoenix/link.o phoenix/route.o phoenix/flow.o phoenix/node.o phoenix/detect.o \
	     phoenix/migrate.o
PHNX_OBJECTS := $(PHNX_CORE) phoenix/net.o phoenix/secret.o phoenix/msglog.o phoenix/api.o
PHNX_LIBS := -levent -levent_pthreads -lssl -lcrypto -lpthread
$(B)/phoenix/%.o $(B)/examples/phoenix/%.o $(B)/tests/unit/phnx_%.o $(B)/tests/sim/phnx_%.o: CPPFLAGS += -Iphoenix/include
# Other people's programs, as printed in the thesis: their functions have no prototypes.
$(B)/examples/phoenix/%.o: CFLAGS += -Wno-missing-prototypes -Wno-switch

PROGRAMS += $(B)/libphnx.a
$(B)/libphnx.a: $(addprefix $(B)/,$(PHNX_OBJECTS))
	@echo "  AR    $@"
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(eval $(call program,phnx-session,phoenix/session.o phoenix/secret.o,-lcrypto))
$(foreach e,hello join_leave,$(eval $(call program,examples/phoenix/$(e)/$(e),examples/phoenix/$(e)/$(e).o $(PHNX_OBJECTS),$(PHNX_LIBS))))

$(eval $(call unit-test,phnx_vps,tests/unit/phnx_vps.o phoenix/vps.o))
$(eval $(call unit-test,phnx_config,tests/unit/phnx_config.o phoenix/config.o))
$(eval $(call unit-test,phnx_cluster,tests/sim/phnx_cluster.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_net,tests/unit/phnx_net.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
