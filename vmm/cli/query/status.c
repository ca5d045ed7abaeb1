/* status.c - see status.h.  The JSON of `vmp status --json`:
 *
 *   { "name", "pid", "cpus": N, "hosts": N, "hosts_came", "hosts_went": since the start,
 *     "policy", "memory_mib", "standby", "without": mechanisms that are off, as "runs,hold",
 *     "per_host": [ { "host", "name": in a cluster, "cpus": [N...], "load_percent", "ram_mib",
 *                     "share_mib": what it may hold, "pages_in_per_s", "pages_out_per_s",
 *                     "sent_bytes_per_s", "received_bytes_per_s" } ],
 *     "per_cpu":  [ { "cpu", "host", "load_percent" } ] }
 */
#include "vmm/cli/query/status.h"

#include <string.h>
#include "vmm/shared/placement.h"

void status_take_notes(struct status_look *look, const void *payload, size_t bytes)
{
	struct move_note note;

	look->n_notes = 0;
	look->has_notes = true;
	for (size_t at = 0; bytes - at >= sizeof note && look->n_notes < MOVE_NOTES;
	     at += sizeof note) {
		memcpy(&note, (const char *)payload + at, sizeof note);
		note.why[MOVE_WHY - 1] = 0;
		if (note.cpu < MAX_CPUS && note.from < MAX_NODES && note.to < MAX_NODES)
			look->note[look->n_notes++] = note;
	}
}

double status_cpu_load(const struct cpu_stats *before, const struct cpu_stats *now,
		       uint64_t interval_ns)
{
	uint64_t busy = 0;
	double load;

	for (unsigned kind = 0; kind < TIME_KIND_COUNT; kind++)
		if (kind != TIME_IDLE)
			busy += now->time_ns[kind] - before->time_ns[kind];
	load = interval_ns ? 100.0 * busy / interval_ns : 0;
	/* a busy period is counted when it ends, so the sum may exceed the interval */
	return load > 100 ? 100 : load;
}

struct host_figures status_host_figures(uint32_t host, const struct status_look *before,
					const struct status_look *now)
{
	const struct node_stats *a = &before->report.node[host], *b = &now->report.node[host];
	uint64_t ns = now->at_ns - before->at_ns;
	double seconds = ns ? ns / 1e9 : 1;
	struct host_figures f = { .ram_mib = b->ram_bytes / 1048576.0,
				  .share_mib = b->share_bytes / 1048576.0 };

	f.pages_in = (b->page_fetches - a->page_fetches) / seconds;
	f.pages_out = (b->page_invalidations - a->page_invalidations) / seconds;
	f.sent = (b->bytes_sent - a->bytes_sent) / seconds;
	f.received = (b->bytes_received - a->bytes_received) / seconds;
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!now->report.cpu_seen[cpu] || now->report.cpu[cpu].node != host)
			continue;
		f.cpus |= 1u << cpu;
		f.load += status_cpu_load(&before->report.cpu[cpu], &now->report.cpu[cpu], ns);
	}
	if (f.cpus)
		f.load /= __builtin_popcount(f.cpus);
	return f;
}

/* Writes the numbers of processors as "0 2 5", with `between` between them. */
static const char *name_cpus(uint32_t cpus, const char *between, char *text, size_t bytes)
{
	size_t at = 0;

	*text = 0;
	for (uint32_t cpu = 0; cpu < MAX_CPUS && at < bytes; cpu++)
		if (cpus >> cpu & 1)
			at += snprintf(text + at, bytes - at, "%s%u", at ? between : "", cpu);
	return text;
}

/* A host's name has no character that JSON would have to quote. */
static const char *name_json(const struct host_names *names, uint32_t host, char *text,
			     size_t bytes)
{
	snprintf(text, bytes, names->name[host][0] ? "\"name\": \"%s\", " : "%s",
		 names->name[host]);
	return text;
}

static unsigned count_hosts(const struct status_look *now)
{
	return (unsigned)__builtin_popcount(now->report.hosts);
}

