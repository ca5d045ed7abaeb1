/* checkpoint.c - tests of what a machine goes back to (vmm/cli/snapshot/kept.c): after any sequence
 * of whole checkpoints and changes, some of them abandoned, it is the last committed one, byte for
 * byte.  Then its way into the hosts' memory (vmm/cli/snapshot/load.c).  Then the streams of such a
 * machine (vmm/cli/streams.c): each byte of output is written once and each byte of input arrives
 * once, however often the machine goes back.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/cli/snapshot/checkpoint.h"
#include "vmm/cli/snapshot/load.h"
#include "vmm/shared/ram.h"
#include "vmm/cli/streams.h"

enum { MIB = 64, PAGES = MIB << 8, DISKS = 2, BLOCKS = 64, ROUNDS = 40 };

static struct problem p;
static unsigned random_state = 1;

static unsigned random_below(unsigned n)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 8) % n;
}

/* ---- the kept checkpoint ---- */

/* A page consists of one byte value; 0: zero. */
struct model { uint8_t page[PAGES], block[DISKS][BLOCKS], cpu; };

static int put(struct kept *k, uint32_t kind, uint32_t index, const void *data, uint32_t bytes)
{
	return kept_add(k, &(struct snapfile_record){ kind, index, bytes }, data, &p);
}

static int put_filled(struct kept *k, uint32_t kind, uint32_t index, uint8_t value)
{
	uint8_t data[PAGE_BYTES];

	memset(data, value, sizeof data);
	return put(k, kind, index, data, value || kind != SNAPSHOT_PAGE ? PAGE_BYTES : 0);
}

static void put_machine(struct kept *k, uint8_t cpu)
{
	const struct snapshot_machine machine = { .machine = "hosts 2\ncpus 1\nmem 64M\n",
						  .clock_ns = cpu };
	struct snapshot_disk disk = { .bytes = BLOCKS * PAGE_BYTES, .mode = 2, .path = "/d" };
	uint8_t described[MAX_MSG_PAYLOAD];

	CU_ASSERT_EQUAL(put(k, SNAPSHOT_MACHINE, 0, described,
			    saved_describe(&machine, "line", "/k", described)),
			0);
	CU_ASSERT_EQUAL(put(k, SNAPSHOT_CPU, 0, &cpu, 1), 0);
	CU_ASSERT_EQUAL(put(k, SNAPSHOT_CHIP, 0, &cpu, 1), 0);
	for (unsigned i = 0; i < DISKS; i++)
		CU_ASSERT_EQUAL(put(k, SNAPSHOT_DISK, i, &disk, sizeof disk), 0);
}

static uint32_t block_index(uint32_t disk, uint32_t block)
{
	return disk << SNAPSHOT_DISK_SHIFT | block;
}

static void put_contents(struct kept *k, struct model *m, bool changes)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (!changes || !random_below(20)) {
			m->page[i] = random_below(3);
			/* now and then two hosts send it */
			for (unsigned times = m->page[i] || changes ? 1 + !random_below(30) : 0;
			     times; times--)
				CU_ASSERT_EQUAL(put_filled(k, SNAPSHOT_PAGE, i, m->page[i]), 0);
		}
	for (unsigned i = 0; i < DISKS * BLOCKS; i++) {
		uint32_t disk = i / BLOCKS, block = i % BLOCKS;

		if (!random_below(8)) {
			m->block[disk][block] = 1 + random_below(200);
			CU_ASSERT_EQUAL(put_filled(k, SNAPSHOT_BLOCK, block_index(disk, block),
						   m->block[disk][block]),
					0);
		} else if (!changes) {
			m->block[disk][block] = 0;
		}
	}
}

