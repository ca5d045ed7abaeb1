/* orders.c - see orders.h. */
#include "vmm/cli/standby/orders.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct word { const char *word; enum { TEXT, NUMBER, FLAG } is; size_t offset, room; } words[] = {
#define FIELD(field) offsetof(struct orders, field), sizeof ((struct orders *)0)->field
	{ "name", TEXT, FIELD(name) },	   { "id", TEXT, FIELD(id) },		   { "host", TEXT, FIELD(host) },
	{ "engine", TEXT, FIELD(engine) },
	{ "vendor", TEXT, FIELD(vendor) }, { "features", TEXT, FIELD(features) },
	{ "policy", TEXT, FIELD(policy) }, { "strict", FLAG, FIELD(strict) },	   { "verbose", FLAG, FIELD(verbose) },
	{ "mem", NUMBER, FIELD(mem_mib) }, { "host-mem", NUMBER, FIELD(host_mem_mib) }, { "checkpoint", NUMBER, FIELD(checkpoint_ms) },
#undef FIELD
};

static size_t print_word(const struct word *w, const void *field, char *text, size_t bytes)
{
	if (w->is == TEXT)
		return (size_t)snprintf(text, bytes, "%s %s\n", w->word, (const char *)field);
	return (size_t)snprintf(text, bytes, "%s %u\n", w->word, w->is == FLAG ? *(const bool *)field : *(const uint32_t *)field);
}

size_t orders_print(const struct orders *o, char *text, size_t bytes)
{
	char line[CLUSTER_LINE];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		n += print_word(&words[i], (const char *)o + words[i].offset, n < bytes ? text + n : NULL, n < bytes ? bytes - n : 0);
	n += (size_t)snprintf(n < bytes ? text + n : NULL, n < bytes ? bytes - n : 0, "hosts\n");
	for (uint32_t i = 0; i < o->hosts.n; i++) {
		cluster_file_print_line(&o->hosts.host[i], line);
		n += (size_t)snprintf(n < bytes ? text + n : NULL, n < bytes ? bytes - n : 0, "%s\n", line);
	}
	return n;
}

static int take_value(const struct word *w, void *field, const char *value, size_t n, struct problem *p)
{
	char *end = NULL;
	unsigned long number;
	char copy[MAX_ORDER + 1];

	if (n >= sizeof copy || (w->is == TEXT && n >= w->room))
		return problem(p, "its orders have too long a word after %s", w->word);
	memcpy(copy, value, n);
	copy[n] = 0;
	if (w->is == TEXT) {
		strcpy(field, copy);
		return 0;
	}
	number = strtoul(copy, &end, 10);
	if (copy[0] < '0' || copy[0] > '9' || *end || number > (w->is == FLAG ? 1 : UINT32_MAX))
		return problem(p, "its orders have no number after %s", w->word);
	if (w->is == FLAG)
		*(bool *)field = number;
	else
		*(uint32_t *)field = (uint32_t)number;
	return 0;
}

static int take_line(struct orders *o, const char *line, size_t n, struct problem *p)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t length = strlen(words[i].word);

		if (n > length && !memcmp(line, words[i].word, length) && line[length] == ' ')
			return take_value(&words[i], (char *)o + words[i].offset, line + length + 1, n - length - 1, p);
	}
	return problem(p, "its orders have a line that says nothing: %.*s", (int)(n < 40 ? n : 40), line);
}

static int check(const struct orders *o, struct problem *p)
{
	int host = cluster_file_find(&o->hosts, o->host);

	if (!o->name[0] || !o->engine[0] || o->mem_mib < MIN_RAM_MIB || o->mem_mib > MAX_RAM_MIB)
		return problem(p, "its orders describe no machine");
	return host > 0 ? 0 : problem(p, "its orders name no host %s besides the first", o->host);
}

int orders_parse(struct orders *o, const char *text, size_t bytes, struct problem *p)
{
	const char *at = text, *end;
	struct problem inner;

	*o = (struct orders){ 0 };
	for (; (end = memchr(at, '\n', bytes - (size_t)(at - text))); at = end + 1) {
		if (end - at == 5 && !memcmp(at, "hosts", 5)) {
			at = end + 1;
			if (cluster_file_parse(&o->hosts, at, bytes - (size_t)(at - text), &inner))
				return problem(p, "its orders' hosts: %s", inner.line);
			return check(o, p);
		}
		if (take_line(o, at, (size_t)(end - at), p))
			return -1;
	}
	return problem(p, "its orders name no hosts");
}
