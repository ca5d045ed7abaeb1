/* options.h - what the user typed, as one struct.
 *
 * Parsing is pure: no file is opened, nothing is printed.  One table (options.c) holds every option with its limits and
 * its line of help, so that parser, `--help` and the unit test cannot disagree.
 */
#ifndef VMM_CLI_OPTIONS_H
#define VMM_CLI_OPTIONS_H

#include "base/types.h"

enum verb {
	VERB_RUN, VERB_UP, VERB_STATUS, VERB_TOP, VERB_DOWN, VERB_CPU, VERB_HOST, VERB_POLICY, VERB_SNAPSHOT, VERB_CONSOLE, VERB_REGS, VERB_PAGES,
	VERB_STANDBY, VERB_VERSION, VERB_HELP,
	VERB_COUNT
};

enum { MAX_ENV_OPTIONS = 64 };

enum disk_mode { DISK_READ_WRITE, DISK_READ_ONLY, DISK_SNAPSHOT };

struct options {
	enum verb verb;
	bool help; /* --help: say what `verb` does instead */
	uint32_t hosts, cpus, mem_mib;
	uint32_t host_mem_mib; /* 0: no limit */
	uint32_t timeout_s; /* 0: none */
	uint32_t checkpoint_ms; /* 0: none is taken */
	uint32_t top;	    /* vmp pages: how many */
	uint32_t cpu, to_host; /* vmp cpu move CPU HOST; vmp host remove HOST */
	bool add;	       /* vmp host add; otherwise remove */
	bool save;	       /* vmp snapshot save FILE; otherwise load */
	const char *file;
	const char *engine, *disk, *share, *stats, *log, *name, *append;
	const char *checkpoint_file; /* each checkpoint is written there, too; or NULL */
	const char *cluster;	    /* the file with the hosts, or NULL */
	const char *host;	    /* a host's name instead of to_host, or NULL; vmp host add: "" for one on this computer */
	const char *policy;	    /* where processors run, or NULL */
	const char *gdb;	    /* where a debugger is waited for, or NULL */
	const char *kernel, *image; /* NULL: what `make` built */
	bool summary, verbose, json, strict;
	const char *env[MAX_ENV_OPTIONS];
	uint32_t n_env;
	char **command; /* NULL-terminated, or NULL: a shell */
	char error[320];
};

/* 0, or -EINVAL with one line in o->error. `host_cpus` is what --cpus defaults to. Strings point into argv. */
int options_parse(struct options *o, int argc, char **argv, uint32_t host_cpus);

/* "256M", "1G", "65536K", "256" (MiB) -> MiB; -EINVAL, or -ERANGE if it is not a whole number of MiB below 2^32. */
int options_parse_size(const char *text, uint32_t *mib);

/* "5s", "500ms", "5" (seconds) -> ms; -EINVAL, or -ERANGE beyond 32 bits. */
int options_parse_time(const char *text, uint32_t *ms);

/* "IMAGE[,ro|,snapshot]": the mode, and the length of IMAGE in *path_bytes. */
enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes);

/* The help text of a verb (VERB_HELP: the overview) written to `out` of `bytes`; returns its length like snprintf. */
size_t options_help(enum verb verb, char *out, size_t bytes);

#endif
