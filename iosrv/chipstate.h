/* chipstate.h - a chip's serialised state, for snapshots: one list in the chip's file names the
 * saved fields and their legal values.
 *
 * The list is a macro STATE(X) with a row X(type, field, dimensions, least, most) for each field.
 * Types are unsigned integers and bool.  From it the chip's file makes its state, `struct state`,
 * and the description for `struct chip`:
 *
 *	#define STATE(X)                                              \
 *		X(uint8_t, control, , 0, 0x1f)                        \
 *		X(bool, waiting, [24], false, true)
 *	static struct state { STATE(CHIPSTATE_MEMBER) } chip_name;
 *	... .state = CHIPSTATE(chip_name)
 *
 * The saved form is a 4-byte fingerprint of the list (names and sizes), then the fields in the
 * list's order, without padding.  A snapshot's file is not trusted: no byte of it reaches a chip
 * before all of it has been checked.
 */
#ifndef IOSRV_CHIPSTATE_H
#define IOSRV_CHIPSTATE_H

#include "base/types.h"

struct chip;

struct chipstate_field {
	const char *name;
	uint32_t offset, bytes /* of one element */, count;
	uint64_t least, most;
};

struct chipstate {
	void *at; /* `copies` structs, one after the other */
	uint32_t copies, copy_bytes;
	const struct chipstate_field *field;
	uint32_t n_fields;
};

#define CHIPSTATE_MEMBER(type, name, dimensions, least, most) type name dimensions;
#define CHIPSTATE_FIELD(type, name, dimensions, least, most) \
	{ #name, offsetof(struct state, name), sizeof(type), \
	  sizeof((struct state *)0)->name / sizeof(type), least, most },
#define CHIPSTATE_TABLE (const struct chipstate_field[]){ STATE(CHIPSTATE_FIELD) }
#define CHIPSTATE(object) \
	{ .at = &(object), .copies = sizeof(object) / sizeof(struct state), \
	  .copy_bytes = sizeof(struct state), .field = CHIPSTATE_TABLE, \
	  .n_fields = sizeof(CHIPSTATE_TABLE) / sizeof(struct chipstate_field) }

size_t chipstate_bytes(const struct chip *chip); /* of the saved form */
void chipstate_save(const struct chip *chip, void *to);
/* Check a saved form.  Returns 0: it is complete and each field is legal; else -EINVAL with the
 * reason in `why`.  Changes nothing. */
int chipstate_check(const struct chip *chip, const void *from, char *why, size_t why_bytes);
void chipstate_load(const struct chip *chip, const void *from); /* a saved form that was checked */

#endif
