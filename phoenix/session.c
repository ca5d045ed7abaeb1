/* session.c - `phnx-session NAME` creates a session's secret in ~/.config/phnx/NAME; copy that file to the other hosts. */
#include <stdio.h>
#include "phoenix/secret.h"

int main(int argc, char **argv)
{
	char text[512] = "";

	if (argc != 2) {
		fprintf(stderr, "usage: phnx-session NAME\n");
		return 2;
	}
	if (phnx_secret_create(argv[1], text, sizeof text)) {
		fprintf(stderr, "phnx-session: %s\n", text);
		return 1;
	}
	return 0;
}
