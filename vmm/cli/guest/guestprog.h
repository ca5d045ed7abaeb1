/* guestprog.h - finds and checks on the host, before the boot, what the command needs in the guest.
 *
 * The result is the archive that follows the guest's base image (initramfs.h says what it holds).
 */
#ifndef VMM_CLI_GUEST_GUESTPROG_H
#define VMM_CLI_GUEST_GUESTPROG_H

#include "vmm/cli/guest/guest_image.h"
#include "vmm/cli/options.h"
#include "vmm/shared/problem.h"

/* Makes the archive in a memory file.  Returns its descriptor (close-on-exec), or -1 with the
 * problem. */
int guestprog_archive(const struct options *o, const struct image *image, struct problem *p);

#endif
