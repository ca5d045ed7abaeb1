/* daemons.h - what the files of daemon-sim share.
 *
 *   daemons.c          what happens to the machine: who asks for what, what goes wrong, and what must come of it
 *   daemon_owner.c     the process that owns the machine: it starts and reaps daemons, takes checkpoints, goes back to them
 *   daemon_world.c     what the daemons call: loop, sockets, clients; their beginning and their end
 *   daemon_children.c  monitors, interrupts
 *   daemon_io.c        the I/O server
 *   daemon_guest.c     what the guest does with its devices
 *   daemon_user.c      who types the input of the machine's command, and reads what it says
 */
#ifndef TESTS_SIM_DAEMONS_H
#define TESTS_SIM_DAEMONS_H

#include "tests/sim/sim.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/node/node.h"
#include "vmm/node/wire/conn.h"

enum { IO_PATH = 64, OWNER = MAX_NODES - 1 /* in a node's place */, LAST_CLIENT = 30, GUEST_VECTOR = 31, DISK_SECTORS = 60 };

/* A node daemon. */
struct daemon {
	struct node node;
	bool exists;	     /* until it is reaped */
	bool dead, in_order; /* killed, or ended in order; until there is another of its number */
	bool silent;	     /* it lives, and nobody hears of it any more, nor it of anybody */
	bool gave_up;	     /* it ended since it could tell nobody why the machine must */
	bool loose;	     /* its end is not the machine's, as the owner knows it */
	bool connected;	     /* it has reached all others */
	uint32_t life;	     /* which one of this number; a message from, or to, an earlier one goes nowhere */
	uint64_t unsaid_ns;  /* what a dead or silent one had not delivered by then is lost */
};
extern struct daemon daemons[MAX_NODES];
extern struct sim *machine; /* that the daemons are */

/* What a processor does with its device. */
struct guest {
	uint8_t at; /* its next step */
	bool eof, woken;
	uint32_t pos; /* bytes, or operations, done */
	uint32_t n;   /* bytes, or sectors, of what is under way */
	uint8_t command, half;
	uint16_t looks; /* since the disk was not busy */
	uint32_t sector;
	uint8_t version[DISK_SECTORS]; /* how often each has been written */
};

/* The machine as it stood still at a cut: what of it is saved must be this. */
struct witness {
	unsigned run, cpus_running; /* of the simulator's */
	bool written; /* some of its memory is not zero */
	uint32_t latest[SIM_MAX_PAGES][SIM_WORDS];
	struct cpu_state { struct sim_cpu cpu; struct guest guest; } cpu[SIM_MAX_CPUS];
	uint32_t typed; /* bytes of input that the machine had got */
};

/* The events of daemon-sim: of a sim_event, `type`; home.interval: a CPU, or PORT_*; home.generation: a child's pid, a life. */
enum world_event {
	WORLD_MESSAGE,	  /* between daemons; payload: header and body */
	WORLD_TIMER,	  /* payload: struct timer */
	WORLD_TO_CHILD,	  /* payload: header and body */
	WORLD_FROM_CHILD,
	WORLD_CHILD_READY,
	WORLD_CHILD_DIED,
	WORLD_BOUNDARY,	  /* a CPU that is to stop looks whether it can */
	WORLD_COLLECT,	  /* a CPU looks at its posts */
	WORLD_GUEST,	  /* a CPU does something with its device */
	WORLD_IO,	  /* the I/O server has something to do */
	WORLD_TO_OWNER,	  /* payload: header and body */
	WORLD_FROM_CLIENT, /* to node 0; home.generation: the client's number */
	WORLD_CLIENT_GONE,
	WORLD_OWNER_CAME, /* node 0's owner is connected */
	WORLD_CONNECTED,  /* a daemon has reached all others */
	WORLD_LOST,	  /* a daemon hears that `from` is gone, or will not be heard of */
	WORLD_GIVES_UP,	  /* a daemon that has told node 0 why the machine must end has had no answer */
	WORLD_REAPED,	  /* the owner notices a daemon's end */
	/* what is planned, whatever becomes of the machine */
	WORLD_POST,	  /* some CPU sends an interrupt */
	WORLD_USER,	  /* the user types, or reads */
	WORLD_FAULT,	  /* on, or off */
	WORLD_KILL,
	WORLD_SILENCE,	  /* nobody hears of a daemon any more */
	WORLD_LOAD,	  /* all is killed, and the machine loaded from where it was saved */
	WORLD_EVENTS,
};
enum { PORT_IOSRV = SIM_MAX_CPUS, PORT_OWNER, PORT_CLIENT, PORT_USER, PORTS };
struct packet { struct msg_header header; uint8_t body[PACKET_MAX_BYTES]; };
struct conn { unsigned node, port; };
struct client;
struct run;

