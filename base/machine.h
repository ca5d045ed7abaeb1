/* machine.h - the description of a machine as one struct, and its two forms between vmp's programs:
 * options of a command line, and text of one `WORD VALUE` a line.  Both come from the table
 * machine.def.  Pure.
 *
 * A default value is not passed on, so a reader begins with machine_defaults().  A reader of
 * another process's text gets values within their limits, or an error.  It checks itself that the
 * required ones (hosts, cpus) are there.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include "base/limits.h"
#include "base/types.h"

enum console { CONSOLE_SERIAL, CONSOLE_VIRTIO };
enum engine { ENGINE_UNSET, ENGINE_DIRECT, ENGINE_PTRACE };

/* The programs and files that receive an option's value. */
enum machine_reader {
	MACHINE_NODE = 1,     /* each node daemon's command line */
	MACHINE_NODE0 = 2,    /* that of host 0 */
	MACHINE_MONITOR = 4,  /* a monitor's command line */
	MACHINE_IOSRV = 8,    /* the I/O server's command line */
	MACHINE_STANDBY = 16, /* a standby's orders (vmm/cli/standby/orders.h) */
	MACHINE_INFO = 32,    /* the run folder's file, for the other commands (vmm/cli/rundir.h) */
	MACHINE_SAVED = 64,   /* a snapshot's first record (vmm/shared/snapshot_machine.h) */
};

/* Where a user may give an option. */
enum machine_typed { MACHINE_TYPED_NO, MACHINE_TYPED_BOOT, MACHINE_TYPED_START };

/* The values of an option that may be given several times, in order.  The strings belong to the
 * caller of machine_set(). */
enum { MACHINE_LIST_ITEMS = 4 };
struct machine_list { const char *item[MACHINE_LIST_ITEMS]; unsigned n; };

struct machine {
#define MACHINE_TYPE_NUMBER uint32_t
#define MACHINE_TYPE_SIZE uint32_t /* MiB */
#define MACHINE_TYPE_TIME uint32_t /* milliseconds */
#define MACHINE_TYPE_FLAG bool
#define MACHINE_TYPE_TEXT const char * /* NULL: not given; the string is the giver's */
#define MACHINE_TYPE_LIST struct machine_list
#define MACHINE_TYPE_CHOICE_OF(names) uint32_t /* enum NAMES; 0: not given */
#define MACHINE_TYPE_SET_OF(names) uint32_t    /* bit i: name number i */
#define MACHINE(field, word, kind, ...) MACHINE_TYPE_##kind field;
#include "base/machine.def"
#undef MACHINE
};

enum machine_kind {
	MACHINE_IS_NUMBER, MACHINE_IS_SIZE, MACHINE_IS_TIME, MACHINE_IS_FLAG, MACHINE_IS_TEXT,
	MACHINE_IS_LIST, MACHINE_IS_CHOICE, MACHINE_IS_SET,
};

struct machine_row {
	const char *word;
	enum machine_kind kind;
	const char *const *names; /* of a choice or a set, NULL-terminated */
	size_t offset;		  /* in struct machine */
	uint32_t least, most, start;
	enum machine_typed typed;
	unsigned readers;
	const char *value, *help;
};

enum {
#define MACHINE(field, ...) MACHINE_ROW_##field,
#include "base/machine.def"
#undef MACHINE
	MACHINE_ROWS
};
extern const struct machine_row machine_rows[MACHINE_ROWS];

void machine_defaults(struct machine *m);

/* Set a field from what a user or a program wrote; a FLAG is set by NULL or "1".  Returns 0, or
 * -EINVAL with the reason, which begins with "--WORD VALUE: ".  The string of a TEXT or LIST must
 * outlive `m`. */
int machine_set(struct machine *m, const struct machine_row *row, const char *value, char *why,
		size_t why_bytes);

/* The values that are not defaults and that one of `readers` receives, as words of a command line:
 * --WORD VALUE, and a flag as --WORD.  The words are in `w`, except the strings of TEXT and LIST,
 * which are not copied. */
enum {
	MACHINE_VALUE = 160, /* the names of all mechanisms fit */
	MACHINE_WORDS = 2 * (MACHINE_ROWS + 2 * (MACHINE_LIST_ITEMS - 1)) /* two rows are lists */
};
struct machine_words {
	char *word[MACHINE_WORDS];
	unsigned n;
	char text[MACHINE_ROWS][2][MACHINE_VALUE];
};
void machine_words(const struct machine *m, unsigned readers, struct machine_words *w);
/* Set the fields that argv names in that form, and remove these words from argv; the others stay
 * for the caller.  Returns 0, or -EINVAL with the reason. */
int machine_take_words(struct machine *m, unsigned readers, int *argc, char **argv, char *why,
		       size_t why_bytes);

/* Print the same values as lines `WORD VALUE`; none of `readers` may receive a TEXT.  Returns bytes
 * as snprintf() does. */
enum { MACHINE_TEXT = 512 }; /* all lines fit, with the NUL */
size_t machine_print(const struct machine *m, unsigned readers, char *text, size_t bytes);
/* Read one such line, without its end.  Returns 0; -ENOENT: no row of `readers` has its word; or
 * -EINVAL with the reason. */
int machine_read_line(struct machine *m, unsigned readers, const char *line, size_t bytes,
		      char *why, size_t why_bytes);

/* Writes the names of a set, as "runs,hold"; returns bytes as snprintf() does. */
size_t machine_set_names(const char *const *names, uint32_t set, char *text, size_t bytes);

extern const char *const mechanism_names[]; /* of enum mechanism, NULL-terminated */
extern const char *const policy_names[]; /* of enum policy (wire.h), NULL-terminated */

#endif
