/* fsops.c - exercises a file system: processes do random operations, each in a folder of its own,
 * and compare what is read with what was written.
 *
 *   fsops work PROCESSES ROUNDS SEED     in the current folder; prints "works" if all was right
 *   fsops large                          a file of 10 GB with a hole
 *   fsops race ROUNDS                    a folder and a link that leads out take turns under a name
 *   fsops list                           what is below the current folder, sorted: kind, mode,
 *                                        links, size, a sum of the contents, a link's target
 *
 * The host runs `list`, too, on what the guest has left: both must say the same.
 */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 8, MOST = 300000, CHUNK = 40000 };

static struct file {
	int exists, size;
	unsigned char bytes[MOST];
} model[FILES];
static unsigned seed;

static unsigned any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % below;
}

static void wrong(const char *what, const char *name)
{
	printf("%s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

static const char *name_of(unsigned i)
{
	static char names[2][64];
	static unsigned turn;
	char *name = names[turn ^= 1];

	snprintf(name, sizeof names[0], i & 1 ? "odd name %u \xc3\xa4\n" : "file.%u", i);
	return name;
}

static void write_some(unsigned i)
{
	static unsigned char bytes[CHUNK];
	struct file *f = &model[i];
	int at = any(MOST - CHUNK), n = 1 + any(CHUNK);
	int fd = open(name_of(i), O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		wrong("open", name_of(i));
	for (int k = 0; k < n; k++)
		bytes[k] = (unsigned char)any(256);
	if (pwrite(fd, bytes, n, at) != n)
		wrong("write", name_of(i));
	memcpy(f->bytes + at, bytes, n);
	f->exists = 1;
	f->size = at + n > f->size ? at + n : f->size;
	if (!any(4) && fsync(fd))
		wrong("fsync", name_of(i));
	close(fd);
}

/* The same through a shared mapping. */
static void map_some(unsigned i)
{
	struct file *f = &model[i];
	int at, n, fd;
	unsigned char *map;

	if (f->size < 2)
		return;
	at = any(f->size - 1);
	n = 1 + any(f->size - at);
	fd = open(name_of(i), O_RDWR);
	map = fd < 0 ? MAP_FAILED
		     : mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		wrong("mmap", name_of(i));
	if (memcmp(map, f->bytes, f->size))
		wrong("differs in a mapping:", name_of(i));
	for (int k = 0; k < n; k++)
		map[at + k] = f->bytes[at + k] = (unsigned char)any(256);
	if (msync(map, f->size, MS_SYNC) || munmap(map, f->size) || close(fd))
		wrong("msync", name_of(i));
}

/* A file of 10 GB that is nearly all hole. */
static int test_large(void)
{
	static const off_t places[] = { 0, 4294967290, 10000000000 };
	char text[16];
	struct stat st;
	int fd = open("large", O_RDWR | O_CREAT | O_EXCL, 0644);

	for (unsigned i = 0; i < 3; i++) /* the second is across 4 GiB */
		if (pwrite(fd, "twelve bytes", 12, places[i]) != 12)
			wrong("write", "large");
	for (unsigned i = 0; i < 3; i++)
		if (pread(fd, text, 12, places[i]) != 12 || memcmp(text, "twelve bytes", 12))
			wrong("read", "large");
	if (pread(fd, text, 12, 7000000000) != 12 || memcmp(text, "\0\0\0\0\0\0\0\0\0\0\0", 12) ||
	    fstat(fd, &st) || st.st_size != 10000000012 || st.st_blocks > 1000 || close(fd))
		wrong("a hole in", "large");
	puts("large");
	return 0;
}

/* One process swaps a folder and a link that leads out; the other reads a name in it. Neither may
 * meet what is outside, nor an error other than that the name is not there. */
static int test_race(unsigned rounds)
{
	char text[16] = "";
	pid_t swapper;

	if (mkdir("inside", 0755) || symlink("../..", "outside"))
		wrong("mkdir", "inside");
	close(open("inside/secret", O_CREAT | O_WRONLY, 0644));
	swapper = fork();
	for (unsigned i = 0; !swapper; i++) {
		rename("place", i & 1 ? "inside" : "outside");
		rename(i & 1 ? "outside" : "inside", "place");
	}
	for (unsigned i = 0; i < rounds; i++) {
		int fd = open("place/secret", O_RDONLY);

		if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ESTALE)
			wrong("open", "place/secret");
		if (fd >= 0 && read(fd, text, sizeof text) != 0)
			wrong("what is outside was read:", text);
		if (fd >= 0)
			close(fd);
	}
	kill(swapper, SIGKILL);
	waitpid(swapper, NULL, 0);
	puts("stays inside");
	return 0;
}

static void check(unsigned i)
{
	static unsigned char bytes[MOST + 1];
	struct file *f = &model[i];
	int fd = open(name_of(i), O_RDONLY), n = 0, part;
	struct stat st;

	if ((fd >= 0) != f->exists)
		wrong("it should be otherwise:", name_of(i));
	if (fd < 0)
		return;
	while ((part = read(fd, bytes + n, sizeof bytes - n)) > 0)
		n += part;
	if (part < 0 || fstat(fd, &st) || st.st_size != f->size || n != f->size ||
	    memcmp(bytes, f->bytes, n)) {
		printf("%s differs: %d bytes, not %d\n", name_of(i), n, f->size);
		exit(1);
	}
	close(fd);
}

static void cut(unsigned i)
{
	struct file *f = &model[i];
	int size = any(MOST);

	if (!f->exists)
		return;
	if (truncate(name_of(i), size))
		wrong("truncate", name_of(i));
	if (size < f->size)
		memset(f->bytes + size, 0, MOST - size);
	f->size = size;
}

static void remove_it(unsigned i)
{
	if ((unlink(name_of(i)) == 0) != model[i].exists)
		wrong("unlink", name_of(i));
	memset(&model[i], 0, sizeof model[i]);
}

static void move(unsigned i, unsigned to)
{
	if (i == to)
		return;
	if ((rename(name_of(i), name_of(to)) == 0) != model[i].exists)
		wrong("rename", name_of(i));
	if (!model[i].exists)
		return;
	model[to] = model[i];
	memset(&model[i], 0, sizeof model[i]);
}

/* Folders, links and FIFOs, which come and go, and stay at the end now and then. */
static void make_others(unsigned round)
{
	char name[64], other[64], target[64] = "";

	snprintf(name, sizeof name, "d%u", round);
	if (mkdir(name, 0700 + any(8)) || chmod(name, 0755))
		wrong("mkdir", name);
	snprintf(other, sizeof other, "d%u/link", round);
	if (symlink("../nowhere/at all", other) || readlink(other, target, sizeof target) != 17 ||
	    strcmp(target, "../nowhere/at all"))
		wrong("symlink", other);
	snprintf(name, sizeof name, "d%u/fifo", round);
	if (mkfifo(name, 0600))
		wrong("mkfifo", name);
	snprintf(other, sizeof other, "d%u/moved", round);
	if (rename(name, other) || !access(name, F_OK))
		wrong("rename", name);
	if (any(2)) {
		snprintf(name, sizeof name, "d%u/link", round);
		if (unlink(other) || unlink(name))
			wrong("unlink", other);
		snprintf(name, sizeof name, "d%u", round);
		if (rmdir(name))
			wrong("rmdir", name);
	}
}

static void hard_link(unsigned round)
{
	struct stat a, b;
	unsigned i = any(FILES);
	char name[64];

	snprintf(name, sizeof name, "hard%u", round);
	if (!model[i].exists || model[i].size > 100000)
		return;
	if (link(name_of(i), name) || stat(name, &a) || stat(name_of(i), &b) ||
	    a.st_ino != b.st_ino || a.st_nlink < 2)
		wrong("link", name);
	if (unlink(name))
		wrong("unlink", name);
}

/* All processes count in one file, under a lock. */
static void count_together(void)
{
	int fd = open("../count", O_RDWR | O_CREAT, 0644);
	char text[16] = "";
	struct flock lock = { .l_type = F_WRLCK };

	if (fd < 0)
		wrong("open", "count");
	while (fcntl(fd, F_SETLK, &lock)) /* F_SETLKW asks the host only now and then */
		if (errno != EAGAIN && errno != EACCES)
			wrong("lock", "count");
	if (pread(fd, text, sizeof text - 1, 0) < 0)
		wrong("read", "count");
	snprintf(text, sizeof text, "%d", atoi(text) + 1);
	if (pwrite(fd, text, strlen(text), 0) < 0)
		wrong("write", "count");
	close(fd);
}

static void work(unsigned process, unsigned rounds)
{
	char name[16];

	seed += process * 7919;
	snprintf(name, sizeof name, "p%u", process);
	if (mkdir(name, 0755) || chdir(name))
		wrong("mkdir", name);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned i = any(FILES);

		switch (any(9)) {
		case 0: cut(i); break;
		case 1: remove_it(i); break;
		case 2: move(i, any(FILES)); break;
		case 3: make_others(round); break;
		case 4: hard_link(round); break;
		case 5: count_together(); break;
		case 6: map_some(i); break;
		default: write_some(i);
		}
		check(any(FILES));
	}
	for (unsigned i = 0; i < FILES; i++)
		check(i);
	exit(0);
}

static int list(const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, NULL, alphasort);

	if (n < 0)
		wrong("scandir", folder);
	for (int i = 0; i < n; i++) {
		char path[4096], target[256] = "";
		unsigned sum = 0;
		struct stat st;
		FILE *file;

		if (!strcmp(entries[i]->d_name, ".") || !strcmp(entries[i]->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		if (lstat(path, &st))
			wrong("stat", path);
		file = S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
		for (int c; file && (c = getc(file)) != EOF;)
			sum = (sum ^ (unsigned)c) * 16777619u;
		if (file)
			fclose(file);
		if (S_ISLNK(st.st_mode) && readlink(path, target, sizeof target - 1) < 0)
			wrong("readlink", path);
		printf("%s %o %u %lld %08x %lld %s\n", path, (unsigned)st.st_mode,
		       (unsigned)st.st_nlink, S_ISREG(st.st_mode) ? (long long)st.st_size : 0, sum,
		       (long long)st.st_mtime, target);
		if (S_ISDIR(st.st_mode))
			list(path);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned processes = argc > 4 ? (unsigned)atoi(argv[2]) : 0;
	int status, failed = 0;

	if (argc == 2 && !strcmp(argv[1], "list"))
		return list(".");
	if (argc == 2 && !strcmp(argv[1], "large"))
		return test_large();
	if (argc == 3 && !strcmp(argv[1], "race"))
		return test_race((unsigned)atoi(argv[2]));
	if (argc != 5 || strcmp(argv[1], "work"))
		return 2;
	seed = (unsigned)atoi(argv[4]);
	for (unsigned i = 0; i < processes; i++)
		if (!fork())
			work(i, (unsigned)atoi(argv[3]));
	while (wait(&status) > 0)
		failed |= status;
	if (!failed)
		printf("works\n");
	return failed != 0;
}
