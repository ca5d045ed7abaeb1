/* cluster_votes.c - see cluster_votes.h. */
#include "vmm/cli/cluster/cluster_votes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

int cluster_random_name(char name[PRESENCE_ID + 1], struct problem *p)
{
	uint64_t id;

	if (getrandom(&id, sizeof id, 0) != sizeof id)
		return problem(p, "no random numbers: %s", strerror(errno));
	snprintf(name, PRESENCE_ID + 1, "%016llx", (unsigned long long)id);
	return 0;
}

void cluster_ask_vote(const struct cluster *c, struct far *far)
{
	char name[MAX_PRESENCE];

	presence_name(name, c->votes, far->host.name);
	far_ask_vote(far, name, c->owner);
}

void cluster_ask_vote_here(struct cluster *c)
{
	char name[MAX_PRESENCE];

	if (c->vote_here == VOTE_GIVEN)
		return;
	presence_name(name, c->votes, c->host[0].name);
	c->vote_here = presence_vote(&c->held_here, name, c->owner);
}

void cluster_give_up_vote(struct cluster *c)
{
	char name[MAX_PRESENCE];

	presence_name(name, c->votes, c->host[0].name);
	if (c->vote_here == VOTE_GIVEN)
		presence_unvote(c->held_here, name);
	c->vote_here = VOTE_UNASKED;
}

void cluster_ask_votes(struct cluster *c)
{
	c->asks = true;
	cluster_ask_vote_here(c);
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			cluster_ask_vote(c, c->far[host]);
}

struct cluster_votes cluster_count_votes(struct cluster *c)
{
	struct cluster_votes votes = { false, false, false };

	cluster_ask_vote_here(c);
	for (unsigned host = 0; host < MAX_NODES; host++) {
		const struct far *far = c->far[host];
		enum vote vote = host ? VOTE_UNASKED : c->vote_here;

		if (far && far->state == FAR_READY)
			vote = far->vote;
		votes.taken |= vote == VOTE_TAKEN;
		votes.held |= vote == VOTE_HELD || vote == VOTE_TAKEN;
		votes.wait |= vote == VOTE_WAITS || vote == VOTE_HELD || vote == VOTE_TAKEN;
	}
	return votes;
}

const char *cluster_lacks_vote(const struct far *far, bool may_lack)
{
	switch (far->vote) {
	case VOTE_HELD:
	case VOTE_TAKEN:
		return "it serves another owner of this machine";
	case VOTE_WAITS:
		return "what the machine had started there has not ended";
	case VOTE_NONE:
		return may_lack ? NULL : "it does not say whether it serves another owner";
	default:
		return NULL;
	}
}

void cluster_runs(const struct cluster *c)
{
	if (c->vote_here == VOTE_GIVEN)
		presence_vote_runs(c->held_here);
}
