/* guest_abi.h - the interface between the patched guest kernel and the monitor.
 *
 * The guest-patches series carries the same numbers in arch/x86/include/asm/vmp.h;
 * scripts/check-abi compares the two.  The file has only preprocessor constants, so that assembly
 * can include it.
 *
 * Segments.  The guest's code, data and per-CPU selectors have the table bit (TI) set, so that the
 * host finds them in the VM process's LDT: LDT entry i shadows the guest's GDT entry i (the monitor
 * fills it at lgdt and at VMP_HC_GDT_CHANGED).  All have RPL 3, so that they load natively and can
 * be set by ptrace, except the kernel's CS: its RPL is 0 in every frame that the guest sees, which
 * keeps user_mode() unpatched.  `mov %cs` and `push %cs` in kernel code are therefore rewritten.
 * User segments end at VMP_USER_LIMIT.  The three TLS entries are the host's own (12-14).
 *
 * Traps.  `int $VMP_INT_MARKER` stands before a sensitive instruction that would not trap by
 * itself: the monitor emulates the instruction that follows it.  `call VMP_STUB_HYPERCALL` is a
 * hypercall: number in %eax, arguments in %ebx, %ecx, %edx, result in %eax (64-bit results in
 * %edx:%eax); so is `int $VMP_INT_HYPERCALL`, which costs a trap.  All are legal in guest kernel
 * mode only, but for one: in user mode `int $VMP_INT_HYPERCALL` with BARRIER_CALL in %eax is the
 * programs' own call (base/barrier.h).  `int $VMP_INT_SYSCALL` in guest user mode, right behind a
 * call of VMP_STUB_SYSCALL, means `int $0x80`, and is served faster: in the vDSO a restarted system
 * call begins there.
 *
 * The window.  The most frequent operations need no trap: the interrupt flag, CR2, and the entry
 * and exit of system calls are in the CPU window, below.
 */
#ifndef BASE_GUEST_ABI_H
#define BASE_GUEST_ABI_H

/* The version changes with everything below.  A kernel has it as the absolute symbol
 * vmp_abi_version; a kernel of another version is not booted. */
#define VMP_ABI_VERSION 10

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
/* guest user segments end here; the guest's PAGE_OFFSET */
#define VMP_USER_LIMIT 0xb0000000

#define VMP_INT_SYSCALL 0x81
#define VMP_INT_MARKER 0x82
#define VMP_INT_HYPERCALL 0x83

/* The CPU window: the last pages of the linear address space, separate for each processor, mapped
 * whatever the page tables say.  The first is a page of data, which the guest kernel reads and
 * writes: */
#define VMP_WINDOW 0xffffc000
#define VMP_CPU_IFLAG 0xffffc000   /* EFLAGS_IF or 0: what cli and sti would change */
#define VMP_CPU_PENDING 0xffffc004 /* not 0: an interrupt waits; `sti` traps and delivers it */
#define VMP_CPU_CR2 0xffffc008	   /* of the last page fault */
/* the guest writes: the stack on which system calls enter the kernel */
#define VMP_CPU_SP0 0xffffc00c
#define VMP_CPU_SYSCALL 0xffffc010 /* the guest writes: their entry point, */
#define VMP_CPU_SYSCALL_CS 0xffffc014 /* and its code segment; 0: not yet */
/* 1: the end of the interrupt in service may be signalled by writing 0 here */
#define VMP_CPU_EOI 0xffffc018
/* how many times a CPU that waits for another one spins before it uses a hypercall; 1: no
 * spinning */
#define VMP_CPU_SPINS 0xffffc028
#define VMP_CPU_HOST 0xffffc02c	   /* the number of the host where this CPU runs now */
/* The second is a page of code, which the monitor provides: */
/* `lcall $VMP_SEL_HOST64` from user mode: as `int $0x80`, returns 2 bytes further on */
#define VMP_STUB_SYSCALL 0xffffd000
/* `jmp` from kernel mode: as `iret`, with interrupts off; faults point here */
#define VMP_STUB_IRET 0xffffd100
#define VMP_STUB_HYPERCALL 0xffffd200 /* `call` from kernel mode, once on VMP_SEL_KERNEL_CS */
/* the guest kernel's own addresses end here; the last page stays empty */
#define VMP_FIXADDR_TOP 0xffffb000
#define VMP_SEL_HOST64 0x33	    /* the host's 64-bit code segment */

