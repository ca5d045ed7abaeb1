/* checks.c - see checks.h.  A list of checks that run in order.  They print nothing and change
 * nothing. */
#include "base/beside.h"
#include "vmm/cli/run/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/layout.h"
#include "vmm/cli/digest.h"
#include "vmm/cli/guest/elfdeps.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/hostmem.h"

enum { SECTOR_BYTES = 512 };

/* Writes the file's SHA-256 in hexadecimal.  Returns 0, or -1 with the problem. */
static int digest_file(const char *path, char hex[65], struct problem *p)
{
	unsigned char digest[DIGEST_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && digest_of_file(fd, digest);
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (!ok)
		return problem(p, "cannot read %s: %s", path,
			       error ? strerror(error) : "libcrypto (libssl3) cannot be loaded");
	for (unsigned i = 0; i < DIGEST_BYTES; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
	return 0;
}

/* Finds the line "HEX NAME" or "HEX *NAME" of this file. */
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
		return problem(p, "cannot find %s: %s; make builds it, or install the package "
			       "vmp-guest",
			file, strerror(errno));
	name = strrchr(path, '/') + 1;
	snprintf(sums, sizeof sums, "%.*sSHA256SUMS", (int)(name - path), path);
	if (!find_sum(sums, name, wanted))
		return problem(p, "%s has no checksum of %s; remove that folder and let make build "
			       "it again, or install vmp again",
			       sums, name);
	if (digest_file(path, found, p))
		return -1;
	if (strcmp(wanted, found))
		return problem(p, "%s is damaged (its checksum is wrong); remove its folder and "
			       "let make build it again, or install vmp again",
			       path);
	return 0;
}

enum { LEAST_DESCRIPTORS = 32, DESCRIPTORS_PER_CPU = 2 };

/* Finds a file to boot from: the user's own, or the one that `make` built, if it is undamaged. */

static int find_file(const char *given, const char *built, const char *what, char *path,
		     struct problem *p)
{
	if (given) {
		struct stat st;

		if (!realpath(given, path) || stat(path, &st))
			return problem(p, "%s %s: %s", what, given, strerror(errno));
		if (!S_ISREG(st.st_mode))
			return problem(p, "%s %s: not a regular file", what, given);
		return 0;
	}
	if (beside_path(built, path, PATH_MAX))
		return problem(p, "the path of this program is too long");
	if (access(path, R_OK) && errno != ENOENT)
		return problem(p, "cannot read the %s %s: %s", what, path, strerror(errno));
	if (access(path, R_OK))
		return problem(p, "there is no %s: %s; make builds it, or install the package "
			       "vmp-guest",
			what, path);
	return check_checksum(path, p);
}

/* Returns what the user may have meant by an image that cannot be opened. */
static const char *hint(const char *path, enum disk_mode mode, int error)
{
	if (error == EACCES && mode == DISK_READ_WRITE)
		return "; with ,ro or ,snapshot it need not be writable";
	if (error == ENOENT && options_has_words(path))
		return "; behind IMAGE may come ,ro or ,snapshot, and then ,ide";
	return "";
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
		return problem(p, "--disk %s: %s%s", spec, strerror(errno),
			       hint(path, mode, errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		result =
			problem(p, "--disk %s: not a regular file; this version takes raw image "
				"files",
				path);
	else if (!st.st_size || st.st_size % SECTOR_BYTES)
		result = problem(p, "--disk %s: its size, %lld bytes, is not a multiple of %d; is "
				 "it a raw image?",
				 path, (long long)st.st_size, SECTOR_BYTES);
	else if (flock(fd, lock | LOCK_NB))
		result = problem(p, "--disk %s: in use by another machine", path);
	close(fd);
	return result;
}

static bool is_same_file(const char *a, const char *b)
{
	char path[PATH_MAX];
	struct stat first, second;
	size_t n;

	options_disk_mode(a, &n);
	snprintf(path, sizeof path, "%.*s", (int)n, a);
	if (stat(path, &first))
		return false;
	options_disk_mode(b, &n);
	snprintf(path, sizeof path, "%.*s", (int)n, b);
	return !stat(path, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static int check_disks(const struct machine *m, struct problem *p)
{
	if (options_ide_disks(m) > 1)
		return problem(p, "--disk %s: there can be one IDE disk; the others without ,ide",
			       m->disk.item[m->disk.n - 1]);
	for (unsigned i = 0; i < m->disk.n; i++) {
		if (check_disk(m->disk.item[i], p))
			return -1;
		for (unsigned before = 0; before < i; before++)
			if (is_same_file(m->disk.item[before], m->disk.item[i]))
				return problem(p, "--disk %s: the machine has this image already",
					       m->disk.item[i]);
	}
	return 0;
}

static int check_resource(int resource, uint64_t needed_mib, const char *name, char flag,
			  struct problem *p)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >> 20 >= needed_mib)
		return 0;
	return problem(p, "%s is limited to %llu MiB, and this machine needs %llu MiB; raise it "
		       "with ulimit -%c",
		       name, (unsigned long long)limit.rlim_cur >> 20,
		       (unsigned long long)needed_mib, flag);
}

/* A cluster's hosts are asked for their memory themselves (vmm/cli/cluster/). */
static int check_memory(const struct options *o, struct problem *p)
{
	enum { GUEST_ADDRESSES_MIB = 4096 };
	uint64_t needed = hostmem_needed_mib(o->machine.mem_mib, o->machine.hosts, o->machine.cpus);
	struct hostmem has;

	hostmem_look(&has, "");
	if (!o->cluster && needed > has.mib)
		return problem(p, "--mem %uM on %u host%s with %u processor%s needs %llu MiB, and "
			       "%s is %llu MiB",
			       o->machine.mem_mib, o->machine.hosts,
			       o->machine.hosts > 1 ? "s" : "", o->machine.cpus,
			       o->machine.cpus > 1 ? "s" : "",
			       (unsigned long long)needed, hostmem_name(&has),
			       (unsigned long long)has.mib);
	if (check_resource(RLIMIT_AS,
			   GUEST_ADDRESSES_MIB + hostmem_needed_mib(o->machine.mem_mib, 0, 1),
			   "address space", 'v', p))
		return -1;
	return check_resource(RLIMIT_FSIZE, o->machine.mem_mib, "the size of files", 'f', p);
}

/* A daemon raises its own limit as far as it may, and needs a few descriptors for each CPU. With
 * too few, any of many parts would fail with its own error; this check reports it first. */
static int check_descriptors(const struct options *o, struct problem *p)
{
	rlim_t needed = LEAST_DESCRIPTORS + DESCRIPTORS_PER_CPU * o->machine.cpus;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= needed)
		return 0;
	return problem(p, "the number of open files is limited to %llu, and this machine needs "
		       "%llu; raise it with ulimit -n",
		       (unsigned long long)limit.rlim_max, (unsigned long long)needed);
}

/* The kernel of the vmp that runs, for so much RAM. */
static int find_kernel(const char *given, uint32_t mem_mib, char *path, struct problem *p)
{
	if (given || !ram_needs_pae(ram_pages_of(mem_mib)))
		return find_file(given, "guest/vmlinux", "guest kernel", path, p);
	if (!beside_path("guest/vmlinux-pae", path, PATH_MAX) && access(path, R_OK) &&
	    errno == ENOENT)
		return problem(p, "--mem %uM: more than 3 GiB need the guest kernel with PAE, and "
			       "there is none: %s; make guest-pae builds it", mem_mib, path);
	return find_file(NULL, "guest/vmlinux-pae", "guest kernel with PAE", path, p);
}

int checks_guest(const char *kernel, const char *image, uint32_t mem_mib, struct host_files *files,
		 struct problem *p)
{
	return find_kernel(kernel, mem_mib, files->kernel, p) ||
	       find_file(image, "guest/initramfs.cpio", "guest image", files->image, p) ? -1 : 0;
}

/* Returns whether a file is a compressed kernel, as QEMU boots it: "HdrS" at offset 0x202
 * (Documentation/arch/x86/boot.rst). */
static bool is_bzimage(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[4] = { 0 };
	bool is = fd >= 0 && pread(fd, magic, sizeof magic, 0x202) == sizeof magic &&
		  !memcmp(magic, "HdrS", sizeof magic);

	if (fd >= 0)
		close(fd);
	return is;
}

int checks_before_boot(const struct options *o, struct host_files *files, struct problem *p)
{
	if (checks_guest(o->kernel, o->image, o->machine.mem_mib, files, p))
		return -1;
	if (o->kernel && is_bzimage(files->kernel))
		return problem(p, "--kernel %s: a bzImage; leave it away: vmp boots its own "
			       "kernel, or a vmlinux of its scripts/guest-kernel", o->kernel);
	if (o->kernel && elfdeps_file_kind(files->kernel, p) != FILE_ELF32)
		return problem(p, "--kernel %s: not a 32-bit x86 vmlinux (ELF)", o->kernel);
	return checks_before_load(o, p);
}

int checks_before_load(const struct options *o, struct problem *p)
{
	if (check_disks(&o->machine, p))
		return -1;
	if (check_memory(o, p) || check_descriptors(o, p))
		return -1;
	return hostcpu_check(o->machine.hosts > 1, p);
}
