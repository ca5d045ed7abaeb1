/* ninep.c - fuzzes the server of a shared folder: requests of a hostile guest.
 *
 * Each request is a byte for its type, a byte for its length, and that many bytes of fields.  Names
 * are short, so that they meet each other.  The type POKE is no request: the server's state is
 * saved, its fields are changes of the saved bytes, and the server loads that.  Whatever comes:
 * each reply is whole and no longer than may be, what a server saves it can load, a state that is
 * refused leaves no file open, and what lies beside the folder stays as it was.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "iosrv/ninep.h"
#include "tests/fuzz/fuzz.h"

static char outer[] = "/tmp/vmp-fuzz-ninep-XXXXXX";
static uint8_t request[NINEP_MESSAGE_BYTES], reply[NINEP_MESSAGE_BYTES];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind;
	return ftw->level > 1 ? remove(path) : 0;
}

static void remove_rest(void)
{
	nftw(outer, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_all(void)
{
	char path[64];

	remove_rest();
	snprintf(path, sizeof path, "%s/in", outer);
	rmdir(path);
	snprintf(path, sizeof path, "%s/beside", outer);
	unlink(path);
	rmdir(outer);
}

static void make_folder(void)
{
	char path[64];
	int fd;

	if (!strstr(outer, "XXXXXX"))
		return;
	FUZZ_CHECK(mkdtemp(outer));
	atexit(remove_all);
	snprintf(path, sizeof path, "%s/in", outer);
	FUZZ_CHECK(!mkdir(path, 0755));
	snprintf(path, sizeof path, "%s/beside", outer);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	FUZZ_CHECK(fd >= 0 && write(fd, "beside", 6) == 6);
	close(fd);
}

static void check_beside(void)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "%s/beside", outer);
	FUZZ_CHECK(!stat(path, &st) && st.st_size == 6 && st.st_nlink == 1);
}

enum { POKE = 0xff, POKE_BYTES = 4 };

/* The files of this process: those of the server are among them. */
static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each change is an offset of three bytes, modulo the length, and a byte. */
static void save_and_load(struct ninep *server, const uint8_t *changes, size_t bytes,
			  unsigned files_before)
{
	static char why[200];
	uint8_t *state;
	size_t n = ninep_save(server, &state);

	FUZZ_CHECK(n && n <= NINEP_STATE_BYTES);
	for (size_t i = 0; i + POKE_BYTES <= bytes; i += POKE_BYTES)
		state[(changes[i] | changes[i + 1] << 8 | changes[i + 2] << 16) % n] =
			changes[i + 3];
	if (ninep_load(server, state, n, why, sizeof why)) {
		FUZZ_CHECK(bytes >= POKE_BYTES && *why);
		FUZZ_CHECK(open_files() == files_before);
	}
	free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ninep *server;
	char path[64];
	int folder, own;
	unsigned files;

	make_folder();
	snprintf(path, sizeof path, "%s/in", outer);
	folder = open(path, O_PATH);
	own = open("/proc/self/fd", O_PATH);
	server = ninep_new(folder, own, size && data[0] & 1);
	FUZZ_CHECK(folder >= 0 && own >= 0 && server);
	files = open_files();
	for (size_t at = 1; at + 2 < size;) {
		size_t bytes = data[at + 1], n;
		uint32_t length;

		if (bytes > size - at - 2)
			bytes = size - at - 2;
		if (data[at] == POKE) {
			save_and_load(server, data + at + 2, bytes, files);
			at += 2 + bytes;
			continue;
		}
		length = (uint32_t)(7 + bytes);
		memcpy(request, &length, 4);
		request[4] = data[at];
		memset(request + 5, 0, 2);
		memcpy(request + 7, data + at + 2, bytes);
		n = ninep_serve(server, request, length, reply);
		FUZZ_CHECK(n >= 7 && n <= sizeof reply);
		memcpy(&length, reply, 4);
		FUZZ_CHECK(length == n);
		at += 2 + bytes;
	}
	save_and_load(server, NULL, 0, files);
	ninep_free(server);
	FUZZ_CHECK(open_files() == files);
	close(folder);
	close(own);
	check_beside();
	remove_rest();
	return 0;
}
