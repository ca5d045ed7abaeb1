/* standby.c - what a machine's owner and its standby say to each other (vmm/standby/): records from a stream that is cut anywhere, the
 * orders as text, and the owner's end against a standby that answers as a script has it, right or wrong.
 *
 * That standby is this program again, as VMP_SSH names it.  Its script (VMP_FAKE) has an answer for each record that
 * wants one, with commas between them: words with `|` between them, each said as a line, but for those at fake_does().
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "vmm/standby/orders.h"
#include "vmm/standby/record.h"
#include "vmm/standby/sender.h"

static struct problem p;

/* --- records -------------------------------------------------------------------------------------------------------- */

enum { MAX_RECORDS = 8, HEAD = sizeof(struct snapfile_record) };

static struct {
	unsigned n, stop_after; /* 0: never */
	bool right;
} read_so_far;
static const uint32_t sizes[] = { 0, 1, 0, 0, 300, MAX_MSG_PAYLOAD, 5 };
static uint8_t stream[ARRAY_LEN(sizes) * HEAD + 306 + MAX_MSG_PAYLOAD];

static uint8_t byte_of(uint32_t record, size_t i) { return (uint8_t)(record * 37 + i * 11); }

static bool check_record(void *context, const struct snapfile_record *record, const void *data)
{
	const uint8_t *bytes = data;
	unsigned i = read_so_far.n++;

	(void)context;
	read_so_far.right &= i < ARRAY_LEN(sizes) && record->kind == i && record->index == ~i && record->bytes == sizes[i];
	for (size_t at = 0; read_so_far.right && at < record->bytes; at++)
		read_so_far.right = bytes[at] == byte_of(i, at);
	return read_so_far.n != read_so_far.stop_after;
}

static void make_stream(void)
{
	uint8_t *to = stream;

	for (uint32_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct snapfile_record record = { i, ~i, sizes[i] };

		memcpy(to, &record, HEAD);
		to += HEAD;
		for (size_t at = 0; at < sizes[i]; at++)
			*to++ = byte_of(i, at);
	}
	CU_ASSERT_EQUAL(to - stream, sizeof stream);
}

static struct record_reader *new_reader(unsigned stop_after)
{
	static struct record_reader reader;

	memset(&reader, 0xa5, sizeof reader);
	reader.on_record = check_record;
	reader.n = 0;
	read_so_far.n = 0;
	read_so_far.stop_after = stop_after;
	read_so_far.right = true;
	return &reader;
}

/* All of `bytes`, in a copy of its own, so that the sanitizer sees a step over its end. */
static int read_piece(struct record_reader *r, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	int error;

	memcpy(copy, bytes, n);
	error = record_read(r, copy, n);
	free(copy);
	return error;
}

static void records_cut_anywhere(void)
{
	bool all = true;

	make_stream();
	for (size_t cut = 0; cut <= sizeof stream; cut++) {
		struct record_reader *r = new_reader(0);

		all &= !read_piece(r, stream, cut) && !read_piece(r, stream + cut, sizeof stream - cut);
		all &= read_so_far.right && read_so_far.n == ARRAY_LEN(sizes) && !r->n;
	}
	for (size_t piece = 1; piece < 100; piece++) {
		struct record_reader *r = new_reader(0);

		for (size_t at = 0; at < sizeof stream; at += piece)
			all &= !read_piece(r, stream + at, piece < sizeof stream - at ? piece : sizeof stream - at);
		all &= read_so_far.right && read_so_far.n == ARRAY_LEN(sizes);
	}
	CU_ASSERT(all);
}

static void no_more_is_read_than_is_wanted(void)
{
	for (unsigned stop = 1; stop < ARRAY_LEN(sizes); stop++) {
		CU_ASSERT_EQUAL(read_piece(new_reader(stop), stream, sizeof stream), 0);
		CU_ASSERT(read_so_far.right && read_so_far.n == stop);
	}
}

