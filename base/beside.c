/* beside.c - see beside.h. */
#include "base/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 120 };

int beside_folder(char *folder, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", folder, bytes);
	char *slash;

	if (n <= 0 || (size_t)n == bytes)
		return -1;
	folder[n] = 0;
	slash = strrchr(folder, '/');
	if (!slash)
		return -1;
	*slash = 0;
	return 0;
}

static int path_in(const char *folder, const char *name, char *path, size_t bytes)
{
	return snprintf(path, bytes, "%s/%s", folder, name) < (int)bytes ? 0 : -1;
}

int beside_path(const char *name, char *path, size_t bytes)
{
	char folder[4096];

	return beside_folder(folder, sizeof folder) ? -1 : path_in(folder, name, path, bytes);
}

int beside_loader(const char *folder, char *path, size_t bytes)
{
	return path_in(folder, BESIDE_LOADER, path, bytes) || access(path, X_OK) ? -1 : 0;
}

/* (TRICKS: own-loader) */
void beside_exec(char *path, char **arguments)
{
	char loader[4096], folder[4096],
		*with[MAX_ARGUMENTS + 4] = { loader, "--library-path", folder, path };
	int n = 0;

	if (beside_folder(folder, sizeof folder) || beside_loader(folder, loader, sizeof loader)) {
		execv(path, arguments);
		return;
	}
	for (n = 1; arguments[n]; n++) {
		if (n == MAX_ARGUMENTS) {
			errno = E2BIG;
			return;
		}
		with[n + 3] = arguments[n];
	}
	with[n + 3] = NULL;
	execv(loader, with);
}
