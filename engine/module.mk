# What both engines do alike.  The VM process compiles these sources itself (vmproc/module.mk).
ENGINE_OBJECTS := engine/loop.o engine/traps.o

$(foreach t,loop traps,\
	$(eval $(call unit-test,engine_$(t),tests/unit/engine_$(t).o tests/unit/engine_fake.o \
		tests/unit/vcpu_fake.o $(ENGINE_OBJECTS) $(VCPU_OBJECTS),)))
