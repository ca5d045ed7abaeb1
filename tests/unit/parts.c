/* parts.c - tests of a checkpoint in parts (vmm/cli/parts/): each cell of parts_layout.c; then real
 * holders, `vmp hold`, for which a script stands in for ssh.  After any sequence of checkpoints,
 * whole, of changes, or abandoned, with holders that die, stop or come at any time, the parts are
 * the last checkpoint that was committed, byte for byte; or parts_check() says what is lost.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/cli/client.h"
#include "vmm/cli/parts/parts_layout.h"
#include "vmm/cli/parts/parts.h"

enum { PAGES = 4000, BLOCKS = 300, ALL = PAGES + BLOCKS, HOSTS = 4, MIB = 64 };

static struct problem p;
static unsigned random_state = 1;

static unsigned random_below(unsigned n)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 8) % n;
}

/* ---- the layout ---- */

static void each_record_has_two(void)
{
	bool right = true;

	for (uint32_t n = 1; n <= MAX_NODES; n++)
		for (uint32_t index = 0; index < 5000; index += 61) {
			struct snapfile_record record = { SNAPSHOT_PAGE, index, 4096 };
			unsigned holders = 0, first = layout_first(n, &record);

			for (unsigned i = 0; i < n; i++)
				holders += layout_has(n, i, &record);
			right &= first < n && holders == (n == 1 ? 1 : 2) &&
				 layout_has(n, first, &record);
		}
	CU_ASSERT(right);
}

/* All sets of living holders of layouts of up to eight. */
static void who_gives(void)
{
	bool right = true;

	for (uint32_t n = 1; n <= 8; n++)
		for (uint32_t alive = 0; alive < 1u << n; alive++) {
			unsigned nobody = 0, lost = 99;
			bool whole = layout_is_whole(n, alive, &lost);

			for (uint32_t run = 0; run < n; run++) {
				struct snapfile_record record = { SNAPSHOT_PAGE, run * LAYOUT_RUN,
								  4096 };
				unsigned giver = layout_giver(n, alive, &record);

				nobody += giver == LAYOUT_NOBODY;
				right &= giver == LAYOUT_NOBODY ||
					 (alive >> giver & 1 && layout_has(n, giver, &record));
			}
			right &= whole == !nobody;
			right &= whole || (!(alive >> lost & 1) && !(alive >> (lost + 1) % n & 1));
		}
	CU_ASSERT(right);
}

/* ---- holders ---- */

/* A page or block consists of one byte value; 0: zero, or not there. */
struct model { uint8_t at[ALL]; };
static struct model kept, comes;

static struct parts parts;
static struct event_base *base;
static unsigned sealed, lost, needed;
static struct problem why;
static uint32_t present; /* bit set of the machine's hosts */

static void on_room(void *context) { (void)context; }
static void on_sealed(void *context) { sealed++, (void)context; }
static void on_lost(void *context, const struct cluster_host *host, const char *line, bool is)
{
	(void)context, (void)host;
	lost++;
	needed += is;
	problem(&why, "%s", line);
}

static bool is_present(void *context, const char *host)
{
	(void)context;
	return present >> (host[0] - 'a') & 1;
}

static struct snapfile_record record_of(unsigned i, uint8_t value)
{
	struct snapfile_record record = { SNAPSHOT_PAGE, i, value ? 4096 : 0 };

	if (i >= PAGES)
		record = (struct snapfile_record){ SNAPSHOT_BLOCK,
						   2u << SNAPSHOT_DISK_SHIFT | (i - PAGES),
						   i == ALL - 1 ? 512 : 4096 };
	return record;
}

static void once(void) { event_base_loop(base, EVLOOP_ONCE); }

static void hold(unsigned host, uint32_t mib)
{
	struct cluster_host line = { .name = { (char)('a' + host) } };

	present |= 1u << host;
	CU_ASSERT_EQUAL_FATAL(parts_hold(&parts, &line, "hash", mib, &p), 0);
}

static void hold_all(unsigned hosts)
{
	for (unsigned host = 0; host < hosts; host++)
		hold(host, 1);
	while (!parts_are_ready(&parts))
		once();
}

static pid_t process_of(unsigned host)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts.holder[i].state != HOLDER_OFF &&
		    parts.holder[i].host.name[0] == (char)('a' + host))
			return parts.holder[i].ssh.pid;
	return 0;
}

static void kill_holder(unsigned host)
{
	unsigned before = lost;

	kill(process_of(host), SIGKILL);
	while (lost == before)
		once();
}

/* Adds a checkpoint's records. */
static void add(bool changes)
{
	comes = kept;
	if (!changes)
		memset(&comes, 0, sizeof comes);
	parts_begin(&parts, changes);
	for (unsigned i = 0; i < ALL; i++) {
		uint8_t data[4096], value = i < PAGES ? random_below(4) : 1 + random_below(200);
		struct snapfile_record record = record_of(i, value);

		if (random_below(changes ? 10 : 2) || (!changes && !value))
			continue;
		memset(data, value, sizeof data);
		comes.at[i] = value;
		parts_add(&parts, &record, data);
		while (parts_is_full(&parts) && !lost)
			once();
	}
}