/* Each byte of a head may be the first of the next piece. */
static void what_is_no_record(void)
{
	static const uint32_t too_many[] = { MAX_MSG_PAYLOAD + 1, MAX_MSG_PAYLOAD + HEAD, 1u << 31, ~0u - HEAD, ~0u - HEAD + 1, ~0u };

	for (size_t i = 0; i < ARRAY_LEN(too_many); i++)
		for (size_t cut = 0; cut <= HEAD; cut++) {
			struct snapfile_record record = { 1, 2, too_many[i] };
			struct record_reader *r = new_reader(0);
			uint8_t bytes[2 * HEAD] = { 0 }; /* a good one before it */

			memcpy(bytes + HEAD, &record, HEAD);
			((struct snapfile_record *)bytes)->index = ~0u;
			CU_ASSERT_EQUAL(read_piece(r, bytes, HEAD + cut), cut < HEAD ? 0 : -EPROTO);
			CU_ASSERT_EQUAL(read_piece(r, bytes + HEAD + cut, HEAD - cut), -EPROTO);
			CU_ASSERT_EQUAL(read_piece(r, stream, 1), -EPROTO); /* and it stays so */
			CU_ASSERT(read_so_far.right && read_so_far.n == 1);
		}
}

/* --- orders --------------------------------------------------------------------------------------------------------- */

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
	orders = (struct orders){ .name = "lab", .id = "0123456789abcdef", .host = "b", .engine = "direct", .policy = "auto",
				  .vendor = "GenuineIntel", .features = "0:1:2", .strict = true, .verbose = true, .mem_mib = 256,
				  .host_mem_mib = 100, .checkpoint_ms = 5000 };
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
	return !strcmp(text, back) && !strcmp(orders.name, again.name) && !strcmp(orders.id, again.id) && !strcmp(orders.host, again.host) &&
	       !strcmp(orders.engine, again.engine) && !strcmp(orders.policy, again.policy) && !strcmp(orders.vendor, again.vendor) &&
	       !strcmp(orders.features, again.features) && orders.strict == again.strict && orders.verbose == again.verbose &&
	       orders.mem_mib == again.mem_mib && orders.host_mem_mib == again.host_mem_mib && orders.checkpoint_ms == again.checkpoint_ms &&
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
	CU_ASSERT(!memcmp(little, text, sizeof little - 2) && !little[sizeof little - 2] && little[sizeof little - 1] == 'x');
	orders.strict = orders.verbose = false;
	orders.host_mem_mib = orders.checkpoint_ms = 0;
	orders.policy[0] = orders.vendor[0] = orders.features[0] = orders.id[0] = 0;
	CU_ASSERT(come_back());
	orders.checkpoint_ms = UINT32_MAX;
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

