/* standby_orders.c - the orders of a machine's owner to a standby, as text: printed and read, too
 * long, wrong, damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/wire.h"
#include "tests/unit/standby.h"
#include "vmm/cli/standby/orders.h"

static struct problem p;

static struct orders orders, again;
static char text[MAX_ORDERS + 100];

static void add_host(const char *line)
{
	struct cluster_file file;

	CU_ASSERT_EQUAL_FATAL(cluster_file_parse(&file, line, strlen(line), &p), 0);
	orders.hosts.host[orders.hosts.n++] = file.host[0];
}

static void fill_orders(void)
{
	orders = (struct orders){ .name = "lab",
				  .id = "0123456789abcdef",
				  .votes = "fedcba9876543210",
				  .host = "b",
				  .machine = { .engine = ENGINE_DIRECT,
					       .policy = POLICY_AUTO,
					       .strict = true,
					       .verbose = true,
					       .mem_mib = 256,
					       .host_mem_mib = 100,
					       .checkpoint_ms = 5000 },
				  .vendor = "GenuineIntel",
				  .peers = "yes",
				  .features = "0:1:2" };
	add_host("localhost user=u");
	add_host("b port=22 phoenix=\"dest a:30000 ssh u\" phoenix=\"listen_port 30000\"");
}

static bool come_back(void)
{
	static char back[sizeof text];
	size_t n = orders_print(&orders, text, sizeof text);

	if (n >= sizeof text || orders_parse(&again, text, n, &p)) {
		printf("\n    %s\n", p.line);
		return false;
	}
	orders_print(&again, back, sizeof back);
	return !strcmp(text, back) && !strcmp(orders.name, again.name) &&
	       !strcmp(orders.id, again.id) && !strcmp(orders.votes, again.votes) &&
	       !strcmp(orders.host, again.host) &&
	       !strcmp(orders.peers, again.peers) &&
	       !strcmp(orders.vendor, again.vendor) && !strcmp(orders.features, again.features) &&
	       !memcmp(&orders.machine, &again.machine, sizeof again.machine) &&
	       orders.hosts.n == again.hosts.n;
}

static void orders_come_back(void)
{
	size_t n;
	char little[100], line[20];

	fill_orders();
	CU_ASSERT(come_back());
	n = orders_print(&orders, text, sizeof text);
	CU_ASSERT_EQUAL(orders_print(&orders, NULL, 0), n);
	memset(little, 'x', sizeof little);
	CU_ASSERT_EQUAL(orders_print(&orders, little, sizeof little - 1), n);
	CU_ASSERT(!memcmp(little, text, sizeof little - 2) && !little[sizeof little - 2] &&
		  little[sizeof little - 1] == 'x');
	orders.machine.strict = orders.machine.verbose = false;
	orders.machine.host_mem_mib = orders.machine.checkpoint_ms = 0;
	orders.machine.policy = 0;
	orders.vendor[0] = orders.features[0] = orders.id[0] = 0;
	CU_ASSERT(come_back());
	orders.machine.checkpoint_ms = 3600000;
	memset(orders.name, 'n', sizeof orders.name - 1);
	memset(orders.id, '9', sizeof orders.id - 1);
	memset(orders.features, 'f', sizeof orders.features - 1);
	CU_ASSERT(come_back());
	while (orders.hosts.n < MAX_NODES) {
		snprintf(line, sizeof line, "h%u", orders.hosts.n);
		add_host(line);
	}
	CU_ASSERT(come_back());
}

/* the longest possible orders */
static void the_longest_orders_fit(void)
{
	fill_orders();
	for (orders.hosts.n = 0; orders.hosts.n < MAX_NODES; orders.hosts.n++) {
		struct cluster_host *h = &orders.hosts.host[orders.hosts.n];

		*h = (struct cluster_host){ .port = 65535,
					    .cpus = MAX_CPUS,
					    .memory_mib = MAX_RAM_MIB,
					    .n_phoenix = MAX_PHOENIX_LINES };
		memset(h->name, 'h', sizeof h->name - 1);
		snprintf(h->name + sizeof h->name - 3, 3, "%02u", orders.hosts.n);
		memset(h->user, 'u', sizeof h->user - 1);
		for (unsigned i = 0; i < MAX_PHOENIX_LINES; i++)
			memset(h->phoenix[i], ' ', sizeof h->phoenix[i] - 1);
	}
	strcpy(orders.host, orders.hosts.host[MAX_NODES - 1].name);
	for (size_t i = 0; i < 3; i++) {
		static char *const fields[] = { orders.name, orders.vendor, orders.features };
		static const size_t room[] = { MAX_NAME, MAX_ORDER, MAX_ORDER };

		memset(fields[i], 'f', room[i] - 1);
	}
	CU_ASSERT(come_back());
	CU_ASSERT(orders_print(&orders, NULL, 0) < MAX_ORDERS);
}

static const char *complaint_of(const char *from, size_t n)
{
	char *copy = malloc(n ? n : 1);

	memcpy(copy, from, n);
	p.line[0] = 0;
	if (!orders_parse(&again, copy, n, &p))
		strcpy(p.line, "nothing");
	free(copy);
	return p.line;
}

