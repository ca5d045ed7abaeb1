/* recording_json.c - a recording as JSON.  Every list "over time" has one value for each sample:
 *
 *   { "vmp_record": 1, "name", "command", "written": seconds since 1970, "cpus", "memory_mib",
 *     "first": the number of the lists' first sample,
 *     "end_ms": [...], "span_ms": [...],                               over time
 *     "hosts": [ { "host", "name", "ram_kib", "fetches", "given_up",   over time; null: the host
 *                  "sent", "received" } ],                             was not there; per second
 *     "processors": [ { "cpu", "host", "native", "shared_memory",      over time; of 1000
 *                       "emulation" } ],
 *     "moves": [ [ms, cpu, from, to, why] ], "moves_lost": N,
 *     "bands": N, "requests": [ [band, requests, band, requests, ...] ],   over time
 *     "pages": [ { "address", "requests", "symbols" } ],               since the machine's start
 *     "fetch_us8_log2": [...] }                                        the same
 */
#include "vmm/cli/watch/recording.h"

#include <string.h>
#include "base/guest_abi.h"
#include "vmm/cli/jsontext.h"

enum { HOT_PAGES = 40 };

static double per_second(uint64_t sum, const struct recording_sample *s)
{
	return s->span_ns ? sum / (s->span_ns / 1e9) : 0;
}

/* Writes "name": [value of each sample], by a function that returns a negative value for null. */
static void put_over_time(FILE *out, const struct recording *r, unsigned from,
			  const char *name, uint32_t which,
			  double (*value)(const struct recording_sample *, uint32_t which))
{
	fprintf(out, ", \"%s\": [", name);
	for (unsigned i = from; i < r->n; i++) {
		double v = value(&r->sample[i], which);

		if (v < 0)
			fprintf(out, "%snull", i > from ? "," : "");
		else
			fprintf(out, "%s%.0f", i > from ? "," : "", v);
	}
	fputs("]", out);
}

#define HOST_VALUE(name, expression) \
	static double host_##name(const struct recording_sample *s, uint32_t host) \
	{ \
		return s->hosts >> host & 1 ? expression : -1; \
	}
HOST_VALUE(ram, s->host[host].ram_bytes / 1024.0)
HOST_VALUE(fetches, per_second(s->host[host].fetches, s))
HOST_VALUE(given_up, per_second(s->host[host].given_up, s))
HOST_VALUE(sent, per_second(s->host[host].sent_bytes, s))
HOST_VALUE(received, per_second(s->host[host].received_bytes, s))

static double cpu_host(const struct recording_sample *s, uint32_t cpu)
{
	return s->cpu[cpu].seen ? s->cpu[cpu].host : -1;
}

/* Of 1000.  A period is counted when it ends, so a sum may exceed the time. */
static double share(const struct recording_sample *s, uint32_t cpu, enum time_kind kind)
{
	double all = s->span_ns, of = s->cpu[cpu].time_ns[kind], sum = 0;

	for (unsigned k = 0; k < TIME_KIND_COUNT; k++)
		sum += s->cpu[cpu].time_ns[k];
	all = sum > all ? sum : all;
	return !s->cpu[cpu].seen ? -1 : all > 0 ? 1000 * of / all : 0;
}

static double cpu_native(const struct recording_sample *s, uint32_t cpu)
{
	return share(s, cpu, TIME_NATIVE);
}

static double cpu_shared(const struct recording_sample *s, uint32_t cpu)
{
	return share(s, cpu, TIME_SHARED_MEMORY);
}

static double cpu_emulation(const struct recording_sample *s, uint32_t cpu)
{
	return share(s, cpu, TIME_EMULATION);
}

static double end_ms(const struct recording_sample *s, uint32_t ignored)
{
	(void)ignored;
	return s->end_ns / 1e6;
}

static double span_ms(const struct recording_sample *s, uint32_t ignored)
{
	(void)ignored;
	return s->span_ns / 1e6;
}

static void put_hosts(FILE *out, const struct recording *r, unsigned from)
{
	const char *comma = "";
	uint32_t hosts = 0;

	for (unsigned i = from; i < r->n; i++)
		hosts |= r->sample[i].hosts;
	fputs(",\n\"hosts\": [", out);
	for (uint32_t host = 0; host < MAX_NODES; host++) {
		if (!(hosts >> host & 1))
			continue;
		fprintf(out, "%s\n{\"host\": %u, \"name\": ", comma, host);
		json_put_string(out, r->last.names.name[host]);
		put_over_time(out, r, from, "ram_kib", host, host_ram);
		put_over_time(out, r, from, "fetches", host, host_fetches);
		put_over_time(out, r, from, "given_up", host, host_given_up);
		put_over_time(out, r, from, "sent", host, host_sent);
		put_over_time(out, r, from, "received", host, host_received);
		fputs("}", out);
		comma = ",";
	}
	fputs("]", out);
}

