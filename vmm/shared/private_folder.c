/* private_folder.c - see private_folder.h. */
#include "vmm/shared/private_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int private_folder(const char *path, struct problem *p)
{
	enum { TRIES = 100 };
	struct stat st;
	int missing = lstat(path, &st);

	/* A confined daemon may not make a folder, but may use one that is there.  Another process
	 * may remove it as soon as it is made, since it is empty (presence.c). */
	for (unsigned tries = 0; missing && errno == ENOENT && tries < TRIES; tries++) {
		if (mkdir(path, 0700) && errno != EEXIST)
			return problem(p, "cannot make the folder %s: %s", path,
				       strerror(errno));
		missing = lstat(path, &st);
	}
	if (missing)
		return problem(p, "cannot look at the folder %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return problem(p, "%s is not a folder of yours; remove it, or set XDG_RUNTIME_DIR "
			       "to one that is",
			       path);
	if (st.st_mode & 077 && chmod(path, 0700))
		return problem(p, "%s is open to other users: %s", path, strerror(errno));
	return 0;
}
