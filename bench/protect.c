/* protect.c - compares two ways to take a page of guest RAM from a running process that has it
 * mapped:
 *
 *   punch      as the node daemon does (vmm/node/pages/extract.c): put the page into a pipe, punch
 *              its hole in the memfd, read the pipe.  UFFDIO_CONTINUE gives it back.  A page that
 *              may still be read is taken in the same way, and given back write-protected.
 *   mprotect   a signal stops the process, which protects the page itself and reports that; then
 *              the page is copied.  The process's own mprotect, as after a fault, gives it back.
 *
 *   protect [PAGES TAKEN]...
 *
 * For each number, so many pages are taken first, every second one, as when two hosts share an
 * array.  Then the program measures other pages: the median times to take one, to leave it
 * readable, and to give it back; and the number of mappings that the process has.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/clocks.h"

#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1) /* Linux 6.4 */
#endif
enum { PAGE = 4096, PAGES = 65536, FIRST_MEASURED = 1, ROUNDS = 500 };

static int ram_fd, pipe_fds[2], uffd;
static uint8_t *alias, *guest; /* the daemon's view; the guest's */
static pid_t process;
static struct order {
	_Atomic uint32_t asked, done;
	uint32_t page, pages, protection;
	int32_t error;
	double us;
} *order;

static void stop(const char *what)
{
	perror(what);
	kill(process, SIGKILL);
	exit(1);
}

static int futex(_Atomic uint32_t *word, int what, uint32_t value)
{
	return (int)syscall(SYS_futex, word, what, value, NULL, NULL, 0);
}

/* ---- the process that has the pages ---- */

static void on_order(int number)
{
	double start = now_us();

	(void)number;
	order->error = mprotect(guest + (size_t)order->page * PAGE, (size_t)order->pages * PAGE,
				(int)order->protection) ? errno : 0;
	order->us = now_us() - start;
	atomic_store(&order->done, atomic_load(&order->asked));
	futex(&order->done, FUTEX_WAKE, 1);
}

/* Runs for ever, and touches no page of the guest's RAM. */
static void run(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, on_order);
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	order->error = uffd;
	atomic_store(&order->done, 1);
	for (;;)
		;
}

/* ---- punch ---- */

static void take(uint32_t page, uint8_t *to)
{
	struct iovec from = { alias + (size_t)page * PAGE, PAGE };

	if (vmsplice(pipe_fds[1], &from, 1, 0) != PAGE ||
	    fallocate(ram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page * PAGE,
		      PAGE) ||
	    read(pipe_fds[0], to, PAGE) != PAGE)
		stop("take");
}

static void give(uint32_t page, uint32_t pages, bool read_only)
{
	struct uffdio_continue go = { .range = { (uintptr_t)guest + (size_t)page * PAGE,
						 (size_t)pages * PAGE },
				      .mode = read_only ? UFFDIO_CONTINUE_MODE_WP : 0 };

	if (ioctl(uffd, UFFDIO_CONTINUE, &go))
		stop("UFFDIO_CONTINUE");
}

static void punch_begin(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM |
					      UFFD_FEATURE_MISSING_SHMEM |
					      UFFD_FEATURE_WP_HUGETLBFS_SHMEM };
	struct uffdio_register all = { .range = { (uintptr_t)guest, (size_t)PAGES * PAGE },
				       .mode = UFFDIO_REGISTER_MODE_MISSING |
					       UFFDIO_REGISTER_MODE_MINOR |
					       UFFDIO_REGISTER_MODE_WP };

	uffd = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, process, 0), order->error, 0);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &all))
		stop("userfaultfd");
	give(0, PAGES, false);
}

static int punch_none(uint32_t page, double *us)
{
	uint8_t contents[PAGE];
	double start = now_us();

	take(page, contents);
	*us = now_us() - start;
	return 0;
}

static int punch_read(uint32_t page, double *us)
{
	uint8_t contents[PAGE];
	double start = now_us();

	take(page, contents);
	memcpy(alias + (size_t)page * PAGE, contents, PAGE);
	give(page, 1, true);
	*us = now_us() - start;
	return 0;
}

static int punch_write(uint32_t page, double *us)
{
	static const uint8_t contents[PAGE] = { 1 };
	double start = now_us();

	memcpy(alias + (size_t)page * PAGE, contents, PAGE);
	give(page, 1, false);
	*us = now_us() - start;
	return 0;
}

/* ---- mprotect ---- */

/* Lets the process change a protection.  Returns 0, or errno of its mprotect. */
static int ask(uint32_t page, uint32_t pages, int protection)
{
	uint32_t number = atomic_load(&order->asked) + 1, done;

	order->page = page, order->pages = pages, order->protection = (uint32_t)protection;
	atomic_store(&order->asked, number);
	kill(process, SIGUSR1);
	while ((done = atomic_load(&order->done)) != number)
		futex(&order->done, FUTEX_WAIT, done);
	return order->error;
}

