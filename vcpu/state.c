/* state.c - see state.h. One table, made from state.def, drives both directions. */
#include "vcpu/state.h"
#include "vcpu/internal.h"

#define MAGIC 0x75706376u /* "vcpu" */

enum field_kind { PLAIN, FLAG, FIXED };
struct field { uint16_t offset, bytes; uint8_t kind; };
static const struct field fields[] = {
#define X(name, kind) { offsetof(struct vcpu, name), sizeof ((struct vcpu *)0)->name, kind },
#include "vcpu/state.def"
#undef X
};

enum {
#define X(name, kind) +sizeof ((struct vcpu *)0)->name
	FIELD_BYTES = 0
#include "vcpu/state.def"
#undef X
};
_Static_assert(VCPU_STATE_HEAD + FIELD_BYTES + 4 == VCPU_STATE_BYTES,
	       "VCPU_STATE_BYTES follows from state.def");
/* A field added to struct vcpu must be added to state.def, unless it is an engine's (env, dead,
 * yields, delivering). */
_Static_assert(sizeof(struct vcpu) == 624,
	       "struct vcpu has changed: does state.def need the new field?");

struct head { uint32_t magic; uint16_t version, bytes; };
_Static_assert(sizeof(struct head) == VCPU_STATE_HEAD, "layout");

uint32_t vcpu_crc32(uint32_t crc, const void *bytes, uint32_t count)
{
	const uint8_t *at = bytes;

	for (crc = ~crc; count--; at++) {
		crc ^= *at;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

void vcpu_state_save(const struct vcpu *v, void *to)
{
	struct head head = { MAGIC, VCPU_STATE_VERSION, VCPU_STATE_BYTES };
	uint8_t *at = to;
	uint32_t crc;

	__builtin_memcpy(at, &head, sizeof head);
	at += sizeof head;
	for (unsigned n = 0; n < ARRAY_LEN(fields); at += fields[n++].bytes)
		__builtin_memcpy(at, (const uint8_t *)v + fields[n].offset, fields[n].bytes);
	crc = vcpu_crc32(0, to, VCPU_STATE_BYTES - sizeof crc);
	__builtin_memcpy(at, &crc, sizeof crc);
}

static enum vcpu_state_fault check_frame(const uint8_t *from, uint32_t bytes)
{
	struct head head;
	uint32_t crc;

	if (bytes < sizeof head)
		return VCPU_STATE_CUT;
	__builtin_memcpy(&head, from, sizeof head);
	if (head.magic != MAGIC)
		return VCPU_STATE_FOREIGN;
	if (head.version != VCPU_STATE_VERSION)
		return VCPU_STATE_VERSIONED;
	if (bytes != VCPU_STATE_BYTES || head.bytes != VCPU_STATE_BYTES)
		return VCPU_STATE_CUT;
	__builtin_memcpy(&crc, from + VCPU_STATE_BYTES - sizeof crc, sizeof crc);
	return crc == vcpu_crc32(0, from, VCPU_STATE_BYTES - sizeof crc)
		? VCPU_STATE_GOOD : VCPU_STATE_DAMAGED;
}

static enum vcpu_state_fault take_field(struct vcpu *v, const struct field *field,
					const uint8_t *from)
{
	uint8_t *to = (uint8_t *)v + field->offset;

	if (field->kind == FIXED)
		return __builtin_memcmp(to, from, field->bytes)
			? VCPU_STATE_MISPLACED : VCPU_STATE_GOOD;
	if (field->kind == FLAG && *from > 1)
		return VCPU_STATE_DAMAGED;
	__builtin_memcpy(to, from, field->bytes);
	return VCPU_STATE_GOOD;
}

enum vcpu_state_fault vcpu_state_load(struct vcpu *v, const void *from, uint32_t bytes)
{
	const uint8_t *at = (const uint8_t *)from + sizeof(struct head);
	enum vcpu_state_fault fault = check_frame(from, bytes);
	struct vcpu loaded = *v;

	for (unsigned n = 0; n < ARRAY_LEN(fields) && !fault; at += fields[n++].bytes)
		fault = take_field(&loaded, &fields[n], at);
	if (!fault && loaded.cpl != 0 && loaded.cpl != 3)
		fault = VCPU_STATE_DAMAGED;
	if (!fault)
		*v = loaded;
	return fault;
}

enum vcpu_state_fault vcpu_state_take(struct vcpu *v, const volatile struct vcpu *from)
{
	struct vcpu theirs = *from, taken = *v;
	enum vcpu_state_fault fault = VCPU_STATE_GOOD;

	for (unsigned n = 0; n < ARRAY_LEN(fields) && !fault; n++)
		fault = take_field(&taken, &fields[n], (const uint8_t *)&theirs + fields[n].offset);
	if (!fault && ((taken.cpl != 0 && taken.cpl != 3) || (unsigned)theirs.dead > VCPU_KILLED ||
		       theirs.delivering > 256 || *(const uint8_t *)&theirs.eoi_offered > 1))
		fault = VCPU_STATE_DAMAGED;
	if (fault)
		return fault;
	taken.eoi_offered = theirs.eoi_offered;
	taken.dead = theirs.dead;
	__builtin_memcpy(taken.dead_reason, theirs.dead_reason, sizeof taken.dead_reason);
	taken.dead_reason[sizeof taken.dead_reason - 1] = 0;
	for (char *c = taken.dead_reason; *c; c++) /* it goes to terminals */
		if (*c < ' ' || *c > '~')
			*c = '?';
	taken.yields = theirs.yields;
	taken.delivering = theirs.delivering;
	*v = taken;
	return VCPU_STATE_GOOD;
}

const char *vcpu_state_fault_text(enum vcpu_state_fault fault)
{
	switch (fault) {
	case VCPU_STATE_GOOD: return "is good";
	case VCPU_STATE_FOREIGN: return "is not a CPU's state";
	case VCPU_STATE_VERSIONED: return "is of another version of vmp";
	case VCPU_STATE_CUT: return "is cut short";
	case VCPU_STATE_DAMAGED: return "is damaged";
	case VCPU_STATE_MISPLACED: return "belongs to another machine or CPU";
	}
	return "is not known";
}

void vcpu_state_rebuild(struct vcpu *v)
{
	v->env->flush_all(v->env->ctx);
	segments_announce(v, 0, VMP_GDT_ENTRIES);
}
