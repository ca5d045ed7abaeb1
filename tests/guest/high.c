/* high.c - memory that the guest kernel does not map (high memory): filled by two processors,
 * copied after a fork, in a file and in a pipe.  All of it is read again.
 *
 *   high [MIB [FILE_MIB]]      default 64 and 8
 *
 * In a machine of more than 1127 MiB, or with --append highmem=SIZE, programs get high memory
 * first.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { PAGE = 4096, WORDS = PAGE / 4, THREADS = 2, FORKED_PAGES = 4096 };

static uint32_t *area, pages;
static bool right[THREADS];

static uint32_t stamp(uint32_t page, uint32_t word, uint32_t pass)
{
	return page * 2654435761u + word * 40503u + pass;
}

/* Each page begins as zeros; two of its words are looked at, a different pair in each. */
static bool fill(uint32_t first, uint32_t end, uint32_t pass)
{
	for (uint32_t page = first; page < end; page++) {
		uint32_t *at = area + (size_t)page * WORDS, word = page % (WORDS - 1);

		if (pass == 1 && (at[word] || at[WORDS - 1]))
			return false;
		at[word] = stamp(page, word, pass);
		at[WORDS - 1] = stamp(page, WORDS - 1, pass);
	}
	return true;
}

static bool holds(uint32_t first, uint32_t end, uint32_t pass)
{
	for (uint32_t page = first; page < end; page++) {
		const uint32_t *at = area + (size_t)page * WORDS;
		uint32_t word = page % (WORDS - 1);

		if (at[word] != stamp(page, word, pass) ||
		    at[WORDS - 1] != stamp(page, WORDS - 1, pass))
			return false;
	}
	return true;
}

static void *work(void *number)
{
	uint32_t me = (uint32_t)(uintptr_t)number, part = pages / THREADS;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof set, &set);
	right[me] = fill(me * part, (me + 1) * part, 1) && holds(me * part, (me + 1) * part, 1);
	return NULL;
}

static void by_threads(void)
{
	pthread_t other;

	if (!expect("a second thread", !pthread_create(&other, NULL, work, (void *)1)))
		return;
	work((void *)0);
	pthread_join(other, NULL);
	expect("each processor's half holds what it wrote", right[0] && right[1]);
}

/* The child gets copies of the pages that it writes to. */
static void by_fork(void)
{
	uint32_t end = pages < FORKED_PAGES ? pages : FORKED_PAGES;
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(!(holds(0, end, 1) && fill(0, end, 2) && holds(0, end, 2)));
	expect("a child writes to its copies",
	       child > 0 && waitpid(child, &status, 0) == child && !status);
	expect("and its parent's pages stay", holds(0, pages, 1));
}

/* The kernel copies to and from a file's pages, and a mapping shows the same. */
static void by_file(uint32_t file_pages)
{
	size_t bytes = (size_t)file_pages * PAGE;
	int fd = open("/tmp/high", O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint32_t *map, text[WORDS];
	bool same = true;

	unlink("/tmp/high");
	for (uint32_t page = 0; page < file_pages; page++)
		same &= write(fd, area + (size_t)page * WORDS, PAGE) == PAGE;
	expect("a file is written", same);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect("its mapping holds the same", map != MAP_FAILED && !memcmp(map, area, bytes));
	for (uint32_t page = 0; page < file_pages && map != MAP_FAILED; page++)
		map[(size_t)page * WORDS] = page;
	for (uint32_t page = 0; page < file_pages; page++)
		same &= pread(fd, text, PAGE, (off_t)page * PAGE) == PAGE && text[0] == page &&
			!memcmp(text + 1, area + (size_t)page * WORDS + 1, PAGE - 4);
	expect("what the mapping wrote is read", same);
	close(fd);
}

/* A pipe's buffer lies in pages of its own. */
static void by_pipe(void)
{
	enum { PIECE = 16 * PAGE };
	static uint32_t text[PIECE / 4];
	bool same = true;
	int ends[2];

	expect("a pipe", !pipe(ends));
	for (uint32_t page = 0; page + 16 <= pages && page < 1024; page += 16)
		same &= write(ends[1], area + (size_t)page * WORDS, PIECE) == PIECE &&
			read(ends[0], text, PIECE) == PIECE &&
			!memcmp(text, area + (size_t)page * WORDS, PIECE);
	expect("passes on what it got", same);
}

static bool has_high_memory(void)
{
	FILE *info = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	while (info && fgets(line, sizeof line, info) && sscanf(line, "HighTotal: %lu", &kib) != 1)
		;
	if (info)
		fclose(info);
	return kib > 0;
}

int main(int argc, char **argv)
{
	uint32_t file_mib = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;

	pages = (argc > 1 ? (uint32_t)atoi(argv[1]) : 64) * 256;
	expect("the machine has high memory", has_high_memory());
	area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (!expect("a large area", area != MAP_FAILED && file_mib * 256 <= pages))
		return check_result();
	by_threads();
	by_fork();
	by_file(file_mib * 256);
	by_pipe();
	return check_result();
}