static void compare(const struct kept *k, const struct model *m)
{
	struct kept_cursor cursor = { 0 };
	struct snapfile_record record;
	static struct model got;
	uint8_t data[MAX_MSG_PAYLOAD];
	bool whole = true;

	memset(&got, 0, sizeof got);
	while (kept_next(k, &cursor, &record, data)) {
		uint8_t *to = record.kind == SNAPSHOT_PAGE ? &got.page[record.index]
			      : record.kind == SNAPSHOT_BLOCK
				      ? &got.block[record.index >> SNAPSHOT_DISK_SHIFT]
						  [record.index & SNAPSHOT_BLOCK_MASK]
			      : record.kind == SNAPSHOT_CPU ? &got.cpu
							    : NULL;

		if (!to)
			continue;
		whole &= !*to && record.bytes == (record.kind == SNAPSHOT_CPU ? 1 : PAGE_BYTES);
		whole &= !memcmp(data, data + 1, record.bytes - 1);
		*to = data[0];
	}
	CU_ASSERT(whole);
	CU_ASSERT(!memcmp(&got, m, sizeof got));
	CU_ASSERT_EQUAL(kept_machine(k)->machine.clock_ns, m->cpu);
}

/* Reads the kept checkpoint as its copy elsewhere does. */
static void copy(struct kept *from, struct kept *to)
{
	struct kept_cursor cursor = kept_changes(from);
	struct snapfile_record record;
	uint8_t data[MAX_MSG_PAYLOAD];

	kept_begin(to, cursor.part.changes);
	while (kept_next(from, &cursor, &record, data))
		CU_ASSERT_EQUAL(kept_add(to, &record, data, &p), 0);
	CU_ASSERT_EQUAL(kept_commit(to, &p), 0);
	kept_copied(from, true);
}

static void copy_follows(void)
{
	struct kept *k = kept_new(), *other = kept_new();
	static struct model m;
	unsigned whole = 0, copies = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		bool changes = round && random_below(5);

		m.cpu = 1 + random_below(200);
		kept_begin(k, changes);
		put_machine(k, m.cpu);
		if (!changes)
			memset(m.page, 0, sizeof m.page);
		put_contents(k, &m, changes);
		CU_ASSERT_EQUAL(kept_commit(k, &p), 0);
		if (!random_below(8))
			kept_copied(k, false);
		if (random_below(3)) /* the copy may lag behind */
			continue;
		whole += !kept_changes(k).part.changes;
		copies++;
		copy(k, other);
		compare(other, &m);
	}
	CU_ASSERT(whole > 1 && whole < copies);
	kept_free(k);
	kept_free(other);
}

static void last_committed_stands(void)
{
	struct kept *k = kept_new();
	static struct model stands, coming;

	CU_ASSERT_PTR_NULL(kept_machine(k));
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool changes = round && random_below(10);

		coming = stands;
		coming.cpu = 1 + random_below(200);
		kept_begin(k, changes);
		put_machine(k, coming.cpu);
		put_contents(k, &coming, changes);
		if (round && !random_below(4)) {
			kept_abandon(k);
		} else {
			CU_ASSERT_EQUAL(kept_commit(k, &p), 0);
			stands = coming;
		}
		compare(k, &stands);
	}
	kept_free(k);
}

static void what_cannot_be(void)
{
	struct kept *k = kept_new();

	kept_begin(k, false);
	put_machine(k, 1);
	CU_ASSERT_EQUAL(put_filled(k, SNAPSHOT_BLOCK, BLOCKS - 1, 1), 0);
	CU_ASSERT(put_filled(k, SNAPSHOT_BLOCK, BLOCKS, 1) && strstr(p.line, "not the disk's"));
	CU_ASSERT(put_filled(k, SNAPSHOT_BLOCK, block_index(DISKS, 0), 1) &&
		  strstr(p.line, "keeps none apart"));
	/* of changes alone */
	CU_ASSERT(put(k, SNAPSHOT_PAGE, 1, "", 0) && strstr(p.line, "not the machine's"));
	CU_ASSERT(kept_commit(k, &p) && strstr(p.line, "memory"));
	CU_ASSERT_PTR_NULL(kept_machine(k));
	kept_begin(k, true);
	put_machine(k, 1);
	/* there is nothing to change */
	CU_ASSERT(kept_commit(k, &p) && strstr(p.line, "another machine"));
	kept_free(k);
}

/* ---- loading it: hosts 0 and 2 of three are on this computer ---- */

enum { HOSTS = 3, FAR = 1 };

static struct client client;
static int machine_end;
static struct {
	char folder[32];
	int ram[HOSTS];
	struct load load;
	uint8_t page[PAGES]; /* as it arrived for the host that is not here; 0: it did not */
	unsigned loaded, failed;
} hosts;

