/* extract.c - see extract.h. */
#include "vmm/node/pages/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

struct extract {
	int fd;
	uint8_t *ram;
	int pipe[2];
	unsigned pipe_pages; /* what the pipe holds, EXTRACT_MOST at most */
	bool gathers;
	unsigned n_gathered;
	gfn_t gathered[EXTRACT_GATHERED]; /* ascending */
};

struct extract *extract_new(int fd, uint8_t *ram)
{
	struct extract *extract = malloc(sizeof *extract);
	int room;

	if (!extract)
		die("out of memory");
	*extract = (struct extract){ .fd = fd, .ram = ram };
	if (pipe2(extract->pipe, O_CLOEXEC | O_NONBLOCK))
		die("cannot make a pipe: %s", strerror(errno));
	/* smaller, if the pipes of this user have all that fs.pipe-user-pages-soft allows */
	room = fcntl(extract->pipe[1], F_GETPIPE_SZ);
	if (room < PAGE_BYTES)
		die("cannot learn the size of a pipe: %s", strerror(errno));
	extract->pipe_pages = (unsigned)room >> PAGE_BITS;
	if (extract->pipe_pages > EXTRACT_MOST)
		extract->pipe_pages = EXTRACT_MOST;
	return extract;
}

void extract_free(struct extract *extract)
{
	close(extract->pipe[0]);
	close(extract->pipe[1]);
	free(extract);
}

static off_t at(gfn_t gfn)
{
	return (off_t)gfn << PAGE_BITS;
}

unsigned extract_run(const gfn_t *gfn, unsigned count)
{
	unsigned n = 1;

	while (n < count && gfn[n] == gfn[0] + n)
		n++;
	return n;
}

/* (TRICKS: punch-everywhere) */
static void punch(struct extract *extract, gfn_t first, unsigned count)
{
	if (fallocate(extract->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at(first),
		      (off_t)count << PAGE_BITS))
		die("cannot take a page of guest RAM: %s", strerror(errno));
}

void extract_punch(struct extract *extract, gfn_t gfn)
{
	unsigned at = extract->n_gathered;

	if (!extract->gathers) {
		punch(extract, gfn, 1);
		return;
	}
	bug_on(at == EXTRACT_GATHERED);
	for (; at && extract->gathered[at - 1] > gfn; at--)
		extract->gathered[at] = extract->gathered[at - 1];
	extract->gathered[at] = gfn;
	extract->n_gathered++;
}

void extract_gather(struct extract *extract)
{
	extract->gathers = true;
}

void extract_gathered(struct extract *extract)
{
	for (unsigned i = 0, n; i < extract->n_gathered; i += n) {
		n = extract_run(extract->gathered + i, extract->n_gathered - i);
		punch(extract, extract->gathered[i], n);
	}
	extract->gathers = false;
	extract->n_gathered = 0;
}

static void fill_pipe(struct extract *extract, gfn_t first, unsigned count)
{
	off_t from = at(first), end = at(first + count);

	while (from < end)
		if (splice(extract->fd, &from, extract->pipe[1], NULL, (size_t)(end - from), 0) <=
			    0 &&
		    errno != EINTR)
			die("cannot splice a page of guest RAM: %s", strerror(errno));
}

static void empty_pipe(struct extract *extract, uint8_t *contents, size_t bytes)
{
	while (bytes) {
		ssize_t n = read(extract->pipe[0], contents, bytes);

		if (n <= 0 && errno != EINTR)
			die("cannot read a page of guest RAM: %s", strerror(errno));
		if (n > 0) {
			contents += n;
			bytes -= (size_t)n;
		}
	}
}

/* Removes pages that the pipe holds together.  (TRICKS: splice-then-punch) */
static void take_written(struct extract *extract, const gfn_t *gfn, unsigned count,
			 uint8_t *contents)
{
	for (unsigned i = 0, n; i < count; i += n) {
		n = extract_run(gfn + i, count - i);
		fill_pipe(extract, gfn[i], n);
		punch(extract, gfn[i], n);
	}
	empty_pipe(extract, contents, (size_t)count << PAGE_BITS);
}

static void take_read_only(struct extract *extract, const gfn_t *gfn, unsigned count,
			   uint8_t *contents)
{
	for (unsigned i = 0; contents && i < count; i++)
		memcpy(contents + at(i), extract->ram + at(gfn[i]), PAGE_BYTES);
	for (unsigned i = 0, n; i < count; i += n) {
		n = extract_run(gfn + i, count - i);
		punch(extract, gfn[i], n);
	}
}

void extract_pages(struct extract *extract, const gfn_t *gfn, unsigned count, bool written,
		   uint8_t *contents)
{
	bug_on(count > EXTRACT_MOST);
	if (!written) {
		take_read_only(extract, gfn, count, contents);
		return;
	}
	for (unsigned i = 0, n; i < count; i += n) {
		n = count - i < extract->pipe_pages ? count - i : extract->pipe_pages;
		take_written(extract, gfn + i, n, contents + at(i));
	}
}

/* Writes the contents to the file: the page is new, and a write does not fill it with zeros first,
 * as a touch would. */
void extract_put_back(struct extract *extract, const gfn_t *gfn, unsigned count,
		      const uint8_t *contents)
{
	for (unsigned i = 0, n; i < count; i += n) {
		size_t done = 0, bytes;

		n = extract_run(gfn + i, count - i);
		bytes = (size_t)n << PAGE_BITS;
		while (done < bytes) {
			ssize_t got = pwrite(extract->fd, contents + at(i) + done, bytes - done,
					     at(gfn[i]) + (off_t)done);

			if (got <= 0 && errno != EINTR)
				die("cannot fill a page of guest RAM: %s", strerror(errno));
			if (got > 0)
				done += (size_t)got;
		}
	}
}
