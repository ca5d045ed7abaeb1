/* options.h - what the user typed, as one struct.
 *
 * Parsing is pure: it opens no file and prints nothing.  Two tables hold every option with its
 * limits and its line of help, so that parser, `--help` and the unit test cannot disagree.
 * base/machine.def has the options that describe the machine, options.c those of the command
 * itself.
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
	bool help; /* --help: print what `verb` does, and do nothing else */
	/* the machine to make.  For a saved machine, or with a cluster, a file completes it
	 * later. */
	struct machine machine;
	unsigned typed; /* how many options were given, without --name and --help */
	uint32_t timeout_ms; /* 0: none */
	uint32_t top;	    /* vmp pages: how many pages to list */
	uint32_t cpu, to_host; /* vmp cpu move CPU HOST; vmp host remove HOST */
	bool add;	       /* vmp host add; otherwise remove */
	bool save;	       /* vmp snapshot save FILE; otherwise load */
	const char *file;
	const char *share, *stats, *trace, *log, *name, *append;
	bool share_live, share_read_only; /* --share DIR,live[,ro]; `share` is DIR alone then */
	const char *checkpoint_file; /* each checkpoint is also written to this file; or NULL */
	const char *cluster;	    /* the file with the hosts, or NULL */
	uint32_t peers;		    /* so many computers of the user's network; 0: none */
	bool peers_near, peers_spread, peers_concentrate; /* how they are chosen; one at most */
	const char *min_memory;	    /* text of a size; or NULL */
	/* a host's name instead of to_host, or NULL; `vmp host add`: "" is one on this computer */
	const char *host;
	const char *hostname, *workdir, *user; /* in the guest; NULL: not given */
	const char *gdb;	    /* the address at which GDB may connect, or NULL */
	const char *root; /* a folder, an archive or an image is the guest's root; or NULL */
	bool no_reboot;	  /* a machine whose guest restarts it ends */
	/* rootdisk_choose(): the disk that is the root, or "" */
	char root_device[16], root_image[64];
	bool root_read_only;
	const char *report;	     /* where the report of a run is written, or NULL */
	const char *from;	     /* vmp report: the record, or NULL */
	uint32_t for_ms;	     /* vmp report: for how long it looks */
	const char *listen, *token; /* vmp metrics, vmp web: the address; the file with the token */
	const char *kernel, *image; /* NULL: what `make` built */
	bool all;		    /* vmp down: every machine of this user */
	bool follow;		    /* vmp logs: go on with what comes */
	bool tty;		    /* vmp exec: on a terminal */
	bool summary, json;
	const char *env[MAX_ENV_OPTIONS];
	uint32_t n_env;
	char **command; /* NULL-terminated, or NULL: a shell */
	char error[320];
};

/* Parses the command line.  `host_cpus` is the default of --cpus.  Strings point into argv.
 * Returns 0, or -EINVAL with one line in o->error. */
int options_parse(struct options *o, int argc, char **argv, uint32_t host_cpus);

/* The tables, for completion. options_describe() gives a command's option number `i`, counted from
 * 0, and returns false behind the last one. */
struct option_info {
	const char *name, *value,
		*help, *const *choices; /* value and choices are NULL if the option has none */
};
bool options_describe(enum verb verb, size_t i, struct option_info *info);
const char *options_verb_word(enum verb verb);
const char *options_verb_what(enum verb verb);
int options_find_verb(const char *word); /* -1: there is none */
bool options_is_typed(enum verb verb);	 /* false: people do not type this command */
/* true: the command takes a machine's name as its one word */
bool options_takes_name(enum verb verb);

/* Reads "IMAGE[,ro|,snapshot][,ide]".  Returns the mode; *path_bytes is the length of IMAGE. */
enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes);
bool options_disk_is_ide(const char *spec);
unsigned options_ide_disks(const struct machine *m);
/* Returns the first disk whose image the machine writes to, or NULL. */
const char *options_disk_written(const struct machine *m);

/* Returns whether a root's own init runs, and no command in it. */
bool options_root_boots(const struct options *o);

/* Writes the help text of a verb (VERB_HELP: the overview) to `out` of `bytes`.  Returns its
 * length, as snprintf does. */
size_t options_help(enum verb verb, char *out, size_t bytes);

/* The functions of the commands.  Each returns the exit status, after a line on standard error if
 * that is 125.  A function's name leads to its file. */
#define COMMAND(verb, word, machine, function, ...) int function(const struct options *o);
#include "vmm/cli/commands.def"
#undef COMMAND

#endif