static void compare(void)
{
	static struct model got;
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;
	bool whole = true;
	int result;

	memset(&got, 0, sizeof got);
	CU_ASSERT_EQUAL_FATAL(parts_check(&parts, &p), 0);
	parts_read(&parts);
	while ((result = parts_next(&parts, &record, data))) {
		unsigned i = record.kind == SNAPSHOT_PAGE
				     ? record.index
				     : PAGES + (record.index & SNAPSHOT_BLOCK_MASK);

		if (result == PARTS_LATER) {
			once();
			continue;
		}
		CU_ASSERT_FATAL(i < ALL);
		whole &= !got.at[i] && record.bytes == record_of(i, 1).bytes &&
			 record.index == record_of(i, 1).index;
		whole &= !memcmp(data, data + 1, record.bytes - 1);
		got.at[i] = data[0];
	}
	CU_ASSERT(whole);
	CU_ASSERT(!memcmp(&got, &kept, sizeof got));
}

static void seal_and_commit(void)
{
	unsigned before = sealed, lost_before = lost;

	parts_seal(&parts);
	while (sealed == before && lost == lost_before)
		once();
	CU_ASSERT_EQUAL_FATAL(lost, lost_before);
	parts_commit(&parts);
	kept = comes;
	CU_ASSERT(!parts_are_ready(&parts));
	if (random_below(2))
		compare();
	parts_forget_before(&parts);
}

/* `id`: of the machine; "": it has one owner. */
static void open_as(const char *id)
{
	base = client_new_loop();
	sealed = lost = needed = present = 0;
	parts = (struct parts){ .base = base, .loop = loop_on_event_base(base), .look_ms = 50,
				.log_fd = -1, .has_room = on_room, .sealed = on_sealed,
				.has_more = on_room, .lost = on_lost };
	snprintf(parts.id, sizeof parts.id, "%s", id);
	parts.lingers = *id;
	CU_ASSERT_EQUAL_FATAL(parts_open(&parts), 0);
}

static void open_all(void)
{
	memset(&kept, 0, sizeof kept);
	open_as("");
}

static void close_all(void)
{
	parts_end(&parts);
	parts_close(&parts);
	event_base_free(base);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void a_checkpoint_follows_another(void)
{
	for (unsigned hosts = 1; hosts <= HOSTS; hosts++) {
		open_all();
		CU_ASSERT(!parts_are_ready(&parts) && parts_check(&parts, &p));
		hold_all(hosts);
		CU_ASSERT(!parts_stay(&parts));
		for (unsigned round = 0; round < 8; round++) {
			bool changes = round && random_below(4);

			add(changes);
			if (round && !random_below(3))
				parts_abandon(&parts);
			else
				seal_and_commit();
			CU_ASSERT(parts_stay(&parts));
			if (random_below(2))
				compare();
		}
		compare();
		CU_ASSERT_EQUAL(lost, 0);
		close_all();
	}
}

/* Any one may be lost, and, of four, two that are no neighbours. */
static void one_is_lost(void)
{
	for (unsigned host = 0; host < HOSTS; host++) {
		open_all();
		hold_all(HOSTS);
		add(false);
		seal_and_commit();
		kill_holder(host);
		CU_ASSERT(!needed && !parts_stay(&parts));
		compare();
		kill_holder((host + 2) % HOSTS);
		compare();
		add(false); /* on the others */
		seal_and_commit();
		compare();
		close_all();
	}
}

static void two_neighbours_are_lost(void)
{
	open_all();
	hold_all(HOSTS);
	add(false);
	seal_and_commit();
	kill_holder(1);
	kill_holder(2);
	CU_ASSERT(parts_check(&parts, &p) && strstr(p.line, "b and c, which are both lost"));
	close_all();
}

/* A holder dies while a checkpoint comes: the one before is still there. */
static void lost_meanwhile(void)
{
	open_all();
	hold_all(HOSTS);
	add(false);
	seal_and_commit();
	add(true);
	kill_holder(1);
	CU_ASSERT_EQUAL(needed, 1);
	parts_abandon(&parts);
	compare();
	add(false);
	parts_seal(&parts);
	kill_holder(2);
	CU_ASSERT_EQUAL(needed, 2);
	parts_abandon(&parts);
	CU_ASSERT(parts_check(&parts, &p));
	close_all();
}

/* While it is read, another one dies: it can be read again, from the others. */
static void lost_while_it_is_read(void)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;

	open_all();
	hold_all(HOSTS);
	add(false);
	seal_and_commit();
	parts_read(&parts);
	while (parts_next(&parts, &record, data) != 1)
		once();
	kill(process_of(3), SIGKILL);
	for (int result = 1; result && !lost;)
		if ((result = parts_next(&parts, &record, data)) == PARTS_LATER)
			once();
	while (!lost)
		once();
	compare();
	parts_read(&parts); /* and given up */
	parts_abandon(&parts);
	compare();
	add(false);
	seal_and_commit();
	compare();
	close_all();
}