/* daemon_world.c */
void world_open(void);
void world_close(void);
struct event_base *world_base(unsigned node);
const char *world_rundir(void); /* of all */
void world_new_daemon(unsigned number, unsigned n_start, uint32_t join, bool restore);
void world_forget_daemon(unsigned number); /* and all that it has */
void world_on_event(struct sim_event *event);
/* A local event of a daemon, in order behind those of the same port and kind: after a while, or after delay_ns. */
void world_after(enum world_event kind, unsigned node, unsigned port, uint32_t id, const void *packet, uint32_t bytes);
void world_after_ns(uint64_t delay_ns, enum world_event kind, unsigned node, unsigned port, uint32_t id, const void *packet,
		    uint32_t bytes);
uint32_t world_pack(struct packet *packet, const struct msg_header *header, const void *body, uint32_t body_bytes,
		    const void *payload, uint32_t payload_bytes);
void world_send_client(unsigned number, enum msg_type type, const void *body, uint32_t bytes); /* to node 0 */
void world_look_at_files(void); /* something about them has changed: who waits for it? */
void world_check_idle(void);
extern struct witness world_cut; /* the last one */

/* daemon_children.c */
void children_forget(void);
void children_on_event(struct sim_event *event);
void children_say(unsigned node, unsigned port, uint32_t pid, enum msg_type type, const void *body, uint32_t body_bytes,
		  const void *payload, uint32_t payload_bytes);
/* Some CPU that runs sends an interrupt to one that has not got as many as there are vectors. */
void children_post(void);
void children_look_at_posts(void);
void children_load(const struct witness *from); /* all CPUs stand still until they are loaded as they were there */
void children_check_idle(void); /* no interrupt is on its way */
void witness_take(struct witness *w);

/* daemon_io.c */
void io_start(void);
void io_end(void);
void io_on_message(const struct packet *packet);
void io_on_event(uint32_t id);
void io_path(char path[IO_PATH], const char *name); /* of a file in a folder that goes in the end */
void io_sector(uint8_t *to, uint32_t sector, uint8_t version); /* as its version-th write leaves it */
uint32_t io_input_waiting(void); /* bytes that the guest has not read yet */
void io_check_disk(const uint8_t *version);

/* daemon_guest.c */
extern struct guest guests[SIM_MAX_CPUS];
void guests_open(void);
void guests_forget(void); /* all are lost, with what was under way */
void guests_plan(void); /* for a run */
void guests_check(void); /* all is done */
void guest_step(unsigned cpu, uint32_t turn);
void guest_go(unsigned cpu); /* its CPU runs, perhaps again */
void guest_on_reply(unsigned cpu, const struct packet *packet);
void guest_interrupt(unsigned cpu);
bool guest_waits(unsigned cpu); /* for an answer: its CPU cannot be stopped */
uint8_t guest_byte(unsigned stream, uint32_t at);
uint32_t guest_quota(unsigned of); /* bytes of a stream that there are to be, so far */
bool guest_input_ends(void);

/* daemon_user.c */
void user_open(struct run *run, const struct witness *from); /* NULL: a new machine */
void user_close(struct run *run);
void user_on_event(uint32_t id);
void user_look(void); /* something may be to be read */
void user_plan(void);
void user_check(struct run *run, bool all); /* what has been said, has been said once; and all of it */

/* daemon_owner.c */
void owner_open(unsigned hosts, uint32_t checkpoint_ms);
void owner_close(void);
void owner_plan(void); /* for a run */
void owner_on_event(const struct sim_event *event);
/* From where it is kept, or from a file. */
void owner_load(const struct kept *kept, const char *path, const struct witness *w, unsigned hosts);
bool owner_is_checkpoint(const void *event);
bool owner_is_here(void);
void owner_check_idle(void);
void owner_check_kept(const struct kept *kept, const struct witness *w);
/* The file is that machine; NULL: there is none. */
bool owner_file_is(const char *path, const struct witness *w);
extern struct owner_count { uint64_t checkpoints, files, back, loads, yields; } owner_count;

/* daemons.c */
void daemon_dies(unsigned number);
void daemon_ends(unsigned number); /* in order, as one that leaves */
void machine_ends(const char *why);
void machine_is_lost(void); /* there is another now */
void daemon_runs(unsigned number); /* its code, from now on: it is the one that may die */
void client_on_answer(const struct msg_header *header, const void *body);
void clients_on_hosts(uint32_t hosts);

#endif
