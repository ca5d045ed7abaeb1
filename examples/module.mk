# Programs that a user would run first: ordinary 32-bit Linux programs, for the guest and for this host alike.
GUEST_CFLAGS := -m32 -static -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wimplicit-fallthrough -Wmissing-prototypes \
	-Werror -march=pentium4 -mfpmath=sse
EXAMPLES := $(addprefix build/examples/,ep fib pagebounce pagestream litmus)

# The linker's warning about dlopen in libgomp's static copy is about accelerators, which nobody has here.
build/examples/%: examples/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -fopenmp -pthread -o $@ $< -lm -Wl,--no-warnings

# The NAS Parallel Benchmarks beside EP.
NPB := $(addprefix build/examples/npb/,cg is mg)
$(NPB): build/examples/npb/%: examples/npb/%.c examples/npb/npb.c examples/npb/npb.h
	@echo "  CC    $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -Iexamples/npb -fopenmp -pthread -o $@ $< examples/npb/npb.c -lm -Wl,--no-warnings

.PHONY: examples
examples: $(EXAMPLES) $(NPB)
all: examples
