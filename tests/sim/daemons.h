/* daemons.h - what the files of daemon-sim share.
 *
 *   daemons.c          a seed: the faults and deaths, and what must result
 *   daemon_requests.c  the command lines: the requests, and their answers
 *   daemon_owner.c     the process that owns the machine: it starts and reaps daemons, takes
 *                      checkpoints, goes back to them
 *   daemon_world.c     what the daemons call: loop, sockets, clients; their start and end
 *   daemon_loop.c      clock, timers and watched descriptors
 *   daemon_outside.c   children, connections and the overlay, as they are passed in
 *   daemon_pages.c     what is around vmm/node/pages/: processors that want pages
 *   daemon_children.c  monitors, interrupts
 *   daemon_io.c        the I/O server
 *   daemon_guest.c     what the guest does with its devices
 *   daemon_policy.c    the policies: what they are told, who chooses them, what must result
 *   daemon_user.c      the user, who types the command's input and reads its output
 *
 * A daemon is given its loop (vmm/shared/loop.h) and what else is outside (vmm/node/outside.h).  So
 * no function of a library is defined again.  Of the daemon's files these are not linked: those at
 * its edges (overlay.c and links.c: Phoenix has a simulator of its own; control.c, tunnels.c,
 * outside.c, node.c); and those that need a guest's kernel, other programs or libevent (load/,
 * clock_sync.c, node_stats.c, poll.c).
 */
#ifndef TESTS_SIM_DAEMONS_H
#define TESTS_SIM_DAEMONS_H

#include "base/faultpoint.h"
#include "tests/sim/sim.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/node/node.h"
#include "vmm/node/wire/conn.h"

enum {
	IO_PATH = 64,
	OWNER = MAX_NODES - 1 /* OWNER: a number in place of a node's */,
	LAST_CLIENT = 30,
	GUEST_VECTOR = 31,
	DISK_SECTORS = 60
};

/* A node daemon. */
struct daemon {
	struct node node;
	bool exists;	     /* until it is reaped */
	bool dead, in_order; /* killed, or ended in order; until there is another of its number */
	bool silent;	     /* it lives, and is cut off from all others */
	bool gave_up;	     /* it ended because it heard nothing of the others */
	uint32_t lost;	     /* bit set: it has noticed that they are gone */
	bool loose;	     /* its end does not end the machine, as far as the owner knows */
	bool breaks;	     /* the machine is broken because this one is gone */
	bool connected;	     /* it is connected to all others */
	/* counts the daemons of this number; messages from or to an earlier one are dropped */
	uint32_t life;
	uint64_t unsaid_ns;  /* messages of a dead or silent one that arrive later are lost */
};
extern struct daemon daemons[MAX_NODES];
extern struct sim *machine; /* the machine that the daemons run */

enum request_kind { ASK_MOVE, ASK_ADD, ASK_REMOVE, ASK_SAVE, ASK_POLICY, REQUEST_KINDS };

/* A fault point, and the kind of request that is made more often while it may be on. */
struct fault { enum fault_point point; uint32_t n; enum request_kind most; };

/* What goes wrong in this seed: a fault point is on for a while, daemons are killed or cut off, or
 * nothing. */
enum { NO_TROUBLE = 64, KILLED, SILENCED, TROUBLES };
extern struct trouble {
	const struct fault *fault; /* or NULL */
	unsigned number;	   /* the fault's, or one of those above */
	bool met;		   /* it has had an effect */
} trouble;

/* What a processor does with its device. */
struct guest {
	uint8_t at; /* the next step */
	bool eof, woken;
	uint32_t pos; /* bytes or operations that are done */
	uint32_t n;   /* bytes or sectors of the current request */
	uint8_t command, half;
	uint16_t looks; /* polls since the disk was last not busy */
	uint32_t sector;
	uint8_t version[DISK_SECTORS]; /* how often each was written */
};

/* The machine as it stood still at a cut; what is saved of it must equal this. */
struct witness {
	unsigned run, cpus_running; /* of the simulator */
	bool written; /* some of its memory is not zero */
	uint32_t latest[SIM_MAX_PAGES][SIM_WORDS];
	struct cpu_state { struct sim_cpu cpu; struct guest guest; } cpu[SIM_MAX_CPUS];
	uint32_t typed; /* bytes of input that the machine had received */
};

/* The events of daemon-sim, in a sim_event: `type`; home.interval is a CPU or PORT_*;
 * home.generation is a child's pid or a daemon's life. */
