/* beside.c - see beside.h. */
#include "base/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 120 };

int beside_path(const char *name, char *path, size_t bytes)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (n <= 0)
		return -1;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return -1;
	*slash = 0;
	return snprintf(path, bytes, "%s/%s", self, name) < (int)bytes ? 0 : -1;
}

void beside_exec(char *path, char **arguments)
{
	char loader[4096], folder[4096], *with[MAX_ARGUMENTS + 4] = { loader, "--library-path", folder, path };
	int n = 0;

	if (beside_path(BESIDE_LOADER, loader, sizeof loader) || access(loader, X_OK)) {
		execv(path, arguments);
		return;
	}
	snprintf(folder, sizeof folder, "%s", loader);
	*strrchr(folder, '/') = 0;
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
