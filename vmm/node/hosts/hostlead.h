/* hostlead.h - the change of hosts that node 0 leads: what hosts.c (queue, messages, end),
 * hostcomes.c and hostgoes.c share.  No other file includes it. */
#ifndef VMM_NODE_HOSTS_HOSTLEAD_H
#define VMM_NODE_HOSTS_HOSTLEAD_H

#include "dsm/dsm.h"
#include "vmm/node/hosts/hostplan.h"
#include "vmm/node/hosts/hosts.h"

/* The stage of the current change: what it waits for. */
enum stage {
	STAGE_NONE,
	STAGE_LAUNCH,  /* add: the owner's answer */
	STAGE_CONNECT, /* add: the new host's connections to all others */
	STAGE_START,   /* add: the new host has what it needs */
	STAGE_TELL,    /* all hosts to hear of the change */
	STAGE_CPUS,    /* remove: a CPU's move */
	STAGE_HOMES,   /* homes that are moving */
	STAGE_PAGES,   /* remove: the host to be empty */
	STAGE_FORGET,  /* remove: all to receive its farewell */
	STAGE_RETIRE,  /* remove: the owner to expect its end */
	STAGE_END,     /* remove: the end of its process */
	STAGE_BACK,    /* the host stays: a CPU that moves back */
	STAGE_CLEAR,   /* the new host is dropped: the end of its process */
	STAGE_YIELD,   /* host 0 leaves: the end of this process, or a message that it stays */
};

struct hosts {
	struct hostqueue queue;
	enum stage stage;
	bool comes;
	/* the new host is connected to all others, perhaps before the owner has said that it
	 * started it */
	bool connected;
	unsigned host; /* the host that is added or removed */
	uint64_t since_ns;
	uint32_t staying; /* bit set: all but the leaver and those that wait to be removed */
	uint32_t told;	  /* the value of `staying` that all hosts were told last */
	uint32_t news, heard, gone; /* news: number of the last NEWS */
	struct home_place place[DSM_INTERVALS]; /* where the homes are, as node 0 knows */
	unsigned homes_moved, homes_waiting;
	uint32_t cpus_moved; /* bit set: CPUs that this change has moved away */
	/* the change waits for a move that began before it, and may lead to this host */
	bool waits_for_move;
	uint32_t pages_left;
	/* pages that the leaver holds; pages that are free on the computers of the hosts that
	 * stay */
	uint64_t held_pages, room_pages;
	char why[200]; /* why the change fails */
	uint32_t came, went;
	struct loop_event *progress;
};

static inline uint32_t bit_of(unsigned host) { return 1u << host; }

/* ---- hosts.c ---- */
void hosts_tell_all(struct node *node, uint32_t hosts, enum host_op op, const void *payload,
		    uint32_t bytes);
void hosts_tell_news(struct node *node, uint32_t to);
void hosts_tell_owner(struct node *node, enum host_op op, int error);
/* Computes who stays: all hosts except those whose removal is in the queue from place `first`
 * on. */
void hosts_see_who_stays(struct node *node, unsigned first);
/* Moves homes as ordered; then, if a host is removed, its pages. */
void hosts_move_homes(struct node *node, const struct home_order *orders, unsigned n);
/* Ends the change with an error: the machine is as before. */
void hosts_fail(struct node *node, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- hostcomes.c ---- */
void hosts_begin_add(struct node *node);
void hosts_on_launched(struct node *node, const struct msg_host *body, const char *line,
		       unsigned bytes);

/* ---- hostgoes.c ---- */
void hosts_begin_remove(struct node *node);
void hosts_move_cpus_away(struct node *node);
void hosts_stay(struct node *node);
void hosts_on_empty(struct node *node);
void hosts_on_gone(struct node *node, unsigned from);

#endif
