/* guest_load.c - what stands in guest RAM when the first CPU starts (node 0): the kernel's segments, the concatenated
 * initrds at the top of RAM, boot parameters, command line and MP table in low memory (base/guest_abi.h says where).
 * Every page written here is listed as preloaded; all others are zero, and belong to nobody yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "vmm/node/load/bootparams.h"
#include "vmm/node/load/kernel_load.h"
#include "vmm/node/load/mptable.h"
#include "vmm/node/node.h"

/* The kernel takes the last archive's end from the size, and skips zeros between archives up to a multiple of four. */
enum { INITRD_ALIGN = 4 };

struct open_initrd { int fd; uint32_t bytes; };

static void add_range(struct node *node, gpa_t from, uint64_t end)
{
	struct preloaded *p = &node->preloaded;
	gfn_t first = gpa_to_gfn(from);

	bug_on(p->count == MAX_PRELOADED);
	p->range[p->count++] = (struct page_range){ first, (uint32_t)((end + PAGE_MASK) >> PAGE_BITS) - first, 0 };
}

static int open_initrds(const struct node_options *o, struct open_initrd *initrd, uint64_t *total, char *why,
			size_t why_bytes)
{
	struct stat status;

	*total = 0;
	for (unsigned i = 0; i < o->n_initrds; i++) {
		initrd[i].fd = open(o->initrd[i], O_RDONLY | O_CLOEXEC);
		if (initrd[i].fd < 0 || fstat(initrd[i].fd, &status)) {
			snprintf(why, why_bytes, "cannot open the guest's image %s: %s", o->initrd[i], strerror(errno));
			return -1;
		}
		if (status.st_size > (off_t)MAX_RAM_MIB << 20) {
			snprintf(why, why_bytes, "the guest's image %s does not fit into its RAM (use a larger --mem)",
				 o->initrd[i]);
			return -1;
		}
		initrd[i].bytes = (uint32_t)status.st_size;
		*total += ((uint64_t)initrd[i].bytes + INITRD_ALIGN - 1) / INITRD_ALIGN * INITRD_ALIGN;
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

/* At the top of RAM, page aligned, above the kernel. *start and *bytes are what the boot parameters say. */
static int load_initrds(struct node *node, gpa_t kernel_end, gpa_t *start, uint32_t *bytes, char *why, size_t why_bytes)
{
	struct open_initrd initrd[MAX_INITRDS] = { { 0 } };
	uint64_t total, ram_bytes = (uint64_t)node->ram_pages << PAGE_BITS;
	gpa_t at;
	int error;

	for (unsigned i = 0; i < MAX_INITRDS; i++)
		initrd[i].fd = -1;
	error = open_initrds(&node->o, initrd, &total, why, why_bytes);
	if (!error && total + kernel_end + PAGE_BYTES > ram_bytes) {
		snprintf(why, why_bytes, "the guest's image of %llu MiB does not fit into its RAM of %u MiB (use a larger --mem)",
			 (unsigned long long)(total + (1 << 20) - 1) >> 20, node->o.machine.mem_mib);
		error = -1;
	}
	*start = at = error ? 0 : (gpa_t)((ram_bytes - total) & ~(uint64_t)PAGE_MASK);
	*bytes = (uint32_t)total;
	for (unsigned i = 0; i < node->o.n_initrds && !error; i++) {
		if (read_initrd(&initrd[i], node->ram + at)) {
			snprintf(why, why_bytes, "cannot read the guest's image %s to its end", node->o.initrd[i]);
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

int guest_load(struct node *node, char *why, size_t why_bytes)
{
	uint32_t ram_bytes = node->ram_pages << PAGE_BITS, initrd_bytes, table_bytes;
	uint64_t began = node_now_ns();
	struct kernel_image kernel;
	gpa_t initrd;

	if (kernel_load(node->o.kernel, node->ram, ram_bytes, &kernel, why, why_bytes))
		return -1;
	if (load_initrds(node, kernel.end, &initrd, &initrd_bytes, why, why_bytes))
		return -1;
	bootparams_build(node->ram + VMP_BOOT_PARAMS_GPA, ram_bytes, initrd, initrd_bytes);
	strcpy((char *)node->ram + VMP_CMDLINE_GPA, node->o.cmdline);
	table_bytes = mptable_build(node->ram + VMP_MP_TABLE_GPA, node->o.machine.cpus);
	add_range(node, VMP_BOOT_PARAMS_GPA, VMP_BOOT_PARAMS_GPA + PAGE_BYTES);
	add_range(node, VMP_CMDLINE_GPA, VMP_CMDLINE_GPA + MAX_CMDLINE);
	add_range(node, VMP_MP_TABLE_GPA, VMP_MP_TABLE_GPA + table_bytes);
	add_range(node, kernel.first, kernel.file_end);
	node->preloaded.entry = kernel.entry;
	log_info("kernel at %x-%x, entry %x, initrd %u KiB at %x, loaded in %llu ms", kernel.first, kernel.end, kernel.entry,
		 initrd_bytes >> 10, initrd, (unsigned long long)((node_now_ns() - began) / 1000000));
	return 0;
}
