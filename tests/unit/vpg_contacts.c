/* vpg_contacts.c - vpg/peer/network.c: the file of contacts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vpg/peer/network.h"

static char folder[] = "/tmp/vmp-unit.XXXXXX", path[64], last[300];
static unsigned contacts;
static struct why why;

static void on_contact(void *arg, const char *host, unsigned port, bool ssh, const char *user)
{
	(void)arg;
	snprintf(last, sizeof last, "%s %u%s%s", host, port, ssh ? " ssh " : "", user ? user : "");
	contacts++;
}

/* Returns how many contacts there are. */
static unsigned counts(void)
{
	contacts = 0;
	network_each_contact(folder, on_contact, NULL);
	return contacts;
}

static int adds(const char *host, unsigned port, const char *user)
{
	return network_add_contact(folder, host, port, user, user != NULL, &why);
}

static void each_stands_once(void)
{
	CU_ASSERT(counts() == 0 && !adds("myhost", 7000, NULL) && counts() == 1);
	/* the end of the other one's line */
	CU_ASSERT(!adds("host", 7000, NULL) && counts() == 2);
	CU_ASSERT_STRING_EQUAL(last, "host 7000");
	CU_ASSERT(!adds("host", 7000, NULL) && !adds("myhost", 7000, NULL) && counts() == 2);
	CU_ASSERT(!adds("host", 7000, "me") && counts() == 3);
	CU_ASSERT_STRING_EQUAL(last, "host 7000 ssh me");
	CU_ASSERT_EQUAL(adds("a b", 7000, NULL), -1);
}

static void a_full_file(void)
{
	char host[254];

	memset(host, 'h', sizeof host - 1);
	host[sizeof host - 1] = 0;
	for (unsigned port = 1; port < 1000 && !adds(host, port, NULL); port++)
		;
	CU_ASSERT_PTR_NOT_NULL(strstr(why.line, "/contacts is full"));
	CU_ASSERT(counts() > 200);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "each contact stands once", each_stands_once },
		{ "a full file", a_full_file },
		UNIT_END
	};
	int status;

	if (!mkdtemp(folder))
		return 1;
	status = UNIT_RUN("vpg_contacts", tests);
	snprintf(path, sizeof path, "%s/contacts", folder);
	unlink(path);
	return rmdir(folder) || status;
}
