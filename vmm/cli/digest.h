/* digest.h - SHA-256, by libcrypto, which is loaded when it is needed: it takes a third of the time
 * in which `vmp` starts, and most commands need none of it. */
#ifndef VMM_CLI_DIGEST_H
#define VMM_CLI_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_BYTES = 32 };

/* False: the library cannot be loaded, or is out of memory; errno says nothing then. */
bool digest_of(const void *data, size_t bytes, unsigned char digest[DIGEST_BYTES]);
/* False: the file cannot be read, or as above; errno is 0 then. */
bool digest_of_file(int fd, unsigned char digest[DIGEST_BYTES]);

#endif