enum world_event {
	WORLD_MESSAGE,	  /* between daemons; payload: header and body */
	WORLD_TIMER,	  /* payload: struct timer */
	WORLD_LOOK,	  /* a daemon looks at the slots of its CPUs */
	WORLD_SLEEP,	  /* a daemon has nothing more to do now */
	WORLD_TO_CHILD,	  /* payload: header and body */
	WORLD_FROM_CHILD,
	WORLD_CHILD_READY,
	WORLD_CHILD_DIED,
	WORLD_BOUNDARY,	  /* a CPU that must stop checks whether it can */
	WORLD_COLLECT,	  /* a CPU reads its posts */
	WORLD_GUEST,	  /* a CPU does something with its device */
	WORLD_IO,	  /* the I/O server has something to do */
	WORLD_TO_OWNER,	  /* payload: header and body */
	WORLD_FROM_CLIENT, /* to node 0; home.generation: the client's number */
	WORLD_CLIENT_GONE,
	WORLD_OWNER_CAME, /* node 0's owner is connected */
	WORLD_CONNECTED,  /* a daemon is connected to all others */
	WORLD_LOST,	  /* a daemon notices that `from` is gone, or cut off */
	WORLD_REAPED,	  /* the owner notices a daemon's end */
	/* events that are planned, whatever becomes of the machine */
	WORLD_POST,	  /* some CPU sends an interrupt */
	WORLD_USER,	  /* the user types, or reads */
	WORLD_FAULT,	  /* a fault point goes on, or off */
	WORLD_KILL,
	WORLD_SILENCE,	  /* a daemon is cut off */
	WORLD_LOAD, /* everything is killed, and the machine is loaded from where it was saved */
	WORLD_FIXED, /* some client ends the policy auto */
	WORLD_EVENTS,
};
enum { PORT_IOSRV = SIM_MAX_CPUS, PORT_OWNER, PORT_CLIENT, PORT_USER, PORTS };
struct packet { struct msg_header header; uint8_t body[PACKET_MAX_BYTES]; };
/* number: the child's pid, or the command line's number */
struct sim_conn { struct conn conn; unsigned node, port; uint32_t number; bool open; };
struct client;
struct run;

/* daemon_world.c */
void world_open(void);
void world_close(void);
const char *world_rundir(void); /* of all machines */
void world_new_daemon(unsigned number, unsigned n_start, uint32_t join, bool restore);
void world_forget_daemon(unsigned number); /* with everything that it has */
void world_on_event(struct sim_event *event);
/* Schedules a local event of a daemon, behind those of the same port and kind: after a random time,
 * or after delay_ns. */
void world_after(enum world_event kind, unsigned node, unsigned port, uint32_t id,
		 const void *packet, uint32_t bytes);
void world_after_ns(uint64_t delay_ns, enum world_event kind, unsigned node, unsigned port,
		    uint32_t id, const void *packet, uint32_t bytes);
uint32_t world_pack(struct packet *packet, const struct msg_header *header, const void *body,
		    uint32_t body_bytes, const void *payload, uint32_t payload_bytes);
/* to node 0 */
void world_send_client(unsigned number, enum msg_type type, const void *body, uint32_t bytes);
void world_check_idle(void);
extern struct witness world_cut; /* the last cut */

/* daemon_pages.c */
void pages_open(void);
void pages_start(struct node *node);
struct host_shm *pages_shm(unsigned node);
uint32_t pages_without(void); /* the mechanisms that are off */
bool pages_has_more(const struct node *node); /* struct outside */
void pages_on_message(struct node *node, unsigned from, const struct message *m);
void pages_on_look(unsigned node);
void pages_on_sleep(unsigned node);
void pages_on_ready(unsigned cpu, const struct msg_page_ready *ready);

/* daemon_loop.c */
struct loop world_loop(unsigned node);
void world_look_at_files(void); /* files have changed: wakes the events that wait for them */
void loops_on_timer(const struct sim_event *event);
void loops_close(void);

void loops_signal(unsigned node, int number);

/* daemon_outside.c */
extern const struct outside outside_sim;
void outside_check_end(const struct packet *packet); /* if it is a MACHINE_END */
void outside_client_comes(unsigned number); /* if it is not connected yet */
void outside_client_goes(unsigned number);
void outside_from_client(unsigned number, const struct packet *packet);
void outside_child_ready(unsigned node, unsigned port);
void outside_child_died(unsigned node, unsigned port, uint32_t pid);
void outside_from_child(unsigned node, unsigned port, const struct packet *packet);
void outside_forget(unsigned node);

