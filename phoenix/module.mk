# Phoenix, the message library: stands alone, includes nothing of base/.
PHNX_CORE := phoenix/block.o phoenix/vps.o phoenix/config.o phoenix/link.o phoenix/route.o phoenix/tell.o phoenix/payload.o \
	     phoenix/holder.o phoenix/flow.o phoenix/send.o phoenix/receive.o phoenix/contact.o phoenix/node.o phoenix/detect.o \
	     phoenix/migrate.o phoenix/collective.o phoenix/reduce.o phoenix/doubt.o
PHNX_OBJECTS := $(PHNX_CORE) phoenix/net.o phoenix/conn.o phoenix/tls.o phoenix/dial.o phoenix/ssh.o phoenix/secret.o phoenix/msglog.o \
		phoenix/runtime.o phoenix/startup.o phoenix/api.o
PHNX_LIBS := -levent -levent_pthreads -lssl -lcrypto -lpthread
$(B)/phoenix/%.o $(B)/examples/phoenix/%.o $(B)/tests/unit/phnx_%.o $(B)/tests/sim/phnx_%.o $(B)/bench/phoenix_%.o: CPPFLAGS += -Iphoenix/include
# Other people's programs, as printed in the thesis: their functions have no prototypes.
$(B)/examples/phoenix/hello/%.o $(B)/examples/phoenix/join_leave/%.o: CFLAGS += -Wno-missing-prototypes -Wno-switch

# One object with no names of its own but those of phnx.h: a program may have a conn_new() too.
PROGRAMS += $(B)/libphnx.a
$(B)/phnx.o: $(addprefix $(B)/,$(PHNX_OBJECTS))
	@echo "  LD    $@"
	$(Q)$(LD) -r -o $@ $^
	$(Q)objcopy --wildcard --keep-global-symbol='ph_*' --keep-global-symbol='PH_*' $@
$(B)/libphnx.a: $(B)/phnx.o
	@echo "  AR    $@"
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(eval $(call program,phnx-session,phoenix/session.o phoenix/secret.o,-lcrypto))
$(foreach e,hello join_leave,$(eval $(call program,examples/phoenix/$(e)/$(e),examples/phoenix/$(e)/$(e).o $(PHNX_OBJECTS),$(PHNX_LIBS))))

# The applications of the papers.
CREW := examples/phoenix/crew/crew.o
$(foreach e,bintree raytrace,$(eval $(call program,examples/phoenix/$(e)/$(e),examples/phoenix/$(e)/$(e).o \
	examples/phoenix/crew/divide.o $(CREW) $(PHNX_OBJECTS),$(PHNX_LIBS) -lm)))
$(foreach e,intsort lu,$(eval $(call program,examples/phoenix/$(e)/$(e),examples/phoenix/$(e)/$(e).o \
	$(CREW) $(PHNX_OBJECTS),$(PHNX_LIBS) -lm)))

