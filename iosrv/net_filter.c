/* net_filter.c - see net_filter.h.
 *
 * Only the destination counts.  It is at the same place in each fragment, and behind no option and
 * no extension header; libslirp puts fragments together only if their destinations are equal, and
 * follows no source route.
 */
#include "iosrv/net_filter.h"

#include <string.h>
#include "base/netframe.h"

enum {
	ETHERNET = NET_HEADER_BYTES,
	IPV4 = 20,
	IPV4_DESTINATION = 16,
	IPV6 = 40,
	IPV6_DESTINATION = 24,
};

/* 127.0.0.0/8, and 0.0.0.0/8, of which Linux takes 0.0.0.0 for the computer itself. */
static bool v4_leaves(const uint8_t to[4])
{
	return to[0] != 127 && to[0] != 0;
}

/* ::/96, with ::1 and ::, which Linux takes for the computer itself; and ::ffff:0:0/96, by which a
 * socket of IPv6 reaches addresses of IPv4, none of which a guest needs in this form. */
static bool v6_leaves(const uint8_t to[16])
{
	static const uint8_t prefixes[][12] = { { 0 }, { [10] = 255, [11] = 255 } };

	return memcmp(to, prefixes[0], sizeof prefixes[0]) &&
	       memcmp(to, prefixes[1], sizeof prefixes[1]);
}

bool net_filter_passes(const uint8_t *frame, size_t bytes)
{
	if (bytes < ETHERNET)
		return false;
	switch (frame[12] << 8 | frame[13]) {
	case NET_TYPE_ARP: return true;
	case NET_TYPE_IPV4:
		return bytes >= ETHERNET + IPV4 && v4_leaves(frame + ETHERNET + IPV4_DESTINATION);
	case NET_TYPE_IPV6:
		return bytes >= ETHERNET + IPV6 && v6_leaves(frame + ETHERNET + IPV6_DESTINATION);
	default: return false;
	}
}
