/* report.c - see report.h.  The JSON of --stats:
 *
 *   { "version", "status", "hosts": N, "cpus": N, "memory_mib", "boot_ms", "run_ms",
 *     "per_host": [ { "host", counters of vmm/shared/stats.h... } ],
 *     "per_cpu":  [ { "cpu", "host", "time_ns": {...}, "traps": {...}, "fetch_us8_log2": [...] } ],
 *     "total":    { counters..., "time_ns": {...}, "traps": {...}, "fetch_us8_log2": [...] },
 *     "fetched_addresses": [ { "address", "fetches" } ] }
 *
 * boot_ms runs from the start of `vmp` to the first use of a stream by the guest's init.
 * fetch_us8_log2[i] counts the fetches that took [2^i, 2^(i+1)) eighths of a microsecond.
 * Addresses are guest-physical, the hottest first.
 */
#include "vmm/cli/query/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "vmm/cli/query/pageheat.h"

const char *const report_time_names[TIME_KIND_COUNT] = {
	[TIME_NATIVE] = "native", [TIME_SHARED_MEMORY] = "shared_memory",
	[TIME_EMULATION] = "emulation", [TIME_IDLE] = "idle",
};
static const char *const trap_names[TRAP_KIND_COUNT] = {
#define X(name, text) [TRAP_##name] = #name,
	TRAP_KINDS(X)
#undef X
};

void report_print_trap(FILE *file, enum trap_kind kind)
{
	for (const char *c = trap_names[kind]; *c; c++)
		fputc(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c, file);
}

/* ---- what the hosts send ---- */

int report_open(struct report *report, const struct options *o, struct problem *p)
{
	int fd;

	if (o->trace && tracefile_open(&report->trace, o->trace, p))
		return -1;
	if (!o->stats)
		return 0;
	fd = open(o->stats, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		report->stats = fdopen(fd, "w");
	return report->stats ? 0
			     : problem(p, "cannot write --stats %s: %s", o->stats, strerror(errno));
}

void report_expect(struct report *report, uint32_t hosts)
{
	report->hosts = hosts;
}

void report_ask_stats(struct report *report, struct client *client, uint32_t hosts)
{
	report_expect(report, hosts);
	for (uint32_t node = 0; node < MAX_NODES; node++) {
		struct msg_stats stats = { .node = node };

		if (hosts >> node & 1)
			client_send(client, MSG_STATS_REQUEST, VNODE_DAEMON(node), &stats,
				    sizeof stats, NULL, 0);
	}
}

void report_keep_hosts(struct report *report, uint32_t hosts)
{
	report->hosts &= hosts;
}

static bool was_asked(const struct report *report, uint32_t host)
{
	return host < MAX_NODES && report->hosts >> host & 1;
}

void report_on_stats(struct report *report, const void *body, size_t bytes)
{
	const char *at = (const char *)body + sizeof(struct msg_stats);
	struct node_stats node;

	if (bytes < sizeof(struct msg_stats) + sizeof node)
		return;
	memcpy(&node, at, sizeof node);
	at += sizeof node;
	if (!was_asked(report, node.node) || !node.parts || node.parts > 64 ||
	    node.part >= node.parts ||
	    bytes - sizeof(struct msg_stats) - sizeof node <
		    (uint64_t)node.cpus_in_part * sizeof(struct cpu_stats))
		return;
	report->node[node.node] = node;
	report->parts[node.node] = node.parts;
	report->parts_seen[node.node] |= 1ull << node.part;
	for (uint32_t i = 0; i < node.cpus_in_part; i++) {
		struct cpu_stats cpu;

		memcpy(&cpu, at + i * sizeof cpu, sizeof cpu);
		if (cpu.cpu < MAX_CPUS) {
			report->cpu[cpu.cpu] = cpu;
			report->cpu_seen[cpu.cpu] = true;
		}
	}
}

void report_on_pages(struct report *report, const void *body, size_t bytes)
{
	struct msg_pages_here pages;

	memcpy(&pages, body, sizeof pages);
	if (!was_asked(report, pages.node))
		return;
	report->pages_seen[pages.node] = true;
	pageheat_add(&report->heat, (const char *)body + sizeof pages,
		     (bytes - sizeof pages) / sizeof(struct page_heat));
}

void report_on_trace(struct report *report, const void *body, size_t bytes)
{
	tracefile_on_part(&report->trace, body, bytes);
}

bool report_has_stats(const struct report *report)
{
	for (uint32_t node = 0; node < MAX_NODES; node++) {
		uint32_t parts = report->parts[node];

		if (!was_asked(report, node))
			continue;
		if (!parts ||
		    report->parts_seen[node] != (parts == 64 ? ~0ull : (1ull << parts) - 1))
			return false;
	}
	return true;
}

bool report_is_complete(const struct report *report)
{
	for (uint32_t node = 0; node < MAX_NODES; node++)
		if (was_asked(report, node) &&
		    (!report->pages_seen[node] ||
		     (report->trace.file && !report->trace.host[node].complete)))
			return false;
	return report_has_stats(report);
}

void report_free(struct report *report)
{
	pageheat_free(&report->heat);
	tracefile_free(&report->trace);
	if (report->stats)
		fclose(report->stats);
}

/* ---- writing ---- */

struct totals {
	struct node_stats node;
	struct cpu_stats cpu;
	uint64_t boot_ns, end_ns;
};

static struct totals sum_up(const struct report *report)
{
	struct totals t = { 0 };

	for (uint32_t i = 0; i < MAX_NODES; i++) {
		if (!was_asked(report, i))
			continue;
#define X(field, text) t.node.field += report->node[i].field;
		NODE_COUNTERS(X)
#undef X
		if (report->node[i].user_monotonic_ns)
			t.boot_ns = report->node[i].user_monotonic_ns;
	}
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		for (unsigned k = 0; k < TRAP_KIND_COUNT; k++)
			t.cpu.traps[k] += report->cpu[i].traps[k];
		for (unsigned k = 0; k < TIME_KIND_COUNT; k++)
			t.cpu.time_ns[k] += report->cpu[i].time_ns[k];
		for (unsigned k = 0; k < FETCH_BUCKETS; k++)
			t.cpu.fetch_us8[k] += report->cpu[i].fetch_us8[k];
	}
	return t;
}