static void wrong_orders(void)
{
#define GOOD "name lab\nvotes 0123\nengine direct\nmem 64\nhost b\n"
#define HOSTS "hosts\na\nb\n"
	/* 97 */
	static const char long_word[] = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
					"fffffffffffffffffffffffffffffffffffffff";
	static const struct { const char *text, *complaint;
	} wrong[] = {
		{ GOOD HOSTS, "nothing" },
		{ "", "name no hosts" },
		{ GOOD, "name no hosts" },
		{ GOOD "hosts", "name no hosts" },
		{ "\n" GOOD HOSTS, "says nothing: " },
		{ GOOD "nam x\n" HOSTS, "says nothing: nam x" },
		{ GOOD "name\n" HOSTS, "says nothing: name" },
		{ GOOD "names x\n" HOSTS, "says nothing: names x" },
		{ GOOD " name x\n" HOSTS, "says nothing:  name x" },
		{ GOOD "hosts \na\nb\n", "says nothing: hosts " },
		{ GOOD "host\nb\n" HOSTS, "says nothing: host" },
		{ "0123456789012345678901234567890123456789abc\n" HOSTS,
		  "says nothing: 0123456789012345678901234567890123456789" },
		{ GOOD "mem\t64\n" HOSTS, "says nothing: mem" },
		{ GOOD "mem \n" HOSTS, "--mem: its value is missing" },
		{ GOOD "mem -1\n" HOSTS, "--mem -1: not a size" },
		{ GOOD "mem +1\n" HOSTS, "--mem +1: not a size" },
		{ GOOD "mem  1\n" HOSTS, "--mem  1: not a size" },
		{ GOOD "mem 0x40\n" HOSTS, "--mem 0x40: not a size" },
		{ GOOD "mem 64 \n" HOSTS, "--mem 64 : not a size" },
		{ GOOD "mem 4294967296\n" HOSTS, "--mem 4294967296: too large" },
		{ GOOD "checkpoint 99999999999999\n" HOSTS,
		  "--checkpoint 99999999999999: too large" },
		{ GOOD "strict 2\n" HOSTS, "--strict takes no value" },
		{ GOOD "verbose yes\n" HOSTS, "--verbose takes no value" },
		{ GOOD "mem 31\n" HOSTS, "--mem 31: too small" },
		{ GOOD "mem 16385\n" HOSTS, "--mem 16385: too large" },
		{ GOOD "policy slow\n" HOSTS, "--policy slow: no such policy" },
		{ GOOD "cpus 1\n" HOSTS, "says nothing: cpus 1" },
		{ GOOD "disk d\n" HOSTS, "says nothing: disk d" },
		{ GOOD "name \n" HOSTS, "describe no machine" },
		{ GOOD "engine \n" HOSTS, "--engine: its value is missing" },
		{ "name lab\nhost b\n" HOSTS, "describe no machine" },
		{ "name lab\nengine direct\nhost b\n" HOSTS, "describe no machine" },
		{ GOOD "mem 32\n" HOSTS, "nothing" },
		{ GOOD "mem 16384\n" HOSTS, "nothing" },
		{ GOOD "id 0123456789abcdef0\n" HOSTS, "too long a word after id" },
		{ GOOD "votes 0123456789abcdef0\n" HOSTS, "too long a word after votes" },
		{ GOOD "host a\n" HOSTS, "no host a besides the first" },
		{ GOOD "host c\n" HOSTS, "no host c besides the first" },
		{ GOOD "host \n" HOSTS, "no host  besides the first" },
		{ GOOD "hosts\n", "hosts: 1:1: there is no host" },
		{ GOOD "hosts\na\na\n", "hosts: 2:1: host a stands in line 1 already" },
		{ GOOD "hosts\na\nb;reboot\n", "hosts: 2:1: 'b;reboot' is no host's name" },
	};
	char line[300];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *complaint = complaint_of(wrong[i].text, strlen(wrong[i].text));

		CU_ASSERT_PTR_NOT_NULL(strstr(complaint, wrong[i].complaint));
		if (!strstr(complaint, wrong[i].complaint))
			printf("\n    %s: %s\n", wrong[i].text, complaint);
	}
	for (int n = 95; n <= 97; n++) { /* room for 95 */
		snprintf(line, sizeof line, GOOD "vendor %.*s\n" HOSTS, n, long_word);
		CU_ASSERT_EQUAL(!strcmp(complaint_of(line, strlen(line)), "nothing"), n == 95);
	}
	for (int n = MACHINE_VALUE - 2; n <= MACHINE_VALUE; n++) {
		snprintf(line, sizeof line, GOOD "mem %0*u\n" HOSTS, n, 64);
		CU_ASSERT_EQUAL(!strcmp(complaint_of(line, strlen(line)), "nothing"),
				n < MACHINE_VALUE);
	}
}

/* Text that is cut, or has one byte changed: if it is accepted as orders, they are legal ones. */
static void damaged_orders(void)
{
	bool bounded = true, short_is_wrong = true;
	size_t n, hosts;

	fill_orders();
	n = orders_print(&orders, text, sizeof text);
	hosts = (size_t)(strstr(text, "hosts\n") - text) + 6;
	for (size_t cut = 0; cut < n; cut++)
		short_is_wrong &= cut > hosts || strcmp(complaint_of(text, cut), "nothing");
	CU_ASSERT(short_is_wrong);
	for (size_t at = 0; at < n; at++)
		for (unsigned change = 1; change < 256; change++) {
			text[at] ^= (char)change;
			if (!strcmp(complaint_of(text, n), "nothing"))
				bounded &= memchr(again.name, 0, sizeof again.name) &&
					   memchr(again.id, 0, sizeof again.id) &&
					   again.hosts.n > 1 && again.hosts.n <= MAX_NODES &&
					   again.machine.mem_mib <= MAX_RAM_MIB;
			text[at] ^= (char)change;
		}
	CU_ASSERT(bounded);
}

const struct unit_test tests_of_orders[] = {
	{ "orders come back", orders_come_back },
	{ "the longest orders fit", the_longest_orders_fit },
	{ "wrong orders", wrong_orders },
	{ "damaged orders", damaged_orders },
	UNIT_END
};