static void on_loaded(void *context) { (void)context; hosts.loaded++; }
static void on_failed(void *context, const char *line)
{
	(void)context;
	CU_ASSERT_STRING_EQUAL(line, "the memory of host 2 cannot be loaded: Operation not "
			       "permitted");
	hosts.failed++;
}
static void on_client_message(void *context, const struct message *m) { (void)context, (void)m; }

static void connect_client(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listening = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", hosts.folder);
	CU_ASSERT_FATAL(!bind(listening, (struct sockaddr *)&address, sizeof address) &&
			!listen(listening, 1));
	client = (struct client){ .link = LINK_NODE_TO_RUN, .on_message = on_client_message };
	CU_ASSERT_FATAL(!client_connect(&client, client_new_loop(), hosts.folder, CLIENT_RUN));
	machine_end = accept(listening, NULL, NULL);
	close(listening);
}

static void offer_ram(unsigned host)
{
	char path[64], memory[64];

	hosts.ram[host] = memfd_create("ram", MFD_ALLOW_SEALING);
	CU_ASSERT_FATAL(!ftruncate(hosts.ram[host], (off_t)PAGES * PAGE_BYTES));
	snprintf(path, sizeof path, RAM_LINK_FORMAT, hosts.folder, host);
	snprintf(memory, sizeof memory, "/proc/self/fd/%d", hosts.ram[host]);
	if (host != FAR)
		CU_ASSERT_FATAL(!symlink(memory, path));
}

