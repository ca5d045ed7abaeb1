/* session.c - `phnx-session NAME` creates the secret of a session in ~/.config/phnx/NAME; copy
 * that file to the other hosts. */
#include <stdio.h>
#include <string.h>
#include "phoenix/core/secret.h"

static const char usage[] = "usage: phnx-session NAME\n";

int main(int argc, char **argv)
{
	char text[512] = "";

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return fputs(usage, stdout) < 0 || fflush(stdout) ? 1 : 0;
	if (argc != 2 || argv[1][0] == '-') {
		fputs(usage, stderr);
		return 2;
	}
	if (secret_create(argv[1], text, sizeof text)) {
		fprintf(stderr, "phnx-session: %s\n", text);
		return 1;
	}
	return 0;
}
