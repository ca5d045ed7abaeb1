/* cluster_file.c - see cluster_file.h. */
#include "vmm/cli/cluster/cluster_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "base/log.h"
#include "base/quantity.h"

#define HERE "localhost" /* the name that every computer has for itself */

struct parser {
	const char *at, *end, *line_start;
	unsigned line;
	struct cluster_file *out;
	unsigned line_of[MAX_NODES];
	struct problem *p;
};
struct word { const char *text; size_t bytes; unsigned column; };

static int wrong(struct parser *p, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int wrong(struct parser *p, unsigned column, const char *format, ...)
{
	char what[400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return problem(p->p, "%u:%u: %s", p->line, column, what);
}

static unsigned column_of(const struct parser *p) { return (unsigned)(p->at - p->line_start) + 1; }

/* Takes the next word of this line.  White space between quotes does not end a word.  Returns 1, 0
 * at the line's end, or -1. */
static int next_word(struct parser *p, struct word *word)
{
	bool quoted = false;

	while (p->at < p->end && *p->at != '\n' && isspace((unsigned char)*p->at))
		p->at++;
	if (p->at == p->end || *p->at == '\n' || *p->at == '#')
		return 0;
	*word = (struct word){ .text = p->at, .column = column_of(p) };
	for (; p->at < p->end && *p->at != '\n' && (quoted || !isspace((unsigned char)*p->at));
	     p->at++) {
		if ((unsigned char)*p->at < ' ' && *p->at != '\t')
			return wrong(p, column_of(p), "a control character");
		quoted ^= *p->at == '"';
	}
	word->bytes = (size_t)(p->at - word->text);
	return quoted ? wrong(p, word->column, "the quotation mark is not closed") : 1;
}

/* Returns whether text is a host name, an IPv4 or IPv6 address, or a user name: nothing in it may
 * mean something else to ssh or a shell. */
static bool is_name(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(i ? "-_.:" : "_:", text[i]))
			return false;
	return bytes > 0 && text[0];
}

static int take_name(struct parser *p, const struct word *word, const char *what, const char *text,
		     size_t bytes, char *out, size_t room)
{
	if (!is_name(text, bytes))
		return wrong(p, word->column, "'%.*s' is no %s", (int)bytes, text, what);
	if (bytes >= room)
		return wrong(p, word->column, "a %s has at most %zu characters", what, room - 1);
	memcpy(out, text, bytes);
	out[bytes] = 0;
	return 0;
}

static int take_number(struct parser *p, const struct word *word, const char *name,
		       const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end)
		return wrong(p, word->column, "%s=%s: not a number", name, text);
	if (value < least || value > most)
		return wrong(p, word->column, "%s=%s: must be from %u to %u", name, text, least,
			     most);
	*out = (uint32_t)value;
	return 0;
}

static int take_memory(struct parser *p, const struct word *word, const char *text, uint32_t *out)
{
	if (quantity_parse_mib(text, out) || !*out || *out > MAX_RAM_MIB)
		return wrong(p, word->column, "memory=%s: not a size from 1M to %dM", text,
			     MAX_RAM_MIB);
	return 0;
}

static int take_phoenix(struct parser *p, const struct word *word, struct cluster_host *host,
			const char *text)
{
	size_t n = strlen(text);

	if (n >= 2 && text[0] == '"' && text[n - 1] == '"')
		text++, n -= 2;
	if (!n)
		return wrong(p, word->column, "phoenix= needs a line: phoenix=\"dest gate:30000 "
			     "ssh\"");
	if (n >= MAX_PHOENIX_LINE || host->n_phoenix == MAX_PHOENIX_LINES)
		return wrong(p, word->column, "a host has at most %d lines for Phoenix, of %d "
			     "characters each",
			     MAX_PHOENIX_LINES, MAX_PHOENIX_LINE - 1);
	memcpy(host->phoenix[host->n_phoenix++], text, n);
	return 0;
}