/* The longest there can be. */
static void the_longest_orders_fit(void)
{
	fill_orders();
	for (orders.hosts.n = 0; orders.hosts.n < MAX_NODES; orders.hosts.n++) {
		struct cluster_host *h = &orders.hosts.host[orders.hosts.n];

		*h = (struct cluster_host){ .port = 65535, .cpus = MAX_CPUS, .memory_mib = MAX_RAM_MIB, .n_phoenix = MAX_PHOENIX_LINES };
		memset(h->name, 'h', sizeof h->name - 1);
		snprintf(h->name + sizeof h->name - 3, 3, "%02u", orders.hosts.n);
		memset(h->user, 'u', sizeof h->user - 1);
		for (unsigned i = 0; i < MAX_PHOENIX_LINES; i++)
			memset(h->phoenix[i], ' ', sizeof h->phoenix[i] - 1);
	}
	strcpy(orders.host, orders.hosts.host[MAX_NODES - 1].name);
	for (size_t i = 0; i < 5; i++) {
		static char *const fields[] = { orders.name, orders.engine, orders.policy, orders.vendor, orders.features };
		static const size_t room[] = { MAX_NAME, MAX_ORDER, MAX_ORDER, MAX_ORDER, MAX_ORDER };

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
#define GOOD "name lab\nengine direct\nmem 64\nhost b\n"
#define HOSTS "hosts\na\nb\n"
	static const char long_word[] = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"; /* 97 */
	static const struct { const char *text, *complaint; } wrong[] = {
		{ GOOD HOSTS, "nothing" }, { "", "name no hosts" }, { GOOD, "name no hosts" }, { GOOD "hosts", "name no hosts" },
		{ "\n" GOOD HOSTS, "says nothing: " }, { GOOD "nam x\n" HOSTS, "says nothing: nam x" }, { GOOD "name\n" HOSTS, "says nothing: name" },
		{ GOOD "names x\n" HOSTS, "says nothing: names x" }, { GOOD " name x\n" HOSTS, "says nothing:  name x" },
		{ GOOD "hosts \na\nb\n", "says nothing: hosts " }, { GOOD "host\nb\n" HOSTS, "says nothing: host" },
		{ "0123456789012345678901234567890123456789abc\n" HOSTS, "says nothing: 0123456789012345678901234567890123456789" },
		{ GOOD "mem\t64\n" HOSTS, "says nothing: mem" },
		{ GOOD "mem \n" HOSTS, "no number after mem" }, { GOOD "mem -1\n" HOSTS, "no number after mem" },
		{ GOOD "mem +1\n" HOSTS, "no number after mem" }, { GOOD "mem  1\n" HOSTS, "no number after mem" },
		{ GOOD "mem 0x40\n" HOSTS, "no number after mem" }, { GOOD "mem 64 \n" HOSTS, "no number after mem" },
		{ GOOD "mem 4294967296\n" HOSTS, "no number after mem" },
		{ GOOD "checkpoint 99999999999999999999999999\n" HOSTS, "no number after checkpoint" },
		{ GOOD "strict 2\n" HOSTS, "no number after strict" }, { GOOD "verbose yes\n" HOSTS, "no number after verbose" },
		{ GOOD "mem 31\n" HOSTS, "describe no machine" }, { GOOD "mem 1025\n" HOSTS, "describe no machine" },
		{ GOOD "name \n" HOSTS, "describe no machine" }, { GOOD "engine \n" HOSTS, "describe no machine" },
		{ GOOD "mem 32\n" HOSTS, "nothing" }, { GOOD "mem 1024\n" HOSTS, "nothing" },
		{ GOOD "id 0123456789abcdef0\n" HOSTS, "too long a word after id" },
		{ GOOD "host a\n" HOSTS, "no host a besides the first" }, { GOOD "host c\n" HOSTS, "no host c besides the first" },
		{ GOOD "host \n" HOSTS, "no host  besides the first" },
		{ GOOD "hosts\n", "hosts: 1:1: there is no host" }, { GOOD "hosts\na\na\n", "hosts: 2:1: host a stands in line 1 already" },
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
		snprintf(line, sizeof line, GOOD "policy %.*s\n" HOSTS, n, long_word);
		CU_ASSERT_EQUAL(!strcmp(complaint_of(line, strlen(line)), "nothing"), n == 95);
		snprintf(line, sizeof line, GOOD "mem %0*u\n" HOSTS, n, 64);
		CU_ASSERT_EQUAL(!strcmp(complaint_of(line, strlen(line)), "nothing"), n <= 96);
	}
}

/* Cut short, or with one byte changed: what is taken for orders all the same holds what orders may. */
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
				bounded &= memchr(again.name, 0, sizeof again.name) && memchr(again.id, 0, sizeof again.id) &&
					   again.hosts.n > 1 && again.hosts.n <= MAX_NODES && again.mem_mib <= MAX_RAM_MIB;
			text[at] ^= (char)change;
		}
	CU_ASSERT(bounded);
}

/* --- a standby that does as it is told ------------------------------------------------------------------------------ */

enum { HEARD_FD = 200 };

static struct { char *script; unsigned records; uint32_t sum; } fake;

