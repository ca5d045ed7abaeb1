# Programs that a user would run first: ordinary 32-bit Linux programs, for the guest and for
# this host alike.
#   npb/            the other NAS Parallel Benchmarks
#   sharing/        programs of other kinds whose threads share memory
#   phoenix/hello/, phoenix/join_leave/   the two programs that the thesis prints
#   phoenix/crew/   a framework for applications of Phoenix whose state moves, which use it:
#   phoenix/bintree/, phoenix/raytrace/, phoenix/intsort/, phoenix/lu/
GUEST_CFLAGS := -m32 -static -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra \
	-Wimplicit-fallthrough -Wmissing-prototypes \
	-Werror -march=pentium4 -mfpmath=sse
EXAMPLES := $(addprefix build/examples/,ep fib pagebounce pagestream pagecost litmus)

# The linker's warning about dlopen in libgomp's static copy is about accelerators,
# which nobody has here.
build/examples/%: examples/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -fopenmp -pthread -o $@ $< -lm -Wl,--no-warnings

# The NAS Parallel Benchmarks beside EP; NAME-dynamic is linked with this computer's
# 32-bit libraries.
NPB := $(addprefix build/examples/npb/,bt cg ft is lu mg sp cg-dynamic)
$(addprefix build/examples/npb/,bt lu sp): examples/npb/flow.c examples/npb/flow.h
$(filter-out %-dynamic,$(NPB)): build/examples/npb/%: examples/npb/%.c \
		examples/npb/npb.c examples/npb/npb.h
	@echo "  CC    $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -Iexamples/npb -fopenmp -pthread -o $@ $(filter %.c,$^) \
		-lm -Wl,--no-warnings

build/examples/npb/%-dynamic: examples/npb/%.c examples/npb/npb.c examples/npb/npb.h
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -static,$(GUEST_CFLAGS)) -Iexamples/npb -fopenmp -pthread \
		-o $@ $(filter %.c,$^) -lm

# Programs of other kinds whose threads share memory; options and report are those of the
# benchmarks above.
SHARING := $(addprefix build/examples/sharing/,mergesort pipeline queens stencil store)
$(SHARING): build/examples/sharing/%: examples/sharing/%.c examples/npb/npb.c examples/npb/npb.h
	@echo "  CC    $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -Iexamples/npb -fopenmp -pthread -o $@ $(filter %.c,$^) \
		-lm -Wl,--no-warnings

# The same program, linked with this computer's 32-bit libraries.
build/examples/pagecost-dynamic: examples/pagecost.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -static,$(GUEST_CFLAGS)) -fopenmp -pthread -o $@ $<

.PHONY: examples
examples: $(EXAMPLES) build/examples/pagecost-dynamic $(NPB) $(SHARING)
all: examples
