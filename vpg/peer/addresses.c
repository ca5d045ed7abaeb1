/* addresses.c - see addresses.h. */
#include "vpg/peer/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static in_addr_t address_of(const struct sockaddr *a)
{
	struct sockaddr_in at;

	memcpy(&at, a, sizeof at);
	return at.sin_addr.s_addr;
}

static bool is_usable(const struct ifaddrs *a)
{
	return a->ifa_addr && a->ifa_netmask && a->ifa_addr->sa_family == AF_INET &&
	       (a->ifa_flags & IFF_UP) && !(a->ifa_flags & IFF_LOOPBACK);
}

void addresses_own(char text[ADDRESSES_TEXT])
{
	struct ifaddrs *all = NULL;
	char one[ADDRESS];
	size_t n = 0;

	*text = 0;
	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *a = all; a && n + ADDRESS < ADDRESSES_TEXT; a = a->ifa_next) {
		struct in_addr at;

		if (!is_usable(a))
			continue;
		at.s_addr = address_of(a->ifa_addr);
		if (inet_ntop(AF_INET, &at, one, sizeof one))
			n += (size_t)snprintf(text + n, ADDRESSES_TEXT - n, "%s%s", n ? " " : "",
					      one);
	}
	freeifaddrs(all);
}

static bool is_near(const struct ifaddrs *all, in_addr_t address)
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (is_usable(a) && !((address_of(a->ifa_addr) ^ address) &
				      address_of(a->ifa_netmask)))
			return true;
	return false;
}

void addresses_pick(const char *list, char picked[ADDRESS])
{
	char text[ADDRESSES_TEXT], *save = NULL;
	struct ifaddrs *all = NULL;
	struct in_addr at;

	*picked = 0;
	snprintf(text, sizeof text, "%s", list);
	if (getifaddrs(&all))
		return;
	for (char *one = strtok_r(text, " ", &save); one && !*picked;
	     one = strtok_r(NULL, " ", &save))
		if (inet_pton(AF_INET, one, &at) == 1 && is_near(all, at.s_addr))
			inet_ntop(AF_INET, &at, picked, ADDRESS);
	freeifaddrs(all);
}
