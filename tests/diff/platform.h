/* platform.h - the differences between the two builds of the test kernel, and the addresses, which
 * are the same in both.
 *
 * With DIFF_VMP the kernel is for `vmp run --kernel`, by the conventions of base/guest_abi.h;
 * without it, for `qemu-system-i386 -kernel`.  All that a sequence can see has the same address in
 * both: tables, stacks, code, data.
 */
#ifndef TESTS_DIFF_PLATFORM_H
#define TESTS_DIFF_PLATFORM_H

#include "base/guest_abi.h"

#define SEL_KERNEL_CS VMP_SEL_KERNEL_CS
#define SEL_USER_CS VMP_SEL_USER_CS
#define SEL_USER_DS VMP_SEL_USER_DS
#define SEL_TSS (VMP_GDT_TSS * 8)
#define SEL_LDT (VMP_GDT_LDT * 8)
#ifdef DIFF_VMP
#define SEL_KERNEL_DS VMP_SEL_KERNEL_DS
#define INT_SYSCALL VMP_INT_SYSCALL
#define MARKER int $VMP_INT_MARKER;
#else
#define SEL_KERNEL_DS (VMP_SEL_KERNEL_DS & ~3) /* a stack at level 0 must have RPL 0 */
#define INT_SYSCALL 0x80
#define MARKER
#endif

/* Linear addresses: the first 4 MiB of RAM are mapped at DIRECT; then the areas that sequences
 * access, and the local APIC. */
#define DIRECT VMP_USER_LIMIT
#define USER_AREA 0x40000000
#define KERNEL_AREA 0xd0000000
#define APIC_AREA 0xf0000000

/* Physical */
#define PHYS_PAGE_DIR 0x200000
#define PHYS_PT_DIRECT 0x201000
#define PHYS_PT_USER 0x202000
#define PHYS_PT_KERNEL 0x203000
#define PHYS_PT_APIC 0x204000
#define PHYS_GDT 0x205000
#define PHYS_IDT 0x206000
#define PHYS_TSS 0x207000
#define PHYS_GDTR 0x207800	 /* what lgdt and lidt load */
#define PHYS_IDTR 0x207808
#define PHYS_STACK_TOP 0x20a000	 /* two pages: sequences in kernel mode, and the handlers */
#define PHYS_RUNNER_TOP 0x20c000 /* the stack of everything else */
#define PHYS_FRAMES 0x210000	 /* what the areas map */
#define PHYS_DIRECTORIES 0x218000 /* the second page directory and the third (spaces.c) */
#define PHYS_PT_OTHER 0x21a000
#define PHYS_LARGE 0x800000	 /* a page of 4 MiB */

/* Vectors beyond the processor's own */
#define VECTOR_END 0x30	   /* a sequence is over */
#define VECTOR_PLAIN 0x31  /* interrupt gate for user mode */
#define VECTOR_TRAP 0x32   /* trap gate for user mode */
#define VECTOR_KERNEL 0x33 /* interrupt gate for kernel mode alone */
#define VECTOR_SPACE 0x34  /* trap gate for user mode: EAX chooses another address space */
#define VECTOR_IPI 0x41
#define VECTOR_TIMER 0x42 /* has no effect on the result */
#define VECTOR_SYSCALL 0x80

#endif
