# vmp: the command line.
# All but main().  What lies here is the command's: a new file is one more object.
VMP_SOURCES := $(filter-out vmm/cli/vmp.c,$(wildcard vmm/cli/*.c vmm/cli/*/*.c))
VMP_OBJECTS := $(VMP_SOURCES:.c=.o) \
	$(patsubst %,vmm/shared/%.o,facts hostcpu hostmem loop_event placement \
		presence private_folder vote \
		problem reaper tsc) \
	phoenix/calls/netconf.o $(patsubst %,base/%.o,log machine netspec packet quantity wire \
		printable beside confine faultpoint cpufeatures filepass killed undofile)
VMP_OBJECTS += vmm/cli/watch/reportpage_text.o
VMP_OBJECTS += vmm/cli/web/webfiles_text.o
$(B)/vmm/cli/watch/reportpage_text.o: $(B)/vmm/cli/watch/report.html
$(B)/vmm/cli/watch/report.html: vmm/cli/watch/reportpage.html vmm/cli/watch/charts.css \
	vmm/cli/watch/charts.js
	$(Q)mkdir -p $(@D)
	$(Q)sed -e '/^@CHARTS_CSS@$$/{r vmm/cli/watch/charts.css' -e 'd}' \
		-e '/^@CHARTS_JS@$$/{r vmm/cli/watch/charts.js' -e 'd}' $< >$@
$(B)/vmm/cli/web/webfiles_text.o: $(wildcard vmm/cli/web/*.html vmm/cli/web/*.css \
	vmm/cli/web/*.js) vmm/cli/watch/charts.css vmm/cli/watch/charts.js
VMP_LIBS := -levent -lelf -lz
$(eval $(call program,vmp,vmm/cli/vmp.o $(VMP_OBJECTS),$(VMP_LIBS)))

# a script, beside the programs
PROGRAMS += $(B)/vmp-image
$(B)/vmp-image: vmm/cli/image/vmp-image
	$(Q)mkdir -p $(@D)
	$(Q)install -m 755 $< $@

$(foreach t,vmp_cli vmp_foreign vmp_habits vmp_logs snapfile checkpoint gdb httpgate httpd \
	webwords recording rundir initramfs,\
	$(eval $(call unit-test,$(t),tests/unit/$(t).o $(VMP_OBJECTS),$(VMP_LIBS))))
$(foreach t,vmp_options vmp_report gdb_rsp gdb_dialogue,\
	$(eval $(call unit-test,$(t),tests/unit/$(t).o $(VMP_OBJECTS),$(VMP_LIBS))))
$(eval $(call unit-test,pagenames,tests/unit/pagenames.o vmm/cli/query/pagenames.o \
	vmm/cli/query/pageheat.o base/log.o base/printable.o,-lelf))
$(eval $(call unit-test,standby,\
	$(addprefix tests/unit/standby,.o _record.o _orders.o _fake.o _sender.o) \
	$(VMP_OBJECTS),$(VMP_LIBS)))
$(foreach t,cluster cluster_file reserve,\
	$(eval $(call unit-test,$(t),tests/unit/$(t).o $(VMP_OBJECTS),$(VMP_LIBS))))
$(eval $(call unit-test,parts,tests/unit/parts.o $(VMP_OBJECTS),$(VMP_LIBS)))
$(B)/tests/unit/parts: $(B)/vmp
$(B)/tests/unit/cluster: $(addprefix $(B)/,vmp vmp-host vmp-node vmp-monitor vmproc vmp-iosrv \
	vmp-net vmp-share vmp-tunnel)
$(eval $(call unit-test,standby_step,tests/unit/standby_step.o vmm/cli/run/standby_step.o,))
$(eval $(call unit-test,last_words,tests/unit/last_words.o vmm/cli/run/last_words.o,))
$(eval $(call unit-test,owner_life,tests/unit/owner_life.o vmm/cli/run/owner_life.o,))
$(eval $(call unit-test,standby_life,tests/unit/standby_life.o vmm/cli/run/standby_life.o,))
$(eval $(call unit-test,quorum,tests/unit/quorum.o vmm/cli/run/quorum.o,))
$(eval $(call unit-test,gather,tests/unit/gather.o vmm/cli/run/gather.o,))
$(eval $(call unit-test,hearing,tests/unit/hearing.o vmm/cli/run/hearing.o,))