static void open_hosts(void)
{
	strcpy(hosts.folder, "/tmp/vmp-unit.XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(hosts.folder) != NULL);
	connect_client();
	for (unsigned host = 0; host < HOSTS; host++)
		offer_ram(host);
	hosts.load = (struct load){ .on_loaded = on_loaded, .on_failed = on_failed };
	memset(hosts.page, 0, sizeof hosts.page);
	hosts.loaded = hosts.failed = 0;
}

static void close_hosts(void)
{
	char path[64];

	load_close(&hosts.load);
	CU_ASSERT(!hosts.load.here);
	client_close(&client);
	event_base_free(client.base);
	close(machine_end);
	for (unsigned host = 0; host < HOSTS; host++) {
		close(hosts.ram[host]);
		snprintf(path, sizeof path, RAM_LINK_FORMAT, hosts.folder, host);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/control.sock", hosts.folder);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(hosts.folder), 0);
}

static void answer_item(const struct msg_snapshot_item *item, const uint8_t *data)
{
	if (item->kind == SNAPSHOT_PAGE) {
		CU_ASSERT_EQUAL(ram_host_of(item->index, PAGES, HOSTS), FAR);
		CU_ASSERT_EQUAL(hosts.page[item->index], 0);
		hosts.page[item->index] = data[0];
	} else if (item->kind != SNAPSHOT_CPU) {
		load_taken(&hosts.load); /* by the I/O server */
	}
}

/* Checks what node 0 would do with everything that arrived. */
static void answer(void)
{
	static struct {
		struct msg_header header;
		union {
			struct msg_snapshot step;
			struct msg_snapshot_item item;
		};
		uint8_t data[MAX_MSG_PAYLOAD];
	} m;
	ssize_t n;

	while ((n = recv(machine_end, &m, sizeof m, MSG_DONTWAIT)) > 0)
		if (m.header.type == MSG_SNAPSHOT_ITEM)
			answer_item(&m.item, (const uint8_t *)&m + sizeof m.header + sizeof m.item);
		else if (m.header.type == MSG_SNAPSHOT && m.step.step == SNAPSHOT_SYNC)
			for (unsigned host = 0; host < HOSTS; host++)
				load_taken(&hosts.load);
}

static void load_all(const struct kept *k)
{
	load_kept(&hosts.load, k, NULL);
	load_start(&hosts.load, &client, HOSTS, hosts.folder);
	for (unsigned i = 0; i < 100000 && !hosts.loaded && !hosts.failed; i++) {
		event_base_loop(client.base, EVLOOP_NONBLOCK);
		answer();
	}
}

/* Checks that the right host has the page, and no other. */
static uint8_t page_there(const uint8_t *ram[HOSTS], gfn_t gfn)
{
	unsigned host = ram_host_of(gfn, PAGES, HOSTS);
	const uint8_t *page = ram[host] + ((size_t)gfn << PAGE_BITS);

	for (unsigned other = 0; other < HOSTS; other++)
		if (other != host && ram[other][(size_t)gfn << PAGE_BITS])
			return 255;
	return host == FAR ? hosts.page[gfn] : memcmp(page, page + 1, PAGE_BYTES - 1) ? 254 : *page;
}

static void pages_come_to_their_hosts(void)
{
	static struct model m;
	const uint8_t *ram[HOSTS];
	struct kept *k = kept_new();
	unsigned wrong = 0;

	kept_begin(k, false);
	put_machine(k, 1);
	put_contents(k, &m, false);
	for (gfn_t gfn = 0; gfn < 3000; gfn++) /* runs of pages, over the ends of stripes */
		put_filled(k, SNAPSHOT_PAGE, gfn,
			   m.page[gfn] = m.page[gfn] ? m.page[gfn] : 1 + gfn % 200);
	CU_ASSERT_EQUAL_FATAL(kept_commit(k, &p), 0);
	open_hosts();
	load_all(k);
	CU_ASSERT(hosts.loaded == 1 && !hosts.failed && !hosts.load.here);
	for (unsigned host = 0; host < HOSTS; host++)
		ram[host] = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ, MAP_SHARED,
				 hosts.ram[host], 0);
	for (gfn_t gfn = 0; gfn < PAGES; gfn++)
		wrong += page_there(ram, gfn) != m.page[gfn];
	CU_ASSERT_EQUAL(wrong, 0);
	for (unsigned host = 0; host < HOSTS; host++)
		munmap((void *)ram[host], (size_t)PAGES * PAGE_BYTES);
	close_hosts();
	kept_free(k);
}

static void what_cannot_be_written(void)
{
	struct kept *k = kept_new();

	kept_begin(k, false);
	put_machine(k, 1);
	for (gfn_t gfn = 0; gfn < PAGES; gfn++)
		put_filled(k, SNAPSHOT_PAGE, gfn, 7);
	for (unsigned i = 0; i < BLOCKS; i++)
		put_filled(k, SNAPSHOT_BLOCK, i, 7);
	CU_ASSERT_EQUAL_FATAL(kept_commit(k, &p), 0);
	open_hosts();
	CU_ASSERT_FATAL(!fcntl(hosts.ram[2], F_ADD_SEALS, F_SEAL_WRITE));
	load_all(k);
	CU_ASSERT(hosts.failed == 1 && !hosts.loaded);
	close_hosts();
	kept_free(k);
}

/* ---- streams ---- */

static void open_client(void)
{
	int ends[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	client = (struct client){ .base = client_new_loop(), .fd = ends[0] };
	client.loop = loop_on_event_base(client.base);
	machine_end = ends[1];
}

static void close_client(void)
{
	event_base_free(client.base);
	close(client.fd);
	close(machine_end);
}

/* Returns what is in a pipe, as a string. */
static const char *drain(int fd)
{
	static char text[256];
	ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static void output_goes_out_once(void)
{
	struct stream_out out = { .holds = true };
	int ends[2];

	open_client();
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	CU_ASSERT_EQUAL(stream_out_start(&out, &client, 1, ends[0]), 0);
	CU_ASSERT(stream_out_take(&out, "one ", 4));
	CU_ASSERT_STRING_EQUAL(drain(ends[1]), "");
	stream_out_mark(&out);
	CU_ASSERT(stream_out_take(&out, "two ", 4));
	stream_out_kept(&out);
	CU_ASSERT_STRING_EQUAL(drain(ends[1]), "one ");
	stream_out_mark(&out); /* of a checkpoint that is never completed */
	stream_out_lost(&out);
	stream_out_again(&out);
	CU_ASSERT(stream_out_take(&out, "2 ", 2));
	CU_ASSERT_FALSE(stream_out_drained(&out));
	stream_out_release(&out);
	CU_ASSERT_STRING_EQUAL(drain(ends[1]), "2 ");
	CU_ASSERT_TRUE(stream_out_drained(&out));
	stream_out_stop(&out);
	close(ends[0]);
	close(ends[1]);
	close_client();
}

/* Output is held for the checkpoint after which the machine goes on elsewhere.  What is left of it
 * then is written all the same.  The machine, which has room again, gets room only for what it has
 * printed since. */
static void output_is_held_for_a_while(void)
{
	static char much[STREAM_WINDOW];
	struct stream_out out = { 0 };
	struct msg_stream_room room;
	char packet[64];
	int ends[2], few = 1;
	size_t came = 0;
	ssize_t n;

	open_client();
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
	CU_ASSERT_EQUAL(stream_out_start(&out, &client, 1, ends[0]), 0);
	CU_ASSERT(stream_out_take(&out, much, sizeof much)); /* some of it waits to be read */
	CU_ASSERT_FALSE(stream_out_drained(&out));
	stream_out_hold(&out, true);
	stream_out_mark(&out);
	stream_out_kept(&out);
	stream_out_lost(&out);
	while (recv(machine_end, packet, sizeof packet, MSG_DONTWAIT) > 0)
		;
	stream_out_again(&out);
	stream_out_hold(&out, false);
	CU_ASSERT(stream_out_take(&out, "end", 3));
	while (!stream_out_drained(&out) || came < sizeof much + 3) {
		if ((n = recv(ends[1], much, sizeof much, MSG_DONTWAIT)) > 0)
			came += (size_t)n;
		event_base_loop(client.base, EVLOOP_NONBLOCK);
	}
	CU_ASSERT_EQUAL(came, sizeof much + 3);
	n = recv(machine_end, packet, sizeof packet, MSG_DONTWAIT);
	CU_ASSERT_FATAL(n == sizeof(struct msg_header) + sizeof room);
	memcpy(&room, packet + sizeof(struct msg_header), sizeof room);
	CU_ASSERT_EQUAL(room.bytes, 3);
	CU_ASSERT(recv(machine_end, packet, sizeof packet, MSG_DONTWAIT) < 0);
	stream_out_stop(&out);
	close(ends[0]);
	close(ends[1]);
	close_client();
}

/* Returns what has reached the machine since the last call; "." at the end of input. */
static const char *received(void)
{
	static char text[512];
	char packet[512];
	struct msg_stream stream;
	const size_t head = sizeof(struct msg_header);
	size_t at = 0;
	ssize_t n;

	for (int i = 0; i < 20; i++)
		event_base_loop(client.base, EVLOOP_NONBLOCK);
	while ((n = recv(machine_end, packet, sizeof packet, MSG_DONTWAIT)) > 0) {
		memcpy(&stream, packet + head, sizeof stream);
		memcpy(text + at, packet + head + sizeof stream, n - head - sizeof stream);
		at += n - head - sizeof stream;
		if (stream.eof)
			text[at++] = '.';
	}
	text[at] = 0;
	return text;
}

/* For a loaded machine, which had received so many bytes before. */
static void input_arrives_behind(uint32_t taken)
{
	struct stream_in in = { .keeps = true };
	int ends[2];

	open_client();
	CU_ASSERT_FATAL(!pipe(ends));
	in.fd = ends[0];
	CU_ASSERT_EQUAL(stream_in_start(&in, &client, taken, STREAM_WINDOW), 0);
	CU_ASSERT(write(ends[1], "abc", 3) == 3);
	CU_ASSERT_STRING_EQUAL(received(), "abc");
	stream_in_mark(&in);
	CU_ASSERT(write(ends[1], "def", 3) == 3);
	CU_ASSERT_STRING_EQUAL(received(), "def");
	stream_in_kept(&in);
	stream_in_lost(&in);
	CU_ASSERT(write(ends[1], "ghi", 3) == 3);
	CU_ASSERT_STRING_EQUAL(received(), "");
	stream_in_again(&in, taken + 4, 3); /* the cut was made when the d had arrived */
	CU_ASSERT_STRING_EQUAL(received(), "efg");
	stream_in_room(&in, 100);
	close(ends[1]);
	CU_ASSERT_STRING_EQUAL(received(), "hi.");
	stream_in_lost(&in);
	stream_in_again(&in, taken + 4, 100);
	CU_ASSERT_STRING_EQUAL(received(), "efghi.");
	stream_in_lost(&in);
	stream_in_again(&in, taken + 9, 100);
	CU_ASSERT_STRING_EQUAL(received(), ".");
	stream_in_free(&in);
	close(ends[0]);
	close_client();
}

/* Input that is not kept is only counted. */
static void input_is_kept_for_a_while(void)
{
	struct stream_in in = { 0 };
	int ends[2];

	open_client();
	CU_ASSERT_FATAL(!pipe(ends));
	in.fd = ends[0];
	CU_ASSERT_EQUAL(stream_in_start(&in, &client, 10, STREAM_WINDOW), 0);
	CU_ASSERT(write(ends[1], "abc", 3) == 3);
	CU_ASSERT_STRING_EQUAL(received(), "abc");
	for (uint32_t at = 13; at < 40; at += 9) {
		in.keeps = true;
		stream_in_mark(&in);
		CU_ASSERT(write(ends[1], "defgh", 5) == 5);
		CU_ASSERT_STRING_EQUAL(received(), "defgh");
		stream_in_lost(&in);
		stream_in_again(&in, at + 2, 2); /* the cut was made when the e had arrived */
		in.keeps = false;
		CU_ASSERT_STRING_EQUAL(received(), "fg");
		CU_ASSERT(write(ends[1], "ijkl", 4) == 4);
		stream_in_room(&in, 100);
		CU_ASSERT_STRING_EQUAL(received(), "hijkl");
	}
	stream_in_free(&in);
	close(ends[0]);
	close(ends[1]);
	close_client();
}

static void input_arrives_once(void)
{
	input_arrives_behind(0);
	input_arrives_behind(1000);
	input_arrives_behind(~0u - 1);
}

/* The last checkpoint is taken back until it has begun. */
static void last_is_taken_back(void)
{
	struct event_base *base = event_base_new();
	struct loop loop = loop_on_event_base(base);
	struct checkpoint c = { .interval_ms = 0 };

	CU_ASSERT_FATAL(base && !checkpoint_start(&c, &loop, 0, NULL));
	checkpoint_last(&c);
	CU_ASSERT(loop_is_armed(c.timer));
	checkpoint_not_last(&c);
	CU_ASSERT_EQUAL(c.last, LAST_NOT);
	CU_ASSERT(!loop_is_armed(c.timer));
	c.interval_ms = 60000; /* with --checkpoint, the next one is taken in its turn */
	checkpoint_last(&c);
	checkpoint_not_last(&c);
	CU_ASSERT(loop_is_armed(c.timer));
	c.last = LAST_UNDER_WAY;
	checkpoint_not_last(&c);
	CU_ASSERT_EQUAL(c.last, LAST_UNDER_WAY);
	checkpoint_close(&c);
	event_base_free(base);
}

/* What takes long is not done all the time; but a stall is made good at once. */
static void guest_has_its_time(void)
{
	static const uint64_t row[][3] = { /* took, bytes; every */
		{ 0, 1 << 30, 1000 }, { 499, 1 << 30, 1000 }, { 501, 1 << 30, 1002 },
		{ 5000, 1 << 30, 10000 }, { 50000, 1 << 30, 66000 }, { 50, 0, 1000 },
		{ 5000, 0, 5000 }, { 5000, 2 << 20, 5031 },
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		CU_ASSERT_EQUAL(checkpoint_every_ms(1000, row[i][0], row[i][1]), row[i][2]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the last one committed stands", last_committed_stands },
		{ "a copy follows", copy_follows },
		{ "what cannot be", what_cannot_be },
		{ "pages come to their hosts", pages_come_to_their_hosts },
		{ "what cannot be written", what_cannot_be_written },
		{ "output goes out once", output_goes_out_once },
		{ "output is held for a while", output_is_held_for_a_while },
		{ "input arrives once", input_arrives_once },
		{ "the last one is taken back", last_is_taken_back },
		{ "input is kept for a while", input_is_kept_for_a_while },
		{ "the guest has its time", guest_has_its_time },
		UNIT_END
	};

	return UNIT_RUN("checkpoints", tests);
}
