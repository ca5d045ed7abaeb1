/* guestprog.h - what the command needs in the guest: found and checked on the host before anything boots.
 *
 * The result is the archive that is appended to the guest's base image (vmm/cli/guest/initramfs.h says what it holds).
 */
#ifndef VMM_CLI_GUEST_GUESTPROG_H
#define VMM_CLI_GUEST_GUESTPROG_H

#include "vmm/cli/guest/guest_image.h"
#include "vmm/cli/options.h"
#include "vmm/shared/problem.h"

/* Make the archive in a memory file. Returns its descriptor (close-on-exec), or -1 with the problem. */
int guestprog_archive(const struct options *o, const struct image *image, struct problem *p);

#endif
