/* chipstate.c - see chipstate.h. */
#include "iosrv/chipstate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "iosrv/iosrv.h"

static uint32_t mix(uint32_t hash, const void *bytes, size_t count) /* FNV-1a */
{
	for (const uint8_t *at = bytes; count--; at++)
		hash = (hash ^ *at) * 16777619u;
	return hash;
}

/* Return a hash of the list: versions of vmp whose lists differ have different fingerprints. */
static uint32_t fingerprint(const struct chip *chip)
{
	const struct chipstate *s = &chip->state;
	uint32_t hash = mix(2166136261u, chip->name, strlen(chip->name) + 1);

	hash = mix(hash, &s->copies, sizeof s->copies);
	for (unsigned n = 0; n < s->n_fields; n++) {
		hash = mix(hash, s->field[n].name, strlen(s->field[n].name) + 1);
		hash = mix(hash, &s->field[n].bytes, sizeof s->field[n].bytes);
		hash = mix(hash, &s->field[n].count, sizeof s->field[n].count);
	}
	return hash;
}

static size_t field_bytes(const struct chipstate_field *field)
{
	return (size_t)field->bytes * field->count;
}

size_t chipstate_bytes(const struct chip *chip)
{
	size_t bytes = 0;

	for (unsigned n = 0; n < chip->state.n_fields; n++)
		bytes += field_bytes(&chip->state.field[n]);
	return sizeof(uint32_t) + bytes * chip->state.copies;
}

/* Copy all fields between the chip and the saved form, which begins with the fingerprint. */
static void copy_fields(const struct chip *chip, uint8_t *saved, bool save)
{
	const struct chipstate *s = &chip->state;

	for (unsigned copy = 0; copy < s->copies; copy++)
		for (unsigned n = 0; n < s->n_fields; saved += field_bytes(&s->field[n++])) {
			uint8_t *at = (uint8_t *)s->at + (size_t)copy * s->copy_bytes +
				      s->field[n].offset;

			memcpy(save ? saved : at, save ? at : saved, field_bytes(&s->field[n]));
		}
}

void chipstate_save(const struct chip *chip, void *to)
{
	uint32_t head = fingerprint(chip);

	memcpy(to, &head, sizeof head);
	copy_fields(chip, (uint8_t *)to + sizeof head, true);
}

void chipstate_load(const struct chip *chip, const void *from)
{
	copy_fields(chip, (uint8_t *)from + sizeof(uint32_t), false);
}

static int check_field(const struct chipstate_field *field, const uint8_t *from, char *why,
		       size_t why_bytes)
{
	bug_on(field->bytes > sizeof(uint64_t));
	if (field->least == 0 && field->most == ~0ull >> (64 - 8 * field->bytes))
		return 0; /* every value is legal: a buffer, as a rule, and long */
	for (unsigned i = 0; i < field->count; i++) {
		uint64_t value = 0;

		memcpy(&value, from + (size_t)i * field->bytes, field->bytes);
		if (value < field->least || value > field->most) {
			snprintf(why, why_bytes,
				 "%s is %" PRIu64 ", and must be %" PRIu64 " to %" PRIu64,
				 field->name, value, field->least, field->most);
			return -EINVAL;
		}
	}
	return 0;
}

int chipstate_check(const struct chip *chip, const void *from, char *why, size_t why_bytes)
{
	const struct chipstate *s = &chip->state;
	const uint8_t *at = (const uint8_t *)from + sizeof(uint32_t);
	uint32_t head;
	int error = 0;

	memcpy(&head, from, sizeof head);
	if (head != fingerprint(chip)) {
		snprintf(why, why_bytes, "another version of vmp has saved it");
		return -EINVAL;
	}
	for (unsigned copy = 0; copy < s->copies && !error; copy++)
		for (unsigned n = 0; n < s->n_fields && !error; at += field_bytes(&s->field[n++]))
			error = check_field(&s->field[n], at, why, why_bytes);
	return error;
}
