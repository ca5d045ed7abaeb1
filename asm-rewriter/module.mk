# The assembler wrapper for the guest kernel (in a folder of its own, for the compiler's -B), its
# verifier, their tests.
REWRITER_OBJECTS := asm-rewriter/rewrite.o base/log.o base/printable.o
$(eval $(call program,asm-rewriter-bin/as,asm-rewriter/as.o $(REWRITER_OBJECTS),))
$(B)/asm-rewriter-bin/as: | $(B)/asm-rewriter-bin
$(B)/asm-rewriter-bin:
	$(Q)mkdir -p $@
$(eval $(call program,verify-vmlinux,asm-rewriter/verify.o \
	base/log.o base/printable.o,-lelf -lZydis))
