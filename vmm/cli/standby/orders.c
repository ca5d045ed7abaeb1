/* orders.c - see orders.h. */
#include "vmm/cli/standby/orders.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Lines that are not part of a machine's description. */
static const struct word { const char *word; size_t offset, room; } words[] = {
#define FIELD(field) offsetof(struct orders, field), sizeof ((struct orders *)0)->field
	{ "name", FIELD(name) },     { "id", FIELD(id) },	      { "host", FIELD(host) },
	{ "votes", FIELD(votes) },
	{ "vendor", FIELD(vendor) }, { "features", FIELD(features) }, { "net", FIELD(net) },
	{ "peers", FIELD(peers) },   { "parts", FIELD(parts) },
#undef FIELD
};

static size_t put(char *text, size_t bytes, size_t n, const char *word, const char *value)
{
	return n + (size_t)snprintf(n < bytes ? text + n : NULL, n < bytes ? bytes - n : 0,
				    "%s%s%s\n", word, value ? " " : "", value ? value : "");
}

size_t orders_print(const struct orders *o, char *text, size_t bytes)
{
	char line[CLUSTER_LINE];
	size_t n = machine_print(&o->machine, MACHINE_STANDBY, text, bytes);

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		n = put(text, bytes, n, words[i].word, (const char *)o + words[i].offset);
	n = put(text, bytes, n, "hosts", NULL);
	for (uint32_t i = 0; i < o->hosts.n; i++) {
		cluster_file_print_line(&o->hosts.host[i], line);
		n = put(text, bytes, n, line, NULL);
	}
	return n;
}

static int take_value(const struct word *w, char *field, const char *value, size_t n,
		      struct problem *p)
{
	if (n >= w->room)
		return problem(p, "its orders have too long a word after %s", w->word);
	memcpy(field, value, n);
	field[n] = 0;
	return 0;
}

static int take_line(struct orders *o, const char *line, size_t n, struct problem *p)
{
	char why[200];

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t length = strlen(words[i].word);

		if (n > length && !memcmp(line, words[i].word, length) && line[length] == ' ')
			return take_value(&words[i], (char *)o + words[i].offset, line + length + 1,
					  n - length - 1, p);
	}
	switch (machine_read_line(&o->machine, MACHINE_STANDBY, line, n, why, sizeof why)) {
	case 0: return 0;
	case -EINVAL: return problem(p, "its orders: %s", why);
	}
	return problem(p, "its orders have a line that says nothing: %.*s", (int)(n < 40 ? n : 40),
		       line);
}

static int check(const struct orders *o, struct problem *p)
{
	int host = cluster_file_find(&o->hosts, o->host);

	if (!o->name[0] || !o->votes[0] || !o->machine.engine)
		return problem(p, "its orders describe no machine");
	return host > 0 ? 0 : problem(p, "its orders name no host %s besides the first", o->host);
}

int orders_parse(struct orders *o, const char *text, size_t bytes, struct problem *p)
{
	const char *at = text, *end;
	struct problem inner;

	*o = (struct orders){ 0 };
	machine_defaults(&o->machine);
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
