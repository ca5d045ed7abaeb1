/* wire.c - the rows of msg.def as tables, indexed by message type. */
#include "base/wire.h"

#include <errno.h>

const uint32_t wire_version = WIRE_HASH;

struct payload { uint32_t least, most, unit; };

#define NONE { 0, 0, 1 }
#define TEXT { 0, MAX_MSG_PAYLOAD, 1 }
#define BYTES { 0, MAX_MSG_PAYLOAD, 1 }
#define PAGE { PAGE_BYTES, PAGE_BYTES, PAGE_BYTES }
#define ARRAY(type) { 0, MAX_MSG_PAYLOAD / sizeof(type) * sizeof(type), sizeof(type) }
static const struct {
	const char *name;
	uint32_t body_bytes;
	struct payload payload;
} types[MESSAGE_TYPES] = {
#define MESSAGE(name, number, body, bytes, payload) [number] = { #name, bytes, payload },
#include "base/msg.def"
};

/* A second row for the same message does not compile. */
static const bool legal[LINKS][MESSAGE_TYPES] = {
#define MONITOR_TO_NODE(name, how, handler) [LINK_MONITOR_TO_NODE][MSG_##name] = true,
#define IOSRV_TO_NODE(name, how, handler) [LINK_IOSRV_TO_NODE][MSG_##name] = true,
#define CLIENT_TO_NODE(name, how, handler) [LINK_CLIENT_TO_NODE][MSG_##name] = true,
#define NODE_TO_NODE(name, how, handler) [LINK_NODE_TO_NODE][MSG_##name] = true,
#define NODE_TO_LEADER(name, how, handler) [LINK_NODE_TO_LEADER][MSG_##name] = true,
#define LEADER_TO_NODE(name, how, handler) [LINK_LEADER_TO_NODE][MSG_##name] = true,
#define NODE_TO_MONITOR(name, how, handler) [LINK_NODE_TO_MONITOR][MSG_##name] = true,
#define NODE_TO_IOSRV(name, how, handler) [LINK_NODE_TO_IOSRV][MSG_##name] = true,
#define NODE_TO_RUN(name, how, handler) [LINK_NODE_TO_RUN][MSG_##name] = true,
#define NODE_TO_QUERY(name, how, handler) [LINK_NODE_TO_QUERY][MSG_##name] = true,
#define NODE_TO_SAVE(name, how, handler) [LINK_NODE_TO_SAVE][MSG_##name] = true,
#include "base/msg.def"
};

static bool is_known(uint16_t type)
{
	return type < MESSAGE_TYPES && types[type].name;
}

const char *wire_type_name(uint16_t type)
{
	return is_known(type) ? types[type].name : "?";
}

const char *wire_link_name(enum wire_link link)
{
	static const char *const names[] = {
		"a monitor to its node",
		"the I/O server to its node",
		"a command line to its node",
		"a node to a node",
		"a node to node 0",
		"node 0 to a node",
		"a node to its monitor",
		"a node to its I/O server",
		"a node to `vmp run`",
		"a node to a query",
		"a node to `vmp snapshot save`",
		"a node to a node",
	};

	return names[link];
}

bool wire_is_legal(enum wire_link link, uint16_t type)
{
	if (type >= MESSAGE_TYPES)
		return false;
	if (link == LINK_OVERLAY)
		return legal[LINK_NODE_TO_NODE][type] || legal[LINK_NODE_TO_LEADER][type] ||
		       legal[LINK_LEADER_TO_NODE][type];
	return legal[link][type];
}

int wire_type_bounds(uint16_t type, uint32_t *min_bytes, uint32_t *max_bytes)
{
	if (!is_known(type))
		return -EPROTO;
	*min_bytes = types[type].body_bytes + types[type].payload.least;
	*max_bytes = types[type].body_bytes + types[type].payload.most;
	return 0;
}

bool wire_size_is_legal(uint16_t type, uint32_t bytes)
{
	const struct payload *payload;
	uint32_t extra;

	if (!is_known(type) || bytes < types[type].body_bytes)
		return false;
	payload = &types[type].payload;
	extra = bytes - types[type].body_bytes;
	return extra >= payload->least && extra <= payload->most &&
	       (payload->unit == 1 || extra % payload->unit == 0);
}

uint32_t wire_body_bytes(uint16_t type)
{
	return is_known(type) ? types[type].body_bytes : 0;
}