static uint32_t add_up(uint32_t sum, const struct snapfile_record *record, const void *data)
{
	const uint8_t *bytes = data;

	sum = (sum * 31 + record->kind) * 31 + record->index;
	for (uint32_t i = 0; i < record->bytes; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

/* `nothing`; `leaves`: it ends; `deaf`: it hears nothing any more; `stops`: until a SIGCONT; `+X`: X without the line's end. */
static void fake_does(const char *word)
{
	if (!strcmp(word, "nothing"))
		return;
	if (!strcmp(word, "leaves"))
		_exit(3);
	if (!strcmp(word, "deaf"))
		close(0);
	else if (!strcmp(word, "stops"))
		raise(SIGSTOP);
	else if (*word == '+')
		dprintf(1, "%s", word + 1);
	else
		dprintf(1, "%s\n", word);
}

static void fake_answers(void)
{
	char *words = strsep(&fake.script, ","), *word;

	while ((word = strsep(&words, "|")))
		fake_does(word);
}

/* One letter for each record. */
static bool fake_on_record(void *context, const struct snapfile_record *record, const void *data)
{
	static const char letters[] = "OBC.PRGE";

	(void)context;
	if (record->kind < STANDBY_ORDERS) {
		fake.records++;
		fake.sum = add_up(fake.sum, record, data);
		return true;
	}
	dprintf(HEARD_FD, "%c", letters[record->kind - STANDBY_ORDERS]);
	switch (record->kind) {
	case STANDBY_ORDERS:
		if (record->index)
			fake_answers();
		break;
	case STANDBY_BEGIN:
		dprintf(HEARD_FD, "%u", record->index);
		fake.records = fake.sum = 0;
		break;
	case STANDBY_COMMIT:
		dprintf(HEARD_FD, "(%u %x)", fake.records, fake.sum);
		fake_answers();
		break;
	case STANDBY_PREPARE:
	case STANDBY_GO:
		fake_answers();
		break;
	case STANDBY_END:
		_exit(0);
	}
	return true;
}

static int be_a_standby(void)
{
	static struct record_reader reader = { .on_record = fake_on_record };
	char bytes[5000], *script = getenv("VMP_FAKE");
	ssize_t n;

	fake.script = script;
	if (!strncmp(script, "dies ", 5)) {
		dprintf(2, "%s\n", script + 5);
		return 255;
	}
	while ((n = read(0, bytes, sizeof bytes)) > 0)
		if (record_read(&reader, bytes, (size_t)n))
			return 1;
	dprintf(HEARD_FD, "$");
	return 0;
}

/* --- the owner's end ------------------------------------------------------------------------------------------------ */

enum { ROOM = (256 << 10) + MAX_MSG_PAYLOAD + 2 * HEAD, MANY_PAGES = 2000 };

static struct sender s;
static struct {
	unsigned done, failed;
	enum sender_state before;
	const char *next; /* another one is started when this one has failed, with this script */
} told;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void start(const char *script, const char *orders_text)
{
	static const struct cluster_host host = { .name = "far" };

	setenv("VMP_FAKE", script, 1);
	CU_ASSERT_EQUAL_FATAL(sender_start(&s, &host, "hash", orders_text), 0);
	CU_ASSERT_EQUAL(s.state, SENDER_STARTS);
}

static void on_done(void *context, enum sender_state before)
{
	CU_ASSERT_PTR_EQUAL(context, &s);
	told.done++;
	told.before = before;
	CU_ASSERT_EQUAL(s.state, before == SENDER_GOES ? SENDER_OFF : SENDER_IDLE);
}

static void on_failed(void *context, enum sender_state before)
{
	CU_ASSERT_PTR_EQUAL(context, &s);
	told.failed++;
	told.before = before;
	if (told.next && s.state == SENDER_OFF) {
		start(told.next, "orders");
		told.next = NULL;
	}
}

static void open_sender(const char *script)
{
	char self[4096] = "";

	CU_ASSERT_FATAL(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	setenv("VMP_SSH", self, 1);
	CU_ASSERT_EQUAL_FATAL(ftruncate(HEARD_FD, 0) | (int)lseek(HEARD_FD, 0, SEEK_SET), 0);
	memset(&told, 0, sizeof told);
	s = (struct sender){ .base = event_base_new(), .log_fd = -1, .context = &s, .done = on_done, .failed = on_failed };
	start(script, "orders");
}

static void run_for(uint64_t ms)
{
	static const struct timeval moment = { 0, 5000 };

	for (uint64_t until = now_ms() + ms; now_ms() < until;) {
		event_base_loopexit(s.base, &moment);
		event_base_loop(s.base, EVLOOP_ONCE);
	}
}

/* Until so many answers have come, one way or the other; or the test has failed. */
static void run_until(unsigned answers)
{
	for (uint64_t until = now_ms() + 20000; told.done + told.failed < answers && now_ms() < until;)
		run_for(1);
	CU_ASSERT_EQUAL(told.done + told.failed, answers);
}

static void run_until_off(void)
{
	for (uint64_t until = now_ms() + 20000; s.state != SENDER_OFF && now_ms() < until;)
		run_for(1);
	CU_ASSERT(s.state == SENDER_OFF);
}

/* As its script says. */
static void run_until_it_stops(void)
{
	siginfo_t info = { 0 };

	for (uint64_t until = now_ms() + 20000; !info.si_pid && now_ms() < until;) {
		run_for(1);
		CU_ASSERT_EQUAL_FATAL(waitid(P_PID, (id_t)s.ssh, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT), 0);
	}
	CU_ASSERT_EQUAL(info.si_code, CLD_STOPPED);
}

static void close_sender(void)
{
	if (s.ssh)
		kill(s.ssh, SIGCONT);
	sender_close(&s);
	CU_ASSERT(s.state == SENDER_OFF && !s.to && !s.from && !s.err && !s.alive && !s.kept && !s.prepared);
	event_base_free(s.base);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* What the standby has heard, but that its owner lives. */
static const char *heard(void)
{
	static char line[200];
	char all[400];
	ssize_t n = pread(HEARD_FD, all, sizeof all - 1, 0);
	size_t to = 0;

	for (ssize_t i = 0; i < n; i++)
		if (all[i] != '.')
			line[to++] = all[i];
	line[to] = 0;
	return line;
}

static bool is(enum sender_state state, unsigned done, unsigned failed, enum sender_state before, const char *why)
{
	bool right = s.state == state && told.done == done && told.failed == failed && told.before == before && !strcmp(s.why, why);

	if (!right)
		printf("\n    state %d, %u done, %u failed, before %d: %s\n", s.state, told.done, told.failed, told.before, s.why);
	return right;
}

/* A machine's checkpoint of so many pages that are not zero. */
static struct kept *make_kept(uint32_t pages)
{
	const struct snapshot_machine machine = { .hosts = 2, .cpus = 1, .mem_mib = 64 };
	struct kept *k = kept_new();
	uint8_t data[MAX_MSG_PAYLOAD] = { 1 };

	kept_begin(k, false);
	CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_MACHINE, 0, (uint32_t)saved_describe(&machine, "line", "/k", data) }, data, &p), 0);
	CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_CPU, 0, 1 }, data, &p), 0);
	CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_CHIP, 0, 1 }, data, &p), 0);
	for (uint32_t i = 0; i < pages; i++) {
		memset(data, (int)(i % 255 + 1), PAGE_BYTES);
		CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_PAGE, i, PAGE_BYTES }, data, &p), 0);
	}
	CU_ASSERT_EQUAL_FATAL(kept_commit(k, &p), 0);
	return k;
}

