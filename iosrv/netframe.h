/* netframe.h - the interface between the network card and vmp-net. */
#ifndef IOSRV_NETFRAME_H
#define IOSRV_NETFRAME_H

enum {
	NET_MTU = 8000, /* large: each frame is a message, which carries MAX_MSG_PAYLOAD at most */
	NET_FRAME_BYTES = NET_MTU + 18,
};
#define NET_MAC                                                                                    \
	{                                                                                          \
		0x02, 'v', 'm', 'p', 0, 1                                                          \
	}
/* The address that the guest derives from its MAC address (EUI-64), and that libslirp expects. */
#define NET_GUEST_V6 "fec0::76:6dff:fe70:1"

#endif
