/* guest_image.h - what the guest's base image (cpio, or cpio.gz) holds: to say "no such command" before the boot. */
#ifndef VMM_CLI_GUEST_GUEST_IMAGE_H
#define VMM_CLI_GUEST_GUEST_IMAGE_H

#include "base/types.h"
#include "vmm/shared/problem.h"

struct image {
	char **paths; /* absolute, sorted; owned */
	size_t n_paths;
};

int image_load(struct image *image, const char *path, struct problem *p);
void image_free(struct image *image);
bool image_has(const struct image *image, const char *path);
/* Where a shell in the guest finds `name` ("/bin/ls"), or NULL. `found` has room for `bytes`. */
const char *image_find_command(const struct image *image, const char *name, char *found, size_t bytes);

#endif
