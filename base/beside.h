/* beside.h - the programs of one build lie beside each other, wherever that is. */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include <stddef.h>

/* The loader of a copy that has its libraries beside it (vmm/cli/cluster/bundle.h). */
#define BESIDE_LOADER "ld.so"

/* The folder of this program; path of a file in it: 0, or -1 if it does not fit. */
int beside_folder(char *folder, size_t bytes);
int beside_path(const char *name, char *path, size_t bytes);

/* The loader in this folder: 0, or -1 if its programs are no such copy, and the computer's own loader runs them. */
int beside_loader(const char *folder, char *path, size_t bytes);

/* execv(), with the libraries beside the program if they came along. Returns only when it fails, with errno set. */
void beside_exec(char *path, char **arguments);

#endif
