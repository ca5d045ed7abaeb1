/* guest_abi.h - what the patched guest kernel and the monitor agree on.
 *
 * The guest-patches series carries the same numbers in arch/x86/include/asm/vmp.h; scripts/check-abi compares the two.
 * Only preprocessor constants stand here, so that assembly can include it.
 *
 * Segments.  The guest's code, data and per-CPU selectors have the table bit (TI) set, so that the host finds them in
 * the VM process's LDT: LDT entry i shadows the guest's GDT entry i (the monitor fills it at lgdt and at
 * VMP_HC_GDT_CHANGED).  All have RPL 3, so that they load natively and can be set by ptrace, except the kernel's CS:
 * its RPL is 0 in every frame that the guest sees, which keeps user_mode() unpatched.  `mov %cs` and `push %cs` in
 * kernel code are therefore rewritten.  User segments end at VMP_USER_LIMIT.  The three TLS entries are the host's own (12-14).
 *
 * Traps.  `int $VMP_INT_MARKER` stands before a sensitive instruction that would not trap by itself: the monitor
 * emulates the instruction that follows it.  `call VMP_STUB_HYPERCALL` is a hypercall: number in %eax, arguments in
 * %ebx, %ecx, %edx, result in %eax (64-bit results in %edx:%eax); so is `int $VMP_INT_HYPERCALL`, which costs a trap.  All are
 * legal in guest kernel mode only.
 * `int $VMP_INT_SYSCALL` in guest user mode means `int $0x80`, and is served faster; the vDSO has it behind its call of
 * VMP_STUB_SYSCALL, where a restarted system call begins.
 *
 * The window.  The hottest of it all needs no trap: the interrupt flag, CR2 and the way in and out of system calls stand
 * in the CPU window, below.
 */
#ifndef BASE_GUEST_ABI_H
#define BASE_GUEST_ABI_H

/* Changes with everything below. The kernel has it as the absolute symbol vmp_abi_version: others are not booted. */
#define VMP_ABI_VERSION 6

/* GDT indices and selectors (guest view) */
#define VMP_GDT_BOOT_CS 2
#define VMP_GDT_BOOT_DS 3
#define VMP_GDT_TLS_MIN 12
#define VMP_GDT_KERNEL_CS 16
#define VMP_GDT_KERNEL_DS 17
#define VMP_GDT_USER_CS 18
#define VMP_GDT_USER_DS 19
#define VMP_GDT_PERCPU 20
#define VMP_GDT_ESPFIX 21
#define VMP_GDT_TSS 24
#define VMP_GDT_LDT 25
#define VMP_GDT_DOUBLEFAULT_TSS 31
#define VMP_GDT_ENTRIES 32

#define VMP_SEL_BOOT_CS (VMP_GDT_BOOT_CS * 8 + 4)	/* 0x14 */
#define VMP_SEL_BOOT_DS (VMP_GDT_BOOT_DS * 8 + 7)	/* 0x1f */
#define VMP_SEL_KERNEL_CS (VMP_GDT_KERNEL_CS * 8 + 4)	/* 0x84, host runs it as 0x87 */
#define VMP_SEL_KERNEL_DS (VMP_GDT_KERNEL_DS * 8 + 7)	/* 0x8f */
#define VMP_SEL_USER_CS (VMP_GDT_USER_CS * 8 + 7)	/* 0x97 */
#define VMP_SEL_USER_DS (VMP_GDT_USER_DS * 8 + 7)	/* 0x9f */
#define VMP_SEL_PERCPU (VMP_GDT_PERCPU * 8 + 7)		/* 0xa7 */
#define VMP_USER_LIMIT 0xb0000000			/* guest user segments end here; the guest's PAGE_OFFSET */

#define VMP_INT_SYSCALL 0x81
#define VMP_INT_MARKER 0x82
#define VMP_INT_HYPERCALL 0x83

/* The CPU window: the last pages of the linear address space, each processor's own, mapped whatever the page tables say.
 * First a page of data, which the guest kernel reads and writes: */
#define VMP_WINDOW 0xffffc000
#define VMP_CPU_IFLAG 0xffffc000   /* EFLAGS_IF or 0: what cli and sti would change */
#define VMP_CPU_PENDING 0xffffc004 /* not 0: an interrupt waits; `sti` traps and delivers it */
#define VMP_CPU_CR2 0xffffc008	   /* of the last page fault */
#define VMP_CPU_SP0 0xffffc00c	   /* the guest writes: the stack on which system calls enter the kernel */
#define VMP_CPU_SYSCALL 0xffffc010 /* the guest writes: their entry point, */
#define VMP_CPU_SYSCALL_CS 0xffffc014 /* and its code segment; 0: not yet */
#define VMP_CPU_EOI 0xffffc018	   /* 1: the end of the interrupt in service may be signalled by writing 0 here */
#define VMP_CPU_SPINS 0xffffc028   /* turns that who waits for another CPU spins before it waits by a hypercall; 1: not at all */
/* then a page of code, which the monitor provides: */
#define VMP_STUB_SYSCALL 0xffffd000 /* `lcall $VMP_SEL_HOST64` from user mode: as `int $0x80`, returns 2 bytes further on */
#define VMP_STUB_IRET 0xffffd100    /* `jmp` from kernel mode: as `iret`, with interrupts off; faults point here */
#define VMP_STUB_HYPERCALL 0xffffd200 /* `call` from kernel mode, once on VMP_SEL_KERNEL_CS */
#define VMP_FIXADDR_TOP 0xffffb000  /* the guest kernel's own addresses end here; the last page stays empty */
#define VMP_SEL_HOST64 0x33	    /* the host's 64-bit code segment */

