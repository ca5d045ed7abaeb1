/* private_folder.h - a folder of this user's that nobody else can enter.  A name in /tmp itself may
 * be another user's trap. */
#ifndef VMM_SHARED_PRIVATE_FOLDER_H
#define VMM_SHARED_PRIVATE_FOLDER_H

#include "vmm/shared/problem.h"

/* This user's folder in /tmp; the format takes geteuid(). */
#define PRIVATE_TMP_FORMAT "/tmp/vmp-%u"

/* Makes the folder, or checks that it is this user's.  Returns 0, or -1 with the reason. */
int private_folder(const char *path, struct problem *p);

#endif
