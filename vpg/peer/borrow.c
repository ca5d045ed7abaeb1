/* borrow.c - see borrow.h. */
#include "vpg/peer/borrow.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "vpg/peer/addresses.h"
#include "vpg/peer/choose.h"
#include "vpg/peer/lending.h"

enum { LOOK_US = 700000, GIVE_UP_US = 10000000, PAUSE_LEAST_US = 20000, PAUSE_US = 200000,
       OTHERS_MAX = 1024 };

enum phase {
	PHASE_LOOK,	/* peers are asked what they have; until all have answered, or the timer */
	PHASE_ASK,	/* the chosen peers are asked for offers */
	PHASE_KEEP,	/* all offers are there; each lender is to confirm that it keeps its own */
	PHASE_PAUSE,	/* something was refused: a pause before the next try */
	PHASE_DONE,
};

struct loan_here {
	struct loan_here *next;
	struct tunnel *via;
	uint64_t id, processors;
	char nick[NICK_BYTES], address[ADDRESS];
	bool answered;
};

struct borrow {
	struct borrow *next;
	struct shell *shell;
	enum phase phase;
	uint32_t others, processors, memory_mib, min_mib;
	enum choose_how how;
	char only[NICK_BYTES];		/* borrow from this computer alone; "": from any */
	char *others_than;		/* ",NICK,NICK,": excluded, as this computer is; or NULL */
	struct loan_here *loans;
	struct event *timer;
	int64_t since_us;
	struct why why;			/* the last refusal */
};

static struct borrow *borrows;
static uint64_t last_id;

static void begin(struct borrow *b);

/* ---- loans ---- */

