/* hostlead.h - the change of hosts that node 0 leads: what hosts.c (the queue, what is said to whom, the end), hostcomes.c and
 * hostgoes.c share.  Nobody else includes it. */
#ifndef VMM_NODE_HOSTS_HOSTLEAD_H
#define VMM_NODE_HOSTS_HOSTLEAD_H

#include "dsm/dsm.h"
#include "vmm/node/hosts/hostplan.h"
#include "vmm/node/hosts/hosts.h"

/* How far the change under way is: what it waits for. */
enum stage {
	STAGE_NONE,
	STAGE_LAUNCH,  /* comes: the owner's answer */
	STAGE_CONNECT, /* comes: it has reached all others */
	STAGE_START,   /* comes: it knows what it must */
	STAGE_TELL,    /* all have heard of it; or: goes: all have heard that it leaves */
	STAGE_CPUS,    /* goes: a CPU's move */
	STAGE_HOMES,   /* homes that are on their way */
	STAGE_PAGES,   /* goes: it is empty */
	STAGE_FORGET,  /* goes: all have had its farewell */
	STAGE_RETIRE,  /* goes: the owner expects its end */
	STAGE_END,     /* goes: its process has ended */
	STAGE_BACK,    /* does not go: a CPU moves back */
	STAGE_CLEAR,   /* does not come: its process has ended */
	STAGE_YIELD,   /* host 0 goes: the end of this process, or word that it stays */
};

struct hosts {
	struct hostqueue queue;
	enum stage stage;
	bool comes;
	bool connected; /* the one that comes has reached all others, perhaps before the owner has said that it started it */
	unsigned host; /* that comes or goes */
	uint64_t since_ns;
	uint32_t staying; /* bit set: all but the one that goes, and those that wait to go */
	uint32_t told;	  /* that set, as all have been told last */
	uint32_t news, heard, gone; /* news: their number */
	struct home_place place[DSM_INTERVALS]; /* as node 0 has been told */
	unsigned homes_moved, homes_waiting;
	uint32_t cpus_moved; /* bit set: away from it, in this change */
	bool waits_for_move; /* one that began before it was to go, perhaps to there */
	uint32_t pages_left;
	uint64_t held_pages, room_pages; /* by the one that goes; on the computers of those that stay */
	char why[200]; /* it fails */
	uint32_t came, went;
	struct event *progress;
};

static inline uint32_t bit_of(unsigned host) { return 1u << host; }

/* --- hosts.c --- */
void hosts_tell(struct node *node, unsigned to, enum host_op op, const void *payload, uint32_t bytes);
void hosts_tell_all(struct node *node, uint32_t hosts, enum host_op op, const void *payload, uint32_t bytes);
void hosts_tell_news(struct node *node, uint32_t to);
void hosts_tell_owner(struct node *node, enum host_op op, int error);
/* Those in the queue, from place `first` on, go. */
void hosts_see_who_stays(struct node *node, unsigned first);
/* As ordered; then, if the host goes, its pages. */
void hosts_move_homes(struct node *node, const struct home_order *orders, unsigned n);
unsigned hosts_ms_since(const struct hosts *h);
/* The change ends: all is as before. */
void hosts_fail(struct node *node, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- hostcomes.c --- */
void hosts_begin_add(struct node *node);
void hosts_on_launched(struct node *node, const struct msg_host *body, const char *line, unsigned bytes);

/* --- hostgoes.c --- */
void hosts_begin_remove(struct node *node);
void hosts_move_cpus_away(struct node *node);
void hosts_stay(struct node *node);
void hosts_on_empty(struct node *node);
void hosts_on_gone(struct node *node, unsigned from);

#endif
