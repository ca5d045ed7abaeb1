# The Virtual Private Grid: a shell over a user's computers, and the daemon that connects them.
VPG_WIRE := $(patsubst %,vpg/wire/%.o,message nick)

$(eval $(call unit-test,vpg_line,tests/unit/vpg_line.o vpg/shell/line.o vpg/shell/group.o \
	vpg/wire/nick.o))
$(eval $(call unit-test,vpg_message,tests/unit/vpg_message.o $(VPG_WIRE)))
$(eval $(call unit-test,vpg_members,tests/unit/vpg_members.o \
	vpg/peer/members.o vpg/peer/invitation.o vpg/wire/nick.o,-lcrypto))
$(eval $(call unit-test,vpg_group,tests/unit/vpg_group.o vpg/shell/group.o \
	vpg/shell/completion.o vpg/wire/nick.o))
$(eval $(call unit-test,vpg_rules,tests/unit/vpg_rules.o vpg/peer/rules.o))
$(eval $(call unit-test,vpg_choose,tests/unit/vpg_choose.o vpg/peer/choose.o vpg/peer/lending.o))
VPG_WIRE_ALL := $(patsubst %,vpg/wire/%.o,message nick why folder daemon_socket) base/filepass.o
$(eval $(call unit-test,vpg_daemon_socket,tests/unit/vpg_daemon_socket.o $(VPG_WIRE_ALL)))
PEER_OBJECTS := $(patsubst %,vpg/peer/%.o,addresses asking borrow borrowing carry choose enrol \
	hear identity invitation jobs joining keeper lender lending meeting members network pieces \
	pipes rules serving shells speed tunnel) $(VPG_WIRE_ALL) \
	base/confine.o base/log.o base/printable.o base/quantity.o
PEER_LIBS := -levent_openssl $(PHNX_LIBS)
$(B)/vpg/%.o: CPPFLAGS += -Iphoenix/include
$(eval $(call unit-test,vpg_contacts,tests/unit/vpg_contacts.o $(PEER_OBJECTS) phnx.o,$(PEER_LIBS)))
$(eval $(call program,vmp-peer,vpg/peer/peer.o $(PEER_OBJECTS) phnx.o,$(PEER_LIBS)))
SHELL_OBJECTS := $(patsubst %,vpg/shell/%.o,builtins completion editor execute group \
	job_table join line own_terminal pipeline plan pumps rsh signals) $(VPG_WIRE_ALL) \
	base/log.o base/printable.o
$(eval $(call program,vmp-sh,vpg/shell/sh.o $(SHELL_OBJECTS),))
# vmp-rsh is the same program; under this name it is `vmp rsh`.
PROGRAMS += $(B)/vmp-rsh
$(B)/vmp-rsh: $(B)/vmp-sh
	$(Q)ln -f $< $@
$(eval $(call unit-test,vpg_rsh,tests/unit/vpg_rsh.o vpg/shell/rsh.o vpg/wire/nick.o))
$(eval $(call unit-test,vpg_plan,tests/unit/vpg_plan.o vpg/shell/plan.o vpg/shell/line.o \
	vpg/shell/group.o vpg/wire/nick.o))
# The figures of the P2P-MPI paper, in the simulator and with real processes.
$(eval $(call program,bench/peers_figures,bench/peers_figures.o vpg/peer/choose.o $(PHNX_SIM),\
	-lcrypto))
$(eval $(call program,bench/peers_processes,bench/peers_processes.o $(PHNX_OBJECTS),$(PHNX_LIBS)))
$(B)/bench/peers_figures.o $(B)/bench/peers_processes.o: CPPFLAGS += -Iphoenix/include
