/* altpages.c - touches every other page of a large mapping, so that the host must keep as many
 * separate mappings as possible.
 *
 *   altpages [MIB]      default 512; needs half as much memory
 */
#include <sys/mman.h>
#include "tests/guest/check.h"

enum { PAGE = 4096 };

int main(int argc, char **argv)
{
	size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 512) << 20;
	volatile uint32_t *m;
	bool kept = true, zero = true;

	m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (!expect("a big mapping", m != MAP_FAILED))
		return check_result();
	for (size_t at = 0; at < bytes / 4; at += 2 * PAGE / 4)
		m[at] = (uint32_t)at;
	for (size_t at = 0; at < bytes / 4; at += 2 * PAGE / 4)
		kept = kept && m[at] == (uint32_t)at;
	expect("every other page keeps what was written", kept);
	for (size_t at = PAGE / 4; at < bytes / 4; at += 64 * PAGE / 4)
		zero = zero && m[at] == 0;
	expect("the pages between are zero", zero);
	return check_result();
}
