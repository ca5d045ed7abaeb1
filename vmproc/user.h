/* user.h - --strict on the direct engine: what a user process, the kernel process that it belongs
 * to, and their monitor agree on.
 *
 * Each host address space of a virtual CPU has two VM processes then.  The kernel process is the
 * one of direct.h: it runs the guest kernel and the engine.  The guest's programs run in the user
 * process alone.  It maps their pages, its own program, the report, which it writes, and the order,
 * which it can only read.  It has no alias of RAM, and nothing that a CPU's processes share.
 *
 * The kernel process writes an order (what to map, the registers) and then its number; the user
 * process carries it out, runs the program until it stops, reports the stop by a byte in a pipe,
 * and waits for the next number.  A system call is such a stop: the program's far call leads to
 * code of the user process, which reports it without a signal.
 *
 * A program can jump to 64-bit code, and so run any instruction of its process.  What the kernel
 * process relies on is therefore not what the user process writes, but three facts:
 *
 *   stopped   Two `syscall` instructions alone (seccomp) write to the report's pipe: one writes
 *	       USER_EVEN, and behind it the process waits for an order with an odd number; the
 *	       other one writes USER_ODD, and waits for an even one.  The kernel process accepts
 *	       the byte that answers its order, and no other.  So user code does not run from the
 *	       report until the next order.
 *   mapped    Calls that change mappings are made by one `syscall` alone too.  Behind it the
 *	       process waits for a permit, one USER_PERMIT in the order's pipe for each call.  A
 *	       call that was not ordered has none, so no user code runs after it.  An order that has
 *	       calls alone is answered without a signal, or its calls were not made.
 *   constant  Between those instructions there is no access to memory that a program can choose,
 *	       and no way to other code.
 *
 * rt_sigreturn is forbidden: it could move the signals' stack into memory that another CPU writes
 * to.  Everything in the report is a program's own business: its registers, and a trap that it
 * could have caused (user_take()).  See user_stub.S, user.c, and for the other side direct_user.c.
 */
#ifndef VMPROC_USER_H
#define VMPROC_USER_H

#define USER_REPORT_ADDRESS 0x700100030000 /* struct user_report, in both processes */
#define USER_ORDER_ADDRESS 0x700100040000  /* struct user_order; the user process only reads it */
/* Offsets in struct user_order. */
#define USER_ORDER_CALLS 0
#define USER_ORDER_RUN 4
#define USER_ORDER_IRET 8
#define USER_ORDER_GPR 48
#define USER_ORDER_SEGMENTS 112
#define USER_ORDER_SERIAL 124
#define USER_ORDER_CALL 128
#define USER_ORDER_XSAVE 4096
/* Offsets in struct user_report. */
#define USER_REPORT_BYTE 0
#define USER_REPORT_FAILED 8
#define USER_REPORT_GPR 16
#define USER_REPORT_RIP 80
#define USER_REPORT_RFLAGS 88
#define USER_REPORT_SIGNAL 136
#define USER_REPORT_CS 156
#define USER_REPORT_SLEEPS 172
#define USER_REPORT_XSAVE 4096
/* Bytes in the pipes. */
#define USER_WAKE 1 /* in the order's */
#define USER_PERMIT 2
#define USER_EVEN 3 /* in the report's: the order that it answers has an even number */
#define USER_ODD 4
#define USER_SET_THREAD_AREA 243 /* i386's */
#define USER_ORDER_FD 0 /* VMPROC_ORDER_FD, VMPROC_REPORT_FD */
#define USER_REPORT_FD 1

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>
#include "base/types.h"
#include "vmproc/direct.h"
#include "vmproc/vmproc.h"

enum { USER_CALLS = 48, USER_MAILBOX_BYTES = 16 << 10 };

/* One host call that changes the user process: mmap, munmap, mprotect of the page at VMP_WINDOW,
 * modify_ldt, or i386's set_thread_area. */
struct user_call { uint64_t number, argument[6], unused; };

