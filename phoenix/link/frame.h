/* frame.h - the frames between neighbours.
 *
 * A frame is 'P' 'H', its type, the version, 4 bytes of length (little-endian, of what follows),
 * and that.
 */
#ifndef PHOENIX_FRAME_H
#define PHOENIX_FRAME_H

enum frame_type {
#define FRAME(name, when) FRAME_##name,
#include "phoenix/link/frame.def"
#undef FRAME
	N_FRAME_TYPES
};
enum {
	FRAME_HEAD = 8,		/* bytes before what a frame says */
	/* destination, source, hops: how a frame begins that nodes pass on */
	ROUTED_HEAD = 17,
};

#endif
