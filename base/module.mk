# What all programs share.
BASE_OBJECTS := base/log.o base/hostshm.o base/wire.o base/faultpoint.o base/schedule.o base/beside.o base/cpufeatures.o base/killed.o
$(eval $(call unit-test,base,tests/unit/base.o $(BASE_OBJECTS),-lpthread))