static void put_processors(FILE *out, const struct recording *r, unsigned from, uint32_t cpus)
{
	fputs(",\n\"processors\": [", out);
	for (uint32_t cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
		fprintf(out, "%s\n{\"cpu\": %u", cpu ? "," : "", cpu);
		put_over_time(out, r, from, "host", cpu, cpu_host);
		put_over_time(out, r, from, "native", cpu, cpu_native);
		put_over_time(out, r, from, "shared_memory", cpu, cpu_shared);
		put_over_time(out, r, from, "emulation", cpu, cpu_emulation);
		fputs("}", out);
	}
	fputs("]", out);
}

static void put_moves(FILE *out, const struct recording *r, unsigned from)
{
	uint64_t since_ns = from < r->n ? r->sample[from].end_ns - r->sample[from].span_ns :
					  UINT64_MAX;
	const char *comma = "";

	fputs(",\n\"moves\": [", out);
	for (unsigned i = 0; i < r->n_moves; i++) {
		if (r->move[i].at_ns <= since_ns)
			continue;
		fprintf(out, "%s[%.0f,%u,%u,%u,", comma, r->move[i].at_ns / 1e6,
			r->move[i].cpu, r->move[i].from, r->move[i].to);
		json_put_string(out, r->move[i].why);
		fputs("]", out);
		comma = ",";
	}
	fprintf(out, "], \"moves_lost\": %u", r->moves_lost);
}

static void put_requests(FILE *out, const struct recording *r, unsigned from)
{
	fprintf(out, ",\n\"bands\": %d, \"requests\": [", RECORDING_BANDS);
	for (unsigned i = from; i < r->n; i++) {
		const char *comma = "";

		fprintf(out, "%s[", i > from ? "," : "");
		for (unsigned band = 0; band < RECORDING_BANDS; band++) {
			if (!r->sample[i].band[band])
				continue;
			fprintf(out, "%s%u,%u", comma, band, r->sample[i].band[band]);
			comma = ",";
		}
		fputs("]", out);
	}
	fputs("]", out);
}

static void put_pages(FILE *out, const struct recording *r, const struct symbols *symbols)
{
	struct pageheat heat = { 0 };
	char text[160];

	pageheat_add(&heat, r->last.report.heat.page, r->last.report.heat.n);
	pageheat_sort(&heat);
	fputs(",\n\"pages\": [", out);
	for (size_t i = 0; i < heat.n && i < HOT_PAGES; i++) {
		gpa_t address = gfn_to_gpa(heat.page[i].gfn);

		pageheat_describe_frame(symbols, heat.page[i].gfn, text, sizeof text);
		fprintf(out, "%s\n{\"address\": \"0x%08lx\", \"requests\": %u, \"symbols\": ",
			i ? "," : "", address, heat.page[i].faults);
		json_put_string(out, text);
		fputs("}", out);
	}
	fputs("]", out);
	pageheat_free(&heat);
}

static void put_fetch_times(FILE *out, const struct recording *r)
{
	fputs(",\n\"fetch_us8_log2\": [", out);
	for (unsigned k = 0; k < FETCH_BUCKETS; k++) {
		uint64_t sum = 0;

		for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
			sum += r->last.report.cpu[cpu].fetch_us8[k];
		fprintf(out, "%s%llu", k ? "," : "", (unsigned long long)sum);
	}
	fputs("]", out);
}

void recording_print(FILE *out, const struct recording *r, const struct recording_about *about,
		     uint64_t first)
{
	uint64_t skipped = first > r->dropped ? first - r->dropped : 0;
	unsigned from = skipped < r->n ? (unsigned)skipped : r->n;
	struct symbols own = { 0 };

	if (!about->symbols)
		pageheat_load_symbols(&own, about->kernel ? about->kernel : "");
	fputs(RECORDING_HEAD " \"name\": ", out);
	json_put_string(out, about->name);
	fputs(", \"command\": ", out);
	json_put_string(out, about->command ? about->command : "");
	fprintf(out, ", \"written\": %lld, \"cpus\": %u, \"memory_mib\": %u, \"first\": %llu",
		(long long)about->written, about->cpus, about->mem_mib,
		(unsigned long long)(r->dropped + from));
	put_over_time(out, r, from, "end_ms", 0, end_ms);
	put_over_time(out, r, from, "span_ms", 0, span_ms);
	put_hosts(out, r, from);
	put_processors(out, r, from, about->cpus);
	put_moves(out, r, from);
	put_requests(out, r, from);
	put_pages(out, r, about->symbols ? about->symbols : &own);
	put_fetch_times(out, r);
	fputs("}\n", out);
	pageheat_free_symbols(&own);
}