/* As fake_on_record() has it of a copy of all. */
static const char *as_heard(const struct kept *k)
{
	static char line[40];
	struct kept_cursor cursor = { 0 };
	struct snapfile_record record;
	uint8_t data[MAX_MSG_PAYLOAD];
	unsigned n = 0;
	uint32_t sum = 0;

	for (; kept_next(k, &cursor, &record, data); n++)
		sum = add_up(sum, &record, data);
	snprintf(line, sizeof line, "OB0C(%u %x)", n, sum);
	return line;
}

static void bring_to(enum sender_state state, struct kept *k)
{
	run_until(1);
	switch (state) {
	case SENDER_COPIES:
		sender_copy(&s, k, now_ms() * 1000000);
		break;
	case SENDER_PREPARES:
		sender_prepare(&s);
		break;
	case SENDER_GOES:
		sender_prepare(&s);
		run_until(2);
		sender_go(&s);
		break;
	default:
		break;
	}
}

static void a_whole_life(void)
{
	struct kept *k = make_kept(10);

	open_sender("ready,kept,ready,prepared,prepared,up");
	run_until(1);
	CU_ASSERT(is(SENDER_IDLE, 1, 0, SENDER_STARTS, "") && !s.prepared);
	sender_copy(&s, k, now_ms() * 1000000);
	CU_ASSERT_EQUAL(s.state, SENDER_COPIES);
	run_until(2);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, "") && !s.kept);
	CU_ASSERT_STRING_EQUAL(heard(), as_heard(k));
	sender_order(&s, "others");
	run_until(3);
	CU_ASSERT(is(SENDER_IDLE, 3, 0, SENDER_STARTS, ""));
	sender_prepare(&s);
	run_until(4);
	CU_ASSERT(is(SENDER_IDLE, 4, 0, SENDER_PREPARES, "") && s.prepared);
	sender_release(&s);
	CU_ASSERT(s.state == SENDER_IDLE && !s.prepared);
	sender_prepare(&s);
	run_until(5);
	sender_go(&s);
	CU_ASSERT_EQUAL(s.state, SENDER_GOES);
	run_until(6);
	CU_ASSERT(is(SENDER_OFF, 6, 0, SENDER_GOES, "") && !s.is_over);
	CU_ASSERT_PTR_NOT_NULL(strstr(heard(), ")OPRPG"));
	close_sender();
	kept_free(k);
}

