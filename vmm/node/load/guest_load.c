/* guest_load.c - the contents of guest RAM when the first CPU starts (node 0): the kernel's
 * segments, the concatenated initrds at the top of the first host's part of RAM, and boot
 * parameters, command line and tables in low memory (base/guest_abi.h says where).  Every page that
 * is written here is listed as preloaded.  All other pages are zero.  They have no owner yet; or,
 * where the guest knows its hosts as NUMA nodes, they belong to the host whose CPUs will use them,
 * so that their first use costs no request; with --host-mem, their homes alone are there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/layout.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "vmm/node/load/bootparams.h"
#include "vmm/node/load/kernel_load.h"
#include "vmm/node/load/mptable.h"
#include "vmm/node/load/nodes.h"
#include "vmm/node/node.h"

/* The kernel computes the last archive's end from the size, and skips zeros between archives up to
 * a multiple of four. */
enum { INITRD_ALIGN = 4 };

enum {
	FOR_KERNEL = 8 << 20,
	PAGE_STRUCT_BYTES = 32, /* for each page of high memory: struct page, in low memory */
};

struct open_initrd { int fd; uint32_t bytes; };

static void add_range(struct node *node, gpa_t from, uint64_t end)
{
	struct preloaded *p = &node->preloaded;
	gfn_t first = gpa_to_gfn(from);

	bug_on(p->count == MAX_PRELOADED);
	p->range[p->count++] = (struct page_range){
		.first_gfn = first, .count = (uint32_t)((end + PAGE_MASK) >> PAGE_BITS) - first
	};
}

static int open_initrds(const struct node_options *o, struct open_initrd *initrd, uint64_t *total,
			char *why, size_t why_bytes)
{
	struct stat status;

	*total = 0;
	for (unsigned i = 0; i < o->n_initrds; i++) {
		initrd[i].fd = open(o->initrd[i], O_RDONLY | O_CLOEXEC);
		if (initrd[i].fd < 0 || fstat(initrd[i].fd, &status)) {
			snprintf(why, why_bytes, "cannot open the guest's image %s: %s",
				 o->initrd[i], strerror(errno));
			return -1;
		}
		if (status.st_size > (off_t)MAX_RAM_MIB << 20) {
			snprintf(why, why_bytes, "the guest's image %s does not fit into its RAM "
				 "(use a larger --mem)",
				 o->initrd[i]);
			return -1;
		}
		initrd[i].bytes = (uint32_t)status.st_size;
		*total += ((uint64_t)initrd[i].bytes + INITRD_ALIGN - 1) / INITRD_ALIGN *
			  INITRD_ALIGN;
	}
	return 0;
}

