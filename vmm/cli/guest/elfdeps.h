/* elfdeps.h - finds on the host what a 32-bit program needs at run time: its loader and its
 * libraries. */
#ifndef VMM_CLI_GUEST_ELFDEPS_H
#define VMM_CLI_GUEST_ELFDEPS_H

#include "base/types.h"
#include "vmm/shared/problem.h"

enum { MAX_LIBRARIES = 64, MAX_LIBRARY_NAME = 96, MAX_HOST_PATH = 512 };

enum file_kind { FILE_ELF32, FILE_ELF64, FILE_ELF_OTHER, FILE_SCRIPT, FILE_OTHER };

struct library {
	char name[MAX_LIBRARY_NAME]; /* as in DT_NEEDED */
	char path[MAX_HOST_PATH];    /* on the host */
};

struct elfdeps {
	char loader[MAX_HOST_PATH]; /* PT_INTERP, or "" for a static program */
	struct library library[MAX_LIBRARIES];
	size_t n;
};

/* Returns what a file is, by its first bytes; -1 with the problem if it cannot be read. */
int elfdeps_file_kind(const char *path, struct problem *p);
/* Finds the interpreter of a script, and its one argument if there is one. */
int elfdeps_script_interpreter(const char *path, char *interpreter, char *argument, size_t bytes,
		       struct problem *p);

/* Adds to `deps` what the program at `path` needs, and what these libraries need in turn.  `root`
 * is "" except in tests: a folder in front of the system's own paths.  Returns 0; or -1 with the
 * problem, which names what is missing and a package that may have it. */
int elfdeps_add(struct elfdeps *deps, const char *path, const char *root, struct problem *p);
/* Adds a library that is useful but that no file asks for, if it is there: libgcc_s, which glibc
 * opens at pthread_exit. */
void elfdeps_add_optional(struct elfdeps *deps, const char *name, const char *root);
/* Returns whether a library defines all versions of symbols that another one does, so that what was
 * linked with that one runs with it. */
bool elfdeps_defines_all(const char *library, const char *other);
/* Writes the folder in which the loader finds libraries without further options: the one with
 * libc. */
const char *elfdeps_folder(const struct elfdeps *deps, char *folder, size_t bytes);

#endif
