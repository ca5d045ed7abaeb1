/* options.h - what the user typed, as one struct.
 *
 * Parsing is pure: it opens no file and prints nothing.  Two tables hold every option with its
 * limits and its line of help, so that parser, `--help` and the unit test cannot disagree:
 * base/machine.def has the options that describe the machine, options.def those of the commands.
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

/* The name of a host to add, in place of one that the user's network chooses. */
#define HOST_ANY_PEER "*"

enum disk_mode { DISK_READ_WRITE, DISK_READ_ONLY, DISK_SNAPSHOT };

struct options {
	enum verb verb;
	/* the machine to make.  For a saved machine, or with a cluster, a file completes it
	 * later. */
	struct machine machine;
#define OPTION_FIELD_FLAG(field) bool field
#define OPTION_FIELD_TEXT(field) const char *field
#define OPTION_FIELD_NUMBER(field) uint32_t field
#define OPTION_FIELD_TIME(field) uint32_t field /* ms */
#define OPTION_FIELD_LIST(field) const char *field[MAX_ENV_OPTIONS]; uint32_t n_##field
#define OPTION(word, value, verbs, kind, field, ...) OPTION_FIELD_##kind(field);
#include "vmm/cli/options.def"
#undef OPTION
	unsigned typed;	       /* how many options were given, without --name and --help */
	uint32_t cpu, to_host; /* vmp cpu move CPU HOST; vmp host remove HOST */
	bool add;	       /* vmp host add; otherwise remove */
	bool save;	       /* vmp snapshot save FILE; otherwise load */
	const char *file;      /* of vmp snapshot, vmp report */
	/* a host's name instead of to_host, or NULL; `vmp host add`: "" is one on this computer */
	const char *host;
	bool share_live, share_read_only; /* --share DIR,live[,ro]; `share` is DIR alone then */
	/* rootdisk_choose(): the disk that is the root, or "" */
	char root_device[16], root_image[64];
	bool root_read_only;
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
/* Returns whether a file or folder is there whose name ends before one of this path's commas. */
bool options_has_words(const char *path);
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
