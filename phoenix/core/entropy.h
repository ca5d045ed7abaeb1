/* entropy.h - random bytes of the host. */
#ifndef PHOENIX_ENTROPY_H
#define PHOENIX_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

uint64_t entropy_u64(void);
void entropy_fill(void *buf, size_t n);	/* n: 256 at most */

#endif
