/* shareframe.h - the packets between the I/O server (virtio_9p.c) and vmp-share (vmp_share.c).
 *
 * The first byte of a packet to vmp-share says what it is; each gets the answer that stands here.
 * The first packet of all is vmp-share's: a zero byte, or one line that says why there is no
 * folder.
 */
#ifndef IOSRV_SHAREFRAME_H
#define IOSRV_SHAREFRAME_H

enum share_packet {
	SHARE_REQUEST,	 /* the guest's, behind this byte; answer: its reply, without such a byte */
	SHARE_SAVE,	 /* answer: the state (ninep.h) in parts, each behind an enum share_part */
	SHARE_LOAD,	 /* a part of a state; no answer */
	SHARE_LOAD_LAST, /* the last part; answer: a zero byte, or one line that says why not */
};

/* The first byte of a part that vmp-share sends.  FAILED: one line that says why follows. */
enum share_part { SHARE_MORE, SHARE_LAST, SHARE_FAILED };

enum { SHARE_PART_BYTES = 32 << 10 };

#endif
