# What both engines do alike.  The VM process compiles these sources itself (vmproc/module.mk).
ENGINE_OBJECTS := engine/loop.o engine/traps.o

$(eval $(call unit-test,engine,tests/unit/engine.o tests/unit/vcpu_fake.o $(ENGINE_OBJECTS) \
	$(VCPU_OBJECTS),))
