/* clock_sync.c - see clock_sync.h. */
#include "vmm/node/clock/clock_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/clock/drift.h"

/* In the first seconds, when no rate is known, the clocks are compared more often.  Clocks that
 * drift apart by 500 millionths are then 0.1 ms apart at most.  A page takes longer from one host
 * to another, so no guest can notice. */
enum {
	FIRST_ANSWERS = 24,
	ANSWERS = 4,
	TELL_FROM_NS = 1000000,
	EARLY_LOOKS = 30,
	EARLY_NS = 100000000
};

struct clock_sync {
	struct drift drift;
	unsigned wanted; /* answers that are still to come */
	bool asked;
	uint64_t start_ns; /* of the machine, by node 0's clock */
	struct loop_event *timer;
	unsigned looks;
};

/* FAULT_CLOCK_DRIFTS: by how much this host's clock pretends to be too fast. here_ns() is the
 * pretended clock; over_ours() converts a rate over the pretended clock into one over the real
 * clock. */
static double too_fast(void) { return fault_on(FAULT_CLOCK_DRIFTS) * 1e-6; }

static uint64_t here_ns(const struct node *node, uint64_t now_ns)
{
	return now_ns + (uint64_t)((double)(now_ns - node->boot_ns) * too_fast());
}

static int64_t over_ours(int64_t faster)
{
	return faster + (int64_t)((double)(faster + (1ll << 32)) * too_fast());
}

static void ask(struct node *node)
{
	struct msg_ping ping = { .sent_ns = here_ns(node, node_now_ns(node)) };

	net_send(node->net, VNODE_DAEMON(0), MSG_PING, &ping, sizeof ping, NULL, 0);
}

void clock_on_ping(struct node *node, const struct message *m, const struct msg_ping *body)
{
	struct msg_ping ping = *body;

	ping.answered_ns = node_now_ns(node);
	net_send(node->net, VNODE_DAEMON(m->from), MSG_PONG, &ping, sizeof ping, NULL, 0);
}

void clock_on_pong(struct node *node, const struct message *m, const struct msg_ping *pong)
{
	struct clock_sync *clock = node->clock;
	uint64_t now_ns = here_ns(node, node_now_ns(node));

	(void)m;
	if (!clock)
		return; /* this host has not asked */
	if (!drift_add(&clock->drift, pong->sent_ns, pong->answered_ns, now_ns))
		log_warn("this host's clock or node 0's has changed its pace, or stood still: they "
			 "are compared anew");
	if (!clock->wanted || --clock->wanted) {
		if (clock->wanted)
			ask(node);
		return;
	}
	if (clock->drift.answers != FIRST_ANSWERS)
		return;
	log_info("node 0's clock is %lld us ahead, give or take %llu us",
		 (long long)drift_ahead(&clock->drift, now_ns) / 1000,
		 (unsigned long long)drift_doubt(&clock->drift, now_ns) / 1000);
	node_check_ready(node);
}

/* Returns by how much the machine's clock on this host is behind node 0's. */
static int64_t behind_ns(const struct node *node, uint64_t now_ns)
{
	const struct clock_sync *clock = node->clock;
	struct clock_line line = hostclock_line(&node->shm->clock);
	uint64_t here = here_ns(node, now_ns);

	return (int64_t)(here + (uint64_t)drift_ahead(&clock->drift, here) - clock->start_ns -
			 clock_line_at(&line, now_ns));
}

/* (TRICKS: clock-often-first) */
static void look_again(struct clock_sync *clock)
{
	if (loop_after(clock->timer, clock->looks < EARLY_LOOKS
					     ? EARLY_NS
					     : DRIFT_PERIOD_S * (uint64_t)LOOP_S))
		die("cannot set a timer: %s", strerror(errno));
}

static uint64_t now_of(const void *context) { return node_now_ns(context); }

static void on_timer(void *context)
{
	struct node *node = context;
	struct clock_sync *clock = node->clock;
	uint64_t now_ns = node_now_ns(node);
	int64_t behind = behind_ns(node, now_ns),
		faster = drift_steer(behind, drift_rate(&clock->drift));

	hostclock_turn(&node->shm->clock, now_of, node, over_ours(faster));
	if (llabs(behind) >= TELL_FROM_NS)
		log_info("the machine's clock is %lld us behind node 0's, give or take %llu us; it "
			 "runs %lld millionths too fast for a while", (long long)behind / 1000,
			 (unsigned long long)drift_doubt(&clock->drift, here_ns(node, now_ns)) /
				 1000, (long long)((double)faster / 4294.967296));
	clock->looks++;
	look_again(clock);
	clock->wanted = ANSWERS;
	ask(node);
}

void clock_start(struct node *node)
{
	if (!node->o.cluster)
		return;
	node->clock = calloc(1, sizeof *node->clock);
	if (!node->clock)
		die("out of memory");
}

bool clock_known(struct node *node)
{
	if (!node->clock || node->o.node == 0 || node->clock->drift.answers >= FIRST_ANSWERS)
		return true;
	if (!node->clock->asked) {
		node->clock->asked = true;
		node->clock->wanted = FIRST_ANSWERS;
		ask(node);
	}
	return false;
}

/* (TRICKS: timer-descriptors) */
static void follow(struct node *node)
{
	struct clock_sync *clock = node->clock;
	clock->timer = loop_add(&node->loop, LOOP_OWN_TIMER, -1, on_timer, node);
	if (!clock->timer)
		die("cannot make a timer: %s", strerror(errno));
	look_again(clock);
}

void clock_begin(struct node *node, uint64_t start_ns)
{
	struct clock_sync *clock = node->clock;
	uint64_t now_ns = node_now_ns(node), here = here_ns(node, now_ns);

	if (!clock || node->o.node == 0) {
		hostclock_set(&node->shm->clock, (struct clock_line){ start_ns, 0, 0 });
		return;
	}
	clock->start_ns = start_ns;
	hostclock_set(&node->shm->clock,
		      (struct clock_line){
			      now_ns, here + (uint64_t)drift_ahead(&clock->drift, here) - start_ns,
			      over_ours(drift_steer(0, drift_rate(&clock->drift))) });
	follow(node);
}
