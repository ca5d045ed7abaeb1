# The I/O server.  A chip's object comes from its row in chips.def.
IOSRV_CHIPS := $(shell sed -n 's,^X(\(.*\))$$,iosrv/\1.o,p' iosrv/chips.def)
IOSRV_OBJECTS := $(addprefix iosrv/,serve.o chips.o chipstate.o diskimage.o diskio.o undolog.o \
	snapshot.o virtio_rng.o virtio_blk.o virtio_net.o virtio_9p.o \
	virtio_console.o away.o ide_identify.o) $(IOSRV_CHIPS)
IOSRV_MAIN := $(addprefix iosrv/,iosrv_main.o iosrv_confine.o processes.o worker.o)
$(eval $(call program,vmp-iosrv,$(IOSRV_MAIN) $(IOSRV_OBJECTS) $(BASE_OBJECTS),-levent -lpthread))
IOSRV_TEST_OBJECTS := tests/unit/iosrv_fake.o $(filter-out iosrv/serve.o,$(IOSRV_OBJECTS)) \
	$(BASE_OBJECTS)
IOSRV_TESTS := chips uart stream agent ioapic ide virtio disk folder undo
$(foreach t,$(IOSRV_TESTS),$(eval \
	$(call unit-test,iosrv_$(t),tests/unit/iosrv_$(t).o $(IOSRV_TEST_OBJECTS),)))
$(eval $(call unit-test,iosrv_busmaster,\
	tests/unit/iosrv_busmaster.o monitor/prd.o $(IOSRV_TEST_OBJECTS),))
$(foreach t,snapshot refused,$(eval $(call unit-test,iosrv_$(t),\
	tests/unit/iosrv_$(t).o tests/unit/iosrv_items.o $(IOSRV_TEST_OBJECTS),)))
# With sanitizers no program is confined: base/confine.h.
$(foreach t,server $(if $(SAN),,confined),$(eval $(call unit-test,iosrv_$(t),\
	tests/unit/iosrv_$(t).o tests/unit/iosrv_process.o base/packet.o base/wire.o,)))
$(B)/tests/unit/iosrv_server $(B)/tests/unit/iosrv_confined: $(B)/vmp-iosrv
$(eval $(call unit-test,iosrv_net,tests/unit/iosrv_net.o $(IOSRV_TEST_OBJECTS),))
$(B)/tests/unit/iosrv_net: $(B)/vmp-net
$(eval $(call program,vmp-net,iosrv/vmp_net.o iosrv/net_filter.o iosrv/net_answers.o \
	iosrv/refuse.o base/netspec.o base/confine.o base/log.o base/printable.o,-lslirp))
$(eval $(call unit-test,net_filter,tests/unit/net_filter.o iosrv/net_filter.o,))
$(eval $(call unit-test,net_answers,tests/unit/net_answers.o iosrv/net_answers.o base/netspec.o,))
NINEP_OBJECTS := $(patsubst %,iosrv/ninep%.o,_fields _files _open _names _attributes _contents \
	_locks _saved) \
	iosrv/ninep.o
$(eval $(call program,vmp-share,iosrv/vmp_share.o iosrv/refuse.o $(NINEP_OBJECTS) \
	base/confine.o base/log.o base/printable.o,))
$(eval $(call unit-test,ninep,tests/unit/ninep.o $(NINEP_OBJECTS),))
$(eval $(call unit-test,ninep_saved,tests/unit/ninep_saved.o $(NINEP_OBJECTS),))
$(eval $(call unit-test,share_process,tests/unit/share_process.o $(NINEP_OBJECTS) \
	base/packet.o base/wire.o,))
$(B)/tests/unit/share_process: $(B)/vmp-share $(B)/vmp-iosrv
