/* rootdisk.h - the disk whose file system the guest has as its root: --root DIR|TAR|IMAGE, or a
 * --disk IMAGE that `vmp image` made. */
#ifndef VMM_CLI_IMAGE_ROOTDISK_H
#define VMM_CLI_IMAGE_ROOTDISK_H

#include "vmm/cli/options.h"
#include "vmm/shared/problem.h"

/* The name that `vmp image` gives to a file system (vmm/cli/image/vmp-image). */
#define ROOT_LABEL "vmp-root"

enum { SUPERBLOCK_AT = 1024, SUPERBLOCK_BYTES = 1024 };

/* Makes the root that `o` names one of its disks, and says which in o->root_device; a folder or an
 * archive becomes an image that is forgotten when this process ends.  A root that boots has a
 * network, unless --net says otherwise.  Returns 0, or -1 with the problem. */
int rootdisk_choose(struct options *o, struct problem *p);

#endif
