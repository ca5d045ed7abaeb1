/* record.c - see record.h. */
#include "vmm/cli/standby/record.h"

#include <errno.h>
#include <string.h>

/* Returns how many bytes of the current record must be there before the next step: its head, or all
 * of it. */
static size_t wanted(const struct record_reader *r)
{
	struct snapfile_record head;

	if (r->n < sizeof head)
		return sizeof head;
	memcpy(&head, r->bytes, sizeof head);
	return sizeof head + head.bytes;
}

int record_read(struct record_reader *r, const void *bytes, size_t n)
{
	struct snapfile_record head;
	size_t want, take;

	for (const uint8_t *at = bytes;; at += take, n -= take) {
		while ((want = wanted(r)) == r->n) {
			memcpy(&head, r->bytes, sizeof head);
			r->n = 0;
			if (!r->on_record(r->context, &head, r->bytes + sizeof head))
				return 0;
		}
		if (want > sizeof r->bytes)
			return -EPROTO;
		if (!n)
			return 0;
		take = n < want - r->n ? n : want - r->n;
		memcpy(r->bytes + r->n, at, take);
		r->n += take;
	}
}
