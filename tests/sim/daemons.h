/* daemons.h - what daemons.c (what happens to the machine, and what must come of it) and daemon_world.c (what the daemons call)
 * share. */
#ifndef TESTS_SIM_DAEMONS_H
#define TESTS_SIM_DAEMONS_H

#include "tests/sim/sim.h"
#include "vmm/node.h"

/* A node daemon. */
struct daemon {
	struct node node;
	bool exists;	     /* until it is reaped */
	bool dead, in_order; /* killed, or ended in order; until there is another of its number */
	bool loose;	   /* its end is not the machine's, as the owner knows it */
	uint32_t life;	   /* which one of this number; a message from, or to, an earlier one goes nowhere */
	uint64_t unsaid_ns; /* what a dead one had not delivered by then is lost */
};
extern struct daemon daemons[MAX_NODES];
extern struct sim *machine; /* that the daemons are */

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
	WORLD_TO_OWNER,	  /* payload: header and body */
	WORLD_FROM_CLIENT, /* to node 0; home.generation: the client's number */
	WORLD_CLIENT_GONE,
	WORLD_CONNECTED,  /* a daemon has reached all others */
	WORLD_LOST,	  /* a daemon hears that `from` is gone */
	WORLD_REAPED,	  /* the owner notices a daemon's end */
	WORLD_POST,	  /* some CPU sends an interrupt */
	WORLD_FAULT,	  /* on, or off */
	WORLD_KILL,
};
enum { PORT_IOSRV = SIM_MAX_CPUS, PORT_OWNER, PORT_CLIENT, PORTS };

/* daemon_world.c */
void world_open(void);
void world_new_daemon(unsigned number, unsigned n_start, uint32_t join);
void world_on_event(struct sim_event *event);
/* A local event of a daemon, in order behind those of the same port and kind. */
void world_after(enum world_event kind, unsigned node, unsigned port, uint32_t id, const void *packet, uint32_t bytes);
/* MSG_* to node 0 from one of its clients. */
void world_send_client(unsigned number, enum msg_type type, const void *body, uint32_t bytes);
/* Some CPU that runs sends an interrupt to one that has not got as many as there are vectors. */
void world_post(void);
void world_check_cut(void); /* what was copied is the machine as it stood still */
void world_check_idle(void);

/* daemons.c */
void daemon_dies(unsigned number);
void daemon_ends(unsigned number);
void machine_ends(unsigned from, const char *why);
void owner_on_message(const struct msg_header *header, const void *body);
void client_on_answer(const struct msg_header *header, const void *body);

#endif
