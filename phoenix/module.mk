# Phoenix, the message library: stands alone, includes nothing of base/.
# The protocol machine, without a transport: what the simulator runs.
PHNX_CORE := $(patsubst %,phoenix/core/%.o,block core entropy pbuf vps) \
	     $(patsubst %,phoenix/link/%.o,link inbox outbox handshake) \
	     $(patsubst %,phoenix/routing/%.o,routes tell when place payload holder contact \
			detect) \
	     $(patsubst %,phoenix/flow/%.o,flow send send_window receive ack doubt mapping) \
	     $(patsubst %,phoenix/services/%.o,services migrate migrate_say collective reduce) \
	     phoenix/node/life.o
PHNX_OBJECTS := $(PHNX_CORE) phoenix/core/secret.o phoenix/flow/msglog.o \
		$(patsubst %,phoenix/net/%.o,net_loop net_listen notes connection tls dial ssh \
			patience vigil) \
		$(patsubst %,phoenix/calls/%.o,netconf runtime startup api)
PHNX_LIBS := -levent -levent_pthreads -lssl -lcrypto -lpthread
PHNX_USERS := $(addprefix $(B)/,phoenix/%.o \
	examples/phoenix/%.o tests/unit/phnx_%.o tests/sim/phnx_%.o bench/phoenix_%.o)
$(PHNX_USERS): CPPFLAGS += -Iphoenix/include
# Programs as they are printed in the thesis: their functions have no prototypes.
$(addprefix $(B)/examples/phoenix/,hello/%.o join_leave/%.o): \
	CFLAGS += -Wno-missing-prototypes -Wno-switch

# One object whose only global names are those of phnx.h: a program may have a conn_new() too.
PROGRAMS += $(B)/libphnx.a
$(B)/phnx.o: $(addprefix $(B)/,$(PHNX_OBJECTS))
	@echo "  LD    $@"
	$(Q)$(LD) -r -o $@ $^
	$(Q)objcopy --wildcard --keep-global-symbol='ph_*' --keep-global-symbol='PH_*' $@
$(B)/libphnx.a: $(B)/phnx.o
	@echo "  AR    $@"
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(eval $(call program,phnx-session,phoenix/calls/session.o phoenix/core/secret.o,-lcrypto))
$(foreach e,hello join_leave,$(eval $(call program,examples/phoenix/$(e)/$(e),\
	examples/phoenix/$(e)/$(e).o $(PHNX_OBJECTS),$(PHNX_LIBS))))

# The applications of the papers.
CREW := examples/phoenix/crew/crew.o
$(foreach e,bintree raytrace,$(eval $(call program,examples/phoenix/$(e)/$(e),\
	examples/phoenix/$(e)/$(e).o examples/phoenix/crew/divide.o $(CREW) $(PHNX_OBJECTS),\
	$(PHNX_LIBS) -lm)))
$(foreach e,intsort lu,$(eval $(call program,examples/phoenix/$(e)/$(e),\
	examples/phoenix/$(e)/$(e).o $(CREW) $(PHNX_OBJECTS),$(PHNX_LIBS) -lm)))

$(eval $(call unit-test,phnx_vps,tests/unit/phnx_vps.o phoenix/core/vps.o phoenix/core/entropy.o))
$(eval $(call unit-test,phnx_config,tests/unit/phnx_config.o phoenix/calls/netconf.o))
$(eval $(call unit-test,phnx_patience,tests/unit/phnx_patience.o phoenix/net/patience.o))
$(eval $(call unit-test,phnx_vigil,tests/unit/phnx_vigil.o phoenix/net/vigil.o))
$(eval $(call unit-test,phnx_when,tests/unit/phnx_when.o phoenix/routing/when.o))
$(eval $(call unit-test,phnx_place,tests/unit/phnx_place.o phoenix/routing/place.o))
$(eval $(call unit-test,phnx_inbox,tests/unit/phnx_inbox.o phoenix/link/inbox.o \
	phoenix/core/block.o))
$(foreach t,wire route greedy contacts,\
	$(eval $(call unit-test,phnx_$(t),tests/unit/phnx_$(t).o $(PHNX_CORE),-lcrypto)))
# Nodes in the simulator.
PHNX_SIM_OBJECTS := tests/sim/phnx_sim.o tests/sim/phnx_sim_links.o
PHNX_SIM := $(PHNX_SIM_OBJECTS) $(PHNX_CORE)
$(foreach t,forever reduce thousand,\
	$(eval $(call unit-test,phnx_$(t),tests/sim/phnx_$(t).o $(PHNX_SIM),-lcrypto)))
$(eval $(call unit-test,phnx_cluster,\
	$(patsubst %,tests/sim/phnx_%.o,cluster letters losses moves ends) \
	phoenix/flow/msglog.o phoenix/core/secret.o $(PHNX_SIM),-lcrypto))
# Allocations of the library may fail there, and no others.
$(B)/tests/sim/phnx_core.o: $(addprefix $(B)/,$(PHNX_CORE))
	@echo "  LD    $@"
	$(Q)$(LD) -r -o $@ $^
	$(Q)objcopy $(foreach f,malloc calloc realloc strdup,--redefine-sym $(f)=phnx_test_$(f)) $@
