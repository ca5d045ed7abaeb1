/* ldcache.h - /etc/ld.so.cache of the guest: where the loader finds the libraries that came along, without trying every folder.
 *
 * The format is glibc's own, new since 2.2 (sysdeps/generic/dl-cache.h); `ldconfig -p -C FILE` prints it.
 */
#ifndef VMM_CLI_GUEST_LDCACHE_H
#define VMM_CLI_GUEST_LDCACHE_H

#include "vmm/cli/guest/elfdeps.h"

enum { LDCACHE_BYTES = 48 + MAX_LIBRARIES * (24 + 2 * MAX_LIBRARY_NAME + MAX_HOST_PATH + 2) };

/* The cache of the libraries of `deps`, all in `folder` of the guest. Returns its bytes, at most LDCACHE_BYTES. */
size_t ldcache_build(const struct elfdeps *deps, const char *folder, uint8_t out[LDCACHE_BYTES]);

/* The order that the loader's binary search counts on, as strcmp; digits compare as numbers. */
int ldcache_compare(const char *a, const char *b);

#endif