/* Each line in each state: what was waited for, what refuses it, and all others, which end it. */
static void each_answer_in_each_state(void)
{
	static const enum sender_state states[] = { SENDER_STARTS, SENDER_COPIES, SENDER_PREPARES, SENDER_GOES };
	static const char *const to_there[] = { "", "ready,", "ready,", "ready,prepared," };
	static const struct { const char *line; enum sender_state state; int done /* -1: it fails */, after; const char *why; } answers[] = {
		{ "ready", SENDER_STARTS, 1, SENDER_IDLE, "" }, { "refused no room", SENDER_STARTS, -1, SENDER_OFF, "no room" },
		{ "kept", SENDER_COPIES, 1, SENDER_IDLE, "" }, { "refused no room", SENDER_COPIES, -1, SENDER_OFF, "no room" },
		{ "prepared", SENDER_PREPARES, 1, SENDER_IDLE, "" }, { "unprepared why", SENDER_PREPARES, -1, SENDER_IDLE, "why" },
		{ "up", SENDER_GOES, 1, SENDER_OFF, "" }, { "failed why", SENDER_GOES, -1, SENDER_OFF, "why" },
	};
	static const char *const lines[] = { "ready", "refused no room", "kept", "prepared", "unprepared why", "up", "failed why", "over it is lost", "", "Ready",
					     " ready", "nonsense" };
	struct kept *k = make_kept(1);

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		for (size_t j = 0; j < ARRAY_LEN(lines); j++) {
			char script[200], why[200];
			unsigned before = states[i] == SENDER_GOES ? 2 : states[i] != SENDER_STARTS;
			bool over = !strncmp(lines[j], "over ", 5);
			int done = -1, after = SENDER_OFF;

			snprintf(script, sizeof script, "%s%s", to_there[i], lines[j]);
			snprintf(why, sizeof why, over ? "%s" : "it says \"%s\"", over ? lines[j] + 5 : lines[j]);
			for (size_t a = 0; a < ARRAY_LEN(answers); a++)
				if (answers[a].state == states[i] && !strcmp(answers[a].line, lines[j])) {
					done = answers[a].done;
					after = answers[a].after;
					strcpy(why, answers[a].why);
				}
			open_sender(script);
			if (before)
				bring_to(states[i], k);
			run_until(before + 1);
			CU_ASSERT(is((enum sender_state)after, before + (done > 0), done < 0, states[i], why));
			CU_ASSERT_EQUAL(s.is_over, over);
			CU_ASSERT_EQUAL(s.prepared, states[i] == SENDER_PREPARES && done > 0);
			close_sender();
		}
	kept_free(k);
}

/* That it lives is no answer; that nothing was heard of it for a while casts doubt on that. */
static void it_says_that_it_lives(void)
{
	struct kept *k = make_kept(1);

	open_sender("alive|ready|alive,alive|kept|alive");
	CU_ASSERT_FALSE(sender_is_silent(&s));
	run_until(1);
	s.heard_ns -= (SENDER_DOUBT_S + 1) * 1000000000ull;
	CU_ASSERT_TRUE(sender_is_silent(&s));
	sender_copy(&s, k, now_ms() * 1000000);
	run_until(2);
	run_for(20);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, "") && !sender_is_silent(&s));
	s.heard_ns -= (SENDER_DOUBT_S + 1) * 1000000000ull;
	close_sender();
	CU_ASSERT_TRUE(sender_is_silent(&s)); /* it was */
	kept_free(k);
}

/* When nothing was asked. */
static void answers_out_of_turn(void)
{
	open_sender("ready|ready");
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "it says \"ready\"") && !s.is_over);
	close_sender();
	open_sender("ready|over it is lost");
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "it is lost") && s.is_over);
	close_sender();
}

static void lines_without_an_end(void)
{
	char script[1500];

	open_sender("+rea");
	run_for(100);
	CU_ASSERT(is(SENDER_STARTS, 0, 0, SENDER_OFF, ""));
	close_sender();
	memset(script, 'x', sizeof script);
	script[0] = '+';
	script[SENDER_LINE + 2] = 0;
	open_sender(script);
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "it says a line without an end"));
	close_sender();
	script[SENDER_LINE + 1] = 0; /* as much as there may be */
	open_sender(script);
	run_for(100);
	CU_ASSERT(is(SENDER_STARTS, 0, 0, SENDER_OFF, ""));
	close_sender();
}

