/* node_dispatch.c - which handler of the daemon gets which message: every type from every sender.
 * Each handler is replaced by a function that notes its name. */
#include <string.h>
#include "base/log.h"
#include "tests/unit/unit.h"
#include "vmm/node/node.h"

static const char *called;

#undef SERVE_take
#undef SERVE_pass
#define NOTE(name, handler) case MSG_##name: called = #handler; return true;
#define SERVE_take(receiver, m, name, handler) NOTE(name, handler)
#define SERVE_pass(receiver, m, name, handler) NOTE(name, handler)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "vmm/node/wire/dispatch.c"

static struct node node;

static const char *from(bool (*dispatch)(struct node *, const struct message *), unsigned sender,
			uint16_t type)
{
	struct message m = { .header.type = type, .from = sender };

	called = NULL;
	CU_ASSERT_EQUAL(dispatch(&node, &m), called != NULL);
	return called ? called : "nobody";
}

/* Row by row: each legal message has a handler, or is read by the code of its link. */
static void every_row(void)
{
	node.o.node = 0;
#define IS_take(handler) #handler
#define IS_pass(handler) #handler
#define IS_read(handler) "nobody"
#define MONITOR_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_monitor, 5, MSG_##name), IS_##how(handler));
#define IOSRV_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_iosrv, 0, MSG_##name), IS_##how(handler));
#define CLIENT_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_client, 2, MSG_##name), IS_##how(handler));
#define NODE_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_node, 3, MSG_##name), IS_##how(handler));
#define NODE_TO_LEADER(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_node, 3, MSG_##name), IS_##how(handler));
#define LEADER_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_node, 0, MSG_##name), IS_##how(handler));
#include "base/msg.def"
}

/* A message that the link does not allow has no handler. */
static void nothing_else(void)
{
	static const struct {
		enum wire_link link;
		bool (*dispatch)(struct node *, const struct message *);
	} from_whom[] = {
		{ LINK_MONITOR_TO_NODE, dispatch_from_monitor },
		{ LINK_IOSRV_TO_NODE, dispatch_from_iosrv },
		{ LINK_CLIENT_TO_NODE, dispatch_from_client },
		{ LINK_OVERLAY, dispatch_from_node },
	};

	node.o.node = 0;
	for (size_t i = 0; i < ARRAY_LEN(from_whom); i++)
		for (unsigned type = 0; type < 2 * MESSAGE_TYPES; type++)
			CU_ASSERT_EQUAL(!strcmp(from(from_whom[i].dispatch, 0, type), "nobody"),
					!wire_is_legal(from_whom[i].link, type) ||
						(from_whom[i].link == LINK_OVERLAY &&
						 type == MSG_HELLO));
}

/* Between nodes: messages of node 0 alone are refused from others; messages to node 0 alone reach
 * no other node. */
static void the_leader(void)
{
	for (node.o.node = 0; node.o.node < 3; node.o.node++)
		for (unsigned sender = 0; sender < 3; sender++) {
			bool to_leader = node.o.node == 0, from_leader = sender == 0;

#define LEADER_TO_NODE(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_node, sender, MSG_##name), \
			       from_leader ? #handler : "nobody");
#define NODE_TO_LEADER(name, how, handler) \
	CU_ASSERT_STRING_EQUAL(from(dispatch_from_node, sender, MSG_##name), \
			       to_leader ? #handler : "nobody");
#include "base/msg.def"
		}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "every row", every_row },
		{ "nothing else", nothing_else },
		{ "the leader", the_leader },
		UNIT_END
	};

	log_open("test-node_dispatch", 2, LOG_ERROR);
	return UNIT_RUN("node_dispatch", tests);
}
