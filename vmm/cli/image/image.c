/* image.c - `vmp image`: becomes vmp-image. */
#include "vmm/cli/image/image.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/quantity.h"
#include "vmm/cli/options.h"

int image_program(char *path, size_t bytes) { return beside_path("vmp-image", path, bytes); }

/* Returns a word with its size in MiB, so that vmp-image, a script, reads all forms that vmp reads.
 * What is no such size stays as it is: the script complains about it. */
static char *plain_size(char *word, const char *size)
{
	uint32_t mib;
	char *plain;

	if (quantity_parse_mib(size, &mib) ||
	    asprintf(&plain, "%.*s%uM", (int)(size - word), word, mib) < 0)
		return word;
	return plain;
}

static void make_sizes_plain(char **word)
{
	for (; *word; word++)
		if (!strncmp(*word, "--size=", 7))
			*word = plain_size(*word, *word + 7);
		else if (!strcmp(*word, "--size") && word[1])
			word[1] = plain_size(word[1], word[1]);
}

/* It is a script: what else is beside this program, a loader too, is not for it. */
int image_make(const struct options *o)
{
	char path[PATH_MAX];

	if (image_program(path, sizeof path)) {
		log_error("the path of this program is too long");
		return EXIT_VMP_FAILURE;
	}
	make_sizes_plain(o->command);
	/* The first word is the command's, as a program's name is. */
	execv(path, o->command);
	log_error("cannot run %s: %s", path, strerror(errno));
	return EXIT_VMP_FAILURE;
}