static void mprotect_begin(void)
{
	atomic_store(&order->asked, 1);
}

static int lower(uint32_t page, int protection, double *us)
{
	uint8_t contents[PAGE];
	double start = now_us();
	int error = ask(page, 1, protection);

	memcpy(contents, alias + (size_t)page * PAGE, PAGE);
	__asm__ volatile("" : : "r"(contents) : "memory");
	*us = now_us() - start;
	return error;
}

static int mprotect_none(uint32_t page, double *us) { return lower(page, PROT_NONE, us); }
static int mprotect_read(uint32_t page, double *us) { return lower(page, PROT_READ, us); }

static int mprotect_write(uint32_t page, double *us)
{
	int error = ask(page, 1, PROT_READ | PROT_WRITE);

	*us = order->us;
	return error;
}

/* ---- the table ---- */

static const struct way {
	const char *name;
	void (*begin)(void);
	int (*none)(uint32_t page, double *us), (*read)(uint32_t page, double *us),
		(*write)(uint32_t page, double *us);
} ways[] = {
	{ "punch", punch_begin, punch_none, punch_read, punch_write },
	{ "mprotect", mprotect_begin, mprotect_none, mprotect_read, mprotect_write },
};

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

static double median(double *us)
{
	qsort(us, ROUNDS, sizeof *us, compare);
	return us[ROUNDS / 2];
}

static unsigned mappings(void)
{
	char path[64];
	unsigned lines = 0;
	FILE *maps;
	int c;

	snprintf(path, sizeof path, "/proc/%d/maps", process);
	maps = fopen(path, "r");
	while (maps && (c = getc(maps)) != EOF)
		lines += c == '\n';
	if (maps)
		fclose(maps);
	return lines;
}

/* Pages at the end, one by one. */
static void measure(const struct way *way, uint32_t taken)
{
	static double none[ROUNDS], readable[ROUNDS], written[ROUNDS], again[ROUNDS];
	int error = 0;

	for (uint32_t i = 0; i < ROUNDS && !error; i++) {
		uint32_t page = PAGES - 1 - 2 * (i % 100);

		error = way->none(page, &none[i]);
		if (!error)
			error = way->write(page, &written[i]);
		if (!error)
			error = way->read(page, &readable[i]);
		if (!error)
			error = way->none(page, &again[i]);
		if (!error)
			error = way->write(page, &again[i]);
	}
	if (error)
		printf("%-9s %6u taken: cannot go on: %s\n", way->name, taken, strerror(error));
	else
		printf("%-9s %6u taken %8.1f %8.1f %8.1f us %7u mappings\n", way->name, taken,
		       median(none), median(readable), median(written), mappings());
}

static void run_way(const struct way *way, uint32_t taken)
{
	uint32_t page, i = 0;
	double us;

	order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ram_fd = memfd_create("protect", MFD_CLOEXEC);
	if (order == MAP_FAILED || ram_fd < 0 || ftruncate(ram_fd, (off_t)PAGES * PAGE) ||
	    pipe(pipe_fds))
		stop("memory");
	alias = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ram_fd, 0);
	guest = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ram_fd, 0);
	if (alias == MAP_FAILED || guest == MAP_FAILED)
		stop("mmap");
	memset(alias, 1, (size_t)PAGES * PAGE);
	process = fork();
	if (!process)
		run();
	munmap(guest, (size_t)PAGES * PAGE); /* only the process has it mapped */
	while (!atomic_load(&order->done))
		usleep(1000);
	way->begin();
	for (page = FIRST_MEASURED; i < taken && !way->none(page, &us); i++)
		page += 2;
	if (i < taken)
		printf("%-9s %6u taken: the next one fails: %s\n", way->name, i,
		       strerror(order->error));
	else
		measure(way, taken);
	fflush(stdout);
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	munmap(alias, (size_t)PAGES * PAGE);
	munmap(order, sizeof *order);
	close(ram_fd);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	if (way->begin == punch_begin)
		close(uffd);
}

int main(int argc, char **argv)
{
	static const uint32_t usual[] = { 0, 1000, 10000, 30000, 33000 };
	unsigned n = argc > 1 ? (unsigned)argc - 1 : sizeof usual / sizeof *usual;

	printf("%22s %8s %8s %8s\n", "", "take", "readable", "give");
	for (unsigned i = 0; i < n; i++)
		for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++)
			run_way(&ways[w], argc > 1 ? (uint32_t)atoi(argv[1 + i]) : usual[i]);
	return 0;
}
