# toolbox.mk - the timed jobs of bench/toolbox, in its folder:
#   bin/make -s -f work.mk tcc|gcc|shell|project|long|short OUT=FOLDER [JOBS=N]
# Each prints its time as "x SECONDS s", from a clock of 10 ms.
export OUT
SHELL := bin/busybox
.SHELLFLAGS := sh -c
.PHONY: tcc gcc shell project long short
now = $$(bin/busybox cut -d' ' -f1 /proc/uptime)
took = bin/busybox awk -v a=$$start -v b=$(now) 'BEGIN { printf "x %.2f s\n", b - a }'
CC := bin/tcc -Blib -nostdinc -Ilib/include -Iinclude -c

tcc:
	start=$(now); for i in $$(bin/busybox seq 100); do \
		$(CC) -o $(OUT)/big.o big.c || exit; done; $(took)

# What gcc -S runs.
CC1 := LD_LIBRARY_PATH=lib bin/cc1 -quiet -nostdinc -Ilib/include -Iinclude
gcc:
	start=$(now); for i in 1 2 3; do $(CC1) -O1 -o $(OUT)/big.s big.c || exit; done; $(took)

shell:
	start=$(now); (. ./shell.sh) >$(OUT)/shell.out || exit; $(took)

project:
	start=$(now); for i in 0 1 2 3; do \
		bin/busybox rm -rf $(OUT)/p; bin/busybox mkdir $(OUT)/p; \
		bin/make -s -f work.mk -j$(JOBS) $(OUT)/p/project.a || exit; done; $(took)

PARTS := $(patsubst %,$(OUT)/p/part%.o,1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
$(OUT)/p/project.a: $(PARTS)
	bin/tcc -ar rcs $@ $(PARTS)
$(OUT)/p/%.o: project/%.c
	$(CC) -o $@ $<

# 12 jobs of some 300 ms, and 200 of some 5 ms.
long short:
	start=$(now); bin/make -s -f work.mk -j$(JOBS) \
		$(if $(filter long,$@),$(LONG),$(SHORT)) || exit; $(took)
LONG := $(patsubst %,$(OUT)/long%.s,1 2 3 4 5 6 7 8 9 10 11 12)
SHORT := $(patsubst %,$(OUT)/short%.o,$(shell bin/busybox seq 1 200))
$(OUT)/long%.s: long.c
	$(CC1) -O2 -o $@ $<
$(OUT)/short%.o: project/part1.c
	$(CC) -o $@ $<
