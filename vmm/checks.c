/* checks.c - see checks.h. A list of checks, run in order; each prints nothing and changes nothing. */
#include "base/beside.h"
#include "vmm/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vmm/elfdeps.h"
#include "vmm/hostcpu.h"

enum {
	/* Private memory of the machine's processes, measured generously: page tables, buffers, libc. */
	HOST_MIB = 4,
	CPU_MIB = 4,
	SECTOR_BYTES = 512,
};

/* The file's SHA-256 in hexadecimal. */
static int digest_file(const char *path, char hex[65], struct problem *p)
{
	static char buffer[65536];
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_bytes = 0;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = context && fd >= 0 && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
	ssize_t n = 0;

	while (ok && (n = read(fd, buffer, sizeof buffer)) > 0)
		ok = EVP_DigestUpdate(context, buffer, n);
	ok = ok && n == 0 && EVP_DigestFinal_ex(context, digest, &digest_bytes);
	if (fd >= 0)
		close(fd);
	EVP_MD_CTX_free(context);
	if (!ok)
		return problem(p, "cannot read %s: %s", path, strerror(errno));
	for (unsigned i = 0; i < digest_bytes && i < 32; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
	return 0;
}

/* The line "HEX  NAME" or "HEX *NAME" for this file. */
static bool find_sum(const char *sums_path, const char *name, char hex[65])
{
	enum { HEX = 64, BEFORE_NAME = HEX + 2 };
	FILE *sums = fopen(sums_path, "re");
	char line[PATH_MAX + BEFORE_NAME + 2];
	bool hit = false;

	while (sums && !hit && fgets(line, sizeof line, sums)) {
		line[strcspn(line, "\n")] = 0;
		if (strspn(line, "0123456789abcdef") != HEX || !line[HEX + 1])
			continue;
		hit = !strcmp(line + BEFORE_NAME + 2 * !strncmp(line + BEFORE_NAME, "./", 2), name);
		snprintf(hex, HEX + 1, "%.64s", line);
	}
	if (sums)
		fclose(sums);
	return hit;
}

int check_checksum(const char *file, struct problem *p)
{
	char path[PATH_MAX], sums[PATH_MAX + 16], wanted[65], found[65];
	char *name;

	if (!realpath(file, path))
		return problem(p, "cannot find %s: %s; make builds it", file, strerror(errno));
	name = strrchr(path, '/') + 1;
	snprintf(sums, sizeof sums, "%.*sSHA256SUMS", (int)(name - path), path);
	if (!find_sum(sums, name, wanted))
		return problem(p, "%s has no checksum of %s; remove that folder and let make build it again", sums, name);
	if (digest_file(path, found, p))
		return -1;
	if (strcmp(wanted, found))
		return problem(p, "%s is damaged (its checksum is wrong); remove its folder and let make build it again", path);
	return 0;
}

/* One of the files to boot from: the user's own, or what `make` built, undamaged. */
static int find_file(const char *given, const char *built, const char *what, char *path, struct problem *p)
{
	if (given) {
		if (!realpath(given, path))
			return problem(p, "%s %s: %s", what, given, strerror(errno));
		return 0;
	}
	if (beside_path(built, path, PATH_MAX))
		return problem(p, "the path of this program is too long");
	if (access(path, R_OK) && errno != ENOENT)
		return problem(p, "cannot read the %s %s: %s", what, path, strerror(errno));
	if (access(path, R_OK))
		return problem(p, "the %s is not built yet; make builds it", what);
	return check_checksum(path, p);
}

int check_disk(const char *spec, struct problem *p)
{
	char path[PATH_MAX];
	size_t n;
	enum disk_mode mode = options_disk_mode(spec, &n);
	struct stat st;
	int fd, lock = mode == DISK_READ_WRITE ? LOCK_EX : LOCK_SH, result = 0;

	snprintf(path, sizeof path, "%.*s", (int)n, spec);
	fd = open(path, (mode == DISK_READ_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return problem(p, "--disk %s: %s%s", path, strerror(errno),
			       errno == EACCES && mode == DISK_READ_WRITE ? "; with ,ro or ,snapshot it need not be writable" : "");
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		result = problem(p, "--disk %s: not a regular file; this version takes raw image files", path);
	else if (!st.st_size || st.st_size % SECTOR_BYTES)
		result = problem(p, "--disk %s: its size, %lld bytes, is not a multiple of %d; is it a raw image?", path,
				 (long long)st.st_size, SECTOR_BYTES);
	else if (flock(fd, lock | LOCK_NB))
		result = problem(p, "--disk %s: in use by another machine", path);
	close(fd);
	return result;
}

static uint64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long number;
	int found = file ? fscanf(file, "%llu", &number) : 0;

	if (file)
		fclose(file);
	return found == 1 ? number : UINT64_MAX; /* "max" is not a number */
}

static uint64_t available_bytes(const char *root)
{
	char path[PATH_MAX], line[128];
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/meminfo", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = kib << 10;
	if (file)
		fclose(file);
	return bytes;
}

/* What the group at `folder` and all above it, up to `top`, still allow. */
static uint64_t group_room(const char *top, const char *group, const char *max_name, const char *usage_name)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];
	uint64_t room = UINT64_MAX;

	snprintf(folder, sizeof folder, "%s%s", top, group);
	for (;;) {
		uint64_t max, usage;
		char *slash;

		snprintf(path, sizeof path, "%s/%s", folder, max_name);
		max = read_number(path);
		snprintf(path, sizeof path, "%s/%s", folder, usage_name);
		usage = read_number(path);
		if (max < 1ull << 60 && usage != UINT64_MAX) { /* version 1 says "none" by a huge number */
			uint64_t left = max > usage ? max - usage : 0;

			room = left < room ? left : room;
		}
		slash = strrchr(folder, '/');
		if (!slash || (size_t)(slash - folder) < strlen(top))
			return room;
		*slash = 0;
	}
}

