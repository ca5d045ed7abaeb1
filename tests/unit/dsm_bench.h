/* dsm_bench.h - one node of the page protocol on a test bench: each callback becomes a line of
 * text. */
#ifndef TESTS_UNIT_DSM_BENCH_H
#define TESTS_UNIT_DSM_BENCH_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "dsm/dsm_private.h"

enum { BENCH_PARTS = 8 };

static struct bench {
	struct dsm *dsm;
	char log[1024];
	uint32_t hold_us;
	bool refuses; /* what may be refused */
	unsigned retries; /* after_us() calls */
	uint8_t page[PAGE_BYTES];
	struct bench_part {
		struct msg_home body;
		uint32_t bytes;
		uint8_t payload[PAGE_BYTES];
	} part[BENCH_PARTS];
	unsigned parts; /* of homes that were sent away */
} bench;

static __attribute__((format(printf, 1, 2))) void bench_log(const char *format, ...)
{
	size_t length = strlen(bench.log);
	va_list arguments;

	if (length + 64 > sizeof(bench.log)) /* enough to look at */
		return;
	if (length)
		bench.log[length++] = ' ';
	va_start(arguments, format);
	vsnprintf(bench.log + length, sizeof(bench.log) - length, format, arguments);
	va_end(arguments);
}

/* Checks that the callbacks since the last call were these. */
static inline bool seen(const char *text)
{
	bool same = !strcmp(bench.log, text);

	if (!same)
		fprintf(stderr, "seen '%s', not '%s'\n", bench.log, text);
	bench.log[0] = 0;
	return same;
}

static void bench_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		       const void *payload, uint32_t payload_bytes)
{
	char peer[16] = "home", acks[16] = "";

	(void)ctx, (void)payload;
	if (to < VNODE_HOME_BASE)
		snprintf(peer, sizeof(peer), "%u", (unsigned)to);
	if (body->acks)
		snprintf(acks, sizeof(acks), "/%u", body->acks);
	bench_log("%s%s>%s%s", wire_type_name(type) + strlen("DSM_"), acks, peer,
		  payload_bytes == PAGE_BYTES ? "+page" : "");
}

static void bench_send_home(void *ctx, const struct msg_home *body, const void *payload,
			    uint32_t payload_bytes)
{
	struct bench_part *part = &bench.part[bench.parts++ % BENCH_PARTS];

	(void)ctx;
	*part = (struct bench_part){ .body = *body, .bytes = payload_bytes };
	memcpy(part->payload, payload, payload_bytes);
	bench_log("HOME>%u%s", body->to, body->last ? "" : "+");
}

static const char *const bench_rights[] = { "none", "read", "write" };

static void bench_take(void *ctx, gfn_t gfn, enum page_right right, void *contents)
{
	(void)ctx, (void)gfn;
	bench_log("take(%s%s)", bench_rights[right], contents ? ",page" : "");
}

static void bench_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	(void)ctx, (void)gfn;
	bench_log("fill(%s%s)", bench_rights[right], contents ? ",page" : "");
}

static void bench_upgrade(void *ctx, gfn_t gfn)
{
	(void)ctx, (void)gfn;
	bench_log("raise");
}

static void bench_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	(void)ctx, (void)gfn;
	bench_log("ready(%s)", bench_rights[right]);
}

static uint32_t bench_hold_us(void *ctx, gfn_t gfn, enum page_right new_right)
{
	(void)ctx, (void)gfn, (void)new_right;
	return bench.hold_us;
}

static void bench_after_us(void *ctx, gfn_t gfn, uint32_t us)
{
	(void)ctx, (void)gfn, (void)us;
	bench.retries++;
}

static bool bench_adopts(void *ctx, gfn_t gfn, unsigned owner, bool must)
{
	(void)ctx, (void)gfn;
	if (bench.refuses)
		bench_log("refuse(%u%s)", owner, must ? ",must" : "");
	return !bench.refuses;
}

static void bench_open(unsigned node, unsigned n_nodes, uint32_t n_pages)
{
	struct dsm_host host = { NULL,		 bench_send,	bench_send_home, bench_take,
				 bench_fill,	 bench_upgrade, bench_ready,	 bench_hold_us,
				 bench_after_us, NULL,		 NULL,		 bench_adopts };

	dsm_free(bench.dsm);
	bench.dsm = dsm_new(node, n_nodes, n_pages, &host);
	bench.log[0] = 0;
	bench.refuses = false;
	bench.hold_us = bench.retries = bench.parts = 0;
}

static void bench_close(void)
{
	dsm_free(bench.dsm);
	bench.dsm = NULL;
}

/* A message arrives. */
static int bench_message(unsigned from, uint16_t type, gfn_t gfn, uint32_t txn, unsigned requester,
			 uint32_t acks)
{
	bool page = type == MSG_DSM_GRANT_READ || type == MSG_DSM_GRANT_WRITE;
	struct msg_dsm body = { .gfn = gfn, .txn = txn, .requester = requester, .acks = acks };
	struct msg_header header = { .type = type, .from_node = from,
				     .bytes = (uint32_t)sizeof(body) + (page ? PAGE_BYTES : 0) };

	return dsm_on_message(bench.dsm, &header, &body, page ? bench.page : NULL);
}

/* A page whose home is `node`, in RAM of n_pages. */
static gfn_t bench_gfn_in(uint32_t n_pages, unsigned node, unsigned n_nodes)
{
	gfn_t gfn = 0;

	while (dsm_interval_start(dsm_interval(gfn, n_pages), n_nodes) != node)
		gfn++;
	return gfn;
}

/* The same in RAM that ends behind that page. */
static inline gfn_t bench_gfn_of(unsigned node, unsigned n_nodes)
{
	return bench_gfn_in(DSM_INTERVALS, node, n_nodes);
}

#endif