static void put_counters(FILE *file, const struct node_stats *node)
{
	const char *comma = "";

#define X(field, text) \
	fprintf(file, "%s\"" #field "\": %llu", comma, (unsigned long long)node->field); \
	comma = ", ";
	NODE_COUNTERS(X)
#undef X
}

static void put_cpu(FILE *file, const struct cpu_stats *cpu)
{
	fprintf(file, "\"time_ns\": {");
	for (unsigned k = 0; k < TIME_KIND_COUNT; k++)
		fprintf(file, "%s\"%s\": %llu", k ? ", " : "", report_time_names[k],
			(unsigned long long)cpu->time_ns[k]);
	fprintf(file, "}, \"traps\": {");
	for (unsigned k = 0; k < TRAP_KIND_COUNT; k++) {
		fprintf(file, "%s\"", k ? ", " : "");
		report_print_trap(file, k);
		fprintf(file, "\": %llu", (unsigned long long)cpu->traps[k]);
	}
	fprintf(file, "}, \"fetch_us8_log2\": [");
	for (unsigned k = 0; k < FETCH_BUCKETS; k++)
		fprintf(file, "%s%llu", k ? ", " : "", (unsigned long long)cpu->fetch_us8[k]);
	fprintf(file, "]");
}

static void put_pages(FILE *file, const struct pageheat *heat)
{
	fprintf(file, "  \"fetched_addresses\": [");
	for (size_t i = 0; i < heat->n; i++)
		fprintf(file, "%s\n    {\"address\": \"0x%08lx\", \"fetches\": %u}", i ? "," : "",
			gfn_to_gpa(heat->page[i].gfn), heat->page[i].faults);
	fprintf(file, "%s]\n", heat->n ? "\n  " : "");
}

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (to_ns - from_ns) / 1e6 : 0;
}

