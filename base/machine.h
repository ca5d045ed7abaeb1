/* machine.h - what a machine is, as one struct, and its ways between vmp's programs: as options of a command line, and
 * as text of one `WORD VALUE` a line.  All of it comes from the table machine.def.  Pure.
 *
 * A value that is the default is not passed on, so a reader begins with machine_defaults().  Who reads what another
 * process wrote gets values within their limits, or an error; what must be there (hosts, cpus) the reader checks.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include "base/limits.h"
#include "base/types.h"

enum engine { ENGINE_UNSET, ENGINE_DIRECT, ENGINE_PTRACE };

/* Who is told an option's value. */
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

struct machine {
#define MACHINE_TYPE_NUMBER uint32_t
#define MACHINE_TYPE_SIZE uint32_t /* MiB */
#define MACHINE_TYPE_TIME uint32_t /* milliseconds */
#define MACHINE_TYPE_FLAG bool
#define MACHINE_TYPE_TEXT const char * /* NULL: not given; the string is the giver's */
#define MACHINE_TYPE_CHOICE_OF(names) uint32_t /* enum NAMES; 0: not given */
#define MACHINE(field, word, kind, ...) MACHINE_TYPE_##kind field;
#include "base/machine.def"
#undef MACHINE
};

enum machine_kind { MACHINE_IS_NUMBER, MACHINE_IS_SIZE, MACHINE_IS_TIME, MACHINE_IS_FLAG, MACHINE_IS_TEXT, MACHINE_IS_CHOICE };

struct machine_row {
	const char *word;
	enum machine_kind kind;
	const char *const *names; /* of a choice, NULL-terminated */
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

/* The row of a word of `bytes` bytes that one of `readers` reads; NULL: there is none. */
const struct machine_row *machine_find(const char *word, size_t bytes, unsigned readers);

/* Set a field from what a user or a program wrote; a FLAG is set by NULL or "1". 0, or -EINVAL with the reason, which
 * begins with "--WORD VALUE: ". A TEXT's string must outlive `m`. */
int machine_set(struct machine *m, const struct machine_row *row, const char *value, char *why, size_t why_bytes);

/* The values that are not defaults and that one of `readers` reads, as words of a command line: --WORD VALUE, and a flag
 * as --WORD. The words lie in `w`, those of TEXT where they lie for `m`. */
enum { MACHINE_VALUE = 16 };
struct machine_words { char *word[2 * MACHINE_ROWS]; unsigned n; char text[MACHINE_ROWS][2][MACHINE_VALUE]; };
void machine_words(const struct machine *m, unsigned readers, struct machine_words *w);
/* Set the fields that argv names in that form, and take these words out of argv; the rest is the caller's. 0, or -EINVAL
 * with the reason. */
int machine_take_words(struct machine *m, unsigned readers, int *argc, char **argv, char *why, size_t why_bytes);

/* The same as lines `WORD VALUE`; none of `readers` may read a TEXT. Bytes as snprintf() counts them. */
enum { MACHINE_TEXT = 512 }; /* all lines fit, with the NUL */
size_t machine_print(const struct machine *m, unsigned readers, char *text, size_t bytes);
/* One such line, without its end: 0, or -ENOENT if no row of `readers` has its word, or -EINVAL with the reason. */
int machine_read_line(struct machine *m, unsigned readers, const char *line, size_t bytes, char *why, size_t why_bytes);

const char *engine_name(enum engine engine);
extern const char *const policy_names[]; /* of enum policy (wire.h), NULL-terminated */

#endif
