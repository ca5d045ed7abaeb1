# The command line against a fake node daemon: tests/cli/run
$(eval $(call program,tests/cli/vmp-node,tests/cli/fake_node.o base/packet.o base/wire.o,))
$(eval $(call program,tests/cli/without,tests/cli/without.o,))
$(eval $(call program,tests/machine/other-vmp,tests/cli/other_version.o vmm/cli/vmp.o \
	$(filter-out base/wire.o,$(VMP_OBJECTS)),$(VMP_LIBS)))
