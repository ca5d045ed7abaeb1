# vmp-host: what ssh runs on other computers.
$(eval $(call program,vmp-host,vmm/host/vmp_host.o vmm/shared/facts.o vmm/shared/presence.o \
	vmm/shared/hostcpu.o vmm/shared/hostmem.o vmm/shared/problem.o vmm/shared/reaper.o \
	base/beside.o base/log.o base/faultpoint.o base/cpufeatures.o))