static uint64_t cgroup_bytes(const char *root)
{
	char path[PATH_MAX], line[PATH_MAX], top[PATH_MAX];
	uint64_t room = UINT64_MAX, here;
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group)
			continue;
		*group++ = 0;
		group[strcspn(group, "\n")] = 0;
		if (!strcmp(controllers, ":")) {
			snprintf(top, sizeof top, "%s/sys/fs/cgroup", root);
			here = group_room(top, group, "memory.max", "memory.current");
		} else if (strstr(controllers, "memory")) {
			snprintf(top, sizeof top, "%s/sys/fs/cgroup/memory", root);
			here = group_room(top, group, "memory.limit_in_bytes", "memory.usage_in_bytes");
		} else {
			continue;
		}
		room = here < room ? here : room;
	}
	if (file)
		fclose(file);
	return room;
}

uint64_t check_memory_limit_mib(const char *root, const char **what)
{
	uint64_t available = available_bytes(root), group = cgroup_bytes(root);
	uint64_t least = available < group ? available : group;

	*what = available <= group ? "free memory" : "the control group's limit (cgroup)";
	return least == UINT64_MAX ? UINT64_MAX : least >> 20;
}

static int check_resource(int resource, uint64_t needed_mib, const char *name, char flag, struct problem *p)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >> 20 >= needed_mib)
		return 0;
	return problem(p, "%s is limited to %llu MiB, and this machine needs %llu MiB; raise it with ulimit -%c", name,
		       (unsigned long long)limit.rlim_cur >> 20, (unsigned long long)needed_mib, flag);
}

/* Every host's memory file has the guest's full size but holds only what the host uses: the sum of all is the guest's
 * memory, read copies aside. */
static int check_memory(const struct options *o, struct problem *p)
{
	enum { GUEST_ADDRESSES_MIB = 4096 };
	const char *what;
	uint64_t limit = check_memory_limit_mib("", &what);
	uint64_t needed = o->mem_mib + (uint64_t)o->hosts * HOST_MIB + (uint64_t)o->cpus * CPU_MIB;

	if (needed > limit)
		return problem(p, "--mem %uM on %u host%s with %u processors needs %llu MiB, and %s is %llu MiB", o->mem_mib,
			       o->hosts, o->hosts > 1 ? "s" : "", o->cpus, (unsigned long long)needed, what,
			       (unsigned long long)limit);
	if (check_resource(RLIMIT_AS, GUEST_ADDRESSES_MIB + o->mem_mib + CPU_MIB, "address space", 'v', p))
		return -1;
	return check_resource(RLIMIT_FSIZE, o->mem_mib, "the size of files", 'f', p);
}

int checks_before_boot(const struct options *o, struct host_files *files, struct problem *p)
{
	if (find_file(o->kernel, "guest/vmlinux", "guest kernel", files->kernel, p) ||
	    find_file(o->image, "guest/initramfs.cpio", "guest image", files->image, p))
		return -1;
	if (o->kernel && file_kind(files->kernel, p) != FILE_ELF32)
		return problem(p, "--kernel %s: not a 32-bit x86 vmlinux (ELF)", o->kernel);
	return checks_before_load(o, p);
}

int checks_before_load(const struct options *o, struct problem *p)
{
	if (o->disk && check_disk(o->disk, p))
		return -1;
	if (check_memory(o, p))
		return -1;
	return hostcpu_check(o->hosts > 1, p);
}
