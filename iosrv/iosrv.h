/* iosrv.h - the I/O server: one process that holds all device state, beside node 0.
 *
 * Reading order: iosrv_main.c (the process), serve.c (a message), chips.c (which chip answers which address), then a file per
 * chip: uart.c (console), stream.c (standard streams of the command), ioapic.c, ide.c (disk); snapshot.c saves and loads them.
 *
 * Rules of use: one thread; a chip's handler never waits.  A chip raises its line by iosrv_raise(); lines are
 * edge-triggered: each call is one edge.
 */
#ifndef IOSRV_IOSRV_H
#define IOSRV_IOSRV_H

#include "base/types.h"
#include "base/wire.h"

/* A chip: its addresses, and what it does when it is touched there. All state of a chip stands in its file, in one struct
 * that can be saved and restored as it is. */
struct chip {
	const char *name;
	uint32_t first, last; /* addresses, inclusive */
	bool mmio;	      /* guest-physical addresses rather than ports */
	void (*reset)(void);
	uint32_t (*read)(uint32_t offset, unsigned size);
	void (*write)(uint32_t offset, unsigned size, uint32_t value);
	/* A string of `count` accesses to one address; NULL: one by one. Returns the accesses that had data. */
	unsigned (*read_string)(uint32_t offset, unsigned size, unsigned count, void *data);
	void (*write_string)(uint32_t offset, unsigned size, unsigned count, const void *data);
	void *state;
	size_t state_bytes;
	/* A saved state has been put into `state`: false if it cannot be, else timers and windows are set up anew. */
	bool (*restored)(void);
};

extern const struct chip *const chips[]; /* ends with NULL */
void chips_reset(void);
/* Serve one request; `data` holds count*size bytes, in or out. Returns the value of a single read. */
uint32_t chips_access(const struct msg_io_request *request, void *data);

/* serve.c */
void iosrv_raise(unsigned line);				/* one edge on an interrupt line */
void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi);	/* the IO-APIC's output */
void iosrv_fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* ends the machine */
void serve_start(void);						/* all devices are as after power-on */
void serve(const struct msg_header *header, const void *body);	/* a message, checked */
void serve_due(void (*call)(void));				/* now, or after the thaw */

/* main.c */
void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes, const void *payload,
		size_t payload_bytes);
unsigned iosrv_cpus(void);
/* Run `work` in a thread of its own, then `done` with its result in the loop. One piece of work at a time. */
void iosrv_work(int (*work)(void), void (*done)(int result));
void iosrv_finish_work(void); /* now: waits for it */
void iosrv_call_later(unsigned ms, void (*call)(void)); /* one call at a time: a later wish replaces it */

/* Chips' own entries for what comes from the command line. */
void uart_input(const void *bytes, size_t count);
void uart_attach(uint32_t client, uint32_t backlog_bytes);
void uart_flush(void);	  /* send collected output; called when the server is about to sleep */
void uart_drained(void);  /* a moment after the guest's last byte */
void stream_input(const struct msg_stream *body, const void *bytes, size_t count);
void stream_room(const struct msg_stream_room *body);
void stream_window(uint32_t columns, uint32_t rows);
void stream_flush(void);
void ioapic_raise(unsigned pin);
int ide_open(const char *spec, char *error, size_t error_bytes); /* IMAGE[,ro|,snapshot]; 0 or -errno with a line */
void ide_close(void);
struct diskimage *ide_image(void); /* NULL: there is no disk */

/* snapshot.c. Rules of use: snapshot_capture() while no CPU and no work of ours runs; 0 or -errno. */
int snapshot_capture(enum snapshot_mode mode);
void snapshot_pull(const struct msg_snapshot_pull *pull); /* send the next items; behind the last one the copy is freed */
void snapshot_forget(void);
void snapshot_load(const struct msg_snapshot_item *item, const void *data, size_t bytes);

extern const struct chip uart_chip, stream_chip, ioapic_chip, ide_command_chip, ide_control_chip;

#endif