static void a_long_reason_is_cut(void)
{
	char script[SENDER_LINE + 200] = "refused ";

	memset(script + 8, 'r', sizeof script - 9);
	open_sender(script);
	run_until(1);
	CU_ASSERT(s.state == SENDER_OFF && strlen(s.why) == SENDER_LINE - 1);
	close_sender();
}

/* In each state; and what ssh has said of it is the reason. */
static void the_connection_ends(void)
{
	static const enum sender_state states[] = { SENDER_STARTS, SENDER_COPIES, SENDER_PREPARES, SENDER_GOES };
	static const char *const scripts[] = { "leaves", "ready,leaves", "ready,leaves", "ready,prepared,leaves" };
	struct kept *k = make_kept(1);

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		unsigned before = states[i] == SENDER_GOES ? 2 : states[i] != SENDER_STARTS;

		open_sender(scripts[i]);
		if (before)
			bring_to(states[i], k);
		run_until(before + 1);
		CU_ASSERT(is(SENDER_OFF, before, 1, states[i], "its ssh connection ended") && !s.is_over);
		close_sender();
	}
	open_sender("dies ssh: connect to host far port 22: no route");
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "ssh: connect to host far port 22: no route"));
	close_sender();
	open_sender("dies Warning: Permanently added 'far' to the list of known hosts.");
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "its ssh connection ended"));
	close_sender();
	open_sender("ready");
	run_until(1);
	kill(s.ssh, SIGKILL); /* nothing is under way */
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "its ssh connection ended"));
	close_sender();
	kept_free(k);
}

/* What it has said counts, though it hears nothing any more: above all that it has gone on with the machine. */
static void its_last_word_is_heard(void)
{
	struct kept *k = make_kept(MANY_PAGES);

	open_sender("ready|stops|deaf|over it is lost|leaves");
	run_until(1);
	sender_copy(&s, k, now_ms() * 1000000);
	run_until_it_stops();
	run_for(50); /* the pipe to it is full */
	kill(s.ssh, SIGCONT);
	CU_ASSERT_EQUAL(waitid(P_PID, (id_t)s.ssh, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_COPIES, "it is lost") && s.is_over);
	close_sender();
	kept_free(k);
}

/* Another one is started at once, and no line of the first is taken for one of its own. */
static void another_one_takes_its_place(void)
{
	static const char *const first[] = { "refused no room", "refused no room|ready", "leaves", "nonsense|ready|kept" };

	for (size_t i = 0; i < ARRAY_LEN(first); i++) {
		open_sender(first[i]);
		told.next = "nothing";
		run_until(1);
		run_for(100);
		CU_ASSERT(is(SENDER_STARTS, 0, 1, SENDER_STARTS, ""));
		close_sender();
		open_sender(first[i]);
		told.next = "ready,prepared,unprepared why";
		run_until(2);
		CU_ASSERT(is(SENDER_IDLE, 1, 1, SENDER_STARTS, ""));
		sender_prepare(&s);
		run_until(3);
		CU_ASSERT(is(SENDER_IDLE, 2, 1, SENDER_PREPARES, ""));
		close_sender();
	}
}

static void orders_go_in_pieces(void)
{
	static char much[2 * MAX_MSG_PAYLOAD + 1];

	memset(much, 'o', sizeof much - 1);
	for (size_t less = 0; less < 2; less++) {
		much[sizeof much - 1 - less] = 0;
		open_sender("ready,ready");
		run_until(1);
		sender_order(&s, much);
		run_until(2);
		CU_ASSERT_STRING_EQUAL(heard(), "OOO");
		much[sizeof much - 1 - less] = 'o';
		close_sender();
	}
	much[sizeof much - 1] = 0;
}

