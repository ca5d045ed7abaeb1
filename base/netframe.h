/* netframe.h - what the network card, or a monitor in its place, exchanges with vmp-net: frames, a
 * packet of their socket each. */
#ifndef BASE_NETFRAME_H
#define BASE_NETFRAME_H

enum {
	NET_MTU = 8000, /* large: each frame is a message, which carries MAX_MSG_PAYLOAD at most */
	NET_FRAME_BYTES = NET_MTU + 18,
	NET_HEADER_BYTES = 14, /* a frame's header, with the type at its end */
	NET_TYPE_IPV4 = 0x0800,
	NET_TYPE_ARP = 0x0806,
	NET_TYPE_IPV6 = 0x86dd,
};
#define NET_MAC                                                                                    \
	{                                                                                          \
		0x02, 'v', 'm', 'p', 0, 1                                                          \
	}
/* The address that the guest derives from its MAC address (EUI-64), and that libslirp expects. */
#define NET_GUEST_V6 "fec0::76:6dff:fe70:1"

#endif
