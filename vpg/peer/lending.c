/* lending.c - see lending.h. */
#include "vpg/peer/lending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool counts(const struct loan *l, int64_t now_us)
{
	return l->state == LOAN_KEPT || (l->state == LOAN_OFFERED && now_us < l->until_us);
}

static struct loan *find(struct loans *all, const void *borrower, uint64_t id)
{
	for (size_t i = 0; i < LOANS_MAX; i++)
		if (all->at[i].state && all->at[i].borrower == borrower && all->at[i].id == id)
			return all->at + i;
	return NULL;
}

static void sum(const struct loans *all, int64_t now_us, bool offers, struct limits *s)
{
	*s = (struct limits){ 0, 0, 0 };
	for (size_t i = 0; i < LOANS_MAX; i++) {
		const struct loan *l = all->at + i;

		if (!counts(l, now_us) || (!offers && l->state == LOAN_OFFERED))
			continue;
		s->processors += l->processors;
		s->memory_mib += l->memory_mib;
		s->machines++;
	}
}

struct limits lend_lent(const struct loans *all, int64_t now_us)
{
	struct limits s;

	sum(all, now_us, true, &s);
	return s;
}

static enum lend_answer judge(const struct limits *l, const struct limits *s,
			      const struct loan *wanted, bool own)
{
	if ((uint64_t)s->processors + wanted->processors > l->processors)
		return LEND_NO_PROCESSORS;
	if (!own && (uint64_t)s->memory_mib + wanted->memory_mib > l->memory_mib)
		return LEND_NO_MEMORY;
	return !own && s->machines >= l->machines ? LEND_NO_MACHINES : LEND_YES;
}

enum lend_answer lend_ask(struct loans *all, const struct limits *l, const struct loan *wanted,
			  bool own, int64_t now_us)
{
	struct limits kept, both;
	enum lend_answer answer;
	size_t i = 0;

	if (!wanted->processors || wanted->processors > LOAN_PROCESSORS_MAX)
		return LEND_BAD;
	lend_return(all, wanted->borrower, wanted->id);
	sum(all, now_us, true, &both);
	sum(all, now_us, false, &kept);
	answer = judge(l, &both, wanted, own);
	if (answer)
		return judge(l, &kept, wanted, own) == LEND_YES ? LEND_BUSY : answer;
	while (i < LOANS_MAX && counts(all->at + i, now_us))
		i++;
	if (i == LOANS_MAX)
		return LEND_NO_MACHINES;
	all->at[i] = *wanted;
	all->at[i].state = LOAN_OFFERED;
	all->at[i].until_us = now_us + OFFER_US;
	return LEND_YES;
}

enum lend_answer lend_keep(struct loans *all, const void *borrower, uint64_t id, int64_t now_us)
{
	struct loan *l = find(all, borrower, id);

	if (!l || !counts(l, now_us))
		return LEND_LATE;
	l->state = LOAN_KEPT;
	return LEND_YES;
}

void lend_return(struct loans *all, const void *borrower, uint64_t id)
{
	struct loan *l = find(all, borrower, id);

	if (l)
		*l = (struct loan){ LOAN_FREE };
}

void lend_forget(struct loans *all, const void *borrower)
{
	for (size_t i = 0; i < LOANS_MAX; i++)
		if (all->at[i].borrower == borrower)
			all->at[i] = (struct loan){ LOAN_FREE };
}

uint32_t lend_offers(const struct loans *all, int64_t now_us)
{
	uint32_t n = 0;

	for (size_t i = 0; i < LOANS_MAX; i++)
		n += all->at[i].state == LOAN_OFFERED && counts(all->at + i, now_us);
	return n;
}

uint32_t lend_free(const struct loans *all, const struct limits *l, int64_t now_us)
{
	struct limits s = lend_lent(all, now_us);

	return s.machines >= l->machines || s.memory_mib >= l->memory_mib ||
	       s.processors >= l->processors ? 0 : l->processors - s.processors;
}

const char *lend_why(enum lend_answer a)
{
	static const char *const text[LEND_ANSWERS] = {
		[LEND_YES] = "",
		[LEND_BUSY] = "is being reserved by another machine",
		[LEND_NO_PROCESSORS] = "lends no more processors",
		[LEND_NO_MEMORY] = "lends no more memory",
		[LEND_NO_MACHINES] = "takes part in no more machines",
		[LEND_BAD] = "was asked what no version asks",
		[LEND_LATE] = "has not heard of the machine in time",
	};

	return (unsigned)a < LEND_ANSWERS ? text[a] : "does not lend";
}

void lend_print_limits(const struct limits *l, char text[LIMITS_TEXT])
{
	snprintf(text, LIMITS_TEXT, "processors %u\nmemory %u\nmachines %u\n", l->processors,
		 l->memory_mib, l->machines);
}

int lend_read_limits(struct limits *l, const char *text)
{
	struct limits r;
	char rest[2];

	if (sscanf(text, "processors %9u memory %9u machines %9u %1s", &r.processors,
		   &r.memory_mib, &r.machines, rest) != 3)
		return -EPROTO;
	*l = r;
	return 0;
}
