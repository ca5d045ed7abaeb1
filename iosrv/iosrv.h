/* iosrv.h - the I/O server: one process beside node 0's daemon that holds the state of all devices.
 *
 * The daemon forwards the accesses of CPUs to device addresses, and the user's input; the server
 * answers, raises interrupts and sends output.  Reading order: iosrv_main.c (the process),
 * processes.c (starts the two programs below), iosrv_confine.c (the rights that it keeps then),
 * serve.c (handlers of messages), chips.c (which chip answers an address), then one file per chip:
 * uart.c (console), stream.c (standard streams of the command), agent.c (those of `vmp exec`),
 * ioapic.c, ide.c (disk; ide_identify.c: what it says of itself; diskimage.c: its image; undolog.c:
 * what a writable image held at the last checkpoints; diskio.c: reads and writes of these files),
 * pci.c and busmaster.c (that disk's DMA), virtio.c (virtio devices, a model each: virtio_blk.c,
 * virtio_net.c, virtio_9p.c, virtio_rng.c, virtio_console.c); away.c has the CPUs that may not be
 * sent messages; chipstate.c and snapshot.c save and load the chips, worker.c has threads.
 *
 * Two other programs are in this folder: vmp-net (vmp_net.c: the guest's network, by libslirp) and
 * vmp-share (vmp_share.c, with the 9P server in ninep.h and ninep*.c: a folder of this computer).
 *
 * How to add a chip: write iosrv/NAME.c with a `const struct chip NAME_chip`; add X(NAME) to
 * chips.def; append to forms.def the row that the unit test iosrv_snapshot prints, since snapshots
 * have another form then.  The chip's state, if it has one, is described by one list (chipstate.h),
 * which makes it part of snapshots.
 *
 * Rules of use: all functions run in the server's one loop, except a chip's work().  A chip's
 * handler never waits.  A chip raises its interrupt line by iosrv_raise(); lines are
 * edge-triggered, and each call is one edge.
 */
#ifndef IOSRV_IOSRV_H
#define IOSRV_IOSRV_H

#include <sys/types.h>
#include "base/types.h"
#include "base/dispatch.h"
#include "base/wire.h"
#include "iosrv/chipstate.h"

/* Addresses that a chip answers: `count` ports, or guest-physical addresses, from `first` on. */
struct chip_range { uint32_t first, count; bool mmio; };
enum { CHIP_RANGES = 2 };

/* A chip.  Functions may be NULL, except reset, read and write, and `state` may be empty. */
struct chip {
	const char *name; /* in messages for the user */
	/* Offsets continue from one range to the next: the second range begins at offset
	 * range[0].count. */
	struct chip_range range[CHIP_RANGES];
	/* The first address of its only range, if the guest decides that; 0: it has none now. */
	uint32_t (*base)(void);
	void (*reset)(void); /* as after power-on */
	uint32_t (*read)(uint32_t offset, unsigned size);
	void (*write)(uint32_t offset, unsigned size, uint32_t value);
	/* Read or write a string of `count` accesses to one address; NULL: they are made one by
	 * one. Returns the number of accesses that had data. */
	unsigned (*read_string)(uint32_t offset, unsigned size, unsigned count, void *data);
	void (*write_string)(uint32_t offset, unsigned size, unsigned count, const void *data);
	/* send the output that was collected: the server is about to sleep */
	void (*flush)(void);
	void (*on_timer)(void);	       /* the time of iosrv_start_timer() has passed */
	/* an operation that takes long: runs in the chip's own thread */
	int (*work)(void);
	bool (*has_work)(void);	       /* true if this machine's chip needs that thread */
	void (*on_worked)(int result); /* the result of work(), in the loop */
	struct chipstate state;	       /* the saved fields (chipstate.h) */
	/* Return the contradiction between fields; NULL: none.  Called when all chips' states have
	 * been loaded, and each field is legal. */
	const char *(*impossible)(void);
	/* all chips' states are consistent: start timers, notify the other end */
	void (*restored)(void);
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

unsigned chips_number(const struct chip *chip); /* its index in chips[] */
void chips_reset(void);
void chips_flush(void);
/* Serve one request; `data` holds count*size bytes, in or out. Returns the value of a single
 * read. */
uint32_t chips_access(const struct msg_io_request *request, void *data);

/* serve.c */
void iosrv_raise(unsigned line);				/* one edge on an interrupt line */
void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi);	/* the IO-APIC's output */
/* ends the machine */
void iosrv_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* reset all devices as after power-on; loads: nothing is served before a saved state is loaded */
void serve_start(bool loads);
/* handle a message that packet_check() has passed: call its function in base/msg.def */
void serve(const struct message *m);
#define NODE_TO_IOSRV(name, how, handler) HANDLER_##how(void *none, name, handler)
#include "base/msg.def"
bool serve_stands_still(void);					/* true between SAVE and THAW */
/* return the CPU whose access is being served */
unsigned serve_cpu(void);
/* Answer the access that is being served, and those that are held already, at serve_release(). */
void serve_hold(void);
void serve_release(void);
/* call the chip's on_timer() now, or after the thaw */
void serve_timer(const struct chip *chip);

/* iosrv_main.c */
void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		const void *payload, size_t payload_bytes);
unsigned iosrv_cpus(void);
/* Call the chip's on_timer() after `ms` milliseconds.  A chip has one timer: a later call replaces
 * an earlier one. */
void iosrv_start_timer(const struct chip *chip, unsigned ms);

