# What all programs share.
BASE_OBJECTS := base/log.o base/hostshm.o base/wire.o base/machine.o base/quantity.o base/faultpoint.o base/schedule.o base/beside.o base/cpufeatures.o base/killed.o
$(eval $(call unit-test,machine,tests/unit/machine.o base/machine.o base/quantity.o base/log.o))
$(eval $(call unit-test,base,tests/unit/base.o $(BASE_OBJECTS),-lpthread))
