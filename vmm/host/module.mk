# vmp-host: what ssh runs on other computers; vmp-tunnel: what starts ssh for a confined daemon.
$(eval $(call program,vmp-tunnel,vmm/host/vmp_tunnel.o base/filepass.o))
$(eval $(call unit-test,tunnel,tests/unit/tunnel.o base/beside.o))
$(B)/tests/unit/tunnel: $(B)/vmp-tunnel
$(eval $(call unit-test,vote,tests/unit/vote.o base/beside.o base/filepass.o base/printable.o \
	$(patsubst %,vmm/shared/%.o,presence private_folder problem vote)))
$(B)/tests/unit/vote: $(B)/vmp-host
$(eval $(call program,vmp-host,vmm/host/vmp_host.o \
	$(patsubst %,vmm/shared/%.o,facts hostcpu hostmem presence private_folder problem reaper \
		vote) \
	base/beside.o base/confine.o base/filepass.o base/log.o base/printable.o base/faultpoint.o \
	base/cpufeatures.o))
