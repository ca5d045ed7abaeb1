/* mechanisms.h - the mechanisms of the page path that can be turned off (base/mechanisms.def), as a
 * set of bits. */
#ifndef BASE_MECHANISMS_H
#define BASE_MECHANISMS_H

#include "base/types.h"

enum mechanism {
#define MECHANISM(name, ...) MECHANISM_##name,
#include "base/mechanisms.def"
#undef MECHANISM
	MECHANISMS
};

/* Returns whether a mechanism is on.  `without`: the set of those that are off, a bit for each. */
static inline bool mechanism_on(uint32_t without, enum mechanism mechanism)
{
	return !(without >> mechanism & 1);
}

#endif
