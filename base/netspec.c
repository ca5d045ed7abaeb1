/* netspec.c - see netspec.h. */
#include "base/netspec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 80 };

static bool parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > 65535)
		return false;
	*port = (uint16_t)value;
	return true;
}

static bool parse_address(struct net_forward *f, char *text, uint16_t port)
{
	size_t n = strlen(text);

	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		text[n - 1] = 0;
		f->host.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						    .sin6_port = htons(port) };
		return inet_pton(AF_INET6, text + 1, &f->host.v6.sin6_addr) == 1;
	}
	f->host.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	return inet_pton(AF_INET, text, &f->host.v4.sin_addr) == 1;
}

/* Parse "[udp:]ADDRESS:PORT:GUESTPORT"; `text` is changed. */
static bool parse_forward(struct net_forward *f, char *text)
{
	char *guest = strrchr(text, ':'), *port;
	uint16_t number;

	if (!guest)
		return false;
	*guest = 0;
	port = strrchr(text, ':');
	if (!port)
		return false;
	*port = 0;
	f->udp = !strncmp(text, "udp:", 4);
	return parse_port(guest + 1, &f->guest_port) && parse_port(port + 1, &number) &&
	       parse_address(f, text + (f->udp ? 4 : 0), number);
}

static int add_forward(struct netspec *net, const char *word, const char *text, char *why,
		       size_t why_bytes)
{
	char copy[MOST_TEXT];

	if (net->n_forwards == NET_FORWARDS) {
		snprintf(why, why_bytes, "--net: there can be %d forwarded ports", NET_FORWARDS);
		return -EINVAL;
	}
	snprintf(copy, sizeof copy, "%s", text);
	net->forward[net->n_forwards].text = word;
	if (parse_forward(&net->forward[net->n_forwards++], copy))
		return 0;
	snprintf(why, why_bytes,
		 "--net: forward=%s: write it as forward=127.0.0.1:2222:22, an address of this "
		 "computer, its port, the guest's port",
		 text);
	return -EINVAL;
}

int netspec_parse(struct netspec *net, const char *spec, char *why, size_t why_bytes)
{
	const char *at = spec;
	char word[MOST_TEXT + 1];

	*net = (struct netspec){ 0 };
	for (unsigned i = 0;; i++) {
		size_t n = strcspn(at, ",");

		snprintf(word, sizeof word, "%.*s", (int)n, at);
		if (!i && !strcmp(word, "none") && !at[n])
			return 0;
		if (!i && !strcmp(word, "user")) {
			net->user = true;
		} else if (i && !strcmp(word, "loopback")) {
			net->loopback = true;
		} else if (i && !strncmp(word, "forward=", 8) && n < MOST_TEXT) {
			if (add_forward(net, at + 8, word + 8, why, why_bytes))
				return -EINVAL;
		} else {
			snprintf(why, why_bytes,
				 "--net %s: write it as none, or "
				 "user[,loopback][,forward=ADDRESS:PORT:GUESTPORT]",
				 spec);
			return -EINVAL;
		}
		if (!at[n])
			return 0;
		at += n + 1;
	}
}
