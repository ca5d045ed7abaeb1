# What at least two of the programs below vmm/ link.
$(eval $(call unit-test,presence,tests/unit/presence.o base/confine.o base/filepass.o \
	base/printable.o \
	$(patsubst %,vmm/shared/%.o,presence private_folder problem vote)))