/* A socket to a process beside this one.  Call net_on_ready() or virtio9p_on_ready() when it can be
 * read (`read`) or written to (`write`).  Replaces an earlier call. */
enum watched { WATCH_NET, WATCH_SHARE, N_WATCHED };
void iosrv_watch(enum watched which, int socket, bool read, bool write);

/* iosrv_confine.c.  Both die if they fail; a feature that the kernel lacks is left out. */
void iosrv_confine_files(void); /* everything is open; no thread has been started */
void iosrv_confine_calls(void); /* all threads run */

/* worker.c */
/* Run the chip's work() in its thread, then on_worked() in the loop.  A chip runs one work() at a
 * time. */
void iosrv_start_work(const struct chip *chip);
void iosrv_finish_work(void); /* waits until no chip has work */

/* Chips' handlers of messages from the command line. */
void uart_input(const void *bytes, size_t count);
void uart_attach(uint32_t client, uint32_t backlog_bytes);
void uart_print(const void *bytes, size_t count); /* as if the guest had transmitted them */
/* Copy the oldest typed bytes that nobody has read; and remove them, at most that many. */
size_t uart_typed(void *to, size_t most);
void uart_read_typed(size_t count);
void stream_input(const struct msg_stream *body, const void *bytes, size_t count);
void stream_room(const struct msg_stream_room *body);
void stream_window(uint32_t columns, uint32_t rows);
uint32_t stream_window_size(void); /* columns << 16 | rows; 0: not known */
void agent_request(const struct msg_exec *body, const void *bytes, size_t n);
void ioapic_raise(unsigned pin);
/* The one CPU (a bit) and the vector that an edge of a line reaches now; 0: none, or several. */
uint32_t ioapic_route(unsigned pin, uint32_t *vector);
/* IMAGE[,ro|,snapshot]; 0 or -errno with a line */
int ide_open(const char *spec, char *error, size_t error_bytes);
void ide_close(void);
struct diskimage *ide_image(void); /* NULL: there is no disk */
/* Its side of a DMA: true if a transfer waits, and its direction; the bytes of the next step, at
 * most `most`, which a transfer to memory puts into `data` (0: the disk has reported an error);
 * those bytes have been moved; they cannot be. */
bool ide_dma_waits(bool *to_memory);
uint32_t ide_dma_begin(void *data, uint32_t most);
void ide_dma_end(const void *data, uint32_t bytes);
void ide_dma_fail(void);
/* pci.c: the address of the bus master's registers, 0: nowhere; whether it may access memory */
uint32_t pci_busmaster_base(void);
bool pci_busmaster_enabled(void);
/* busmaster.c: begin a step, if all is ready for it; the same, on the CPU whose access is being
 * served; the disk has raised its line; no monitor may copy any more when the access that is being
 * served has been answered. */
void busmaster_run(void);
void busmaster_run_on(unsigned cpu);
void busmaster_interrupt(void);
void busmaster_suspend(void);
/* virtio_blk.c: the same for disks 0 to MAX_DISKS - 1, and the thread's part. */
int blk_open(unsigned disk, const char *spec, char *error, size_t error_bytes);
void blk_close(void);
struct diskimage *blk_image(unsigned disk);
bool blk_has_work(void);
int blk_work(void);
void blk_on_worked(int result);
void blk_reset(void);

/* processes.c: start vmp-net or vmp-share, before the server is confined: 0, or -errno with a line.
 * `restored`: the machine continues from a file or a checkpoint. */
int processes_open_net(const char *spec, bool restored, char *error, size_t error_bytes);
int processes_open_share(const char *spec, char *error, size_t error_bytes); /* DIR[,ro] */
/* virtio_9p.c */
/* vmp-share is at the other end of this socket, and has opened this folder. */
void virtio9p_attach(int socket, const struct snapshot_folder *folder);
void virtio9p_start(void); /* watch its socket from now on */
void virtio9p_on_ready(void);
void virtio9p_reset(void);
/* Copy the folder's name and the state of vmp-share, between two requests: the state's length,
 * which is the caller's to free; 0: there is no folder; or -errno. */
ssize_t virtio9p_save(struct snapshot_folder *folder, uint8_t **state);
/* Give vmp-share a saved state.  Returns 0 or -EINVAL with the reason. */
int virtio9p_load(const uint8_t *state, size_t bytes, char *why, size_t why_bytes);
bool virtio9p_is_there(void);
/* virtio_console.c */
void console_attach(void);
bool console_is_virtio(void); /* what is typed is for it, and not for the serial port */
void console_typed(void);     /* there may be more typed bytes */
void console_window(void);    /* the user's window may have another size */
void console_reset(void);
void console_restored(void);
/* virtio_net.c */
void net_attach(int socket);
/* Return a descriptor of that socket, which is the caller's; -1: there is no card. */
int net_share(void);
void net_start(void); /* watch its socket from now on, also after a thaw */
void net_on_ready(void);
void net_reset(void);

/* snapshot.c.  Copy all devices' states, while no CPU and no chip's work() runs.  Returns 0 or
 * -errno. */
int snapshot_capture(enum snapshot_mode mode);
/* A state is saved in parts of so many bytes: an item names its part, so this belongs to the format
 * of snapshot files. */
enum { SNAPSHOT_PART_BYTES = 8 << 10 };
/* send the next items; after the last one the copy is freed */
void snapshot_pull(const struct msg_snapshot_pull *pull);
void snapshot_forget(void);
void snapshot_load(const struct msg_snapshot_item *item, const void *data, size_t bytes);

#endif
