/* grid.c - see grid.h. */
#include "vmm/cli/grid.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/beside.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"

static int become(const char *program, char **words)
{
	char path[PATH_MAX];
	size_t n = 0;

	while (words[n])
		n++;
	char **arguments = calloc(n + 2, sizeof *arguments);
	if (!arguments || beside_path(program, path, sizeof path)) {
		log_error("out of memory");
		return EXIT_VMP_FAILURE;
	}
	arguments[0] = path;
	memcpy(arguments + 1, words, n * sizeof *words);
	beside_exec(path, arguments);
	if (errno == ENOENT)
		log_error("there is no %s: `make` builds it; `make run` builds what a machine on "
			  "this computer needs, and nothing else", path);
	else
		log_error("cannot start %s: %s", path, strerror(errno));
	return EXIT_VMP_FAILURE;
}

int grid_peer(const struct options *o)
{
	return become("vmp-peer", o->command);
}

int grid_shell(const struct options *o)
{
	return become("vmp-sh", o->command);
}