struct user_order {
	uint32_t calls, run; /* run 0: report when the calls are made */
	uint64_t rip, cs, rflags, rsp, ss;
	uint64_t gpr[8];
	uint16_t ds, es, fs, gs;
	uint32_t xsave_bytes;
	_Atomic uint32_t serial; /* the order's number; written last */
	struct user_call call[USER_CALLS];
	struct user_desc descriptor[USER_CALLS]; /* for modify_ldt, one for each call */
	uint8_t xsave[DIRECT_XSAVE_BYTES] __attribute__((aligned(4096)));
};
#define USER_FIELD(field, offset) \
	_Static_assert(offsetof(struct user_order, field) == (offset), #field)
USER_FIELD(calls, USER_ORDER_CALLS);
USER_FIELD(run, USER_ORDER_RUN);
USER_FIELD(rip, USER_ORDER_IRET);
USER_FIELD(gpr, USER_ORDER_GPR);
USER_FIELD(ds, USER_ORDER_SEGMENTS);
USER_FIELD(serial, USER_ORDER_SERIAL);
USER_FIELD(call, USER_ORDER_CALL);
USER_FIELD(xsave, USER_ORDER_XSAVE);
_Static_assert(sizeof(struct user_order) == USER_MAILBOX_BYTES && sizeof(struct user_call) == 64,
	       "user_stub.S");

/* Why the program stopped, as the host told its process.  Signal 0: the calls are made. */
struct user_report {
	uint64_t byte;	/* the last one of the order's pipe */
	int64_t failed; /* the last call that failed: -errno; else 0 */
	uint64_t gpr[8], rip, rflags, r8, r10;
	uint64_t address, fs_base, gs_base;
	uint32_t signal, code, vector, error, call;
	uint16_t cs, ss, ds, es, fs, gs;
	uint32_t waited; /* how often a kick has found the process waiting for an order
			  * or a permit */
	uint32_t sleeps; /* it may be about to wait: the next order needs a byte that wakes it */
	uint8_t xsave[DIRECT_XSAVE_BYTES] __attribute__((aligned(4096)));
};
#define USER_REPORT_FIELD(field, offset) \
	_Static_assert(offsetof(struct user_report, field) == (offset), #field)
USER_REPORT_FIELD(byte, USER_REPORT_BYTE);
USER_REPORT_FIELD(failed, USER_REPORT_FAILED);
USER_REPORT_FIELD(gpr, USER_REPORT_GPR);
USER_REPORT_FIELD(rip, USER_REPORT_RIP);
USER_REPORT_FIELD(rflags, USER_REPORT_RFLAGS);
USER_REPORT_FIELD(signal, USER_REPORT_SIGNAL);
USER_REPORT_FIELD(cs, USER_REPORT_CS);
USER_REPORT_FIELD(sleeps, USER_REPORT_SLEEPS);
USER_REPORT_FIELD(xsave, USER_REPORT_XSAVE);
_Static_assert(sizeof(struct user_report) == USER_MAILBOX_BYTES, "user_stub.S");

/* Behind struct direct_shared in VMPROC_STUB_FD: a report, an order and the page of
 * set_thread_area's argument for each host address space. */
enum {
	USER_TLS_AT = 2 * USER_MAILBOX_BYTES,
	USER_MAIL_BYTES = USER_TLS_AT + PAGE_BYTES,
};

_Static_assert((int)USER_MAIL_BYTES == (int)STUB_FD_MAIL_BYTES &&
		       (int)VMPROC_ORDER_FD == USER_ORDER_FD &&
		       (int)VMPROC_REPORT_FD == USER_REPORT_FD,
	       "vmproc.h");

/* user.c: the start and the life of a user process. */
void user_main(const struct vmproc_start *start) __attribute__((noreturn));

/* user_take.c: makes v and *s from a copy of a report.  False: no processor stops so, and v is
 * killed. */
bool user_take(const struct user_report *r, struct vcpu *v, struct engine_stop *s);
/* Makes the registers in a report's `xsave` such that xrstor accepts them. */
void user_take_xsave(uint8_t *xsave, uint64_t xcr0, uint32_t mxcsr_mask);
#endif
#endif
