/* phnx_forever.c - the check of the PPoPP paper: messages are forwarded to random virtual nodes
 * for ever, while nodes migrate virtual nodes at random, leave for good, come back as new nodes,
 * and lose links.  No message may be lost or doubled.  Usage: phnx_forever [SEED [HOPS
 * [HOLD_US]]].  Routing messages are held at random for up to HOLD_US at each node: by default
 * first 0, then 30000. */
#include <stdio.h>
#include "tests/sim/phnx_sim.h"

enum { NODES = 12, TOKENS = 64, SPACE = 100000, HOPS_A_RESTART = 20000 };

struct token {
	uint32_t id, hops;
};
static uint32_t hops_of[TOKENS];
static uint64_t hops, restarts, moved, bounced, resent;
static bool leaving[NODES];

static void send_token(struct sim *s, int node, uint32_t id)
{
	struct token t = { id, hops_of[id] };
	struct pbuf *b = pbuf_new(&t, sizeof t);

	flow_send_own(s->nodes[node].ph, (ph_vp_t)sim_random(s, SPACE), b, 3, 0, 0);
	pbuf_put(b);
}

static int forward_all(struct sim *s, int node)
{
	struct rmsg *m;

	/* some come back at once */
	for (int n = 0; n < TOKENS && (m = flow_receive(s->nodes[node].ph, 3)); n++) {
		struct token *t = m->pub.body;
		if (t->hops != hops_of[t->id]) {
			printf("token %u came with %u hops, and had %u: doubled\n", t->id, t->hops,
			       hops_of[t->id]);
			return 1;
		}
		hops_of[t->id]++;
		hops++;
		send_token(s, node, t->id);
		free(m);
	}
	sim_touch(s, node);
	return 0;
}

static void restart(struct sim *s, int node)
{
	struct phnx *ph = s->nodes[node].ph;

	moved += ph->migration->done;
	bounced += ph->flows->bounced;
	resent += ph->flows->resent;
	node_goodbye(ph);
	sim_touch(s, node);
	sim_run(s, s->now + 2000);
	sim_kill(s, node);
	sim_restart(s, node);
	sim_know(s, node, node ? 0 : 1);
	sim_know(s, node, (node + 1) % NODES);
	leaving[node] = false;
	restarts++;
}

static void mischief(struct sim *s, int node)
{
	struct phnx *ph = s->nodes[node].ph;
	struct migration *m = ph->migration;

	if (leaving[node]) {
		if (m->wish == WISH_NONE && !m->locked && ph->me.vps.n == 0 && flow_idle(ph) &&
		    flow_settled(ph))
			restart(s, node);
		else if (m->wish == WISH_NONE && ph->me.vps.n)
			migrate_begin(ph, WISH_LEAVE, 1, 1);
	} else if (ph->me.vps.n == 0) {
		migrate_begin(ph, WISH_JOIN, 1, 1);
	} else if (sim_random(s, 10) == 0) {
		leaving[node] = true;
	} else {
		migrate_begin(ph, sim_random(s, 2) ? WISH_TAKE : WISH_HAND,
			      1 + (ph_vp_t)sim_random(s, SPACE / 10), sim_random(s, 2) ? 1 : -1);
	}
	sim_touch(s, node);
	if (sim_random(s, 50) == 0)
		sim_cut(s, (int)sim_random(s, NODES), (unsigned)sim_random(s, NODES));
}

static bool go_round(struct sim *s)
{
	for (int i = 0; i < NODES; i++)
		if (forward_all(s, i))
			return false;
	return true;
}

/* Returns false if a message was lost or doubled. */
static bool stir(struct sim *s, uint64_t want)
{
	uint64_t progress = 0, progress_at = s->now;

	while (hops < want) {
		if (!go_round(s))
			return false;
		if (sim_random(s, 4) == 0)
			mischief(s, (int)sim_random(s, NODES));
		sim_run(s, s->now + 500);
		if (hops > progress) {
			progress = hops;
			progress_at = s->now;
		} else if (s->now > progress_at + 60000000) {
			printf("no message has arrived for a minute\n");
			return false;
		}
	}
	return true;
}

/* Waits until each token has come by once more.  Returns how many have not. */
static int missing_tokens(struct sim *s)
{
	uint32_t before[TOKENS];
	int missing = TOKENS;

	for (int i = 0; i < TOKENS; i++)
		before[i] = hops_of[i];
	for (uint64_t end = s->now + 60000000; missing && s->now < end && go_round(s);
	     sim_run(s, s->now + 5000)) {
		missing = 0;
		for (int i = 0; i < TOKENS; i++)
			missing += hops_of[i] == before[i];
	}
	return missing;
}

static bool play(uint64_t seed, uint64_t want, uint64_t hold_us)
{
	struct sim s;

	hops = restarts = moved = bounced = resent = 0;
	memset(hops_of, 0, sizeof hops_of);
	memset(leaving, 0, sizeof leaving);
	sim_init(&s, seed, NODES, 0, SPACE);
	sim_tardy(&s, hold_us);
	for (int i = 1; i < NODES; i++)
		sim_know(&s, i, 0);
	struct vrange all = { 0, SPACE };
	mapping_assume(s.nodes[0].ph, &(struct ph_vps){ .n = 1, .r = &all });
	for (uint32_t id = 0; id < TOKENS; id++)
		send_token(&s, 0, id);
	bool well = stir(&s, want);
	int missing = well ? missing_tokens(&s) : TOKENS;
	for (int i = 0; i < NODES; i++) {
		moved += s.nodes[i].ph->migration->done;
		bounced += s.nodes[i].ph->flows->bounced;
		resent += s.nodes[i].ph->flows->resent;
	}
	printf("seed %llu, news held up to %llu us: %llu messages, %d of %d tokens lost, "
	       "%llu migrations, %llu restarts, %llu bounced, %llu resent\n",
	       (unsigned long long)seed, (unsigned long long)hold_us, (unsigned long long)hops,
	       missing, TOKENS, (unsigned long long)moved, (unsigned long long)restarts,
	       (unsigned long long)bounced, (unsigned long long)resent);
	sim_free(&s);
	/* the first node leaves when most have joined */
	bool enough = restarts + 1 >= hops / HOPS_A_RESTART;
	if (!enough)
		printf("too few nodes have left: some migration stands still\n");
	return well && !missing && enough;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
		 want = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;

	if (argc > 3)
		return !play(seed, want, strtoull(argv[3], NULL, 0));
	return !play(seed, want, 0) || !play(seed, want / 5, 30000);
}
