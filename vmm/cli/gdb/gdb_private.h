/* gdb_private.h - what gdb_session.c and requests.c share. */
#ifndef VMM_CLI_GDB_GDB_PRIVATE_H
#define VMM_CLI_GDB_GDB_PRIVATE_H

#include "vmm/cli/gdb/gdb_session.h"

/* gdb_session.c, to GDB. Each of these ends the current request. */
void gdb_reply(struct gdb_session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void gdb_reply_error(struct gdb_session *s, unsigned error);
void gdb_reply_ok(struct gdb_session *s);
void gdb_reply_stop(struct gdb_session *s);

/* To the machine. gdb_send() expects no answer. gdb_ask_cpu() does, and gdb_carry_on() gets it.
 * gdb_ask() asks the CPU that GDB has chosen. */
void gdb_send(struct gdb_session *s, unsigned cpu, enum debug_op op);
void gdb_ask_cpu(struct gdb_session *s, struct msg_debug request, const void *payload, size_t n);
void gdb_ask(struct gdb_session *s, enum debug_op op, uint64_t address, uint32_t bytes,
	     const void *payload, size_t n);
/* Returns true if an answer will come. */
bool gdb_remove_breakpoint(struct gdb_session *s, struct gdb_breakpoint *b);

/* Returns the watchpoint that covers gva, or NULL. */
struct gdb_watch *gdb_watch_at(struct gdb_session *s, gva_t gva);
/* Notes why the machine has stopped, for the reply to GDB. */
void gdb_note_stop(struct gdb_session *s, const struct msg_debug *stop);
/* Does the next step of a debugger's departure, if one can be done now. */
void gdb_leave(struct gdb_session *s);

/* requests.c: begins the request in the reader's packet, when all CPUs stand; and continues it with
 * an answer. */
void gdb_packet(struct gdb_session *s);
void gdb_carry_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		  size_t n);

#endif
