/* guestplace.h - the surroundings of the command in the guest: host name, time zone, language,
 * folder and user. */
#ifndef VMM_CLI_GUEST_GUESTPLACE_H
#define VMM_CLI_GUEST_GUESTPLACE_H

#include "vmm/cli/guest/initramfs.h"
#include "vmm/cli/options.h"

/* Adds the files with these settings (initramfs.h).  `root` is "" except in tests: this computer's
 * time zone is read below it. */
void guestplace_add(struct initramfs *archive, const struct options *o, const char *root);

/* Returns "LANG=C.UTF-8" if this computer's environment asks for UTF-8, otherwise NULL. Pure except
 * for getenv(). */
const char *guestplace_language(void);

/* Returns the folder in which the command starts.  Pure. */
const char *guestplace_folder(const struct options *o);

#endif
