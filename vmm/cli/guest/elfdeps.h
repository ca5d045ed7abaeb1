/* elfdeps.h - what a 32-bit program of the host needs at run time: its loader and its libraries, found on the host. */
#ifndef VMM_CLI_GUEST_ELFDEPS_H
#define VMM_CLI_GUEST_ELFDEPS_H

#include "base/types.h"
#include "vmm/shared/problem.h"

enum { MAX_LIBRARIES = 64, MAX_LIBRARY_NAME = 96, MAX_HOST_PATH = 512 };

enum file_kind { FILE_ELF32, FILE_ELF64, FILE_ELF_OTHER, FILE_SCRIPT, FILE_OTHER };

struct library {
	char name[MAX_LIBRARY_NAME]; /* as DT_NEEDED says */
	char path[MAX_HOST_PATH];    /* on the host */
};

struct elfdeps {
	char loader[MAX_HOST_PATH]; /* PT_INTERP, or "" for a static program */
	struct library library[MAX_LIBRARIES];
	size_t n;
};

/* What a file is, by its first bytes. -1 with the problem if it cannot be read. */
int file_kind(const char *path, struct problem *p);
/* The interpreter of a script and its one argument, if any. */
int script_interpreter(const char *path, char *interpreter, char *argument, size_t bytes, struct problem *p);

/* Add to `deps` what the program at `path` needs, and what that needs in turn. `root` is "" but for tests: a folder put
 * before the system's own paths.  0, or -1 with the problem, which names what is missing and a package that may have it. */
int elfdeps_add(struct elfdeps *deps, const char *path, const char *root, struct problem *p);
/* As above for a library that is good to have but not asked for (libgcc_s, which glibc opens at pthread_exit). */
void elfdeps_add_optional(struct elfdeps *deps, const char *name, const char *root);
/* The folder in which the loader finds libraries without being told: where libc was found. */
const char *elfdeps_folder(const struct elfdeps *deps, char *folder, size_t bytes);

#endif