/* daemon_children.c */
void children_kill(unsigned node, unsigned port, uint32_t pid);
void children_forget(void);
void children_on_event(struct sim_event *event);
void children_say(unsigned node, unsigned port, uint32_t pid, enum msg_type type, const void *body,
		  uint32_t body_bytes, const void *payload, uint32_t payload_bytes);
/* Lets a running CPU send an interrupt to one that still has a free vector. */
void children_post(void);
void children_look_at_posts(void);
/* all CPUs stand still until they are loaded as they were there */
void children_load(const struct witness *from);
void children_check_idle(void); /* no interrupt is in flight */
void witness_take(struct witness *w);

/* daemon_io.c */
void io_start(bool loads);
void io_end(void);
void io_on_message(const struct packet *packet);
void io_on_event(uint32_t id);
/* of a file in a folder that is removed at the end */
void io_path(char path[IO_PATH], const char *name);
/* the contents after its version-th write */
void io_sector(uint8_t *to, uint32_t sector, uint8_t version);
uint32_t io_input_waiting(void); /* bytes that the guest has not read yet */
void io_check_disk(const uint8_t *version);

/* daemon_guest.c */
extern struct guest guests[SIM_MAX_CPUS];
void guests_open(void);
void guests_forget(void); /* all drivers are lost, with their current requests */
void guests_plan(void); /* for a run */
void guests_check(void); /* all is done */
void guest_step(unsigned cpu, uint32_t turn);
void guest_go(unsigned cpu); /* its CPU runs, perhaps again */
void guest_on_reply(unsigned cpu, const struct packet *packet);
void guest_interrupt(unsigned cpu);
bool guest_waits(unsigned cpu); /* for an answer: its CPU cannot be stopped */
uint8_t guest_byte(unsigned stream, uint32_t at);
uint32_t guest_quota(unsigned of); /* bytes of a stream that there must be, so far */
bool guest_input_ends(void);

/* daemon_user.c */
void user_open(struct run *run, const struct witness *from); /* NULL: a new machine */
void user_close(struct run *run);
void user_on_event(uint32_t id);
void user_look(void); /* there may be something to read */
void user_plan(void);
/* all output has come out once; with `all`, completely */
void user_check(struct run *run, bool all);

/* daemon_policy.c */
void policies_open(void);
void policies_measure(void); /* a sample is being taken */
/* Asks for a random policy, or for fixed.  Returns which. */
unsigned policies_ask(unsigned client, uint32_t seq, bool fixed);
void policies_other_request(void);
/* That policy was accepted.  alone: while no other request was open. */
void policies_chosen(unsigned policy, bool alone);
/* Auto ends after that time. */
void policies_end_auto(uint64_t after_ns);
/* Returns whether somebody must ask now for fixed; if so, this is called again later. */
bool policies_auto_must_end(void);
void policies_check_idle(void);

/* daemon_owner.c */
void owner_open(unsigned hosts, uint32_t checkpoint_ms);
void owner_close(void);
void owner_plan(void); /* for a run */
void owner_on_event(const struct sim_event *event);
/* Loads from memory, or from a file. */
void owner_load(const struct kept *kept, const char *path, const struct witness *w, unsigned hosts);
bool owner_is_checkpoint(const void *event);
bool owner_is_here(void);
void owner_check_idle(void);
void owner_check_kept(const struct kept *kept, const struct witness *w);
/* Returns whether the file is that machine; NULL: whether there is no file. */
bool owner_file_is(const char *path, const struct witness *w);
extern struct owner_count { uint64_t checkpoints, files, back, loads, yields; } owner_count;

/* daemon_requests.c; client_on_...: a message arrives at a command line */
void requests_open(void); /* for a seed */
void requests_close(void);
void requests_load_saved(void); /* loads the machine from where it was saved, if it was */
void requests_ask_fixed(void);	/* somebody ends the policy auto */
void requests_lose(void);	/* those that are open are lost with the machine */
void requests_writer_dies(void); /* does not return if a client is writing a file */
void requests_check_idle(void); /* all are answered */
/* Prints how they were answered, in all seeds.  Returns how many were lost. */
uint64_t requests_report(void);
void client_on_answer(unsigned client, const struct msg_header *header, const void *body);
void client_on_hosts(unsigned client, uint32_t hosts);

/* daemons.c */
static inline struct node *daemon_first(void) { return &daemons[0].node; }
void daemon_dies(unsigned number);
void daemon_ends(unsigned number); /* it ends in order, as one that leaves */
void machine_ends(const char *why);
void machine_is_lost(void); /* another machine takes its place */
void daemon_runs(unsigned number); /* its code runs from now on: it is the one that may die */

#endif
