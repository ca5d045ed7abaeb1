/* net_filter.h - which frames of the guest may go to libslirp if the guest must not reach this
 * computer's loopback interface.  Pure.
 *
 * libslirp translates the gateway's address alone (disable_host_loopback).  To any other it
 * connects as it stands, also if that is the loopback interface.
 */
#ifndef IOSRV_NET_FILTER_H
#define IOSRV_NET_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for ARP, and for IPv4 and IPv6 unless the destination leads to the loopback interface.
 * False for anything else: VLAN tags, other protocols, a frame without a whole destination. */
bool net_filter_passes(const uint8_t *frame, size_t bytes);

#endif
