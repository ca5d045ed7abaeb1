/* ldcache.h - the guest's /etc/ld.so.cache, by which the loader finds the host's libraries without
 * trying every folder.
 *
 * The format is glibc's own, the one since 2.2 (sysdeps/generic/dl-cache.h); `ldconfig -p -C FILE`
 * prints it.
 */
#ifndef VMM_CLI_GUEST_LDCACHE_H
#define VMM_CLI_GUEST_LDCACHE_H

#include "vmm/cli/guest/elfdeps.h"

enum { LDCACHE_BYTES = 48 + MAX_LIBRARIES * (24 + 2 * MAX_LIBRARY_NAME + MAX_HOST_PATH + 2) };

/* Builds the cache of the libraries of `deps`, which are all in the guest's `folder`.  Returns its
 * size in bytes, at most LDCACHE_BYTES. */
size_t ldcache_build(const struct elfdeps *deps, const char *folder, uint8_t out[LDCACHE_BYTES]);

/* Compares like strcmp(), but digits as numbers: the order that the loader's binary search
 * needs. */
int ldcache_compare(const char *a, const char *b);

#endif
