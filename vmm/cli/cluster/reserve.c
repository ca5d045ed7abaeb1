/* reserve.c - see reserve.h. */
#include "vmm/cli/cluster/reserve.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "vmm/shared/hostmem.h"

static void ask(struct reserve *r);

static void forget(struct reserve *r, uint32_t at)
{
	r->n--;
	memmove(r->left + at, r->left + at + 1, (r->n - at) * sizeof *r->left);
}

/* Some computer has refused: says so once, and asks the next one, or all again after a while. */
static void refused(struct reserve *r, const char *why)
{
	char line[MAX_HOST_NAME + sizeof(struct problem) + 80];

	snprintf(line, sizeof line, "%s is not reserved for this machine yet: %s",
		 r->left[r->at].nick, why);
	if (!r->left[r->at].said)
		r->say(r->context, line);
	r->left[r->at].said = true;
	r->at++;
}

static void on_asked(void *context)
{
	struct reserve *r = context;
	struct problem p;
	int result = peers_read(&r->asked, false, &p);

	if (!result)
		return;
	loop_remove(r->on_asked);
	r->on_asked = NULL;
	if (result < 0) {
		refused(r, p.line);
	} else {
		if (r->is_host(r->context, r->left[r->at].nick))
			peers_held_add(r->held, r->left[r->at].nick, r->asked.held);
		else
			close(r->asked.held);
		forget(r, r->at);
	}
	ask(r);
}

/* Asks the next computer that is a host still. */
static void ask(struct reserve *r)
{
	struct problem p;

	while (r->at < r->n) {
		const char *nick = r->left[r->at].nick;
		const struct peers_wish wish = { .others = 1, .cpus = r->left[r->at].cpus,
						 .mem_mib = r->left[r->at].mem_mib, .how = "near",
						 .nick = nick };

		if (!r->is_host(r->context, nick)) {
			forget(r, r->at);
			continue;
		}
		if (!peers_ask(&r->asked, &wish, &p)) {
			r->on_asked = loop_add(r->loop, LOOP_READ, r->asked.fd, on_asked, r);
			if (r->on_asked && !loop_watch(r->on_asked))
				return;
			loop_remove(r->on_asked);
			r->on_asked = NULL;
			peers_drop(&r->asked);
			problem(&p, "no memory");
		}
		refused(r, p.line);
	}
	r->at = 0;
	if (r->n)
		loop_after(r->again, r->again_ms * (uint64_t)LOOP_MS);
}

static void on_again(void *context) { ask(context); }

int reserve_begin(struct reserve *r, const struct cluster_host *hosts, uint32_t n,
		  uint32_t guest_mib, struct problem *p)
{
	r->n = r->at = 0;
	r->on_asked = NULL;
	r->again = loop_timer(r->loop, on_again, r);
	if (!r->again)
		return problem(p, "no memory");
	for (uint32_t i = 0; i < n && i < MAX_NODES; i++)
		if (hosts[i].cpus) {
			memcpy(r->left[r->n].nick, hosts[i].name, MAX_HOST_NAME);
			r->left[r->n].cpus = hosts[i].cpus;
			r->left[r->n].mem_mib =
				(uint32_t)hostmem_needed_mib(guest_mib, 1, hosts[i].cpus);
			r->left[r->n++].said = false;
		}
	ask(r);
	return 0;
}

void reserve_end(struct reserve *r)
{
	if (r->on_asked)
		peers_drop(&r->asked);
	loop_remove(r->on_asked);
	loop_remove(r->again);
	r->on_asked = r->again = NULL;
}