/* hypercalls */
#define VMP_HC_PRINT 0	     /* ebx: guest linear address, ecx: bytes: early text for the log */
/* -> edx:eax: ns since the machine's start, the same on all CPUs, never goes back */
#define VMP_HC_CLOCK 1
#define VMP_HC_WALLCLOCK 2   /* -> edx:eax: ns since the epoch */
/* ebx: APIC id, ecx: physical address to start at, paging off -> 0 or -errno */
#define VMP_HC_START_CPU 3
/* ebx: first entry, ecx: count: this CPU's GDT entries were rewritten in memory */
#define VMP_HC_GDT_CHANGED 4
#define VMP_HC_EXIT 5	     /* ebx: one of VMP_EXIT_*, ecx: status: the machine ends */
#define VMP_HC_YIELD 6	     /* this CPU waits for another one: yield the host's processor */
/* -> kHz of the time-stamp counter if all CPUs share one, else 0 */
#define VMP_HC_TSC_KHZ 7
#define VMP_HC_SEND_IPI 8    /* ebx: mask of APIC ids, this CPU's too, ecx: vector, 2 for an NMI */
#define VMP_HC_FLUSH_RANGE 9 /* ebx: first address, ecx: pages: as invlpg on each */
#define VMP_HC_WRITE_CR3 10  /* ebx: as mov to CR3 */
/* as reading CR3 and writing it again: drops this address space's stale translations */
#define VMP_HC_RELOAD_CR3 11
/* ebx: vector, ecx: 1: any other interrupt wakes too: sleeps, whatever EFLAGS.IF is, until the
 * interrupt is requested, and withdraws the request of this vector -> 0; may wake without cause */
#define VMP_HC_WAIT 12
/* ebx: the register's offset in the page of the local APIC, ecx: value */
#define VMP_HC_APIC_WRITE 13
/* ebx: the first page frame, ecx: how many: clears these frames of RAM */
#define VMP_HC_CLEAR_FRAMES 14
/* ebx: page frame to, ecx: from: copies a frame of RAM */
#define VMP_HC_COPY_FRAME 15
/* as `sti; hlt`: enables interrupts and sleeps until one is delivered -> 0 */
#define VMP_HC_HALT 16
/* tasks have waited for this CPU at most of the last ticks */
#define VMP_HC_CROWDED 17
#define VMP_HC_COUNT 18

/* CR3's low bits: the number of the address space among those that the monitor keeps (0-7; two page
 * directories may use one number in turn), and whether the kept translations are still valid. */
#define VMP_CR3_SPACE 7
#define VMP_CR3_KEEP 0x800

#define VMP_EXIT_POWEROFF 0
#define VMP_EXIT_REBOOT 1
#define VMP_EXIT_PANIC 2

/* guest-physical memory map: RAM from 0; nothing between the end of RAM and these */
#define VMP_MP_TABLE_GPA 0x9fc00    /* top KiB of base memory: the second place where Linux looks */
#define VMP_BOOT_PARAMS_GPA 0x10000
#define VMP_CMDLINE_GPA 0x20000
#define VMP_NODES_GPA 0x21000	    /* the machine's hosts, if it has several: */
#define VMP_NODES_CPU 0		    /* a byte for each CPU: the host where it begins; */
#define VMP_NODES_COUNT 32	    /* 32 bits: the number of hosts, 0: the table says nothing; */
/* 32 bits for each host: its part of RAM ends before this page frame; with high memory, 32 bits
 * more for each: its part of that; after the last: 0 */
#define VMP_NODES_END 36
#define VMP_LOW_RAM 0x40000000	    /* the guest kernel maps all RAM below this at least */
#define VMP_IOAPIC_GPA 0xfec00000
#define VMP_LAPIC_GPA 0xfee00000
#define VMP_LAPIC_TIMER_HZ 1000000000 /* the local APIC's timer counts ns before its divider */
#define VMP_HOST_VECTOR 0xf7	      /* the interrupt after a move: VMP_CPU_HOST may be another */
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
/* inl: in: bytes to read, out: bytes of room; bit 31: end of file (in), reader gone (out) */
#define VMP_STREAM_STATUS 4
/* outl 1: raise the line once when STATUS becomes non-zero; outl 0: not; a raise disarms */
#define VMP_STREAM_IRQ_ENABLE 8
#define VMP_STREAM_CLOSE 12 /* outl: the guest closes this stream */
/* outl: the command's exit status; all output before it has been delivered */
#define VMP_STREAM_EXIT_PORT 0x540
#define VMP_STREAM_COLS_ROWS_PORT 0x544 /* inl: console window: columns << 16 | rows, 0 = unknown */
#define VMP_STREAM_COUNT 3
#define VMP_STREAM_EOF 0x80000000

/* The agent's device: two streams with the same registers, 0 to the guest's agent and 1 from it, on
 * an interrupt line of their own. What they carry: base/agent_abi.h. */
#define VMP_AGENT_PORT 0x560
#define VMP_AGENT_IRQ 1
#define VMP_AGENT_COUNT 2

#endif
