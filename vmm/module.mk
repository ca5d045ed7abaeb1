# The command line
VMP_OBJECTS := vmm/main.o vmm/options.o vmm/run/run.o vmm/run/start.o vmm/run/messages.o vmm/run/flow.o vmm/run/hosts.o vmm/run/back.o \
	vmm/run/yield.o vmm/run/standby.o vmm/run/takeover.o vmm/standby/record.o vmm/standby/orders.o vmm/standby/sender.o vmm/client.o vmm/streams.o vmm/launch.o vmm/rundir.o vmm/problem.o vmm/terminal.o vmm/query/query.o \
	vmm/query/console.o vmm/query/dumps.o vmm/query/looks.o vmm/query/changes.o vmm/query/back.o vmm/report.o \
	vmm/pageheat.o vmm/dumptext.o vmm/initramfs.o vmm/guestprog.o vmm/elfdeps.o vmm/ldcache.o vmm/image.o vmm/checks.o \
	vmm/hostcpu.o vmm/hostmem.o vmm/snapshot/save.o vmm/snapshot/load.o vmm/snapshot/saved.o vmm/snapshot/pull.o \
	vmm/snapshot/kept.o vmm/snapshot/keptfile.o vmm/snapshot/savefile.o vmm/snapshot/checkpoint.o vmm/snapshot/snapfile.o vmm/tsc.o vmm/up.o \
	vmm/status.o vmm/placement.o vmm/gdb/server.o vmm/gdb/session.o vmm/gdb/requests.o vmm/gdb/breakpoint.o \
	vmm/gdb/registers.o vmm/gdb/rsp.o vmm/gdb/watch.o vmm/reaper.o vmm/cluster/cluster.o vmm/cluster/far.o vmm/cluster/ssh.o vmm/cluster/presence.o vmm/cluster/file.o \
	vmm/cluster/facts.o vmm/cluster/names.o vmm/cluster/bundle.o phoenix/config.o base/log.o base/wire.o base/beside.o \
	base/faultpoint.o base/cpufeatures.o base/killed.o
$(eval $(call program,vmp,$(VMP_OBJECTS),-levent -lelf -lz -lcrypto))
$(eval $(call unit-test,vmp_cli,tests/unit/vmp_cli.o $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))
$(eval $(call unit-test,snapfile,tests/unit/snapfile.o $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))
$(eval $(call unit-test,checkpoint,tests/unit/checkpoint.o $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))
$(eval $(call unit-test,standby,$(addprefix tests/unit/standby,.o _record.o _orders.o _fake.o _sender.o) $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))
$(eval $(call unit-test,gdb,tests/unit/gdb.o $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))

$(eval $(call unit-test,cluster,tests/unit/cluster.o vmm/cluster/drift.o $(filter-out vmm/main.o,$(VMP_OBJECTS)),-levent -lelf -lz -lcrypto))
$(B)/tests/unit/cluster: $(addprefix $(B)/,vmp vmp-host vmp-node vmp-monitor vmproc vmp-iosrv)
$(eval $(call unit-test,presence,tests/unit/presence.o vmm/cluster/presence.o))

# What ssh runs on other computers
$(eval $(call program,vmp-host,vmm/cluster/host_main.o vmm/cluster/facts.o vmm/cluster/presence.o vmm/hostcpu.o vmm/hostmem.o vmm/problem.o vmm/reaper.o \
	base/beside.o base/log.o base/faultpoint.o base/cpufeatures.o))

# The node daemon
NODE_OBJECTS := vmm/node.o vmm/stages.o vmm/node_options.o vmm/node_stats.o vmm/supervise.o vmm/route.o vmm/clients.o \
	vmm/localsock.o vmm/overlay.o vmm/pagestore.o vmm/snapshot/freeze.o vmm/snapshot/turn.o vmm/snapshot/copy.o \
	vmm/snapshot/restore.o vmm/debug.o vmm/hold.o vmm/share.o vmm/tsc.o \
	vmm/moves.o vmm/movequeue.o vmm/handover.o vmm/processors.o vmm/hosts.o vmm/hostcomes.o vmm/hostgoes.o vmm/hostpart.o vmm/hostplan.o vmm/hostmem.o vmm/policy.o \
	vmm/cluster/clock.o vmm/cluster/drift.o vmm/cluster/links.o vmm/placement.o vmm/guest_load.o vmm/kernel_load.o vmm/bootparams.o vmm/mptable.o vmm/net.o vmm/conn.o
$(eval $(call program,vmp-node,$(NODE_OBJECTS) $(DSM_OBJECTS) $(BASE_OBJECTS) phnx.o,$(PHNX_LIBS) -lelf))
$(B)/vmm/overlay.o $(B)/vmm/cluster/links.o: CPPFLAGS += -Iphoenix/include
$(eval $(call unit-test,node,tests/unit/node.o vmm/node_options.o vmm/net.o vmm/conn.o $(DSM_OBJECTS) $(BASE_OBJECTS),-levent_core))
$(eval $(call unit-test,node_plans,tests/unit/node_plans.o vmm/movequeue.o vmm/hostplan.o vmm/placement.o vmm/processors.o $(DSM_OBJECTS) $(BASE_OBJECTS)))
$(eval $(call unit-test,node_guest,tests/unit/node_guest.o vmm/kernel_load.o vmm/bootparams.o vmm/mptable.o $(BASE_OBJECTS),-lelf))
$(eval $(call unit-test,node_pages,tests/unit/node_pages.o vmm/hold.o vmm/share.o $(BASE_OBJECTS)))
