# The I/O server.
IOSRV_CHIPS := iosrv/chips.o iosrv/uart.o iosrv/stream.o iosrv/ioapic.o iosrv/ide.o iosrv/diskimage.o \
	iosrv/snapshot.o
$(eval $(call program,vmp-iosrv,iosrv/iosrv_main.o iosrv/serve.o $(IOSRV_CHIPS) $(BASE_OBJECTS),-levent -lpthread))
IOSRV_TEST_OBJECTS := tests/unit/iosrv_fake.o $(IOSRV_CHIPS) $(BASE_OBJECTS)
$(foreach t,uart stream ioapic ide snapshot,$(eval $(call unit-test,iosrv_$(t),tests/unit/iosrv_$(t).o $(IOSRV_TEST_OBJECTS),)))
$(eval $(call unit-test,iosrv_server,tests/unit/iosrv_server.o,))
$(B)/tests/unit/iosrv_server: $(B)/vmp-iosrv
