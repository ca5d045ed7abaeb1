/* guest_user.c - who the guest's command, shell or `vmp exec` runs as: a user of the tables in the
 * guest's /etc, or a number.
 */
#include "guest/guest.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fields of a line of /etc/passwd; some may be empty. */
enum { PASSWD_NAME, PASSWD_UID = 2, PASSWD_GID, PASSWD_HOME = 5, PASSWD_FIELDS };
/* The same of /etc/group; the members have commas between them. */
enum { GROUP_GID = 2, GROUP_MEMBERS, GROUP_FIELDS };
enum { MOST_GROUPS = 64 };

static bool split_line(char *line, char **field, unsigned fields)
{
	line[strcspn(line, "\n")] = 0;
	for (unsigned i = 0; i < fields; i++) {
		field[i] = strsep(&line, ":");
		if (!field[i])
			return false;
	}
	return true;
}

/* Fills in what the line of /etc/passwd says that has this name or, without a name, this number. */
static bool find_user(struct user *user, const char *name, uid_t uid)
{
	FILE *table = fopen("/etc/passwd", "re");
	bool found = false;
	char line[256], *field[PASSWD_FIELDS];

	while (table && !found && fgets(line, sizeof line, table)) {
		if (!split_line(line, field, PASSWD_FIELDS))
			continue;
		found = name ? !strcmp(field[PASSWD_NAME], name)
			     : strtoul(field[PASSWD_UID], NULL, 10) == uid;
		if (!found)
			continue;
		*user = (struct user){ .uid = (uid_t)strtoul(field[PASSWD_UID], NULL, 10),
				       .gid = (gid_t)strtoul(field[PASSWD_GID], NULL, 10) };
		snprintf(user->home, sizeof user->home, "%s", field[PASSWD_HOME]);
		snprintf(user->name, sizeof user->name, "%s", field[PASSWD_NAME]);
	}
	if (table)
		fclose(table);
	return found;
}

/* A number need not be in the table. */
void user_of_text(struct user *user, const char *text)
{
	char *end, *colon;
	unsigned long uid;

	*user = (struct user){ .name = "root", .home = "/root" };
	if (!*text)
		return;
	uid = strtoul(text, &end, 10);
	if (end == text) {
		if (!find_user(user, text, 0)) {
			user->unknown = true;
			snprintf(user->name, sizeof user->name, "%.63s", text);
		}
		return;
	}
	colon = *end == ':' ? end : NULL;
	if (!find_user(user, NULL, (uid_t)uid)) {
		*user = (struct user){ .uid = (uid_t)uid, .gid = (gid_t)uid, .home = "/" };
		snprintf(user->name, sizeof user->name, "%lu", uid);
	}
	if (colon) {
		user->gid = (gid_t)strtoul(colon + 1, NULL, 10);
		user->gid_given = true;
	}
}

/* Takes `members` apart, which are names with commas between them. */
static bool is_member(char *members, const char *name)
{
	char *member;

	while ((member = strsep(&members, ",")))
		if (!strcmp(member, name))
			return true;
	return false;
}

/* Returns how many groups of /etc/group have the user as a member: none if the group was given. */
static size_t read_groups(const struct user *user, gid_t groups[MOST_GROUPS])
{
	FILE *table = user->gid_given ? NULL : fopen("/etc/group", "re");
	char *line = NULL, *field[GROUP_FIELDS];
	size_t n = 0, bytes = 0;

	while (table && n < MOST_GROUPS && getline(&line, &bytes, table) > 0)
		if (split_line(line, field, GROUP_FIELDS) &&
		    is_member(field[GROUP_MEMBERS], user->name))
			groups[n++] = (gid_t)strtoul(field[GROUP_GID], NULL, 10);
	free(line);
	if (table)
		fclose(table);
	return n;
}

/* Last of all: what it shall be given is open. */
void become(const struct user *user)
{
	gid_t groups[MOST_GROUPS];

	if (user->unknown) {
		fprintf(stderr, "init: the guest has no user %s\n", user->name);
		_exit(STATUS_CANNOT_EXECUTE);
	}
	if (!user->uid && !user->gid)
		return;
	if (setgroups(read_groups(user, groups), groups) || setgid(user->gid) ||
	    setuid(user->uid)) {
		complain("cannot become", user->name);
		_exit(STATUS_CANNOT_EXECUTE);
	}
}
