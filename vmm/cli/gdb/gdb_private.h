/* gdb_private.h - what session.c and requests.c share. */
#ifndef VMM_CLI_GDB_GDB_PRIVATE_H
#define VMM_CLI_GDB_GDB_PRIVATE_H

#include "vmm/cli/gdb/gdb_session.h"

/* session.c: to GDB; each ends the request that is under way. */
void gdb_reply(struct gdb_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gdb_reply_error(struct gdb_session *s, unsigned error);
void gdb_reply_ok(struct gdb_session *s);
void gdb_reply_stop(struct gdb_session *s);

/* To the machine: without an answer that anybody waits for, and with one, which gdb_carry_on() gets. gdb_ask() asks the CPU that
 * GDB has chosen. */
void gdb_send(struct gdb_session *s, unsigned cpu, enum debug_op op);
void gdb_ask_cpu(struct gdb_session *s, struct msg_debug request, const void *payload, size_t n);
void gdb_ask(struct gdb_session *s, enum debug_op op, uint32_t address, uint32_t bytes, const void *payload, size_t n);
/* True: an answer will come. */
bool gdb_remove_breakpoint(struct gdb_session *s, struct gdb_breakpoint *b);

/* The watchpoint that covers gva, or NULL. */
struct gdb_watch *gdb_watch_at(struct gdb_session *s, gva_t gva);
/* What GDB is told of the machine's stop. */
void gdb_note_stop(struct gdb_session *s, const struct msg_debug *stop);
/* Whatever can be done now of what a leaving debugger has left to do. */
void gdb_leave(struct gdb_session *s);

/* requests.c: the reader's packet, when all CPUs stand; an answer to what the request under way has asked. */
void gdb_packet(struct gdb_session *s);
void gdb_carry_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n);

#endif
