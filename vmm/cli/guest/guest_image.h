/* guest_image.h - what the guest's base image (cpio, or cpio.gz) holds, so that vmp can report "no
 * such command" before it boots a machine. */
#ifndef VMM_CLI_GUEST_GUEST_IMAGE_H
#define VMM_CLI_GUEST_GUEST_IMAGE_H

#include "base/types.h"
#include "vmm/shared/problem.h"

struct image {
	char **paths; /* absolute, sorted; owned */
	size_t n_paths;
	/* the image's /etc/passwd, NUL-terminated; "": it has none, or a larger one */
	char users[8192];
};

int image_load(struct image *image, const char *path, struct problem *p);
void image_free(struct image *image);
bool image_has(const struct image *image, const char *path);
/* Returns whether the image has a user of this name; true if its users are not known. */
bool image_has_user(const struct image *image, const char *name);
/* Returns whether a path is in a folder of the PATH of the guest's shell. */
bool image_is_program(const char *path);
/* Returns where the guest's shell finds `name` ("/bin/ls"), or NULL. `found` has room for
 * `bytes`. */
const char *image_find_command(const struct image *image, const char *name, char *found,
			       size_t bytes);

#endif
