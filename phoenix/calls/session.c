/* session.c - `phnx-session NAME` creates the secret of a session in ~/.config/phnx/NAME; copy
 * that file to the other hosts. */
#include <stdio.h>
#include "phoenix/core/secret.h"

int main(int argc, char **argv)
{
	char text[512] = "";

	if (argc != 2) {
		fprintf(stderr, "usage: phnx-session NAME\n");
		return 2;
	}
	if (secret_create(argv[1], text, sizeof text)) {
		fprintf(stderr, "phnx-session: %s\n", text);
		return 1;
	}
	return 0;
}
