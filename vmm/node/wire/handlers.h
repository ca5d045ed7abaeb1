/* handlers.h - the functions that serve a node daemon's messages: base/msg.def names them, and
 * dispatch.c calls them.  Each is in the file that its name begins with. */
#ifndef VMM_NODE_WIRE_HANDLERS_H
#define VMM_NODE_WIRE_HANDLERS_H

#include "base/dispatch.h"

struct node;

#define NODE_HANDLER(name, how, handler) HANDLER_##how(struct node *node, name, handler)
#define MONITOR_TO_NODE NODE_HANDLER
#define IOSRV_TO_NODE NODE_HANDLER
#define CLIENT_TO_NODE NODE_HANDLER
#define NODE_TO_NODE NODE_HANDLER
#define NODE_TO_LEADER NODE_HANDLER
#define LEADER_TO_NODE NODE_HANDLER
#include "base/msg.def"

/* dispatch.c: these call the handler.  They return false if no handler takes this message from that
 * sender. */
bool dispatch_from_monitor(struct node *node, const struct message *m);
bool dispatch_from_iosrv(struct node *node, const struct message *m);
bool dispatch_from_client(struct node *node, const struct message *m);
bool dispatch_from_node(struct node *node, const struct message *m);

#endif
