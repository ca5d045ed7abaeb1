/* metrics.c - see metrics.h.
 *
 * Names follow the OpenMetrics text format 1.0: a counter's family is declared without the suffix
 * _total that its samples have; a unit is the name's last word.  Counters start from 0 when a
 * machine goes back to a checkpoint, as they do for a program that is started again.
 */
#include "vmm/cli/watch/metrics.h"

#include <string.h>
#include "vmm/shared/placement.h"

static void declare(FILE *out, const char *family, const char *type, const char *unit,
		    const char *help)
{
	fprintf(out, "# TYPE %s %s\n", family, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", family, unit);
	fprintf(out, "# HELP %s %s\n", family, help);
}

static void put_machine(FILE *out, const char *name, const struct machine_info *info,
			const struct status_look *now)
{
	/* neither name has a character that would have to be quoted */
	declare(out, "vmp_machine", "info", NULL, "the machine");
	fprintf(out, "vmp_machine_info{name=\"%s\",policy=\"%s\"} 1\n", name,
		placement_policy_name(now->hosts.policy));
	declare(out, "vmp_cpus", "gauge", NULL, "virtual CPUs");
	fprintf(out, "vmp_cpus %u\n", info->machine.cpus);
	declare(out, "vmp_hosts", "gauge", NULL, "hosts at the moment");
	fprintf(out, "vmp_hosts %d\n", __builtin_popcount(now->report.hosts));
	declare(out, "vmp_memory_bytes", "gauge", "bytes", "the guest's RAM");
	fprintf(out, "vmp_memory_bytes %llu\n", (unsigned long long)info->machine.mem_mib << 20);
	declare(out, "vmp_hosts_came", "counter", NULL, "hosts added since the start");
	fprintf(out, "vmp_hosts_came_total %u\n", now->hosts.came);
	declare(out, "vmp_hosts_went", "counter", NULL, "hosts that have left since the start");
	fprintf(out, "vmp_hosts_went_total %u\n", now->hosts.went);
}

/* Begins a sample of one host: its name and its labels. */
static void begin_host(FILE *out, const char *metric, uint32_t host, const struct status_look *now)
{
	const char *name = now->names.name[host];

	fprintf(out, "%s{host=\"%u\"", metric, host);
	if (name[0])
		fprintf(out, ",host_name=\"%s\"", name);
	fputs("} ", out);
}

/* Where each of a node's counters is, and what it is. */
struct counter { const char *field, *help; size_t offset; };
static const struct counter counters[] = {
#define X(field, text) { #field, text, offsetof(struct node_stats, field) },
	NODE_COUNTERS(X)
#undef X
};

static void put_counter(FILE *out, const struct counter *c, const struct status_look *now)
{
	bool gauge = c->offset == offsetof(struct node_stats, ram_bytes) ||
		     c->offset == offsetof(struct node_stats, share_bytes);
	size_t n = strlen(c->field);
	char family[64], metric[72];

	/* a unit comes last: bytes_sent becomes sent_bytes */
	if (!strncmp(c->field, "bytes_", 6))
		snprintf(family, sizeof family, "vmp_host_%s_bytes", c->field + 6);
	else
		snprintf(family, sizeof family, "vmp_host_%s", c->field);
	snprintf(metric, sizeof metric, "%s%s", family, gauge ? "" : "_total");
	declare(out, family, gauge ? "gauge" : "counter",
		!strncmp(c->field, "bytes_", 6) ||
		(n > 6 && !strcmp(c->field + n - 6, "_bytes")) ? "bytes" : NULL, c->help);
	for (uint32_t host = 0; host < MAX_NODES; host++) {
		uint64_t value;

		if (!(now->report.hosts >> host & 1))
			continue;
		memcpy(&value, (const char *)&now->report.node[host] + c->offset, sizeof value);
		begin_host(out, metric, host, now);
		fprintf(out, "%llu\n", (unsigned long long)value);
	}
}

static void put_cpu_times(FILE *out, const struct status_look *now)
{
	declare(out, "vmp_cpu_host", "gauge", NULL, "the host on which a virtual CPU runs");
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		if (now->report.cpu_seen[cpu])
			fprintf(out, "vmp_cpu_host{cpu=\"%u\"} %u\n", cpu,
				now->report.cpu[cpu].node);
	declare(out, "vmp_cpu_seconds", "counter", "seconds", "time of a virtual CPU, by its use");
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		for (unsigned kind = 0; now->report.cpu_seen[cpu] && kind < TIME_KIND_COUNT; kind++)
			fprintf(out, "vmp_cpu_seconds_total{cpu=\"%u\",kind=\"%s\"} %.6f\n", cpu,
				report_time_names[kind], now->report.cpu[cpu].time_ns[kind] / 1e9);
}

static void put_cpu_traps(FILE *out, const struct status_look *now)
{
	declare(out, "vmp_cpu_traps", "counter", NULL, "stops of a virtual CPU, by their cause");
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		for (unsigned k = 0; now->report.cpu_seen[cpu] && k < TRAP_KIND_COUNT; k++) {
			fprintf(out, "vmp_cpu_traps_total{cpu=\"%u\",kind=\"", cpu);
			report_print_trap(out, k);
			fprintf(out, "\"} %llu\n",
				(unsigned long long)now->report.cpu[cpu].traps[k]);
		}
}

/* Bucket i counts up to 2^(i+1) eighths of a microsecond; the last one also what took longer. */
static void put_fetch_times(FILE *out, const struct status_look *now)
{
	uint64_t sum = 0;

	declare(out, "vmp_fetch_seconds", "histogram", "seconds",
		"how long virtual CPUs waited for pages of other hosts");
	for (unsigned i = 0; i < FETCH_BUCKETS; i++) {
		for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
			sum += now->report.cpu[cpu].fetch_us8[i];
		if (i + 1 < FETCH_BUCKETS)
			fprintf(out, "vmp_fetch_seconds_bucket{le=\"%.9g\"} %llu\n",
				(double)(2u << i) / 8e6, (unsigned long long)sum);
	}
	fprintf(out, "vmp_fetch_seconds_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)sum);
}

void metrics_print(FILE *out, const char *name, const struct machine_info *info,
		   const struct status_look *now)
{
	put_machine(out, name, info, now);
	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		put_counter(out, &counters[i], now);
	put_cpu_times(out, now);
	put_cpu_traps(out, now);
	put_fetch_times(out, now);
	fputs("# EOF\n", out);
}
