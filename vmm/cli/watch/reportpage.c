/* reportpage.c - see reportpage.h. */
#include "vmm/cli/watch/reportpage.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char reportpage_begin[], reportpage_end[]; /* reportpage_text.S */
static const char mark[] = "@RECORD@";

enum { PATH_BYTES = 4096 };

static int cannot(const char *path, int error, struct problem *p)
{
	return problem(p, "cannot write the report %s: %s", path, strerror(error));
}

static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* Leads from a symbolic link to its file, so that the link stays. */
static int resolve(const char *path, char real[PATH_BYTES], struct problem *p)
{
	char *there = realpath(path, NULL);

	if (!there && errno != ENOENT)
		return cannot(path, errno, p);
	if (snprintf(real, PATH_BYTES, "%s", there ? there : path) >= PATH_BYTES - 16) {
		free(there);
		return cannot(path, ENAMETOOLONG, p);
	}
	free(there);
	return 0;
}

int reportpage_check(const char *path, struct problem *p)
{
	char real[PATH_BYTES], folder[PATH_BYTES];

	if (resolve(path, real, p))
		return -1;
	if (is_special(real))
		return access(real, W_OK) ? cannot(path, errno, p) : 0;
	snprintf(folder, sizeof folder, "%s", real);
	return access(dirname(folder), W_OK | X_OK) ? cannot(path, errno, p) : 0;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Writes the text into a file beside `path`, which then takes that name. */
static int replace(const char *path, const char *text, size_t bytes)
{
	char beside[PATH_BYTES + 16];
	mode_t mask = umask(0);
	int fd, error;

	umask(mask);
	snprintf(beside, sizeof beside, "%s.XXXXXX", path);
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = write_all(fd, text, bytes);
	if (!error && (fchmod(fd, 0666 & ~mask) || fsync(fd)))
		error = -errno;
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

static int write_special(const char *path, const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = write_all(fd, text, bytes);
	close(fd);
	return error;
}

static int write_file(const char *path, const char *text, size_t bytes, struct problem *p)
{
	char real[PATH_BYTES];
	int error;

	if (resolve(path, real, p))
		return -1;
	error = is_special(real) ? write_special(real, text, bytes) : replace(real, text, bytes);
	return error ? cannot(path, -error, p) : 0;
}

/* Puts the record into the page.  Every "<" is escaped, so that no text can end its element; in
 * JSON a "<" stands in strings alone. */
static void put_page(FILE *out, const char *record, size_t bytes)
{
	size_t all = (size_t)(reportpage_end - reportpage_begin);
	const char *at = memmem(reportpage_begin, all, mark, sizeof mark - 1);

	fwrite(reportpage_begin, 1, (size_t)(at - reportpage_begin), out);
	for (size_t i = 0; i < bytes; i++)
		if (record[i] == '<')
			fputs("\\u003c", out);
		else
			putc(record[i], out);
	at += sizeof mark - 1;
	fwrite(at, 1, (size_t)(reportpage_end - at), out);
}

static int write_page(const char *path, const char *record, size_t bytes, struct problem *p)
{
	char *page = NULL;
	size_t page_bytes;
	FILE *out = open_memstream(&page, &page_bytes);
	int result;

	if (!out)
		return problem(p, "no memory");
	put_page(out, record, bytes);
	result = fclose(out) ? problem(p, "no memory") : write_file(path, page, page_bytes, p);
	free(page);
	return result;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), bytes = strlen(end);

	return n >= bytes && !strcmp(text + n - bytes, end);
}

int reportpage_write(const char *path, const struct recording *r,
		     const struct recording_about *about, struct problem *p)
{
	char *record = NULL;
	size_t bytes;
	FILE *out = open_memstream(&record, &bytes);
	int result;

	if (!out)
		return problem(p, "no memory");
	recording_print(out, r, about, 0);
	if (fclose(out))
		result = problem(p, "no memory");
	else if (ends_with(path, ".json"))
		result = write_file(path, record, bytes, p);
	else
		result = write_page(path, record, bytes, p);
	free(record);
	return result;
}

int reportpage_convert(const char *path, const char *record_path, struct problem *p)
{
	char *record = malloc(RECORD_MOST_BYTES + 1);
	FILE *file = record ? fopen(record_path, "re") : NULL;
	size_t bytes = 0;
	int error = 0, result;

	if (file) {
		bytes = fread(record, 1, RECORD_MOST_BYTES + 1, file);
		error = ferror(file) ? errno : 0;
		fclose(file);
	}
	if (!file || error)
		result = problem(p, "cannot read %s: %s", record_path,
				 record ? strerror(error ? error : errno) : "no memory");
	else if (bytes > RECORD_MOST_BYTES || bytes < sizeof RECORDING_HEAD - 1 ||
		 memcmp(record, RECORDING_HEAD, sizeof RECORDING_HEAD - 1))
		result = problem(p, "%s is no record of a machine: vmp run --report FILE.json "
				    "writes one", record_path);
	else
		result = write_page(path, record, bytes, p);
	free(record);
	return result;
}
