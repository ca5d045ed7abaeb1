/* iosrv.h - the I/O server: one process beside node 0's daemon that holds the state of all devices.
 *
 * The daemon passes on what CPUs do at device addresses, and what the user types; the server answers, raises interrupts
 * and sends output.  Reading order: iosrv_main.c (the process), serve.c (what a message leads to), chips.c (which chip
 * answers an address), then one file per chip: uart.c (console), stream.c (standard streams of the command), ioapic.c,
 * ide.c (disk, with its image in diskimage.c); chipstate.c and snapshot.c save and load the chips, worker.c has threads.
 *
 * How to add a chip: write iosrv/NAME.c with a `const struct chip NAME_chip`, and add X(NAME) to chips.def.  Its state is
 * described by one list (chipstate.h), which makes it part of snapshots.
 *
 * Rules of use: all functions run in the server's one loop, except a chip's work().  A chip's handler never waits.
 * A chip raises its interrupt line by iosrv_raise(); lines are edge-triggered, and each call is one edge.
 */
#ifndef IOSRV_IOSRV_H
#define IOSRV_IOSRV_H

#include "base/types.h"
#include "base/dispatch.h"
#include "base/wire.h"
#include "iosrv/chipstate.h"

/* Addresses that a chip answers: `count` ports, or guest-physical addresses, from `first` on. */
struct chip_range { uint32_t first, count; bool mmio; };
enum { CHIP_RANGES = 2 };

/* A chip.  Functions may be NULL, except reset, read and write. */
struct chip {
	const char *name; /* in messages for the user */
	/* Offsets count on from one range to the next: the second range begins at offset range[0].count. */
	struct chip_range range[CHIP_RANGES];
	void (*reset)(void); /* as after power-on */
	uint32_t (*read)(uint32_t offset, unsigned size);
	void (*write)(uint32_t offset, unsigned size, uint32_t value);
	/* A string of `count` accesses to one address; NULL: one by one. Returns the accesses that had data. */
	unsigned (*read_string)(uint32_t offset, unsigned size, unsigned count, void *data);
	void (*write_string)(uint32_t offset, unsigned size, unsigned count, const void *data);
	void (*flush)(void);	       /* send the output that was collected: the server is about to sleep */
	void (*on_timer)(void);	       /* the time of iosrv_start_timer() has passed */
	int (*work)(void);	       /* what takes long: runs in a thread of the chip's own */
	void (*on_worked)(int result); /* the result of work(), in the loop */
	struct chipstate state;	       /* what is saved (chipstate.h) */
	/* All chips' states have been loaded, and each field is legal. What contradicts itself between them; NULL: nothing. */
	const char *(*impossible)(void);
	void (*restored)(void); /* no chip's state is impossible: start timers, tell the other side */
};

enum {
#define X(name) CHIP_##name,
#include "iosrv/chips.def"
#undef X
	N_CHIPS
};
#define X(name) extern const struct chip name##_chip;
#include "iosrv/chips.def"
#undef X
extern const struct chip *const chips[N_CHIPS];

unsigned chips_number(const struct chip *chip); /* its place in chips[] */
void chips_reset(void);
void chips_flush(void);
/* Serve one request; `data` holds count*size bytes, in or out. Returns the value of a single read. */
uint32_t chips_access(const struct msg_io_request *request, void *data);

/* serve.c */
void iosrv_raise(unsigned line);				/* one edge on an interrupt line */
void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi);	/* the IO-APIC's output */
void iosrv_fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* ends the machine */
void serve_start(void);						/* all devices are as after power-on */
void serve(const struct message *m); /* which packet_check() has passed: calls one of the functions that base/msg.def names */
#define NODE_TO_IOSRV(name, how, handler) HANDLER_##how(void *none, name, handler)
#include "base/msg.def"
void serve_timer(const struct chip *chip);			/* its timer: now, or after the thaw */

/* iosrv_main.c */
void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes, const void *payload,
		size_t payload_bytes);
unsigned iosrv_cpus(void);
/* Call the chip's on_timer() in so many milliseconds. A chip has one timer: a later call replaces an earlier one. */
void iosrv_start_timer(const struct chip *chip, unsigned ms);

/* iosrv_confine.c. Both die if it cannot be; what a kernel does not know at all is left out. */
void iosrv_confine_files(void); /* everything is open; no thread has been started */
void iosrv_confine_calls(void); /* all threads run */

/* worker.c */
/* Run the chip's work() in its thread, then on_worked() in the loop. A chip has one piece of work at a time. */
void iosrv_start_work(const struct chip *chip);
void iosrv_finish_work(void); /* waits until no chip has work */

/* Chips' own entries for what comes from the command line. */
void uart_input(const void *bytes, size_t count);
void uart_attach(uint32_t client, uint32_t backlog_bytes);
void stream_input(const struct msg_stream *body, const void *bytes, size_t count);
void stream_room(const struct msg_stream_room *body);
void stream_window(uint32_t columns, uint32_t rows);
void ioapic_raise(unsigned pin);
int ide_open(const char *spec, char *error, size_t error_bytes); /* IMAGE[,ro|,snapshot]; 0 or -errno with a line */
void ide_close(void);
struct diskimage *ide_image(void); /* NULL: there is no disk */

/* snapshot.c. Rules of use: snapshot_capture() while no CPU and no work of ours runs; 0 or -errno. */
int snapshot_capture(enum snapshot_mode mode);
void snapshot_pull(const struct msg_snapshot_pull *pull); /* send the next items; after the last one the copy is freed */
void snapshot_forget(void);
void snapshot_load(const struct msg_snapshot_item *item, const void *data, size_t bytes);

#endif
