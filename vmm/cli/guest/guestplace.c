/* guestplace.c - see guestplace.h. */
#include "vmm/cli/guest/guestplace.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ZONE_BYTES = 65536 }; /* the largest known has 4 KiB */

/* Returns the path of the time zone's file, or "" if the name is not allowed. */
static const char *zone_path(const char *root, char *path, size_t bytes)
{
	const char *zone = getenv("TZ");

	if (zone && *zone == ':')
		zone++;
	if (!zone || !*zone)
		snprintf(path, bytes, "%s/etc/localtime", root);
	else if (*zone == '/')
		snprintf(path, bytes, "%s%s", root, zone);
	else if (strstr(zone, ".."))
		*path = 0;
	else
		snprintf(path, bytes, "%s/usr/share/zoneinfo/%s", root, zone);
	return path;
}

/* Copies this computer's time zone, a tzfile(5), to the guest's /etc/localtime.  Without one, both
 * have UTC. */
static void add_zone(struct initramfs *archive, const char *root)
{
	static char zone[ZONE_BYTES];
	char path[PATH_MAX];
	int fd = open(zone_path(root, path, sizeof path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, zone, sizeof zone);

	if (fd >= 0)
		close(fd);
	if (n > 4 && n < ZONE_BYTES && !memcmp(zone, "TZif", 4))
		initramfs_add_bytes(archive, "/etc/localtime", 0644, zone, (size_t)n);
}

/* Returns the guest's host name: by default the machine's name, if a host can have that name. */
static const char *host_name(const struct options *o)
{
	if (o->hostname)
		return o->hostname;
	return o->name && !strpbrk(o->name, "_.") && o->name[strlen(o->name) - 1] != '-' ? o->name
											 : "vmp";
}

static void add_host_name(struct initramfs *archive, const char *name)
{
	char text[3 * MAX_NAME + 64];
	int n = snprintf(text, sizeof text, "%s\n", name);

	initramfs_add_bytes(archive, "/etc/hostname", 0644, text, (size_t)n);
	/* The first name of a line is the full one, as `hostname -f` prints it. */
	n = snprintf(text, sizeof text, "127.0.0.1\tlocalhost\n127.0.1.1\t%s", name);
	if (strchr(name, '.'))
		n += snprintf(text + n, sizeof text - (size_t)n, " %.*s", (int)strcspn(name, "."),
			      name);
	n += snprintf(text + n, sizeof text - (size_t)n, "\n");
	initramfs_add_bytes(archive, "/etc/hosts", 0644, text, (size_t)n);
}

const char *guestplace_folder(const struct options *o)
{
	if (o->workdir)
		return o->workdir;
	if (o->share)
		return "/share";
	return *o->root_device ? "/" : o->user ? "" : "/root";
}

const char *guestplace_language(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]), *charset = value ? strchr(value, '.') : NULL;

		if (value && *value) /* the first variable that is set counts */
			return charset && (!strncasecmp(charset, ".UTF-8", 6) ||
					   !strncasecmp(charset, ".utf8", 5))
				       ? "LANG=C.UTF-8"
				       : NULL;
	}
	return NULL;
}

void guestplace_add(struct initramfs *archive, const struct options *o, const char *root)
{
	const char *folder = guestplace_folder(o);

	initramfs_add_bytes(archive, "/vmp/cwd", 0644, folder, strlen(folder) + 1);
	if (o->workdir)
		initramfs_add_bytes(archive, "/vmp/workdir", 0644, "", 0);
	if (o->user)
		initramfs_add_bytes(archive, "/vmp/user", 0644, o->user, strlen(o->user) + 1);
	if (strcmp(host_name(o), "vmp"))
		add_host_name(archive, host_name(o));
	add_zone(archive, root);
}
