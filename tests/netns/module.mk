# Phoenix in network namespaces: tests/netns/run.
$(B)/tests/netns/%.o: CPPFLAGS += -Iphoenix/include
$(eval $(call program,tests/netns/node,tests/netns/node.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
# Breaks connections every so many milliseconds.
$(eval $(call program,tests/netns/cutter,tests/netns/cutter.o,))
# A relay that changes what it forwards.
$(eval $(call program,tests/netns/tamper,tests/netns/tamper.o,))
