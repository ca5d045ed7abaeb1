/* private_folder.c - see private_folder.h. */
#include "vmm/shared/private_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int private_folder(const char *path, struct problem *p)
{
	struct stat st;

	/* A confined daemon may not make a folder, but may use one that is there. */
	if (lstat(path, &st) && errno == ENOENT && mkdir(path, 0700) && errno != EEXIST)
		return problem(p, "cannot make the folder %s: %s", path, strerror(errno));
	if (lstat(path, &st))
		return problem(p, "cannot look at the folder %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return problem(p, "%s is not a folder of yours; remove it, or set XDG_RUNTIME_DIR "
			       "to one that is",
			       path);
	if (st.st_mode & 077 && chmod(path, 0700))
		return problem(p, "%s is open to other users: %s", path, strerror(errno));
	return 0;
}