static void drop_loan(struct borrow *b, struct loan_here *gone, bool tell)
{
	struct vpg_RETURN m = { gone->id };

	for (struct loan_here **at = &b->loans; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
	if (tell)
		tunnel_send(gone->via, VPG_RETURN, &m);
	free(gone);
}

static void drop_loans(struct borrow *b)
{
	while (b->loans)
		drop_loan(b, b->loans, true);
}

static void borrow_free(struct borrow *b)
{
	for (struct borrow **at = &borrows; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			break;
		}
	drop_loans(b);
	if (b->timer)
		event_free(b->timer);
	free(b->others_than);
	free(b);
}

static void wait_us(struct borrow *b, long us)
{
	const struct timeval after = { us / 1000000, us % 1000000 };

	event_add(b->timer, &after);
}

/* ---- results ---- */

static void say_done(struct borrow *b, int status, const char *line)
{
	struct vpg_DONE done = { (uint64_t)status, line };

	b->phase = PHASE_DONE;
	event_del(b->timer);
	shell_say(b->shell, VPG_DONE, &done);
}

static void fail(struct borrow *b)
{
	struct why why = b->why;

	drop_loans(b);
	say_done(b, 1, why.line);
}

/* Something was refused, for the reason in `why`: tries again, after a pause of random length, so
 * that two borrowers that disturb each other do not do so for ever. */
static void again(struct borrow *b)
{
	drop_loans(b);
	if (tunnel_now_us() - b->since_us > GIVE_UP_US) {
		fail(b);
		return;
	}
	b->phase = PHASE_PAUSE;
	wait_us(b, PAUSE_LEAST_US + random() % PAUSE_US);
}

static void say_loan(struct borrow *b, const char *nick, uint64_t processors, const char *address)
{
	struct vpg_LOAN row = { nick, processors, address };

	shell_say(b->shell, VPG_LOAN, &row);
}

/* Tells the shell the loans, the nearest first.  The computer itself comes before them, with or
 * without processors. */
static void succeed(struct borrow *b)
{
	const char *self = shell_daemon(b->shell)->net.settings.nick;

	if (!*b->only && !b->others_than && (!b->loans || strcmp(b->loans->nick, self)))
		say_loan(b, self, 0, "");
	for (struct loan_here *l = b->loans; l; l = l->next)
		say_loan(b, l->nick, l->processors, l->address);
	say_done(b, 0, "");
}

/* ---- the choice ---- */

/* Returns whether the borrower takes this computer at all. */
static bool is_wanted(const struct borrow *b, const struct tunnel *t)
{
	char mark[NICK_BYTES + 2];

	snprintf(mark, sizeof mark, ",%s,", t->nick);
	return b->others_than ? !t->mirror && !strstr(b->others_than, mark)
			      : !*b->only || !strcmp(b->only, t->nick);
}

static bool is_candidate(const struct borrow *b, const struct tunnel *t)
{
	return t->open && !t->dead && !t->asked_us && (!t->mirror || t == t->d->self[0]) &&
	       is_wanted(b, t);
}

static struct candidate candidate_of(const struct borrow *b, const struct tunnel *t)
{
	const struct peer_facts *f = &t->facts;
	struct candidate c = { .nick = t->nick, .self = t->mirror && !*b->only,
			       .rtt_us = f->rtt_us };
	bool has = t->mirror || (f->lent_mib + b->memory_mib <= f->lends_mib &&
				 f->free_kib / 1024 >= b->min_mib);

	c.worth = choose_worth(f->speed < UINT32_MAX ? (uint32_t)f->speed : UINT32_MAX,
			       f->processors, f->load_percent);
	c.free = has && f->spare <= LOAN_PROCESSORS_MAX ? (uint32_t)f->spare : 0;
	return c;
}

static size_t find_candidates(const struct borrow *b, struct candidate *c, bool *offers)
{
	size_t n = 0;

	for (const struct tunnel *t = shell_daemon(b->shell)->tunnels; t; t = t->next)
		if (is_candidate(b, t)) {
			c[n++] = candidate_of(b, t);
			*offers |= t->facts.offers > 0;
		}
	return n;
}

static void too_few(struct borrow *b, const struct choice *found)
{
	if (*b->only)
		why_set(&b->why, "%s is not reached, or does not lend %u processor%s and %u MiB: "
			"vmp peers", b->only, b->processors, b->processors > 1 ? "s" : "",
			b->memory_mib);
	else if (b->others_than)
		why_set(&b->why, "no further computer lends %u processor%s and %u MiB now: vmp "
			"peers lists them all", b->processors, b->processors > 1 ? "s" : "",
			b->memory_mib);
	else if (found->others < b->others && b->how != CHOOSE_CONCENTRATE && b->min_mib)
		why_set(&b->why, "%u of %u other computers lend a processor and %u MiB now and "
			"have %u MiB free: vmp peers lists them all", found->others, b->others,
			b->memory_mib, b->min_mib);
	else if (found->others < b->others && b->how != CHOOSE_CONCENTRATE)
		why_set(&b->why, "%u of %u other computers lend a processor and %u MiB now: vmp "
			"peers lists them all", found->others, b->others, b->memory_mib);
	else
		why_set(&b->why, "%u other computers and this one have %u processors for it, not "
			"%u: vmp peers lists them all", found->others, found->processors,
			b->processors);
}

static void ask_for(struct borrow *b, const struct candidate *c, struct loan_here ***end)
{
	struct tunnel *t = tunnel_to(shell_daemon(b->shell), c->nick, true);
	struct loan_here *l = t ? calloc(1, sizeof *l) : NULL;

	if (!l)
		return;
	*l = (struct loan_here){ .via = t, .id = ++last_id, .processors = c->gives };
	memcpy(l->nick, t->nick, NICK_BYTES);
	**end = l;
	*end = &l->next;
	struct vpg_RESERVE m = { l->id, l->processors, b->memory_mib };
	tunnel_send(t, VPG_RESERVE, &m);
}

/* Chooses, when all peers have said what they have, or the time for that is over. */
static void decide(struct borrow *b)
{
	struct candidate *c = calloc(TUNNELS_MAX, sizeof *c);
	struct loan_here **end = &b->loans;
	bool offers = false;
	size_t n = c ? find_candidates(b, c, &offers) : 0;
	struct choice found = choose(c, n, b->how, b->others, b->processors);

	if (!choose_suffices(&found, b->how, b->others, b->processors)) {
		too_few(b, &found);
		free(c);
		if (offers)	/* an offer that its borrower does not keep is free soon */
			again(b);
		else
			fail(b);
		return;
	}
	b->phase = PHASE_ASK;
	for (size_t i = 0; i < n; i++)
		if (c[i].gives)
			ask_for(b, c + i, &end);
	free(c);
	wait_us(b, OFFER_US / 2);
}

/* ---- one step after the other ---- */

static void begin(struct borrow *b)
{
	b->phase = PHASE_LOOK;
	wait_us(b, LOOK_US);
	hear_ping_all(shell_daemon(b->shell));
	if (hear_all_answered(shell_daemon(b->shell)))
		decide(b);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct borrow *b = arg;

	(void)fd, (void)what;
	if (b->phase == PHASE_LOOK) {
		decide(b);
	} else if (b->phase == PHASE_PAUSE) {
		begin(b);
	} else if (b->phase == PHASE_ASK || b->phase == PHASE_KEEP) {
		why_set(&b->why, "a computer that lends has not answered: vmp peers");
		again(b);
	}
}

static bool all_have_answered(const struct borrow *b)
{
	for (const struct loan_here *l = b->loans; l; l = l->next)
		if (!l->answered)
			return false;
	return true;
}

static void keep_all(struct borrow *b)
{
	b->phase = PHASE_KEEP;
	wait_us(b, OFFER_US / 2);
	for (struct loan_here *l = b->loans; l; l = l->next) {
		struct vpg_KEEP m = { l->id };

		l->answered = false;
		tunnel_send(l->via, VPG_KEEP, &m);
	}
}

static struct loan_here *find_loan(struct borrow *b, const struct tunnel *t, uint64_t id)
{
	struct loan_here *l = b->loans;

	while (l && (l->via != t || l->id != id))
		l = l->next;
	return l;
}

static void on_answer(struct borrow *b, struct loan_here *l, const struct vpg_LENT *m)
{
	if (m->answer != LEND_YES) {
		why_set(&b->why, "%s %s: vmp peers", l->nick, lend_why(
			m->answer < LEND_ANSWERS ? (enum lend_answer)m->answer : LEND_ANSWERS));
		again(b);
		return;
	}
	if (b->phase == PHASE_ASK)
		addresses_pick(m->addresses, l->address);
	l->answered = true;
	if (!all_have_answered(b))
		return;
	if (b->phase == PHASE_ASK)
		keep_all(b);
	else
		succeed(b);
}

void borrow_hear(struct tunnel *t, const struct vpg_LENT *m)
{
	for (struct borrow *b = borrows; b; b = b->next) {
		struct loan_here *l = find_loan(b, t, m->loan);

		if (l && (b->phase == PHASE_ASK || b->phase == PHASE_KEEP) && !l->answered) {
			on_answer(b, l, m);
			return;
		}
	}
}

void borrow_peer_answered(struct daemon *d)
{
	for (struct borrow *b = borrows, *next; b; b = next) {
		next = b->next;
		if (b->phase == PHASE_LOOK && hear_all_answered(d))
			decide(b);
	}
}

/* A lender is lost.  A machine that has the computer notices that by itself. */
void borrow_tunnel_closed(const struct tunnel *t)
{
	for (struct borrow *b = borrows; b; b = b->next)
		for (struct loan_here *l = b->loans, *next; l; l = next) {
			next = l->next;
			if (l->via != t)
				continue;
			why_set(&b->why, "%s is lost", l->nick);
			drop_loan(b, l, false);
			if (b->phase != PHASE_DONE) {
				again(b);
				break;
			}
		}
}

/* ---- shells ---- */

/* Reads whose computers are wanted: ASK_BORROW's nick.  Returns 0 or -1. */
static int take_nick(struct borrow *b, const char *nick)
{
	size_t n = strlen(nick);

	if (*nick != '!') {
		memcpy(b->only, nick, n < NICK_BYTES ? n : 0);
		return n < NICK_BYTES ? 0 : -1;
	}
	b->others_than = malloc(n + 2);
	if (b->others_than)
		snprintf(b->others_than, n + 2, ",%s,", nick + 1);
	return b->others_than ? 0 : -1;
}

static void on_ask(struct shell *s, const struct vpg_ASK_BORROW *m)
{
	struct borrow *b = NULL;
	struct vpg_DONE done = { 1, "it asks for what no version asks for" };

	if (m->others <= OTHERS_MAX && m->processors && m->processors <= LOAN_PROCESSORS_MAX &&
	    m->memory_mib <= UINT32_MAX && m->min_mib <= UINT32_MAX && m->how < CHOOSE_KINDS)
		b = calloc(1, sizeof *b);
	if (!b || take_nick(b, m->nick)) {
		free(b);
		shell_say(s, VPG_DONE, &done);
		return;
	}
	b->next = borrows;
	b->shell = s;
	b->others = (uint32_t)m->others;
	b->processors = (uint32_t)m->processors;
	b->memory_mib = (uint32_t)m->memory_mib;
	b->min_mib = (uint32_t)m->min_mib;
	b->how = (enum choose_how)m->how;
	b->since_us = tunnel_now_us();
	borrows = b;
	b->timer = evtimer_new(shell_daemon(s)->base, on_timer, b);
	if (b->timer)
		begin(b);
	else
		borrow_free(b);
}

void borrow_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m)
{
	if (type == VPG_ASK_BORROW) {
		on_ask(s, &m->ASK_BORROW);
		return;
	}
	for (struct borrow *b = borrows; b; b = b->next)
		for (struct loan_here *l = b->loans, *next; l; l = next) {
			next = l->next;
			if (b->shell == s && b->phase == PHASE_DONE &&
			    !strcmp(l->nick, m->GIVE_BACK.nick))
				drop_loan(b, l, true);
		}
}

void borrow_shell_gone(const struct shell *s)
{
	for (struct borrow *b = borrows, *next; b; b = next) {
		next = b->next;
		if (b->shell == s)
			borrow_free(b);
	}
}
