/* gdb_server.h - `--gdb HOST:PORT[,nowait]`: a socket on which one GDB at a time is served (gdb/session.h), in the event loop of
 * `vmp run`.
 *
 * The protocol knows no password, and who is connected can do to the machine what its owner can.  So only addresses of this
 * computer are taken, and of its users only our own and root are let in (gdb_peer.h).  Who sends what no GDB would is hung up on, and the machine hears nothing of it.
 */
#ifndef VMM_CLI_GDB_GDB_SERVER_H
#define VMM_CLI_GDB_GDB_SERVER_H

#include <netinet/in.h>
#include "vmm/cli/client.h"
#include "vmm/cli/gdb/gdb_session.h"
#include "vmm/shared/problem.h"

struct gdb_address {
	union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } at;
	socklen_t bytes;
	bool nowait; /* the machine does not wait for a debugger */
};
/* 127.X.Y.Z:PORT, localhost:PORT, [::1]:PORT, with ",nowait" or not. 0, or -1 with what is wrong. Pure. */
int gdb_address_parse(const char *text, struct gdb_address *address, struct problem *p);

struct gdbserver {
	struct gdb_session session;
	struct client *client;
	int fd;
	struct event *incoming, *again;
	struct bufferevent *gdb; /* or NULL */
	bool hang_up;
	bool turned_away; /* somebody was, and it was said */
	void (*on_kill)(void *context);
	void *context;
};

/* Take the port, and say where it is; fd -1 otherwise. 0, or -1. */
int gdbserver_listen(struct gdbserver *g, const struct gdb_address *address, struct problem *p);
/* How to connect, to be pasted: "gdb VMLINUX -ex 'target remote HOST:PORT'", with VMLINUX quoted for a shell. */
void gdbserver_describe(const struct gdbserver *g, const char *kernel, char *line, size_t bytes);
/* `client` is or will be connected. 0, or -1 without memory. */
int gdbserver_start(struct gdbserver *g, struct event_base *base, struct client *client, unsigned n_cpus, bool held);
void gdbserver_on_answer(struct gdbserver *g, const void *body, size_t bytes);
/* GDB is told, and the socket closed. */
void gdbserver_end(struct gdbserver *g, unsigned status);

#endif