/* No more of it waits to be sent than there is room for, however slow the standby is. */
static void a_copy_goes_as_there_is_room(void)
{
	struct kept *k = make_kept(MANY_PAGES);
	bool bounded;

	open_sender("ready|stops,kept");
	run_until(1);
	sender_copy(&s, k, now_ms() * 1000000);
	bounded = evbuffer_get_length(bufferevent_get_output(s.to)) <= ROOM;
	run_until_it_stops();
	CU_ASSERT(s.state == SENDER_COPIES && s.kept == k && evbuffer_get_length(bufferevent_get_output(s.to)) > 0);
	kill(s.ssh, SIGCONT);
	while (s.kept) {
		event_base_loop(s.base, EVLOOP_ONCE);
		bounded &= evbuffer_get_length(bufferevent_get_output(s.to)) <= ROOM;
	}
	CU_ASSERT(bounded);
	run_until(2);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, ""));
	CU_ASSERT_STRING_EQUAL(heard(), as_heard(k));
	close_sender();
	kept_free(k);
}

/* Nobody is told more, and the standby is: END, after whole records. */
static void the_end_in_each_state(void)
{
	static const struct { enum sender_state state; unsigned before; const char *script, *heard; } ends[] = {
		{ SENDER_STARTS, 0, "stops|ready", "OE" }, { SENDER_IDLE, 1, "ready|stops|over it is lost", "OE" },
		{ SENDER_COPIES, 1, "ready|stops", "OB0E" }, { SENDER_PREPARES, 1, "ready,stops|prepared", "OPE" },
		{ SENDER_GOES, 2, "ready,prepared,stops|up", "OPGE" },
	};
	struct kept *k = make_kept(MANY_PAGES);

	sender_end(&(struct sender){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		open_sender(ends[i].script);
		if (ends[i].before)
			bring_to(ends[i].state, k);
		run_until_it_stops();
		CU_ASSERT(s.state == ends[i].state && told.done == ends[i].before);
		sender_end(&s);
		sender_end(&s);
		CU_ASSERT(s.state != SENDER_OFF && !s.kept);
		kill(s.ssh, SIGCONT);
		run_until_off();
		CU_ASSERT(told.done == ends[i].before && !told.failed && !s.is_over);
		CU_ASSERT_STRING_EQUAL(heard(), ends[i].heard);
		close_sender();
	}
	kept_free(k);
}

/* ssh cannot be started, or is not there. */
static void no_ssh(void)
{
	open_sender("nothing");
	close_sender();
	setenv("VMP_SSH", "/nowhere/ssh", 1);
	memset(&told, 0, sizeof told);
	s.base = event_base_new();
	start("nothing", "orders");
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "cannot run /nowhere/ssh: No such file or directory"));
	close_sender();
}

int main(int argc, char **argv)
{
	unsigned failures;
	CU_pSuite suite;

	if (argc > 1 && !strcmp(argv[1], "-T"))
		return be_a_standby();
	signal(SIGPIPE, SIG_IGN);
	if (dup2(memfd_create("heard", 0), HEARD_FD) < 0 || CU_initialize_registry())
		return 1;
	suite = CU_add_suite("standby", NULL, NULL);
	CU_add_test(suite, "records cut anywhere", records_cut_anywhere);
	CU_add_test(suite, "no more is read than is wanted", no_more_is_read_than_is_wanted);
	CU_add_test(suite, "what is no record", what_is_no_record);
	CU_add_test(suite, "orders come back", orders_come_back);
	CU_add_test(suite, "the longest orders fit", the_longest_orders_fit);
	CU_add_test(suite, "wrong orders", wrong_orders);
	CU_add_test(suite, "damaged orders", damaged_orders);
	CU_add_test(suite, "a whole life", a_whole_life);
	CU_add_test(suite, "each answer in each state", each_answer_in_each_state);
	CU_add_test(suite, "it says that it lives", it_says_that_it_lives);
	CU_add_test(suite, "answers out of turn", answers_out_of_turn);
	CU_add_test(suite, "lines without an end", lines_without_an_end);
	CU_add_test(suite, "a long reason is cut", a_long_reason_is_cut);
	CU_add_test(suite, "the connection ends", the_connection_ends);
	CU_add_test(suite, "its last word is heard", its_last_word_is_heard);
	CU_add_test(suite, "another one takes its place", another_one_takes_its_place);
	CU_add_test(suite, "orders go in pieces", orders_go_in_pieces);
	CU_add_test(suite, "a copy goes as there is room", a_copy_goes_as_there_is_room);
	CU_add_test(suite, "the end in each state", the_end_in_each_state);
	CU_add_test(suite, "no ssh", no_ssh);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
