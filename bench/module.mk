# What is measured, against what; see bench/README.md.
build/bench/%: bench/%.c
	@echo "  CC    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $<

.PHONY: bench
bench: all
	$(Q)bench/run
