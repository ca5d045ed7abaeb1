/* links.c - see links.h. */
#include "vmm/node/wire/links.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "phnx/phnx.h"
#include "vmm/node/wire/tunnels.h"
#include "vmm/shared/rundir_names.h"

enum { ROOM = 256 };

struct tunnel {
	struct node *node;
	unsigned peer;
	int port;
	char destination[ROOM];
};

int links_start(struct node *node, char *why, size_t why_bytes)
{
	char text[MAX_PHOENIX * ROOM] = "";
	size_t n = 0;
	char control[ROOM];
	int port;

	if (node->o.dir) {
		snprintf(control, sizeof control, RUNDIR_SSH_FORMAT, node->o.dir, "%n");
		setenv("PHNX_SSH_CONTROL", control, 1);
	}
	if (tunnels_start(node, why, why_bytes))
		return -1;
	ph_set_ssh_starter(tunnels_ssh, NULL);
	ph_prefer_ssl();
	for (unsigned i = 0; i < node->o.n_phoenix && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", node->o.phoenix[i]);
	if (n)
		ph_read_config(text, strlen(text), node->o.cluster);
	if (!ph_get_listen_port())
		ph_set_listen_port(LINKS_PORT, LINKS_PORT + LINKS_PORTS);
	port = ph_get_listen_port();
	if (port <= 0) {
		snprintf(why, why_bytes, "host %u (%s) cannot listen: none of its ports is free",
			 node->o.node, node->o.cluster);
		return -1;
	}
	if (node->o.node) {
		printf("port %d\n", port);
		fflush(stdout);
	}
	return 0;
}

/* The peer was not reached in time: tries ssh as well.  The library keeps trying to connect
 * directly. */
static void on_patience(void *context)
{
	struct tunnel *tunnel = context;

	if (!overlay_reaches(tunnel->node, tunnel->peer) && !tunnel->node->ending) {
		log_warn("host %u is not reached directly: through ssh (%s)", tunnel->peer,
			 tunnel->destination);
		ph_add_port_ssh(tunnel->destination, tunnel->port, NULL);
	}
	free(tunnel);
}

void links_dial(struct node *node, unsigned peer, const char *where, size_t bytes)
{
	struct tunnel *tunnel = calloc(1, sizeof *tunnel);
	char text[3 * ROOM], address[ROOM];

	snprintf(text, sizeof text, "%.*s", (int)bytes, where);
	if (!tunnel ||
	    sscanf(text, "%255s %d %255s", address, &tunnel->port, tunnel->destination) != 3) {
		log_error("host %u listens at \"%s\": ignored", peer, text);
		free(tunnel);
		return;
	}
	tunnel->node = node;
	tunnel->peer = peer;
	log_info("host %u listens at %s, port %d", peer, address, tunnel->port);
	ph_add_port_ssl(address, tunnel->port);
	if (loop_once(&node->loop, LINKS_PATIENCE_MS * (uint64_t)LOOP_MS, on_patience, tunnel))
		die("no memory for events");
}
