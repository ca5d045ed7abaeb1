/* elf.c - fuzzes the readers of ELF files: of the guest's kernel (kernel_load.c), and of a program
 * of the host that is to run in the guest, whose interpreter and libraries are searched for, and
 * whose versions are compared (elfdeps.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "vmm/cli/guest/elfdeps.h"
#include "vmm/node/load/kernel_load.h"

enum { RAM = 4 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *ram; /* the sanitizer checks its end */
	int fd = memfd_create("elf", MFD_CLOEXEC);
	char path[40], why[400] = "", interpreter[64], argument[64];
	struct elfdeps deps = { .n = 0 };
	struct kernel_image image;
	struct problem p = { "" };

	if (!ram)
		ram = calloc(1, RAM);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	FUZZ_CHECK(ram && fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (kernel_load(path, ram, RAM, &image, why, sizeof why))
		FUZZ_CHECK(why[0] && strlen(why) < sizeof why);
	else
		FUZZ_CHECK(image.first >= 1 << 20 && image.first <= image.end && image.end <= RAM &&
			   image.file_end <= image.end);
	if (elfdeps_file_kind(path, &p) == FILE_SCRIPT)
		elfdeps_script_interpreter(path, interpreter, argument, sizeof interpreter, &p);
	else if (elfdeps_add(&deps, path, "/nonesuch", &p))
		FUZZ_CHECK(p.line[0]);
	FUZZ_CHECK(deps.n <= MAX_LIBRARIES);
	elfdeps_defines_all(path, path);
	close(fd);
	return 0;
}