/* hypercalls */
#define VMP_HC_PRINT 0	     /* ebx: guest linear address, ecx: bytes: early text for the log */
#define VMP_HC_CLOCK 1	     /* -> edx:eax: ns since the machine's start, the same on all CPUs, never goes back */
#define VMP_HC_WALLCLOCK 2   /* -> edx:eax: ns since the epoch */
#define VMP_HC_START_CPU 3   /* ebx: APIC id, ecx: physical address to start at, paging off -> 0 or -errno */
#define VMP_HC_GDT_CHANGED 4 /* ebx: first entry, ecx: count: this CPU's GDT entries were rewritten in memory */
#define VMP_HC_EXIT 5	     /* ebx: one of VMP_EXIT_*, ecx: status: the machine ends */
#define VMP_HC_YIELD 6	     /* this CPU waits for another one: give the host's processor away */
#define VMP_HC_TSC_KHZ 7	     /* -> kHz of the time-stamp counter if all CPUs share one, else 0 */
#define VMP_HC_SEND_IPI 8    /* ebx: mask of APIC ids, this CPU's too, ecx: vector, 2 for an NMI */
#define VMP_HC_FLUSH_RANGE 9 /* ebx: first address, ecx: pages: as invlpg on each */
#define VMP_HC_WRITE_CR3 10  /* ebx: as mov to CR3 */
#define VMP_HC_RELOAD_CR3 11 /* as reading CR3 and writing it again: forgets what may be stale of this address space */
#define VMP_HC_WAIT 12	     /* ebx: vector, ecx: whether any other interrupt will do: sleeps, whatever EFLAGS.IF says, until it is
			      * requested, and takes the request of this vector back -> 0; may return without one */
#define VMP_HC_APIC_WRITE 13 /* ebx: the register's offset in the page of the local APIC, ecx: value */
#define VMP_HC_COUNT 14

/* CR3's low bits: which of the address spaces that the monitor keeps this one is (0-7; two page directories may use one
 * number by turns), and whether what it keeps of it is still true. */
#define VMP_CR3_SPACE 7
#define VMP_CR3_KEEP 0x800

#define VMP_EXIT_POWEROFF 0
#define VMP_EXIT_REBOOT 1
#define VMP_EXIT_PANIC 2

/* guest-physical memory map: RAM from 0; nothing between the end of RAM and these */
#define VMP_MP_TABLE_GPA 0x9fc00    /* top KiB of base memory: the second place where Linux looks */
#define VMP_BOOT_PARAMS_GPA 0x10000
#define VMP_CMDLINE_GPA 0x20000
#define VMP_IOAPIC_GPA 0xfec00000
#define VMP_LAPIC_GPA 0xfee00000
#define VMP_LAPIC_TIMER_HZ 1000000000 /* the local APIC's timer counts ns before its divider */
#define VMP_HARDWARE_SUBARCH 0x766d70 /* boot_params.hdr.hardware_subarch: "vmp" */

/* ports and ISA interrupt lines (edge-triggered; line n is IO-APIC pin n) */
#define VMP_UART_PORT 0x3f8
#define VMP_UART_IRQ 4
#define VMP_IDE_PORT 0x1f0
#define VMP_IDE_CONTROL_PORT 0x3f6
#define VMP_IDE_IRQ 14

/* The stream device: three binary-clean streams (0 in, 1 out, 2 err) and the command's exit status.
 * Stream s has its registers at VMP_STREAM_PORT + 16*s. */
#define VMP_STREAM_PORT 0x500
#define VMP_STREAM_IRQ 5
#define VMP_STREAM_DATA 0   /* insb/outsb: the bytes; at most what VMP_STREAM_STATUS promised */
#define VMP_STREAM_STATUS 4 /* inl: in: bytes to read, out: bytes of room; bit 31: end of file (in), reader gone (out) */
#define VMP_STREAM_IRQ_ENABLE 8	/* outl 1: raise the line once when STATUS becomes non-zero; outl 0: not; a raise disarms */
#define VMP_STREAM_CLOSE 12 /* outl: the guest closes this stream */
#define VMP_STREAM_EXIT_PORT 0x540	/* outl: the command's exit status; all output before it has been delivered */
#define VMP_STREAM_COLS_ROWS_PORT 0x544 /* inl: console window: columns << 16 | rows, 0 = unknown */
#define VMP_STREAM_COUNT 3
#define VMP_STREAM_EOF 0x80000000

#endif