static int parse_setting(struct parser *p, const struct word *word, struct cluster_host *host)
{
	const char *equals = memchr(word->text, '=', word->bytes);
	char name[16], value[MAX_PHOENIX_LINE + 8];
	size_t name_bytes = equals ? (size_t)(equals - word->text) : word->bytes,
	       value_bytes = word->bytes - name_bytes - 1;

	if (!equals || name_bytes >= sizeof name)
		return wrong(p, word->column, "'%.*s' is no setting; there are user=, port=, "
			     "address=, cpus=, memory= and phoenix=",
			(int)(word->bytes < 40 ? word->bytes : 40), word->text);
	if (value_bytes >= sizeof value)
		return wrong(p, word->column, "%.*s= is too long", (int)name_bytes, word->text);
	snprintf(name, sizeof name, "%.*s", (int)name_bytes, word->text);
	snprintf(value, sizeof value, "%.*s", (int)value_bytes, equals + 1);
	if (!strcmp(name, "user"))
		return take_name(p, word, "user's name", value, value_bytes, host->user,
				 sizeof host->user);
	if (!strcmp(name, "address"))
		return take_name(p, word, "address", value, value_bytes, host->address,
				 sizeof host->address);
	if (!strcmp(name, "port"))
		return take_number(p, word, name, value, 1, 65535, &host->port);
	if (!strcmp(name, "cpus"))
		return take_number(p, word, name, value, 0, MAX_CPUS, &host->cpus);
	if (!strcmp(name, "memory"))
		return take_memory(p, word, value, &host->memory_mib);
	if (!strcmp(name, "phoenix"))
		return take_phoenix(p, word, host, value);
	return wrong(p, word->column, "'%s' is no setting; there are user=, port=, address=, "
		     "cpus=, memory= and phoenix=",
		     name);
}

static int parse_line(struct parser *p)
{
	struct cluster_host host = { .cpus = 1 };
	struct word word, first;
	int more = next_word(p, &first), known;

	if (more <= 0)
		return more;
	if (take_name(p, &first, "host's name", first.text, first.bytes, host.name,
		      sizeof host.name))
		return -1;
	while ((more = next_word(p, &word)) > 0)
		if (parse_setting(p, &word, &host))
			return -1;
	if (more < 0)
		return -1;
	known = cluster_file_find(p->out, host.name);
	if (known >= 0)
		return wrong(p, first.column, "host %s stands in line %u already", host.name,
			     p->line_of[known]);
	if (p->out->n == MAX_NODES)
		return wrong(p, first.column, "more than %d hosts", MAX_NODES);
	p->line_of[p->out->n] = p->line;
	p->out->host[p->out->n++] = host;
	return 0;
}

int cluster_file_parse(struct cluster_file *file, const char *text, size_t bytes,
		       struct problem *problem_out)
{
	struct parser p = { .at = text,
			    .end = text + bytes,
			    .line_start = text,
			    .line = 1,
			    .out = file,
			    .p = problem_out };

	memset(file, 0, sizeof *file);
	while (p.at < p.end) {
		if (parse_line(&p))
			return -1;
		while (p.at < p.end && *p.at != '\n')
			p.at++; /* skip a comment */
		p.at += p.at < p.end;
		p.line_start = p.at;
		p.line++;
	}
	return file->n ? 0 : problem(problem_out, "1:1: there is no host in it");
}

/* Returns whether this text, written as a word of a line, is parsed as one word with this value. */
static bool is_one_word(const char *text, bool quoted)
{
	size_t n = strlen(text);
	bool inside = quoted;

	for (size_t i = 0; i < n; i++) {
		if (!inside && isspace((unsigned char)text[i]))
			return false;
		inside ^= text[i] == '"';
	}
	return inside == quoted && (quoted || !(n >= 2 && text[0] == '"' && text[n - 1] == '"'));
}