/* One that stands still is given up. */
static void silent_holder(void)
{
	pid_t pid;

	open_all();
	hold_all(3);
	add(false);
	seal_and_commit();
	pid = process_of(1);
	kill(pid, SIGSTOP);
	add(true);
	parts_seal(&parts);
	while (!lost)
		once();
	CU_ASSERT(needed == 1 && strstr(why.line, "nothing was heard"));
	parts_abandon(&parts);
	compare();
	kill(pid, SIGKILL);
	close_all();
}

/* Hosts come and go: what the last checkpoint needs stays until the next one. */
static void hosts_come_and_go(void)
{
	open_all();
	hold_all(3);
	add(false);
	seal_and_commit();
	hold(3, 1);
	while (!parts_are_ready(&parts))
		once();
	CU_ASSERT(!parts_stay(&parts));
	present &= ~1u;
	parts_retire(&parts, is_present);
	CU_ASSERT(process_of(0) && !parts_has(&parts, "a") && parts_has(&parts, "d"));
	compare();
	add(false);
	CU_ASSERT(process_of(0));
	seal_and_commit();
	while (process_of(0))
		once();
	CU_ASSERT_EQUAL(lost, 0);
	compare();
	present &= ~2u;
	parts_lose(&parts, is_present);
	CU_ASSERT(!process_of(1) && !lost);
	compare();
	close_all();
}

/* The owner is lost, and another one adopts the parts; with `late`, one that has heard of the
 * checkpoint before the last one, and with `sealed`, before the owner has made it the last one. */
static void adopt(bool late, bool is_sealed)
{
	char id[PRESENCE_ID + 1], text[HOSTS * 8];
	struct model before;
	uint32_t number;

	snprintf(id, sizeof id, "%x", (unsigned)getpid() * 8 + 4 * late + 2 * is_sealed);
	memset(&kept, 0, sizeof kept);
	open_as(id);
	hold_all(HOSTS);
	add(false);
	seal_and_commit();
	add(true);
	seal_and_commit();
	number = parts_print(&parts, text, sizeof text);
	before = kept;
	if (late || is_sealed) {
		unsigned sealed_before = sealed;

		add(true);
		parts_seal(&parts);
		while (sealed == sealed_before)
			once();
	}
	if (late) {
		parts_commit(&parts);
		kept = comes;
	}
	parts_close(&parts);
	event_base_free(base);

	open_as(id);
	kept = before;
	parts_adopt(&parts, number, text);
	CU_ASSERT(parts_check(&parts, &p) && parts_lacks(&parts, "c"));
	for (unsigned host = 1; host < HOSTS; host++)
		hold(host, 1);
	while (parts_settle(&parts))
		once();
	CU_ASSERT(parts_lacks(&parts, "a") && !parts_lacks(&parts, "c"));
	compare();
	hold(0, 1);
	while (parts_settle(&parts))
		once();
	add(false);
	seal_and_commit();
	compare();
	close_all();
}

static void another_owner_adopts_them(void)
{
	adopt(false, false);
	adopt(false, true);
	adopt(true, true);
}

static void too_little_memory(void)
{
	open_all();
	hold(0, ~0u);
	while (!lost)
		once();
	CU_ASSERT_PTR_NOT_NULL(strstr(why.line, "its part of the checkpoint needs 4294967295 MiB"));
	CU_ASSERT(!needed && !parts_are_ready(&parts));
	close_all();
}

static const char script[] =
	"#!/bin/sh\n"
	"exec \"$VMP_HOLDER\" hold 2>/dev/null\n";

static char path[] = "/tmp/vmp-unit-ssh.XXXXXX";

static int stand_in_for_ssh(void)
{
	char vmp[4096], *end;
	ssize_t n = readlink("/proc/self/exe", vmp, sizeof vmp - 16);
	int fd = mkstemp(path);
	bool written = fd >= 0 && write(fd, script, sizeof script - 1) == sizeof script - 1 &&
		       !fchmod(fd, 0700);

	close(fd);
	vmp[n < 0 ? 0 : n] = 0;
	end = strstr(vmp, "/tests/unit/");
	if (!written || !end)
		return -1;
	strcpy(end, "/vmp");
	return setenv("VMP_SSH", path, 1) || setenv("VMP_HOLDER", vmp, 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "each record has two holders", each_record_has_two },
		{ "one that lives gives it", who_gives },
		{ "a checkpoint follows another", a_checkpoint_follows_another },
		{ "one is lost", one_is_lost },
		{ "two neighbours are lost", two_neighbours_are_lost },
		{ "one is lost meanwhile", lost_meanwhile },
		{ "one is lost while it is read", lost_while_it_is_read },
		{ "one stands still", silent_holder },
		{ "hosts come and go", hosts_come_and_go },
		{ "another owner adopts them", another_owner_adopts_them },
		{ "too little memory", too_little_memory },
		UNIT_END
	};
	int result;

	signal(SIGPIPE, SIG_IGN);
	result = stand_in_for_ssh() ? 1 : UNIT_RUN("parts", tests);

	unlink(path);
	return result;
}
