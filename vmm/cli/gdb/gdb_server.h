/* gdb_server.h - `--gdb HOST:PORT[,nowait]`: a socket that serves one GDB at a time
 * (gdb_session.h), in the event loop of `vmp run`.
 *
 * The protocol has no password, and a connected GDB can do to the machine what its owner can.
 * Therefore only addresses of this computer are accepted, and only our user and root may connect
 * (loopback_peer.h).  A peer that sends what no GDB would send is disconnected, and none of it
 * reaches the machine.
 */
#ifndef VMM_CLI_GDB_GDB_SERVER_H
#define VMM_CLI_GDB_GDB_SERVER_H

#include "vmm/cli/client.h"
#include "vmm/cli/gdb/gdb_session.h"
#include "vmm/cli/loopback.h"
#include "vmm/shared/problem.h"

struct gdb_address {
	struct loopback own;
	bool nowait; /* the machine does not wait for a debugger */
};
/* Parses 127.X.Y.Z:PORT, localhost:PORT or [::1]:PORT, with ",nowait" or without.  Returns 0, or -1
 * with the problem.  Pure. */
int gdb_address_parse(const char *text, struct gdb_address *address, struct problem *p);

struct gdbserver {
	struct gdb_session session;
	struct client *client;
	int fd;
	struct event *incoming, *again;
	struct bufferevent *gdb; /* or NULL */
	bool hang_up;
	bool turned_away; /* a connection was turned away, and that was logged */
	void (*on_kill)(void *context);
	void *context;
};

/* Binds the port and listens.  Returns 0, or -1 with the problem and fd -1. */
int gdbserver_listen(struct gdbserver *g, const struct gdb_address *address, struct problem *p);
/* Writes a command to paste: "gdb VMLINUX -ex 'target remote HOST:PORT'", with VMLINUX quoted for a
 * shell. */
void gdbserver_describe(const struct gdbserver *g, const char *kernel, char *line, size_t bytes);
/* Starts serving.  `client` is connected, or will be.  Returns 0, or -1 without memory. */
int gdbserver_start(struct gdbserver *g, struct event_base *base, struct client *client,
		    unsigned n_cpus, bool held);
void gdbserver_on_answer(struct gdbserver *g, const void *body, size_t bytes);
/* Tells GDB the status, and closes the socket. */
void gdbserver_end(struct gdbserver *g, unsigned status);

#endif
