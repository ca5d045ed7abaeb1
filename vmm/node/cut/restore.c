/* restore.c - see restore.h. */
#include "vmm/node/cut/restore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/shared/ram.h"

/* Makes a link to this daemon's memory in the run folder.  Without it, pages come as items. */
void restore_offer_ram(const struct node *node)
{
	char link[4096], memory[64];

	if (!node->o.dir)
		return;
	snprintf(link, sizeof link, RAM_LINK_FORMAT, node->o.dir, node->o.node);
	snprintf(memory, sizeof memory, "/proc/%d/fd/%d", getpid(), node->ram_fd);
	unlink(link); /* left by a daemon of this number that has died */
	if (symlink(memory, link))
		log_warn("cannot make %s: %s", link, strerror(errno));
}

static void deal_pages(struct node *node)
{
	struct preloaded *p = &node->preloaded;
	uint32_t stripe = ram_stripe(node->ram_pages);

	for (gfn_t first = 0; first < node->ram_pages; first += stripe) {
		gfn_t end = first + stripe < node->ram_pages ? first + stripe : node->ram_pages;
		unsigned host = ram_host_of(first, node->ram_pages, node->o.machine.hosts);
		/* without what is in the hole, which is longer than a stripe */
		gfn_t from = first >= RAM_HOLE_GFN && first < RAM_HOLE_END_GFN ? RAM_HOLE_END_GFN
									       : first;

		if (end > RAM_HOLE_GFN && first < RAM_HOLE_GFN)
			end = RAM_HOLE_GFN;
		if (from < end)
			p->range[p->count++] = (struct page_range){ .first_gfn = from,
								    .count = end - from,
								    .owner = host };
	}
}

void restore_begin(struct node *node)
{
	struct msg_snapshot ready = { .step = SNAPSHOT_READY };
	struct msg_header header = packet_header(MSG_SNAPSHOT, VNODE_CLI, node->o.node,
						 sizeof ready);

	deal_pages(node);
	clients_send_run(node, &header, &ready);
}

void restore_sync(struct node *node)
{
	struct msg_snapshot sync = { .of = node->o.node, .step = SNAPSHOT_SYNC };

	for (unsigned peer = 0; peer < node->o.machine.hosts; peer++)
		net_send(node->net, VNODE_DAEMON(peer), MSG_SNAPSHOT, &sync, sizeof sync, NULL, 0);
}

void restore_on_sync(struct node *node)
{
	struct msg_snapshot taken = { .of = node->o.node, .step = SNAPSHOT_TAKEN };

	net_send(node->net, VNODE_DAEMON(0), MSG_SNAPSHOT, &taken, sizeof taken, NULL, 0);
}

static void send_item(struct node *node, struct child *child, const struct msg_snapshot_item *item,
		      const void *data, uint32_t bytes)
{
	freeze_send_to_child(node, child, MSG_SNAPSHOT_ITEM, item, sizeof *item, data, bytes);
}

void restore_perhaps_die(const struct node *node, unsigned step)
{
	if (node->o.node == 1)
		fault_die_at(FAULT_CHECKPOINT_DIES, step);
}

/* Loads a page, unless this host has it already. */
static void load_page(struct node *node, uint32_t gfn, const void *data, uint32_t bytes)
{
	if (!ram_has(node->ram_pages, gfn) || bytes != PAGE_BYTES ||
	    (node->dsm && atomic_load(&node->shm->page_right[gfn]) != PAGE_NONE))
		node_end(node, END_FAILURE, 0, "the snapshot has a page %x, which is not RAM", gfn);
	else
		memcpy(node->ram + ((size_t)gfn << PAGE_BITS), data, bytes);
}

static void load_cpu(struct node *node, const struct msg_snapshot_item *item, const void *data,
		     uint32_t bytes)
{
	if (item->index >= node->o.machine.cpus || !node_has_cpu(node, item->index)) {
		log_error("the state of CPU %u, which is not here", item->index);
		return;
	}
	send_item(node, &node->monitor[item->index], item, data, bytes);
	hostshm_post(node->shm, item->index, POST_MESSAGE);
}

void restore_on_item(struct node *node, const struct msg_snapshot_item *item, const void *data,
		     uint32_t bytes)
{
	restore_perhaps_die(node, 5);
	if (item->kind == SNAPSHOT_PAGE)
		load_page(node, item->index, data, bytes);
	else if (item->kind == SNAPSHOT_CPU)
		load_cpu(node, item, data, bytes);
	else
		log_error("an item of kind %u of a saved machine, which is not for this host",
			  item->kind);
}

/* Returns the virtual node that needs an item; VNODE_IOSRV for devices. */
static vnode_t place_of(const struct node *node, const struct msg_snapshot_item *item)
{
	switch (item->kind) {
	case SNAPSHOT_PAGE:
		return VNODE_DAEMON(
			ram_host_of(item->index, node->ram_pages, node->o.machine.hosts));
	case SNAPSHOT_CPU: return VNODE_CPU(item->index % node->o.machine.cpus);
	default: return VNODE_IOSRV;
	}
}

void restore_item(struct node *node, const struct msg_snapshot_item *item, const void *data,
		  uint32_t bytes)
{
	vnode_t to = place_of(node, item);

	if (to == VNODE_IOSRV)
		send_item(node, &node->iosrv, item, data, bytes);
	else
		net_send(node->net, to, MSG_SNAPSHOT_ITEM, item, sizeof *item, data, bytes);
}