$(eval $(call unit-test,phnx_vps,tests/unit/phnx_vps.o phoenix/vps.o))
$(eval $(call unit-test,phnx_config,tests/unit/phnx_config.o phoenix/config.o))
$(eval $(call unit-test,phnx_wire,tests/unit/phnx_wire.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_route,tests/unit/phnx_route.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_greedy,tests/unit/phnx_greedy.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_contacts,tests/unit/phnx_contacts.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_cluster,tests/sim/phnx_cluster.o tests/sim/phnx_letters.o tests/sim/phnx_moves.o tests/sim/phnx_ends.o \
	tests/sim/phnx_sim.o phoenix/msglog.o phoenix/secret.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_forever,tests/sim/phnx_forever.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_reduce,tests/sim/phnx_reduce.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
# Allocations of the library's alone may fail there.
$(B)/tests/sim/phnx_core.o: $(addprefix $(B)/,$(PHNX_CORE))
	@echo "  LD    $@"
	$(Q)$(LD) -r -o $@ $^
	$(Q)objcopy $(foreach f,malloc calloc realloc strdup,--redefine-sym $(f)=phnx_test_$(f)) $@
$(eval $(call unit-test,phnx_memory,tests/sim/phnx_memory.o tests/sim/phnx_sim.o tests/sim/phnx_core.o,-lcrypto))
$(eval $(call unit-test,phnx_thousand,tests/sim/phnx_thousand.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
$(eval $(call unit-test,phnx_net,tests/unit/phnx_net.o tests/unit/phnx_calls.o tests/unit/phnx_crews.o tests/unit/phnx_threads.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(eval $(call unit-test,phnx_misuse,tests/unit/phnx_misuse.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
# What happens in several threads at once, under the thread sanitizer: make SAN=thread unit-threads
.PHONY: unit-threads
unit-threads: $(addprefix $(B)/tests/unit/phnx_,net loop page misuse)
	$(Q)scripts/run-unit-tests $^
comma := ,
PHNX_WATCHED := malloc calloc realloc sendmsg recv
$(eval $(call unit-test,phnx_page,tests/unit/phnx_page.o phnx.o,$(PHNX_LIBS) $(PHNX_WATCHED:%=-Wl$(comma)--wrap=%)))
$(eval $(call unit-test,phnx_loop,tests/unit/phnx_loop.o phnx.o,$(PHNX_LIBS)))

# Phoenix beside raw TCP and MPI, in one run.
$(eval $(call program,bench/phoenix_latency,bench/phoenix_latency.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(eval $(call program,bench/phoenix_routing,bench/phoenix_routing.o tests/sim/phnx_sim.o $(PHNX_CORE),-lcrypto))
$(eval $(call program,bench/phoenix_processes,bench/phoenix_processes.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
.PHONY: bench-phoenix
$(eval $(call program,bench/phoenix_loop,bench/phoenix_loop.o vmm/node/wire/conn.o base/log.o base/packet.o base/wire.o phnx.o,$(PHNX_LIBS)))
# Minutes; first what matters most that the computer is quiet for.  The plots go to build/bench/results.
bench-phoenix: $(addprefix $(B)/bench/phoenix_,latency loop routing processes)
	$(Q)bench/phoenix
	$(Q)$(B)/bench/phoenix_loop
	$(Q)$(B)/bench/phoenix_routing ratio 100 200 400
	$(Q)$(B)/bench/phoenix_routing table 100 200 400
	$(Q)$(B)/bench/phoenix_routing naive 25 50
	$(Q)$(B)/bench/phoenix_processes
	$(Q)bench/phoenix_plots
	$(Q)bench/phoenix_speed

# ---- make install-phoenix [PREFIX=/usr/local] [DESTDIR=]: the library alone ----
PREFIX ?= /usr/local
PHNX_VERSION := 1.0
.PHONY: install-phoenix model-phoenix
install-phoenix: $(B)/libphnx.a $(B)/phnx-session
	$(Q)install -d $(DESTDIR)$(PREFIX)/include/phnx $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/bin \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man3 $(DESTDIR)$(PREFIX)/share/man/man7
	$(Q)install -m 644 phoenix/include/phnx/phnx.h $(DESTDIR)$(PREFIX)/include/phnx/
	$(Q)install -m 644 $(B)/libphnx.a $(DESTDIR)$(PREFIX)/lib/
	$(Q)install -m 755 $(B)/phnx-session $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 phoenix/man/phnx-session.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)install -m 644 phoenix/man/phnx.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	$(Q)phoenix/man/make-pages phoenix/include/phnx/phnx.h $(DESTDIR)$(PREFIX)/share/man/man3
	$(Q)printf '%s\n' 'Name: phnx' 'Description: Phoenix message library' 'Version: $(PHNX_VERSION)' \
		'Cflags: -I$(PREFIX)/include' 'Libs: -L$(PREFIX)/lib -lphnx $(PHNX_LIBS)' \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/phnx.pc

# The migration protocol's model, exhaustively (SPIN).
model-phoenix:
	$(Q)tests/model/run-migration
