/* beside.h - the programs of one build lie beside each other, wherever that is. */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include <stddef.h>

/* The loader of a copy that has its libraries beside it (vmm/cluster/bundle.h). */
#define BESIDE_LOADER "ld.so"

/* Path of a file beside this program: 0, or -1 if it does not fit. */
int beside_path(const char *name, char *path, size_t bytes);

/* execv(), with the libraries beside the program if they came along. Returns only when it fails, with errno set. */
void beside_exec(char *path, char **arguments);

#endif