static void print_json(FILE *out, const char *name, const struct machine_info *info,
		       const struct status_look *before, const struct status_look *now)
{
	const char *comma = "";
	char cpus[4 * MAX_CPUS], host_name[MAX_HOST_NAME + 16], without[MACHINE_VALUE];

	machine_set_names(mechanism_names, info->machine.without, without, sizeof without);
	fprintf(out, "{\n  \"name\": \"%s\", \"pid\": %d, \"cpus\": %u, \"hosts\": %u, "
		"\"hosts_came\": %u, \"hosts_went\": %u, \"policy\": \"%s\", \"memory_mib\": %u, "
		"\"standby\": \"%s\", \"without\": \"%s\",\n  \"per_host\": [",
		name, info->pid, info->machine.cpus, count_hosts(now), now->hosts.came,
		now->hosts.went, placement_policy_name(now->hosts.policy), info->machine.mem_mib,
		info->standby, without);
	for (uint32_t host = 0; host < MAX_NODES; host++) {
		struct host_figures f;

		if (!(now->report.hosts >> host & 1))
			continue;
		f = status_host_figures(host, before, now);
		fprintf(out, "%s\n    {\"host\": %u, %s\"cpus\": [%s], \"load_percent\": %.1f, "
			"\"ram_mib\": %.1f, \"share_mib\": %.0f, \"pages_in_per_s\": %.1f, "
			"\"pages_out_per_s\": %.1f, \"sent_bytes_per_s\": %.0f, "
			"\"received_bytes_per_s\": %.0f}", comma, host,
			name_json(&now->names, host, host_name, sizeof host_name),
			name_cpus(f.cpus, ", ", cpus, sizeof cpus), f.load, f.ram_mib, f.share_mib,
			f.pages_in, f.pages_out, f.sent, f.received);
		comma = ",";
	}
	fprintf(out, "],\n  \"per_cpu\": [");
	comma = "";
	for (uint32_t cpu = 0; cpu < info->machine.cpus; cpu++) {
		if (!now->report.cpu_seen[cpu])
			continue;
		fprintf(out, "%s\n    {\"cpu\": %u, \"host\": %u, \"load_percent\": %.1f}", comma,
			cpu, now->report.cpu[cpu].node,
			status_cpu_load(&before->report.cpu[cpu], &now->report.cpu[cpu],
					now->at_ns - before->at_ns));
		comma = ",";
	}
	fprintf(out, "]\n}\n");
}

static void print_hosts(FILE *out, const struct machine_info *info,
			const struct status_look *before, const struct status_look *now)
{
	char cpus[4 * MAX_CPUS];

	/* in 80 columns a host has room for eight processors */
	fprintf(out, "%4s %6s %8s %11s %7s %11s %9s  %s%s\n", "host", "load", "RAM MiB",
		"pages in/s", "out/s", "sent KiB/s", "received", "processors",
		now->names.name[0][0] ? "  name" : "");
	for (uint32_t host = 0; host < MAX_NODES; host++) {
		struct host_figures f;

		if (!(now->report.hosts >> host & 1))
			continue;
		f = status_host_figures(host, before, now);
		fprintf(out, "%4u %4.0f %% %8.1f %11.0f %7.0f %11.0f %9.0f  %-*s%s", host,
			f.load, f.ram_mib, f.pages_in, f.pages_out, f.sent / 1024,
			f.received / 1024, now->names.name[host][0] ? 12 : 0,
			name_cpus(f.cpus, " ", cpus, sizeof cpus), now->names.name[host]);
		if (f.share_mib && f.share_mib < info->machine.mem_mib)
			fprintf(out, "  at most %.0f MiB", f.share_mib);
		fprintf(out, "\n");
	}
}

static void print_cpus(FILE *out, const struct machine_info *info, const struct status_look *before,
		       const struct status_look *now)
{
	fprintf(out, "%4s %7s %5s\n", "CPU", "load", "host");
	for (uint32_t cpu = 0; cpu < info->machine.cpus; cpu++)
		if (now->report.cpu_seen[cpu])
			fprintf(out, "%4u %5.0f %% %5u\n", cpu,
				status_cpu_load(&before->report.cpu[cpu], &now->report.cpu[cpu],
						now->at_ns - before->at_ns),
				now->report.cpu[cpu].node);
}

void status_print(FILE *out, const char *name, const struct machine_info *info,
		  const struct status_look *before, const struct status_look *now, bool json)
{
	char without[MACHINE_VALUE];

	if (json) {
		print_json(out, name, info, before, now);
		return;
	}
	fprintf(out, "%s: %u processor%s, %u MiB, %u host%s", name, info->machine.cpus,
		info->machine.cpus > 1 ? "s" : "", info->machine.mem_mib,
		count_hosts(now), count_hosts(now) > 1 ? "s" : "");
	if (now->hosts.came || now->hosts.went)
		fprintf(out, " (%u came, %u went)", now->hosts.came, now->hosts.went);
	if (now->hosts.policy != POLICY_AUTO)
		fprintf(out, ", policy %s", placement_policy_name(now->hosts.policy));
	if (machine_set_names(mechanism_names, info->machine.without, without, sizeof without))
		fprintf(out, ", without %s", without);
	if (info->standby[0])
		fprintf(out, ", %s stands by", info->standby);
	fprintf(out, "; process %d\n", info->pid);
	print_hosts(out, info, before, now);
	print_cpus(out, info, before, now);
}
