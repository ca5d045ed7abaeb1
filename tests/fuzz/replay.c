/* replay.c - runs a fuzzing target on files, without libFuzzer: the corpus is a unit test. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"

static unsigned run_file(const char *path)
{
	static uint8_t buf[1 << 20];
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	size_t n = fread(buf, 1, sizeof buf, f);
	fclose(f);
	printf("%s\n", path);	/* the last one printed is the one that failed */
	/* so that the sanitizer notices a read beyond the end */
	uint8_t *exact = malloc(n ? n : 1);
	memcpy(exact, buf, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 1;
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : CORPUS;
	DIR *d = opendir(folder);
	unsigned n = 0;
	char path[512];

	if (!d)
		return run_file(folder) == 0;
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%.200s", folder, e->d_name);
		if (e->d_name[0] != '.')
			n += run_file(path);
	}
	closedir(d);
	printf("%u inputs\n", n);
	return n == 0;
}
