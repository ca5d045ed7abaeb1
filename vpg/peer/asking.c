/* asking.c - see asking.h. */
#include "vpg/peer/asking.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include "base/limits.h"
#include "base/log.h"
#include "vpg/wire/daemon_socket.h"

struct table { bool json; unsigned rows; };

static void print_peer(struct table *t, const struct vpg_PEER *p)
{
	bool there = !*p->state;

	if (t->json) {
		printf("%s\n  {\"nick\": \"%s\", \"state\": \"%s\"", t->rows ? "," : "", p->nick,
		       there ? "connected" : p->state);
		if (there)
			printf(", \"processors\": %" PRIu64 ", \"memory_mib\": %" PRIu64
			       ", \"free_mib\": %" PRIu64 ", \"load\": %.2f, \"rtt_us\": %" PRIu64
			       ", \"speed\": %" PRIu64
			       ", \"lends\": {\"processors\": %" PRIu64 ", \"memory_mib\": %" PRIu64
			       ", \"machines\": %" PRIu64 "}, \"lent\": {\"processors\": %" PRIu64
			       ", \"memory_mib\": %" PRIu64 ", \"machines\": %" PRIu64 "}",
			       p->processors, p->memory_kib / 1024, p->free_kib / 1024,
			       (double)p->load_percent / 100, p->rtt_us, p->speed, p->lends,
			       p->lends_mib,
			       p->machines_most, p->lent, p->lent_mib, p->machines);
		printf("}");
	} else if (there) {
		printf("%-16s %4" PRIu64 " %8" PRIu64 "M %8" PRIu64 "M %6.2f %8.3f ms\n", p->nick,
		       p->processors, p->memory_kib / 1024, p->free_kib / 1024,
		       (double)p->load_percent / 100, (double)p->rtt_us / 1000);
	} else {
		printf("%-16s %s\n", p->nick, p->state);
	}
}

static void print_member(struct table *t, const struct vpg_MEMBER *m)
{
	char day[32] = "";
	time_t since = (time_t)(m->revoked ? m->revoked : m->since);
	struct tm tm;

	if (localtime_r(&since, &tm))
		strftime(day, sizeof day, "%Y-%m-%d %H:%M", &tm);
	if (t->json)
		printf("%s\n  {\"nick\": \"%s\", \"key\": \"%s\", \"since\": %" PRIu64
		       ", \"revoked\": %" PRIu64 "}", t->rows ? "," : "", m->nick, m->key,
		       m->since, m->revoked);
	else
		printf("%-16s %.16s %s %s\n", m->nick, m->key, m->revoked ? "revoked" : "since",
		       day);
}

static void print_limits(struct table *t, const struct vpg_LIMITS *l)
{
	printf(t->json ? "{\"processors\": %" PRIu64 ", \"memory_mib\": %" PRIu64
			 ", \"machines\": %" PRIu64 "}\n"
		       : "lends %" PRIu64 " processors and %" PRIu64 " MiB, to %" PRIu64
			 " machines at once\n",
	       l->processors, l->memory_mib, l->machines);
}

static void print_row(struct table *t, int type, const union vpg_any *m)
{
	if (type == VPG_PEER)
		print_peer(t, &m->PEER);
	else if (type == VPG_MEMBER)
		print_member(t, &m->MEMBER);
	else if (type == VPG_LIMITS)
		print_limits(t, &m->LIMITS);
	else if (type == VPG_SAID)
		printf("%s\n", m->SAID.line);
	t->rows++;
}

/* Asks one question and prints the rows of the answer. */
static int ask(enum vpg_type question, const void *fields, struct table *t)
{
	struct daemon_socket s;
	struct why why;
	union vpg_any m;
	int type = -1, status = EXIT_VMP_FAILURE;

	if (daemon_socket_open(&s, &why)) {
		log_error("%s", why.line);
		return EXIT_VMP_FAILURE;
	}
	if (!daemon_socket_send(&s, question, fields))
		while ((type = daemon_socket_next(&s, &m, true)) > 0 && type != VPG_DONE)
			print_row(t, type, &m);
	if (type == VPG_DONE) {
		status = (int)m.DONE.status;
		if (*m.DONE.line)
			log_error("%s", m.DONE.line);
		if (question == VPG_ASK_STOP)	/* wait until the daemon has ended */
			daemon_socket_next(&s, &m, true);
	} else {
		log_error("%s", daemon_socket_failure(&s));
	}
	daemon_socket_close(&s);
	return fflush(stdout) ? EXIT_VMP_FAILURE : status;
}

static int ask_table(enum vpg_type question, bool json, const char *head)
{
	struct table t = { .json = json };
	uint64_t unused = 0;
	int status;

	printf("%s", json ? "[" : head);
	status = ask(question, &unused, &t);
	if (json)
		printf("%s]\n", t.rows ? "\n" : "");
	return fflush(stdout) ? EXIT_VMP_FAILURE : status;
}

int ask_peers(bool json)
{
	return ask_table(VPG_ASK_PEERS, json,
			 "NICKNAME         CPUS    MEMORY      FREE   LOAD  ROUND TRIP\n");
}

int ask_members(bool json)
{
	return ask_table(VPG_ASK_MEMBERS, json, "");
}

int ask_invite(uint64_t seconds, const char *address)
{
	struct vpg_ASK_INVITE question = { seconds, address };
	struct table t = { 0 };

	return ask(VPG_ASK_INVITE, &question, &t);
}

int ask_revoke(const char *nick)
{
	struct vpg_ASK_REVOKE question = { nick };
	struct table t = { 0 };

	return ask(VPG_ASK_REVOKE, &question, &t);
}

int ask_dial(const char *host, unsigned port, const char *user)
{
	struct vpg_ASK_DIAL question = { host, port, user };
	struct table t = { 0 };

	return ask(VPG_ASK_DIAL, &question, &t);
}

int ask_limits(uint64_t processors, uint64_t memory_mib, uint64_t machines, bool json)
{
	struct vpg_ASK_LIMITS question = { processors, memory_mib, machines };
	struct table t = { .json = json };

	return ask(VPG_ASK_LIMITS, &question, &t);
}

static int ask_nothing(enum vpg_type question)
{
	struct table t = { 0 };
	uint64_t unused = 0;

	return ask(question, &unused, &t);
}

int ask_status(void) { return ask_nothing(VPG_ASK_STATUS); }
int ask_stop(void) { return ask_nothing(VPG_ASK_STOP); }
