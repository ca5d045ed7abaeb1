/* dispatch.h - how a receiver uses the rows of msg.def: declarations of handlers, and the cases
 * that call them.
 *
 *	#define NODE_TO_IOSRV(name, how, handler) HANDLER_##how(void *unused, name, handler)
 *	#include "base/msg.def"
 * declares all handlers of the I/O server.  Inside a `switch` over the type of struct message `m`,
 *	#define NODE_TO_IOSRV(name, how, handler) SERVE_##how(NULL, m, name, handler)
 *	#include "base/msg.def"
 * calls the right one and returns true.  A message that remains has no handler, or a row that says
 * `read`: the receiver reports an error.
 */
#ifndef BASE_DISPATCH_H
#define BASE_DISPATCH_H

#include <string.h>
#include "base/packet.h"

/* `receiver` is a parameter's declaration: "struct node *node". */
#define HANDLER_take(receiver, name, handler) \
	void handler(receiver, const struct message *m, const body_##name *body);
#define HANDLER_pass(receiver, name, handler) void handler(receiver, const struct message *m);
#define HANDLER_read(receiver, name, handler)

#define SERVE_take(receiver, m, name, handler)                     \
	case MSG_##name: {                                         \
		body_##name body_copy;                             \
		memcpy(&body_copy, (m)->body, sizeof body_copy);   \
		handler(receiver, m, &body_copy);                  \
		return true;                                       \
	}
#define SERVE_pass(receiver, m, name, handler) \
	case MSG_##name:                       \
		handler(receiver, m);          \
		return true;
#define SERVE_read(receiver, m, name, handler)

#endif
