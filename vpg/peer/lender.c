/* lender.c - see lender.h. */
#include "vpg/peer/lender.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "vpg/peer/addresses.h"

static struct loans loans;

static void computer_itself(struct limits *l)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
	     bytes = sysconf(_SC_PAGESIZE);

	*l = (struct limits){ processors > 0 ? (uint32_t)processors : 1,
			      pages > 0 ? (uint32_t)(pages / 1024 * bytes / 1024) : 0, LOANS_MAX };
}

void lender_limits(const struct daemon *d, struct limits *l)
{
	struct limits has;
	char text[LIMITS_TEXT];
	long n = folder_read(d->net.folder, "limits", text, sizeof text);

	computer_itself(&has);
	*l = has;
	if (n == -ENOENT)
		return;
	if (n < 0 || lend_read_limits(l, text)) {
		log_error("%s/limits: damaged, or others can read it: nothing is lent",
			  d->net.folder);
		*l = (struct limits){ 0, 0, 0 };
	}
	l->processors = l->processors < has.processors ? l->processors : has.processors;
	l->memory_mib = l->memory_mib < has.memory_mib ? l->memory_mib : has.memory_mib;
	l->machines = l->machines < has.machines ? l->machines : has.machines;
}

int lender_set_limits(const struct daemon *d, const struct limits *l, struct why *why)
{
	char text[LIMITS_TEXT];

	lend_print_limits(l, text);
	int error = folder_write(d->net.folder, "limits", text, strlen(text));
	return error ? why_set(why, "%s/limits: %s", d->net.folder, strerror(-error)) : 0;
}

/* Sets the limits for a borrower.  For the owner's own machines only the processors are limited. */
static void limits_for(const struct tunnel *t, struct limits *l)
{
	if (t->mirror)
		computer_itself(l);
	else
		lender_limits(t->d, l);
}

static void answer(struct tunnel *t, uint64_t loan, enum lend_answer a)
{
	char addresses[ADDRESSES_TEXT] = "";
	struct vpg_LENT say = { loan, a, addresses };

	if (a == LEND_YES)
		addresses_own(addresses);
	tunnel_send(t, VPG_LENT, &say);
}

static void on_reserve(struct tunnel *t, const struct vpg_RESERVE *m)
{
	struct loan wanted = { .borrower = t, .id = m->loan,
			       .processors = (uint32_t)m->processors,
			       .memory_mib = (uint32_t)m->memory_mib };
	struct limits l;

	limits_for(t, &l);
	if (m->processors > LOAN_PROCESSORS_MAX || m->memory_mib > UINT32_MAX)
		answer(t, m->loan, LEND_BAD);
	else
		answer(t, m->loan, lend_ask(&loans, &l, &wanted, t->mirror, tunnel_now_us()));
}

void lender_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	if (type == VPG_RESERVE)
		on_reserve(t, &m->RESERVE);
	else if (type == VPG_KEEP)
		answer(t, m->KEEP.loan, lend_keep(&loans, t, m->KEEP.loan, tunnel_now_us()));
	else
		lend_return(&loans, t, m->RETURN.loan);
}

void lender_tunnel_closed(const struct tunnel *t)
{
	lend_forget(&loans, t);
}

void lender_describe(const struct tunnel *t, struct vpg_PONG *pong)
{
	struct limits l, all;
	int64_t now = tunnel_now_us();

	limits_for(t, &l);
	pong->spare = lend_free(&loans, &l, now);
	lender_limits(t->d, &l);
	all = lend_lent(&loans, now);
	pong->lends = l.processors;
	pong->lent = all.processors;
	pong->lends_mib = l.memory_mib;
	pong->lent_mib = all.memory_mib;
	pong->machines_most = l.machines;
	pong->machines = all.machines;
	pong->offers = lend_offers(&loans, now);
}
