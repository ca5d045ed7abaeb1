/* A page that is made to exist keeps what others write to it meanwhile: base/touch.h. */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/layout.h"
#include "base/touch.h"
#include "base/types.h"
#include "tests/unit/unit.h"

enum { ROUNDS = 2000000, PAGES = 16 };

static uint8_t *pages;
static atomic_bool over;

static void *toucher(void *arg)
{
	(void)arg;
	while (!over)
		touch_page(pages, true);
	return NULL;
}

/* A load and a store in place of one instruction would bring an old value back. */
static void what_is_written_stays(void)
{
	volatile uint8_t *byte = pages;
	unsigned lost = 0;
	pthread_t thread;

	over = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, toucher, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		*byte = (uint8_t)i;
		for (unsigned k = 0; k < 4; k++)
			lost += *byte != (uint8_t)i;
	}
	over = true;
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(lost, 0);
}

/* Both kinds make a page exist, and leave its content. */
static void pages_exist(void)
{
	int fd = memfd_create("touch", MFD_CLOEXEC);
	uint8_t *map;

	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, PAGES * PAGE_BYTES), 0);
	map = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(map != MAP_FAILED);
	touch_page(map, true);
	CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_DATA), 0);
	CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_HOLE), PAGE_BYTES);
	touch_page(map + 2 * PAGE_BYTES, false);
	CU_ASSERT_EQUAL(lseek(fd, PAGE_BYTES, SEEK_DATA), 2 * PAGE_BYTES);
	CU_ASSERT_EQUAL(map[0], 0);
	map[0] = 7;
	touch_page(map, true);
	touch_page(map, false);
	CU_ASSERT_EQUAL(map[0], 7);
	munmap(map, PAGES * PAGE_BYTES);
	close(fd);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(what_is_written_stays),
		UNIT_TEST(pages_exist),
		UNIT_END
	};

	pages = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return pages == MAP_FAILED ? 1 : UNIT_RUN("touch", tests);
}