$(eval $(call unit-test,phnx_memory,\
	tests/sim/phnx_memory.o $(PHNX_SIM_OBJECTS) tests/sim/phnx_core.o,-lcrypto))
# Real processes.
$(eval $(call unit-test,phnx_net,\
	$(patsubst %,tests/unit/phnx_%.o,net ssh strangers calls crews \
		threads) $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(eval $(call unit-test,phnx_wary,tests/unit/phnx_wary.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(eval $(call unit-test,phnx_misuse,tests/unit/phnx_misuse.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
# Tests with several threads at once, for the thread sanitizer: make SAN=thread unit-threads
.PHONY: unit-threads
unit-threads: $(addprefix $(B)/tests/unit/phnx_,net loop page misuse)
	$(Q)scripts/run-unit-tests $^
comma := ,
PHNX_WATCHED := malloc calloc realloc sendmsg recv
$(eval $(call unit-test,phnx_page,\
	tests/unit/phnx_page.o phnx.o,$(PHNX_LIBS) $(PHNX_WATCHED:%=-Wl$(comma)--wrap=%)))
$(eval $(call unit-test,phnx_loop,tests/unit/phnx_loop.o phnx.o,\
	$(PHNX_LIBS) -Wl$(comma)--wrap=send -Wl$(comma)--wrap=sendmsg))

# Phoenix beside raw TCP and MPI, in one run.
$(eval $(call program,bench/phoenix_latency,bench/phoenix_latency.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(eval $(call program,bench/phoenix_routing,bench/phoenix_routing.o $(PHNX_SIM),-lcrypto))
$(eval $(call program,bench/phoenix_processes,\
	bench/phoenix_processes.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
.PHONY: bench-phoenix
$(eval $(call program,bench/phoenix_loop,bench/phoenix_loop.o vmm/node/wire/conn.o \
	vmm/shared/loop_event.o \
	base/log.o base/printable.o base/packet.o base/wire.o phnx.o,$(PHNX_LIBS)))
# Takes minutes; what needs a quiet host most comes first.  The plots go to build/bench/results.
bench-phoenix: $(addprefix $(B)/bench/phoenix_,latency loop routing processes)
	$(Q)bench/phoenix
	$(Q)$(B)/bench/phoenix_loop
	$(Q)$(B)/bench/phoenix_routing ratio 100 200 400
	$(Q)$(B)/bench/phoenix_routing table 100 200 400
	$(Q)$(B)/bench/phoenix_routing naive 25 50
	$(Q)$(B)/bench/phoenix_processes
	$(Q)bench/phoenix_plots
	$(Q)bench/phoenix_speed

# The shared library, of objects of its own: libphnx.so.1 is what programs ask for.
PHNX_VERSION := 1.0
PHNX_PIC := $(addprefix $(B)/pic/,$(PHNX_OBJECTS))
$(PHNX_PIC): $(B)/pic/%.o: %.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Iphoenix/include $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<
-include $(PHNX_PIC:.o=.d)
$(B)/libphnx.so.$(PHNX_VERSION): $(PHNX_PIC) phoenix/phnx.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared -Wl,-z,relro,-z,now,--as-needed,-z,defs -Wl,-soname,libphnx.so.1 \
		-Wl,--version-script,phoenix/phnx.map -o $@ $(PHNX_PIC) $(PHNX_LIBS)

# ---- make install-phoenix [PREFIX=/usr/local] [LIBDIR=PREFIX/lib] [DESTDIR=] ----
# The library alone; install-phoenix-shared puts the shared library beside the static one.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
.PHONY: install-phoenix install-phoenix-shared
install-phoenix-shared: $(B)/libphnx.so.$(PHNX_VERSION)
	$(Q)install -d $(DESTDIR)$(LIBDIR)
	$(Q)install -m 644 $< $(DESTDIR)$(LIBDIR)/
	$(Q)ln -sfn libphnx.so.$(PHNX_VERSION) $(DESTDIR)$(LIBDIR)/libphnx.so.1
	$(Q)ln -sfn libphnx.so.1 $(DESTDIR)$(LIBDIR)/libphnx.so
install-phoenix: $(B)/libphnx.a $(B)/phnx-session
	$(Q)install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(addprefix $(DESTDIR)$(PREFIX)/,include/phnx \
		bin share/man/man1 share/man/man3 share/man/man7)
	$(Q)install -m 644 phoenix/include/phnx/phnx.h $(DESTDIR)$(PREFIX)/include/phnx/
	$(Q)install -m 644 $(B)/libphnx.a $(DESTDIR)$(LIBDIR)/
	$(Q)install -m 755 $(B)/phnx-session $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 phoenix/man/phnx-session.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)install -m 644 phoenix/man/phnx.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	$(Q)phoenix/man/make-pages phoenix/include/phnx/phnx.h $(DESTDIR)$(PREFIX)/share/man/man3
	$(Q)printf '%s\n' 'Name: phnx' 'Description: Phoenix message library' \
		'Version: $(PHNX_VERSION)' 'Cflags: -I$(PREFIX)/include' \
		'Libs: -L$(LIBDIR) -lphnx $(PHNX_LIBS)' \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/phnx.pc
