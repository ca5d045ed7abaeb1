/* initramfs.c - tests of the archive that the command makes of a program, its libraries and a
 * shared folder. */
#include "vmm/cli/guest/initramfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "tests/unit/work_folder.h"

static void write_sample(const char *path)
{
	struct initramfs archive;
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	initramfs_start(&archive, fd);
	initramfs_add_bytes(&archive, "/vmp/command", 0644, "ls\0-l\0", 6);
	initramfs_add_tree(&archive, "/share", at("tree"));
	CU_ASSERT_EQUAL(initramfs_finish(&archive), 0);
	CU_ASSERT_EQUAL((uint64_t)lseek(fd, 0, SEEK_END), archive.bytes);
	close(fd);
}

static void cpio_reads_what_we_write(void)
{
	shell("mkdir -p tree/deep/empty && seq 5000 >tree/numbers && ln -s numbers tree/link && "
	      "echo >tree/deep/one && "
	      "printf x >tree/odd && chmod 755 tree/odd && mkfifo tree/pipe && touch tree/nothing "
	      "&& "
	      "ln tree/odd tree/deep/again && touch -d '2001-02-03 04:05:06' tree/odd "
	      "tree/deep/empty");
	write_sample(at("sample.cpio"));
	shell("mkdir out && cd out && cpio --quiet -idm <../sample.cpio");
	shell("diff -r --exclude=pipe tree out/share && [ -x out/share/odd ]");
	shell("[ -p out/share/pipe ] && [ out/share/odd -ef out/share/deep/again ]");
	shell("cd tree && find . -type f -exec sh -c 'for f; do "
	      "[ $(stat -c %%Y $f) = $(stat -c %%Y ../out/share/$f) ] || exit 1; done' - {} +");
	shell("[ -d out/share/deep/empty ] && [ $(readlink out/share/link) = numbers ]");
	shell("printf 'ls\\0-l\\0' | cmp - out/vmp/command");
	/* the same input, the same archive */
	write_sample(at("again.cpio"));
	shell("cmp sample.cpio again.cpio");
}

static void what_cannot_be_copied_is_counted(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct initramfs archive;
	int fd = open("/dev/null", O_WRONLY), listener = socket(AF_UNIX, SOCK_STREAM, 0);

	shell("mkdir uncopied");
	snprintf(address.sun_path, sizeof address.sun_path, "%s", at("uncopied/socket"));
	CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	initramfs_start(&archive, fd);
	initramfs_add_tree(&archive, "/share", at("uncopied"));
	CU_ASSERT_EQUAL(initramfs_finish(&archive), 0);
	CU_ASSERT_EQUAL(archive.left_out, 1);
	CU_ASSERT(strstr(archive.first_left_out, "uncopied/socket") != NULL);
	close(listener);
	close(fd);
}

static void exchange_for_ever(const char *file, const char *link)
{
	while (!renameat2(AT_FDCWD, file, AT_FDCWD, link, RENAME_EXCHANGE))
		;
	_exit(1);
}

/* Another user may write in the tree, and puts a link in a file's place while it is read. */
static void no_link_leads_out_of_a_tree(void)
{
	char file[PATH_MAX], link[PATH_MAX], text[8192];
	struct initramfs archive;
	unsigned secrets = 0;
	pid_t other;

	shell("mkdir -p racy/tree && echo secret >racy/outside && echo open >racy/tree/file && "
	      "ln -s ../outside racy/link");
	snprintf(file, sizeof file, "%s", at("racy/tree/file"));
	snprintf(link, sizeof link, "%s", at("racy/link"));
	other = fork();
	if (!other)
		exchange_for_ever(file, link);
	for (unsigned i = 0; i < 3000; i++) {
		int fd = open(at("racy/archive"), O_CREAT | O_TRUNC | O_RDWR, 0600);
		ssize_t n;

		initramfs_start(&archive, fd);
		initramfs_add_tree(&archive, "/share", at("racy/tree"));
		initramfs_finish(&archive);
		n = pread(fd, text, sizeof text, 0);
		secrets += n > 0 && memmem(text, (size_t)n, "secret", 6);
		close(fd);
	}
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	CU_ASSERT_EQUAL(secrets, 0);
}

static void a_tree_is_counted_up_to_a_limit(void)
{
	int64_t all = initramfs_tree_bytes(at("tree"), INT64_MAX / 2);

	CU_ASSERT(all > 23893 && all < 26000);
	CU_ASSERT(initramfs_tree_bytes(at("tree"), 1000) > 1000);
	CU_ASSERT_EQUAL(initramfs_tree_bytes(at("nonesuch"), 1), -ENOENT);
}

static void a_full_disk_is_an_error(void)
{
	struct initramfs archive;
	int fd = open("/dev/full", O_WRONLY);

	initramfs_start(&archive, fd);
	initramfs_add_bytes(&archive, "/a", 0644, "x", 1);
	CU_ASSERT_EQUAL(initramfs_finish(&archive), -ENOSPC);
	close(fd);
	initramfs_start(&archive, -1);
	initramfs_add_file(&archive, "/a", at("nonesuch"));
	CU_ASSERT(initramfs_finish(&archive) != 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(cpio_reads_what_we_write),
		UNIT_TEST(what_cannot_be_copied_is_counted),
		UNIT_TEST(no_link_leads_out_of_a_tree),
		UNIT_TEST(a_tree_is_counted_up_to_a_limit),
		UNIT_TEST(a_full_disk_is_an_error),
		UNIT_END
	};
	int status;

	if (work_folder_make())
		return 1;
	status = UNIT_RUN("initramfs", tests);
	return work_folder_remove() || status;
}
