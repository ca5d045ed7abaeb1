/* node_copy.c - what a host adds to a snapshot, and which pages it guesses that the guest will
 * write to. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/node/cut/copy.h"

enum {
	PAGES = 4 * COPY_GUESSED, CUTS = 100, NEW = 7,
	SHM_BYTES = sizeof(struct host_shm) + PAGES
};

static struct node node;

static void begin(void)
{
	node = (struct node){ .ram_pages = PAGES, .ram_fd = memfd_create("ram", 0) };
	CU_ASSERT_FATAL(node.ram_fd >= 0 && !ftruncate(node.ram_fd, PAGES * PAGE_BYTES));
	node.ram = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, node.ram_fd,
			0);
	node.shm = mmap(NULL, SHM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	CU_ASSERT_FATAL(node.ram != MAP_FAILED && node.shm != MAP_FAILED);
	copy_start(&node);
}

static void end(void)
{
	copy_end(&node);
	munmap(node.ram, PAGES * PAGE_BYTES);
	close(node.ram_fd);
	munmap(node.shm, SHM_BYTES);
}

static void write_to(gfn_t gfn, uint8_t value)
{
	copy_before_change(&node, gfn);
	node.ram[gfn << PAGE_BITS] = value;
}

static void cut(enum snapshot_mode mode)
{
	CU_ASSERT(!copy_prepare(&node) && !copy_mark(&node, mode));
}

/* Returns how many pages are sent; each must be its number, as at the cut. */
static unsigned send_all(void)
{
	struct copy_item item;
	unsigned n = 0;

	for (; copy_next(&node, &item); n++) {
		CU_ASSERT_EQUAL(item.kind, SNAPSHOT_PAGE);
		CU_ASSERT(item.bytes == PAGE_BYTES &&
			  *(const uint8_t *)item.data == item.index % 100 + 1);
	}
	copy_forget(&node);
	return n;
}

/* The page is guessed, whichever page of its word is asked for, and no other one is. */
static bool is_guessed(gfn_t gfn)
{
	gfn_t first = gfn - gfn % COPY_GUESSED;
	uint64_t guess = copy_guess_changes(&node, first);

	CU_ASSERT_EQUAL(guess, copy_guess_changes(&node, first + COPY_GUESSED - 1));
	CU_ASSERT(!guess || guess == 1ull << gfn % COPY_GUESSED);
	return guess;
}

static void test_as_at_the_cut(void)
{
	begin();
	for (gfn_t gfn = 0; gfn < PAGES; gfn += 3)
		write_to(gfn, gfn % 100 + 1);
	cut(CHECKPOINT_WHOLE);
	write_to(3, 200);
	write_to(4, 200);
	CU_ASSERT_EQUAL(send_all(), (PAGES + 2) / 3);
	write_to(3, 4);
	write_to(4, 5);
	cut(CHECKPOINT_CHANGES);
	copy_before_loss(&node, 3);
	node.ram[3 << PAGE_BITS] = 200;
	CU_ASSERT_EQUAL(send_all(), 2);
	cut(CHECKPOINT_CHANGES);
	CU_ASSERT_EQUAL(send_all(), 0);
	end();
}

/* A page that changes all the time is guessed, but for one of many intervals. */
static void test_guesses(void)
{
	const gfn_t gfn = 2 * COPY_GUESSED + 5;
	unsigned guessed = 0;

	begin();
	CU_ASSERT(!is_guessed(gfn));
	for (unsigned n = 0; n < CUTS; n++) {
		write_to(gfn, gfn % 100 + 1);
		cut(CHECKPOINT_CHANGES);
		guessed += is_guessed(gfn);
		CU_ASSERT(!copy_guess_changes(&node, 0));
		CU_ASSERT_EQUAL(send_all(), 1);
	}
	CU_ASSERT(guessed >= CUTS - CUTS / 16 && guessed < CUTS);
	end();
}

/* The daemon writes down as changed what it guesses.  If nobody writes to it any more, that ends
 * after the interval without guesses. */
static void test_forgets(void)
{
	const gfn_t gfn = COPY_GUESSED - 1;
	unsigned n = 0;

	begin();
	write_to(gfn, gfn % 100 + 1);
	cut(CHECKPOINT_CHANGES);
	for (; n < CUTS && copy_guess_changes(&node, 0); n++) {
		copy_before_change(&node, gfn);
		CU_ASSERT_EQUAL(send_all(), 1);
		cut(CHECKPOINT_CHANGES);
	}
	CU_ASSERT(n < CUTS);
	for (n = 0; n < CUTS; n++) {
		send_all();
		cut(CHECKPOINT_CHANGES);
		CU_ASSERT(!is_guessed(gfn));
	}
	end();
}

/* A snapshot for a file leaves what the next checkpoint must have. */
static void test_apart(void)
{
	begin();
	write_to(NEW, NEW + 1);
	cut(SNAPSHOT_APART);
	CU_ASSERT_EQUAL(send_all(), 1);
	cut(CHECKPOINT_CHANGES);
	CU_ASSERT_EQUAL(send_all(), 1);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "pages are as at the cut", test_as_at_the_cut },
		{ "what changes all the time is guessed", test_guesses },
		{ "what no longer changes is not", test_forgets },
		{ "a snapshot apart", test_apart },
		UNIT_END
	};

	return UNIT_RUN("a host's part of a snapshot", tests);
}