static void put_json(FILE *file, const struct report *report, const struct totals *t,
		     const struct options *o, uint64_t start_ns, int status)
{
	const char *comma = "";

	fprintf(file, "{\n  \"version\": 1, \"status\": %d, \"hosts\": %u, \"cpus\": %u, "
		"\"memory_mib\": %u,\n  \"boot_ms\": %.3f, \"run_ms\": %.3f,\n  \"per_host\": [",
		status, (unsigned)__builtin_popcount(report->hosts), o->machine.cpus,
		o->machine.mem_mib, ms_between(start_ns, t->boot_ns),
		ms_between(t->boot_ns, t->end_ns));
	for (uint32_t i = 0; i < MAX_NODES; i++) {
		if (!was_asked(report, i))
			continue;
		fprintf(file, "%s\n    {\"host\": %u, ", i ? "," : "", i);
		put_counters(file, &report->node[i]);
		fprintf(file, "}");
	}
	fprintf(file, "],\n  \"per_cpu\": [");
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (!report->cpu_seen[i])
			continue;
		fprintf(file, "%s\n    {\"cpu\": %u, \"host\": %u, ", comma, i,
			report->cpu[i].node);
		put_cpu(file, &report->cpu[i]);
		fprintf(file, "}");
		comma = ",";
	}
	fprintf(file, "],\n  \"total\": {");
	put_counters(file, &t->node);
	fprintf(file, ", ");
	put_cpu(file, &t->cpu);
	fprintf(file, "},\n");
	put_pages(file, &report->heat);
	fprintf(file, "}\n");
}

static void put_summary(FILE *file, const struct report *report, const struct totals *t,
			const struct options *o, uint64_t start_ns)
{
	fprintf(file, "vmp: %u processor%s on %u host%s: boot %.0f ms, then %.0f ms\n",
		o->machine.cpus, o->machine.cpus > 1 ? "s" : "",
		o->machine.hosts, o->machine.hosts > 1 ? "s" : "",
		ms_between(start_ns, t->boot_ns), ms_between(t->boot_ns, t->end_ns));
	fprintf(file, "     %-16s %9s %13s %9s %9s\n", "seconds", "native", "shared memory",
		"emulation", "idle");
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		const uint64_t *ns = report->cpu[i].time_ns;
		char name[32];

		if (!report->cpu_seen[i])
			continue;
		snprintf(name, sizeof name, "cpu %u on host %u", i, report->cpu[i].node);
		fprintf(file, "     %-16s %9.2f %13.2f %9.2f %9.2f\n", name, ns[TIME_NATIVE] / 1e9,
			ns[TIME_SHARED_MEMORY] / 1e9, ns[TIME_EMULATION] / 1e9,
			ns[TIME_IDLE] / 1e9);
	}
	fprintf(file, "     pages asked for between hosts: %llu, fetched with data: %llu; %.1f MiB "
		"in %llu messages\n",
		(unsigned long long)t->node.page_requests, (unsigned long long)t->node.page_fetches,
		t->node.bytes_sent / 1048576.0, (unsigned long long)t->node.messages_sent);
}

int report_write(struct report *report, const struct options *o, const char *kernel,
		 uint64_t start_ns, int status)
{
	int result = 0;
	struct totals t = sum_up(report);
	struct problem p;

	if (!report_is_complete(report))
		log_warn("not every host has answered: the figures are incomplete");
	t.end_ns = clock_now_ns();
	pageheat_sort(&report->heat);
	if (report->stats) {
		/* EINVAL: a pipe or device has no length */
		if (ftruncate(fileno(report->stats), 0) && errno != EINVAL)
			log_warn("cannot empty --stats %s: %s", o->stats, strerror(errno));
		put_json(report->stats, report, &t, o, start_ns, status);
		if (fflush(report->stats)) {
			log_error("cannot write --stats %s: %s", o->stats, strerror(errno));
			result = -1;
		}
	}
	if (tracefile_write(&report->trace, kernel, &p)) {
		log_error("cannot write --trace %s: %s", o->trace, p.line);
		result = -1;
	}
	if (o->summary)
		put_summary(stderr, report, &t, o, start_ns);
	return result;
}
