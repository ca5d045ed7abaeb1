/* recordlist.c - see recordlist.h. */
#include "vmm/cli/parts/recordlist.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1 << 16 };

int recordlist_add(struct recordlist *list, const struct snapfile_record *record, const void *data)
{
	size_t need = list->n + sizeof *record + record->bytes;
	size_t room = list->room ? list->room : FIRST_ROOM;
	uint8_t *bytes;

	while (room < need)
		room *= 2;
	bytes = room > list->room ? realloc(list->bytes, room) : list->bytes;
	if (!bytes)
		return -1;
	list->bytes = bytes;
	list->room = room;
	memcpy(list->bytes + list->n, record, sizeof *record);
	if (record->bytes)
		memcpy(list->bytes + list->n + sizeof *record, data, record->bytes);
	list->n = need;
	return 0;
}

const uint8_t *recordlist_next(const struct recordlist *list, size_t *at,
			       struct snapfile_record *record)
{
	const uint8_t *data;

	if (*at == list->n)
		return NULL;
	memcpy(record, list->bytes + *at, sizeof *record);
	data = list->bytes + *at + sizeof *record;
	*at += sizeof *record + record->bytes;
	return data;
}

void recordlist_free(struct recordlist *list)
{
	free(list->bytes);
	*list = (struct recordlist){ 0 };
}
