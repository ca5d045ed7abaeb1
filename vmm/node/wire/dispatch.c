/* dispatch.c - which function of the daemon serves which message, from base/msg.def: one switch for
 * each kind of sender. */
#include "vmm/node/node.h"

#define SERVE(name, how, handler) SERVE_##how(node, m, name, handler)

bool dispatch_from_monitor(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define MONITOR_TO_NODE SERVE
#include "base/msg.def"
	}
	return false;
}

bool dispatch_from_iosrv(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define IOSRV_TO_NODE SERVE
#include "base/msg.def"
	}
	return false;
}

bool dispatch_from_client(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define CLIENT_TO_NODE SERVE
#include "base/msg.def"
	}
	return false;
}

static bool from_any_to_any(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_NODE SERVE
#include "base/msg.def"
	}
	return false;
}

static bool from_leader(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define LEADER_TO_NODE SERVE
#include "base/msg.def"
	}
	return false;
}

static bool to_leader(struct node *node, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_LEADER SERVE
#include "base/msg.def"
	}
	return false;
}

bool dispatch_from_node(struct node *node, const struct message *m)
{
	return from_any_to_any(node, m) || (m->from == 0 && from_leader(node, m)) ||
	       (node->o.node == 0 && to_leader(node, m));
}
