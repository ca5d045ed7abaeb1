/* beside.h - finds and starts the other programs of this build, which are in the same folder. */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include <stddef.h>

/* The loader of a copy that has its libraries beside it (vmm/cli/cluster/bundle.h). */
#define BESIDE_LOADER "ld.so"

/* Store the folder of this program, or the path of a file in it.  Returns 0, or -1 if it does not
 * fit. */
int beside_folder(char *folder, size_t bytes);
int beside_path(const char *name, char *path, size_t bytes);

/* Store the path of the loader in this folder.  Returns 0; or -1: the folder has no loader, and the
 * computer's own runs its programs. */
int beside_loader(const char *folder, char *path, size_t bytes);

/* As execv(), with the loader and libraries beside the program if there are any.  Returns only when
 * it fails, with errno set. */
void beside_exec(char *path, char **arguments);

#endif
