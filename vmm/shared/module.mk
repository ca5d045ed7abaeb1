# What at least two of the programs below vmm/ link.
$(eval $(call unit-test,presence,tests/unit/presence.o vmm/shared/presence.o))
