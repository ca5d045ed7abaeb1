# The I/O server.  A chip's object comes from its row in chips.def.
IOSRV_CHIPS := $(shell sed -n 's,^X(\(.*\))$$,iosrv/\1.o,p' iosrv/chips.def)
IOSRV_OBJECTS := iosrv/serve.o iosrv/chips.o iosrv/chipstate.o iosrv/diskimage.o iosrv/snapshot.o $(IOSRV_CHIPS)
$(eval $(call program,vmp-iosrv,iosrv/iosrv_main.o iosrv/iosrv_confine.o iosrv/worker.o $(IOSRV_OBJECTS) $(BASE_OBJECTS),-levent -lpthread))
IOSRV_TEST_OBJECTS := tests/unit/iosrv_fake.o $(filter-out iosrv/serve.o,$(IOSRV_OBJECTS)) $(BASE_OBJECTS)
$(foreach t,uart stream ioapic ide snapshot,$(eval $(call unit-test,iosrv_$(t),tests/unit/iosrv_$(t).o $(IOSRV_TEST_OBJECTS),)))
$(eval $(call unit-test,iosrv_server,tests/unit/iosrv_server.o base/packet.o base/wire.o,))
$(B)/tests/unit/iosrv_server: $(B)/vmp-iosrv
