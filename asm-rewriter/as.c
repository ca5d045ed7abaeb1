/* as.c - the program `as` that the compiler runs for the guest kernel (gcc -B finds it in a folder
 * of its own).
 *
 * It reads the assembly, rewrites it (rewrite.c) into a memory file, and executes the real
 * assembler on that.  Code that the guest kernel does not run in its own privileged mode passes
 * unchanged: 64-bit code, the boot wrapper, the real-mode trampoline, and the vDSO, which is user
 * code.
 *
 * VMP_AS names the real assembler (default: /usr/bin/as).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "asm-rewriter/rewrite.h"
#include "base/log.h"
#include "base/types.h"

/* Objects in these folders of the kernel's tree are not guest kernel code. */
static const char *const foreign_folders[] = {
	"arch/x86/boot/", "arch/x86/realmode/", "arch/x86/entry/vdso/vdso32/",
};

/* True for an option of `as` that takes the next argument. */
static bool takes_argument(const char *option)
{
	static const char *const options[] = {
		"-o", "-I", "--MD", "-defsym", "--defsym", "-march", "-mtune", "--debug-prefix-map"
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (!strcmp(option, options[i]))
			return true;
	return false;
}

struct invocation {
	const char *output;
	int input;	  /* index in argv of the input file, 0: standard input */
	bool rewritable;
};

static struct invocation invocation_parse(int argc, char **argv)
{
	struct invocation inv = {.output = "", .rewritable = false};
	unsigned inputs = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--32")) {
			inv.rewritable = true;
		} else if (!strcmp(argv[i], "--64") || !strcmp(argv[i], "--version")) {
			inv.rewritable = false;
			return inv;
		} else if (takes_argument(argv[i]) && i + 1 < argc) {
			if (!strcmp(argv[i], "-o"))
				inv.output = argv[i + 1];
			i++;
		} else if (argv[i][0] != '-' || !argv[i][1]) {
			inputs++;
			inv.input = i;
		}
	}
	if (inputs > 1)
		inv.rewritable = false; /* the kernel never does that */
	for (size_t i = 0; i < ARRAY_LEN(foreign_folders); i++)
		if (strstr(inv.output, foreign_folders[i]))
			inv.rewritable = false;
	return inv;
}

static void read_all(const char *path, struct text *in)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : 0;
	char block[65536];
	ssize_t bytes;

	if (fd < 0)
		die("cannot open %s: %s", path, strerror(errno));
	while ((bytes = read(fd, block, sizeof block)) > 0)
		text_add(in, block, bytes);
	if (bytes < 0)
		die("cannot read %s: %s", path, strerror(errno));
	if (fd)
		close(fd);
}

/* Return a file with the text, open for reading. */
static int as_memory_file(const struct text *t)
{
	int fd = memfd_create("assembly", 0); /* stays open across exec */

	if (fd < 0)
		die("memfd_create: %s", strerror(errno));
	for (size_t done = 0; done < t->length;) {
		ssize_t bytes = write(fd, t->data + done, t->length - done);

		if (bytes < 0)
			die("cannot write %zu bytes of assembly: %s", t->length, strerror(errno));
		done += bytes;
	}
	return fd;
}

/* Replace the assembler's input by the rewritten text. */
static void replace_input(struct invocation inv, char **argv)
{
	static char path[64];
	struct text in = {0}, out = {0};
	int fd;

	read_all(inv.input ? argv[inv.input] : "-", &in);
	rewrite(in.data, in.length, &out);
	fd = as_memory_file(&out);
	if (inv.input) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		argv[inv.input] = path;
	} else if (lseek(fd, 0, SEEK_SET) || dup2(fd, 0) < 0) { /* gcc -pipe names no input */
		die("cannot redirect the input: %s", strerror(errno));
	}
}

int main(int argc, char **argv)
{
	struct invocation inv = invocation_parse(argc, argv);
	const char *real = getenv("VMP_AS");

	log_open("as", 2, LOG_WARN);
	if (inv.rewritable)
		replace_input(inv, argv);
	if (!real)
		real = "/usr/bin/as";
	execv(real, argv);
	die("cannot run %s: %s", real, strerror(errno));
}
