/* host_names.c - see host_names.h. */
#include "vmm/cli/cluster/host_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void names_write(const struct host_names *names, const char *rundir)
{
	char path[4096], other[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/names", rundir);
	snprintf(other, sizeof other, "%s/names.new", rundir);
	file = fopen(other, "we");
	if (!file)
		return;
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (names->name[host][0])
			fprintf(file, "%u %s\n", host, names->name[host]);
	if (!fclose(file))
		rename(other, path);
}

void names_read(struct host_names *names, const char *rundir)
{
	char path[4096], name[MAX_HOST_NAME];
	unsigned host;
	FILE *file;

	memset(names, 0, sizeof *names);
	snprintf(path, sizeof path, "%s/names", rundir);
	file = fopen(path, "re");
	while (file && fscanf(file, "%u %63s", &host, name) == 2)
		if (host < MAX_NODES)
			strcpy(names->name[host], name);
	if (file)
		fclose(file);
}

int names_find(const struct host_names *names, const char *name)
{
	for (int host = 0; *name && host < MAX_NODES; host++)
		if (!strcmp(names->name[host], name))
			return host;
	return -1;
}

void names_explain(const struct host_names *names, const char *line, char *out, size_t bytes)
{
	size_t n = 0;

	for (const char *at = line; *at && n + 1 < bytes;) {
		bool begins = (at == line || !isalnum((unsigned char)at[-1])) &&
			      !strncmp(at, "host ", 5) && isdigit((unsigned char)at[5]);
		char *end = (char *)at + 1;
		unsigned long host = begins ? strtoul(at + 5, &end, 10) : MAX_NODES;

		n += (size_t)snprintf(out + n, bytes - n, "%.*s", (int)(end - at), at);
		if (host < MAX_NODES && names->name[host][0] && n < bytes && strncmp(end, " (", 2))
			n += (size_t)snprintf(out + n, bytes - n, " (%s)", names->name[host]);
		at = end;
	}
	out[n < bytes ? n : bytes - 1] = 0;
}