static int read_initrd(const struct open_initrd *initrd, uint8_t *to)
{
	uint32_t done = 0;

	while (done < initrd->bytes) {
		ssize_t n = pread(initrd->fd, to + done, initrd->bytes - done, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += n;
	}
	return 0;
}

/* Plans the NUMA nodes.  The first host's part of RAM must have room for the kernel, for what it
 * allocates while it boots, for the image and for the image's contents. */
static void plan_nodes(const struct node *node, uint64_t kernel_end, uint64_t initrd_bytes,
		       struct nodes_plan *plan)
{
	uint64_t ram = (uint64_t)node->ram_pages << PAGE_BITS,
		 low = ram_low_limit(node->ram_pages),
		 high_pages = ram > low ? (ram - low) >> PAGE_BITS : 0,
		 taken = kernel_end + FOR_KERNEL + high_pages * PAGE_STRUCT_BYTES +
			 2 * initrd_bytes;
	uint8_t host[MAX_CPUS];

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		host[cpu] = cpu < node->o.n_places ? node->o.place[cpu]
						   : (uint8_t)(cpu % node->o.machine.hosts);
	nodes_plan(plan, node->ram_pages, (gfn_t)((taken < ram ? taken : ram) >> PAGE_BITS),
		   node->o.machine.hosts, node->o.machine.cpus, host);
}

/* Returns how many bytes of RAM are low memory: the guest kernel uses an image where it lies only
 * if it can address all of it. */
static uint64_t low_ram_bytes(const struct node *node)
{
	uint64_t bytes = (uint64_t)node->ram_pages << PAGE_BITS,
		 limit = ram_low_limit(node->ram_pages);

	return bytes < limit ? bytes : limit;
}

/* Loads the initrds at the top of the first host's part of RAM, or of its low memory, page aligned,
 * above the kernel.  *start and *bytes are for the boot parameters. */
static int load_initrds(struct node *node, gpa_t kernel_end, struct nodes_plan *plan, gpa_t *start,
			uint32_t *bytes, char *why, size_t why_bytes)
{
	struct open_initrd initrd[MAX_INITRDS] = { { 0 } };
	uint64_t total, ram_bytes = low_ram_bytes(node);
	bool all_is_low = ram_bytes < ram_low_limit(node->ram_pages);
	gpa_t at;
	int error;

	for (unsigned i = 0; i < MAX_INITRDS; i++)
		initrd[i].fd = -1;
	error = open_initrds(&node->o, initrd, &total, why, why_bytes);
	if (!error && total + kernel_end + PAGE_BYTES > ram_bytes) {
		snprintf(why, why_bytes, "the guest's image of %llu MiB does not fit into %s %llu "
			 "MiB%s",
			 (unsigned long long)(total + (1 << 20) - 1) >> 20,
			 all_is_low ? "its RAM of" : "the low memory, the first",
			 (unsigned long long)ram_bytes >> 20,
			 all_is_low ? " (use a larger --mem)" : "");
		error = -1;
	}
	plan_nodes(node, kernel_end, error ? 0 : total, plan);
	if (plan->count)
		ram_bytes = (uint64_t)plan->end[0] << PAGE_BITS;
	*start = at = error ? 0 : (gpa_t)((ram_bytes - total) & ~(uint64_t)PAGE_MASK);
	*bytes = (uint32_t)total;
	for (unsigned i = 0; i < node->o.n_initrds && !error; i++) {
		if (read_initrd(&initrd[i], node->ram + at)) {
			snprintf(why, why_bytes, "cannot read the guest's image %s to its end",
				 node->o.initrd[i]);
			error = -1;
		}
		at += (initrd[i].bytes + INITRD_ALIGN - 1) / INITRD_ALIGN * INITRD_ALIGN;
	}
	for (unsigned i = 0; i < MAX_INITRDS; i++)
		if (initrd[i].fd >= 0)
			close(initrd[i].fd);
	if (!error && total)
		add_range(node, *start, *start + total);
	return error;
}

static int by_first_page(const void *a, const void *b)
{
	const struct page_range *one = a, *other = b;

	return one->first_gfn < other->first_gfn ? -1 : one->first_gfn > other->first_gfn;
}

/* Gives the host the pages of [first, end) that were not loaded; ranges[0..count) were. */
static void give_rest(struct preloaded *p, unsigned count, gfn_t first, gfn_t end,
		      struct page_range to)
{
	for (unsigned i = 0; i <= count && first < end; i++) {
		gfn_t until = i < count && p->range[i].first_gfn < end ? p->range[i].first_gfn
								       : end;

		if (until > first) {
			bug_on(p->count == MAX_PRELOADED);
			p->range[p->count] = to;
			p->range[p->count].first_gfn = first;
			p->range[p->count++].count = until - first;
		}
		if (i < count && first < p->range[i].first_gfn + p->range[i].count)
			first = p->range[i].first_gfn + p->range[i].count;
	}
}

/* Gives pages to hosts at the start, without the mechanism none.  With --host-mem hosts get no more
 * than the homes of those pages: a page that a host owns counts as held, also if it is not used. */
static void give_fresh_pages(struct node *node, const struct nodes_plan *plan)
{
	struct preloaded *p = &node->preloaded;
	unsigned loaded = p->count;

	if (!mechanism_on(node->o.machine.without, MECHANISM_FRESH))
		return;
	qsort(p->range, loaded, sizeof p->range[0], by_first_page);
	for (unsigned part = 0; part < plan->parts; part++) {
		gfn_t first = part ? plan->end[part - 1] : 0, end = plan->end[part];
		struct page_range to = { .owner = part % plan->count,
					 .unowned = node->o.machine.host_mem_mib != 0 };

		give_rest(p, loaded, first, end < RAM_HOLE_GFN ? end : RAM_HOLE_GFN, to);
		give_rest(p, loaded, first > RAM_HOLE_END_GFN ? first : RAM_HOLE_END_GFN, end, to);
	}
}

/* Gives the guest kernel a seed for its random numbers. */
static void load_seed(struct node *node)
{
	uint8_t seed[BOOTPARAMS_SEED_BYTES];

	if (getrandom(seed, sizeof seed, 0) != sizeof seed)
		die("cannot get random numbers: %s", strerror(errno));
	bootparams_seed(node->ram + BOOTPARAMS_SEED_GPA, seed);
}

int guest_load(struct node *node, char *why, size_t why_bytes)
{
	uint32_t ram_bytes = (uint32_t)ram_below_hole(node->ram_pages), initrd_bytes, table_bytes;
	uint64_t began = node_now_ns(node);
	struct kernel_image kernel;
	struct nodes_plan plan;
	gpa_t initrd;

	if (kernel_load(node->o.kernel, node->ram, ram_bytes, &kernel, why, why_bytes))
		return -1;
	if (load_initrds(node, kernel.end, &plan, &initrd, &initrd_bytes, why, why_bytes))
		return -1;
	bootparams_build(node->ram + VMP_BOOT_PARAMS_GPA, node->ram_pages, initrd, initrd_bytes);
	strcpy((char *)node->ram + VMP_CMDLINE_GPA, node->o.cmdline);
	table_bytes = mptable_build(node->ram + VMP_MP_TABLE_GPA, node->o.machine.cpus);
	add_range(node, VMP_BOOT_PARAMS_GPA, VMP_BOOT_PARAMS_GPA + PAGE_BYTES);
	load_seed(node); /* in the same page */
	add_range(node, VMP_CMDLINE_GPA, BOOTPARAMS_SEED_GPA + BOOTPARAMS_SEED_AREA_BYTES);
	add_range(node, VMP_MP_TABLE_GPA, VMP_MP_TABLE_GPA + table_bytes);
	nodes_build(node->ram + VMP_NODES_GPA, &plan);
	add_range(node, VMP_NODES_GPA, VMP_NODES_GPA + NODES_TABLE_BYTES);
	add_range(node, kernel.first, kernel.file_end);
	give_fresh_pages(node, &plan);
	node->preloaded.entry = kernel.entry;
	log_info("kernel at %lx-%lx, entry %lx, initrd %u KiB at %lx, loaded in %llu ms",
		 kernel.first, kernel.end, kernel.entry, initrd_bytes >> 10, initrd,
		 (unsigned long long)((node_now_ns(node) - began) / 1000000));
	return 0;
}
