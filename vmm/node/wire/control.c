/* control.c - the control socket of node 0, to which command lines connect; clients.c serves
 * them. */
#include "vmm/node/node.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/node/wire/conn.h"
#include "vmm/node/wire/localsock.h"

static char control_path[108];

static void on_incoming(void *arg)
{
	struct node *node = arg;
	int fd = localsock_accept(node->control_fd);
	struct conn *conn;

	if (fd < 0)
		return;
	conn = conn_new(&node->loop, fd, "a command line", NULL, node, MAX_CLIENTS);
	if (clients_take(node, conn))
		return;
	log_warn("more than %d command lines are connected: refused", MAX_CLIENTS);
	conn_close(conn);
}

/* Works without the event loop, since die() may have been called anywhere in it. */
void control_last_words(struct node *node, const char *line)
{
	enum { PATIENCE_MS = 2000 };
	struct msg_machine_end end = { .reason = END_FAILURE, .node = node->o.node };
	struct msg_header header = packet_header(MSG_MACHINE_END, VNODE_CLI, node->o.node,
						 sizeof end + strlen(line));
	struct pollfd incoming = { .fd = node->control_fd, .events = POLLIN };
	int fd, error;

	if (clients_have_run(node)) {
		clients_send_all(node, MSG_MACHINE_END, &end, sizeof end, line, strlen(line));
		clients_flush_run(node, PATIENCE_MS);
	} else if (node->control_event && poll(&incoming, 1, PATIENCE_MS) == 1) {
		fd = localsock_accept(node->control_fd);
		error = fd < 0 ? 0
			       : packet_send(fd, &header, &end, sizeof end, line, strlen(line),
					     false);
		if (error)
			log_warn("nobody could be told: %s", strerror(-error));
	}
	if (node->control_event)
		unlink(control_path);
}

void control_listen(struct node *node)
{
	node->control_fd = localsock_listen(node->o.dir, "control.sock", control_path,
				       sizeof control_path);
	node->control_event = loop_add(&node->loop, LOOP_READ, node->control_fd, on_incoming,
				       node);
	if (!node->control_event || loop_watch(node->control_event))
		die("no memory for events");
}

void control_close(struct node *node)
{
	if (!node->control_event)
		return;
	loop_remove(node->control_event);
	close(node->control_fd);
	unlink(control_path);
}