void cluster_file_print_line(const struct cluster_host *host, char line[CLUSTER_LINE])
{
	int n = snprintf(line, CLUSTER_LINE, "%s", host->name);

	if (host->user[0])
		n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " user=%s", host->user);
	if (host->port)
		n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " port=%u", host->port);
	if (host->address[0])
		n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " address=%s", host->address);
	n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " cpus=%u", host->cpus);
	if (host->memory_mib)
		n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " memory=%uM", host->memory_mib);
	for (uint32_t i = 0; i < host->n_phoenix; i++) {
		const char *quote = is_one_word(host->phoenix[i], true) ? "\"" : "";

		n += snprintf(line + n, CLUSTER_LINE - (size_t)n, " phoenix=%s%s%s", quote,
			      host->phoenix[i], quote);
	}
	bug_on(n >= CLUSTER_LINE);
}

int cluster_file_make_first(struct cluster_file *file, const char *name, const char *old_first_name)
{
	int first = cluster_file_find(file, name), here = cluster_file_find(file, HERE);
	struct cluster_host host;

	if (first < 0)
		return -1;
	if (here >= 0 && here != first) {
		if (!is_name(old_first_name, strlen(old_first_name)) ||
		    strlen(old_first_name) >= MAX_HOST_NAME ||
		    cluster_file_find(file, old_first_name) >= 0)
			return -1;
		strcpy(file->host[here].name, old_first_name);
	}
	host = file->host[first];
	memmove(file->host + 1, file->host, (size_t)first * sizeof host);
	file->host[0] = host;
	return 0;
}

int cluster_file_find(const struct cluster_file *file, const char *name)
{
	for (uint32_t i = 0; i < file->n; i++)
		if (!strcmp(file->host[i].name, name))
			return (int)i;
	return -1;
}

uint32_t cluster_file_cpus(const struct cluster_host *host, uint32_t hosts)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < hosts; i++)
		sum += host[i].cpus;
	return sum;
}

uint32_t cluster_file_askers(const struct cluster_host *host, uint32_t hosts)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < hosts; i++)
		n += host[i].cpus > 0;
	return n;
}

uint32_t cluster_file_memory(const struct cluster_host *host, uint32_t hosts, uint32_t each_mib)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < hosts; i++) {
		if (!host[i].memory_mib && !each_mib)
			return 0;
		sum += host[i].memory_mib ? host[i].memory_mib : each_mib;
	}
	return sum;
}

void cluster_file_bound(struct cluster_host *host, uint32_t mem_mib, uint32_t each_mib,
			const struct hostmem *has)
{
	if (!host->memory_mib && !each_mib)
		host->memory_mib = hostmem_share_mib(has, mem_mib, host->cpus ? host->cpus : 1);
}

int cluster_file_fits(const struct cluster_host *host, uint32_t mem_mib, uint32_t each_mib,
		      const struct hostmem *has, struct problem *p)
{
	uint32_t may = host->memory_mib ? host->memory_mib : each_mib;
	bool all = !may || may >= mem_mib;
	uint64_t needed = hostmem_needed_mib(all ? mem_mib : may, 1, host->cpus ? host->cpus : 1);

	if (needed <= has->mib)
		return 0;
	return problem(p, "host %s: it may come to hold %u MiB of the guest's memory (%s), for "
		       "which it needs %llu MiB, and there %s is %llu MiB%s",
		       host->name, all ? mem_mib : may,
		       all ? "--mem" : host->memory_mib ? "memory=" : "--host-mem",
		       (unsigned long long)needed, hostmem_name(has), (unsigned long long)has->mib,
		       all ? "; with memory= in its line it holds less" : "");
}

void cluster_file_place(const struct cluster_host *host, uint32_t hosts, uint32_t cpus,
			uint8_t place[MAX_CPUS])
{
	uint32_t has[MAX_NODES] = { 0 }, cpu = 0;
	bool dealt = true;

	while (cpu < cpus && dealt) {
		dealt = false;
		for (uint32_t i = 0; i < hosts && cpu < cpus; i++)
			if (has[i] < host[i].cpus) {
				has[i]++;
				place[cpu++] = (uint8_t)i;
				dealt = true;
			}
	}
	for (uint32_t i = 0; cpu < cpus; i = (i + 1) % hosts)
		if (host[i].cpus || !cluster_file_askers(host, hosts))
			place[cpu++] = (uint8_t)i;
}
