# vmp: the command line.
CLI_RUN := $(addprefix run/,checks go_back launch load_flow run run_hosts run_messages run_standby start takeover up yield)
CLI_QUERY := $(addprefix query/,changes console dumps dumptext looks pageheat query query_back report status)
CLI_GDB := $(addprefix gdb/,breakpoint gdb_peer gdb_server gdb_session gdb_watch registers requests rsp)
CLI_SNAPSHOT := $(addprefix snapshot/,checkpoint kept keptfile load pull save saved savefile snapfile)
CLI_CLUSTER := $(addprefix cluster/,bundle cluster cluster_file cluster_ssh far host_names)
CLI_STANDBY := $(addprefix standby/,orders record sender)
CLI_GUEST := $(addprefix guest/,elfdeps guest_image guestprog initramfs ldcache)
# All but main().
VMP_OBJECTS := $(patsubst %,vmm/cli/%.o,client options rundir streams terminal \
	$(CLI_RUN) $(CLI_QUERY) $(CLI_GDB) $(CLI_SNAPSHOT) $(CLI_CLUSTER) $(CLI_STANDBY) $(CLI_GUEST)) \
	$(patsubst %,vmm/shared/%.o,facts hostcpu hostmem placement presence problem reaper tsc) \
	phoenix/config.o $(patsubst %,base/%.o,log machine packet quantity wire beside faultpoint cpufeatures killed)
VMP_LIBS := -levent -lelf -lz -lcrypto
$(eval $(call program,vmp,vmm/cli/vmp.o $(VMP_OBJECTS),$(VMP_LIBS)))

$(foreach t,vmp_cli snapfile checkpoint gdb,$(eval $(call unit-test,$(t),tests/unit/$(t).o $(VMP_OBJECTS),$(VMP_LIBS))))
$(eval $(call unit-test,standby,$(addprefix tests/unit/standby,.o _record.o _orders.o _fake.o _sender.o) \
	$(VMP_OBJECTS),$(VMP_LIBS)))
$(eval $(call unit-test,cluster,tests/unit/cluster.o vmm/node/clock/drift.o $(VMP_OBJECTS),$(VMP_LIBS)))
$(B)/tests/unit/cluster: $(addprefix $(B)/,vmp vmp-host vmp-node vmp-monitor vmproc vmp-iosrv)
