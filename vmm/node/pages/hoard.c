/* hoard.c - see hoard.h. */
#include "vmm/node/pages/hoard.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"
#include "vmm/node/node.h"

static void look_later(struct node *node)
{
	if (loop_after(node->hoard, HOARD_LOOK_MS * (uint64_t)LOOP_MS))
		die("cannot set a timer: %s", strerror(errno));
}

static void on_look(void *arg)
{
	enum { BLOCK_BYTES = 512 };
	struct node *node = arg;
	struct stat st;

	if (node->ending)
		return;
	if (!fstat(node->ram_fd, &st) &&
	    hoard_is_seen((uint64_t)st.st_blocks / (PAGE_BYTES / BLOCK_BYTES), node->share_pages)) {
		node_end(node, END_GUEST_FAULT, 0, "host %u uses %u MiB for the guest's RAM, far "
			 "more than its share: its guest has changed what is the engine's",
			 node->o.node, (unsigned)(st.st_blocks >> 11));
		return;
	}
	look_later(node);
}

void hoard_start(struct node *node)
{
	if (!node->dsm || node->share_pages >= node->ram_pages)
		return;
	node->hoard = loop_timer(&node->loop, on_look, node);
	if (!node->hoard)
		die("out of memory");
	look_later(node);
}
