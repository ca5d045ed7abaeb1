/* options.h - what the user typed, as one struct.
 *
 * Parsing is pure: no file is opened, nothing is printed.  Two tables hold every option with its limits and its line of help,
 * so that parser, `--help` and the unit test cannot disagree: base/machine.def what a machine is, options.c what concerns the
 * command alone.
 */
#ifndef VMM_CLI_OPTIONS_H
#define VMM_CLI_OPTIONS_H

#include "base/machine.h"
#include "base/types.h"

enum verb {
#define COMMAND(verb, ...) VERB_##verb,
#include "vmm/cli/commands.def"
#undef COMMAND
	VERB_COUNT
};

enum { MAX_ENV_OPTIONS = 64 };

enum disk_mode { DISK_READ_WRITE, DISK_READ_ONLY, DISK_SNAPSHOT };

struct options {
	enum verb verb;
	bool help; /* --help: say what `verb` does instead */
	struct machine machine; /* what it shall be; of a loaded one, and with a cluster, some is said later by a file */
	unsigned typed; /* how many options were given, but for --name and --help */
	uint32_t timeout_s; /* 0: none */
	uint32_t top;	    /* vmp pages: how many */
	uint32_t cpu, to_host; /* vmp cpu move CPU HOST; vmp host remove HOST */
	bool add;	       /* vmp host add; otherwise remove */
	bool save;	       /* vmp snapshot save FILE; otherwise load */
	const char *file;
	const char *share, *stats, *log, *name, *append;
	const char *checkpoint_file; /* each checkpoint is written there, too; or NULL */
	const char *cluster;	    /* the file with the hosts, or NULL */
	const char *host;	    /* a host's name instead of to_host, or NULL; vmp host add: "" for one on this computer */
	const char *gdb;	    /* where a debugger is waited for, or NULL */
	const char *kernel, *image; /* NULL: what `make` built */
	bool summary, json;
	const char *env[MAX_ENV_OPTIONS];
	uint32_t n_env;
	char **command; /* NULL-terminated, or NULL: a shell */
	char error[320];
};

/* 0, or -EINVAL with one line in o->error. `host_cpus` is what --cpus defaults to. Strings point into argv. */
int options_parse(struct options *o, int argc, char **argv, uint32_t host_cpus);

/* "IMAGE[,ro|,snapshot]": the mode, and the length of IMAGE in *path_bytes. */
enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes);

/* The help text of a verb (VERB_HELP: the overview) written to `out` of `bytes`; returns its length like snprintf. */
size_t options_help(enum verb verb, char *out, size_t bytes);

#endif
