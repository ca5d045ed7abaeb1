/* wire.c - names and legal sizes of messages, expanded from msg.def. */
#include "base/wire.h"

#include <errno.h>

const char *wire_type_name(uint16_t type)
{
	switch (type) {
#define X(name, number, body, payload) case number: return #name;
#include "base/msg.def"
#undef X
	}
	return "?";
}

int wire_type_bounds(uint16_t type, uint32_t *min_bytes, uint32_t *max_bytes)
{
	switch (type) {
#define X(name, number, body, payload)                                           \
	case number:                                                             \
		*min_bytes = sizeof(body);                                       \
		*max_bytes = sizeof(body) + ((payload) ? MAX_MSG_PAYLOAD : 0);   \
		return 0;
#include "base/msg.def"
#undef X
	}
	return -EPROTO;
}
