# vmp-node: the daemon of one host.
in = $(patsubst %,vmm/node/%.o,$(1))
NODE_WIRE := $(call in,$(addprefix wire/,clients conn control dispatch links \
	localsock net overlay route \
	tunnels))
NODE_PAGES := $(call in,$(addprefix pages/,barriers batch batch_choice both extract hoard hold \
	misses pagestore pagetrace room share spill spin spin_sees starts \
	starts_choice wants))
NODE_MOVES := $(call in,$(addprefix moves/,handover movequeue moves policy processors))
NODE_HOSTS := $(call in,$(addprefix hosts/,hostcomes hostgoes hostpart hostplan hosts))
NODE_CUT := $(call in,$(addprefix cut/,copy freeze restore turn))
NODE_LOAD := $(call in,$(addprefix load/,bootparams guest_load kernel_load mptable nodes))
NODE_CLOCK := $(call in,$(addprefix clock/,clock_sync drift))
NODE_OBJECTS := $(call in,agenda agenda_look debugger halted node node_options node_stats \
		outside poll stages \
		supervise) \
	$(NODE_WIRE) $(NODE_PAGES) $(NODE_MOVES) $(NODE_HOSTS) $(NODE_CUT) $(NODE_LOAD) \
		$(NODE_CLOCK) \
	$(addprefix vmm/shared/,hostmem.o loop_event.o placement.o \
		presence.o private_folder.o problem.o tsc.o vote.o)
$(eval $(call program,vmp-node,$(NODE_OBJECTS) $(DSM_OBJECTS) $(BASE_OBJECTS) phnx.o,$(PHNX_LIBS) \
	-lelf))
$(B)/vmm/node/wire/overlay.o $(B)/vmm/node/wire/links.o: CPPFLAGS += -Iphoenix/include

$(eval $(call unit-test,node,tests/unit/node.o vmm/node/node_options.o \
	$(call in,wire/net wire/conn) vmm/shared/loop_event.o $(DSM_OBJECTS) $(BASE_OBJECTS),\
	-levent_core))
$(eval $(call unit-test,node_agenda,tests/unit/node_agenda.o $(call in,agenda)))
$(eval $(call unit-test,node_clients,tests/unit/node_clients.o $(call in,wire/clients) \
	$(BASE_OBJECTS)))
$(eval $(call unit-test,node_dispatch,tests/unit/node_dispatch.o $(BASE_OBJECTS)))
$(eval $(call unit-test,node_plans,tests/unit/node_plans.o $(call in,moves/movequeue \
	hosts/hostplan moves/processors poll halted) \
	vmm/shared/placement.o $(DSM_OBJECTS) $(BASE_OBJECTS),-levent_core))
$(eval $(call unit-test,node_guest,tests/unit/node_guest.o $(call in,load/kernel_load \
	load/bootparams load/mptable load/nodes) \
	$(BASE_OBJECTS),-lelf))
$(eval $(call unit-test,node_copy,tests/unit/node_copy.o $(call in,cut/copy) \
	vmm/shared/placement.o $(DSM_OBJECTS) $(BASE_OBJECTS)))
$(eval $(call unit-test,node_drift,tests/unit/node_drift.o $(call in,clock/drift) \
	$(BASE_OBJECTS),-lm))
$(eval $(call unit-test,node_barriers,tests/unit/node_barriers.o $(call in,pages/barriers) \
	$(BASE_OBJECTS)))
$(eval $(call unit-test,node_starts,tests/unit/node_starts.o $(call in,pages/starts_choice)))
$(eval $(call unit-test,pages_both,tests/unit/pages_both.o $(call in,pages/both)))
$(eval $(call unit-test,node_pages,tests/unit/node_pages.o \
	$(call in,pages/extract pages/batch_choice pages/hold pages/room pages/share \
	pages/spin_sees) \
	$(BASE_OBJECTS)))
