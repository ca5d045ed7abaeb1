/* image.c - `vmp image`: becomes vmp-image. */
#include "vmm/cli/image/image.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"

int image_program(char *path, size_t bytes) { return beside_path("vmp-image", path, bytes); }

/* It is a script: what else is beside this program, a loader too, is not for it. */
int image_make(const struct options *o)
{
	char path[PATH_MAX];

	if (image_program(path, sizeof path)) {
		log_error("the path of this program is too long");
		return EXIT_VMP_FAILURE;
	}
	/* The first word is the command's, as a program's name is. */
	execv(path, o->command);
	log_error("cannot run %s: %s", path, strerror(errno));
	return EXIT_VMP_FAILURE;
}
