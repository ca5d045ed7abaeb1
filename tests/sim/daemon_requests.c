/* daemon_requests.c - the command lines of daemon-sim, which make random requests, several at a
 * time: to move processors, to choose a policy that moves them (daemon_policy.c), to add and remove
 * hosts, to save and to load the machine.  They check what comes of each: it is answered once, in
 * time, "done" or "as before", or lost with the machine.  A saved machine is the one that stood
 * still at the cut, also if its writer dies in the middle.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "vmm/cli/snapshot/pull.h"
#include "vmm/cli/snapshot/savefile.h"

enum { REQUESTS = 64, LIMIT_NS = 2000000000 };

struct request { enum request_kind kind; bool open; unsigned what, to; uint64_t since_ns; };
/* A client that saves: where to (memory or a file), what that must be, and for which request. */
struct saver {
	struct client client;
	struct pull pull;
	struct kept *kept;
	bool to_file, has_file;
	struct savefile to;
	struct snapfile_writer *writer; /* what a death in the middle leaves behind */
	char path[IO_PATH];
	struct witness cut, file; /* cut: of what is arriving. file: of the file before. */
	struct request *request;
};

static struct {
	unsigned n, open, adds_open;
	struct request request[REQUESTS];
	struct saver saver[LAST_CLIENT + 1];
	struct saver *saved; /* the last one that has a complete machine */
	bool loaded;	     /* the machine was loaded from there */
	jmp_buf writer_death;
	bool writes; /* a client writes to a file: that client may die */
} asked;

static struct { /* over all seeds */
	uint64_t done[REQUEST_KINDS], as_before[REQUEST_KINDS], lost;
} count;

static enum request_kind choose_request(void)
{
	static const enum request_kind some[] = { ASK_MOVE, ASK_MOVE, ASK_ADD, ASK_REMOVE,
						  ASK_SAVE };

	enum request_kind kind = some[sim_random(machine, ARRAY_LEN(some))];

	if (sim_chance(machine, 12))
		kind = ASK_POLICY;
	if (trouble.fault && sim_chance(machine, 60))
		kind = trouble.fault->most;
	/* Nobody is told of moves: a leaver forwards nothing, and after many moves in a row an
	 * interrupt would be forwarded more often than a cut waits for. */
	if ((kind == ASK_REMOVE || kind == ASK_POLICY) && fault_on(FAULT_MOVE_UNTOLD))
		kind = ASK_MOVE;
	return kind;
}

/* Without a fault only impossible requests are refused, and none because another change is being
 * made. */
static bool is_refusal(const char *why)
{
	static const char *const texts[] = { "already",	       "there is no",	"is the last one",
					     "may hold",       "is going down", "only starting",
					     "not started yet",
					     "are being placed" };

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (strstr(why, texts[i]))
			return true;
	return false;
}

static void close_request(struct request *r, uint32_t error, const char *why, uint32_t bytes)
{
	char line[256];

	snprintf(line, sizeof line, "%.*s", (int)bytes, why);
	if (!r->open)
		sim_fail(machine, "a request is answered twice: %s", line);
	sim_trace(machine, "request %zd: %s", r - asked.request, error ? line : "done");
	r->open = false;
	asked.open--;
	asked.adds_open -= r->kind == ASK_ADD;
	if (r->kind == ASK_POLICY && !error)
		policies_chosen(r->what, !asked.open);
	/* host 0 cannot leave while all of the memory is zero: nothing could be loaded */
	if (error && !is_refusal(line) &&
	    (world_cut.written || !strstr(line, "lacks the machine's memory"))) {
		if (trouble.number == NO_TROUBLE)
			sim_fail(machine, "nothing is wrong, but %s", line);
		count.as_before[r->kind]++;
		trouble.met = true;
	}
	count.done[r->kind] += !error;
}

/* ---- saving and loading ---- */

/* The saving client ends by Ctrl-C or is killed: its request ends neither with an error nor
 * done. */
static void saver_goes(struct saver *s)
{
	s->pull.active = false;
	world_after(WORLD_CLIENT_GONE, 0, PORT_CLIENT, (uint32_t)s->client.fd, NULL, 0);
	close_request(s->request, 0, "", 0);
}

/* Checks that the file is the old one, or the new one if that is possible. */
static void check_file(struct saver *s, bool may_be_new)
{
	savefile_abandon(&s->to);
	if (may_be_new && owner_file_is(s->path, &s->cut)) {
		s->file = s->cut;
		s->has_file = true;
		asked.saved = s;
	} else if (!owner_file_is(s->path, s->has_file ? &s->file : NULL)) {
		sim_fail(machine, "the machine's file is neither the one before nor the new one");
	}
}

/* If the writer dies at the last record or the commit, everything may have been written. */
static int write_to_file(struct saver *s, const struct snapfile_record *record, const void *data,
			 struct problem *p)
{
	int result;

	s->writer = s->to.file;
	if (setjmp(asked.writer_death)) {
		asked.writes = false;
		trouble.met = true;
		s->to.file = s->writer;
		check_file(s, !record && fault_on(FAULT_FILE_DIES) == 4);
		saver_goes(s);
		return 0;
	}
	asked.writes = true;
	result = record ? savefile_add(&s->to, record, data, p) : savefile_commit(&s->to, p);
	asked.writes = false;
	return result;
}

/* Called at any moment, also before the client's turn. */
static void give_up(struct saver *s)
{
	saver_goes(s);
	if (s->to_file)
		check_file(s, false);
}

static void on_impatience(void *context)
{
	struct saver *s = context;

	if (s->pull.active)
		give_up(s);
}

static int keep(void *context, const struct snapfile_record *record, const void *data,
		struct problem *p)
{
	struct saver *s = context;

	if (sim_chance(machine, 1))
		give_up(s);
	if (!s->pull.active)
		return 0;
	return s->to_file ? write_to_file(s, record, data, p) : kept_add(s->kept, record, data, p);
}

static void on_cut(void *context) { ((struct saver *)context)->cut = world_cut; }

static void on_file_saved(struct saver *s)
{
	static const char nothing[] = "there is no memory in it yet";
	struct problem p;

	if (write_to_file(s, NULL, NULL, &p)) {
		check_file(s, false);
		close_request(s->request, 1, s->cut.written ? p.line : nothing,
			      (uint32_t)strlen(s->cut.written ? p.line : nothing));
	} else if (s->request->open) { /* otherwise it has died */
		check_file(s, true);
		if (asked.saved != s)
			sim_fail(machine, "the machine's file is not what was saved");
		close_request(s->request, 0, "", 0);
	}
}

static void on_saved(void *context)
{
	struct saver *s = context;
	struct problem p;

	if (s->to_file)
		return on_file_saved(s);
	if (!kept_commit(s->kept, &p)) {
		owner_check_kept(s->kept, &s->cut);
		asked.saved = s;
	} else if (s->cut.written) { /* a machine without any memory cannot be loaded */
		sim_fail(machine, "what was saved %s", p.line);
	}
	close_request(s->request, 0, "", 0);
}

static void on_not_saved(void *context, const char *line, bool nothing_happened)
{
	struct saver *s = context;

	(void)nothing_happened;
	if (s->to_file)
		check_file(s, false);
	else
		kept_abandon(s->kept);
	close_request(s->request, 1, line, (uint32_t)strlen(line));
}

static bool fault_of_files(void)
{
	const struct fault *fault = trouble.fault;

	return fault && (fault->point == FAULT_FILE_DIES ||
			 (fault->point == FAULT_SNAPSHOT_FULL && fault->n >= 3));
}

/* Begins to save into memory, or into a file. */
static void begin_to_save(struct saver *s, unsigned number)
{
	char name[16];
	struct problem p;

	s->to_file = sim_chance(machine, fault_of_files() ? 80 : 15);
	if (!s->kept)
		s->kept = kept_new();
	if (!s->to_file)
		return kept_begin(s->kept, false);
	snprintf(name, sizeof name, "saved.%u", number);
	io_path(s->path, name);
	if (!s->has_file)
		unlink(s->path); /* left by another seed */
	if (savefile_begin(&s->to, s->path, &p))
		die("%s", p.line);
}

static void save(struct saver *s, unsigned number, struct request *request)
{
	uint64_t patience_ns = sim_random(machine, 3000) * 1000;
	struct loop loop = world_loop(OWNER);

	if (asked.saved == s)
		asked.saved = NULL;
	begin_to_save(s, number);
	s->client.fd = (int)number;
	s->request = request;
	s->pull.client = &s->client;
	s->pull.kernel = "kernel";
	s->pull.hosts = daemon_first()->hosts;
	s->pull.context = s;
	s->pull.cut = on_cut;
	s->pull.keep = keep;
	s->pull.done = on_saved;
	s->pull.failed = on_not_saved;
	pull_start(&s->pull, SNAPSHOT_APART);
	if (sim_chance(machine, 5))
		loop_once(&loop, patience_ns, on_impatience, s);
}

void client_on_hosts(unsigned client, uint32_t hosts)
{
	asked.saver[client].pull.hosts = hosts;
}

/* Loads on any number of hosts.  While the machine is loaded from there, or may have to be again,
 * nobody writes to that file. */
void requests_load_saved(void)
{
	if (!asked.saved || asked.loaded)
		return;
	asked.loaded = true;
	owner_load(asked.saved->to_file ? NULL : asked.saved->kept, asked.saved->path,
		   &asked.saved->cut, 1 + sim_random(machine, machine->n_nodes));
}

/* ---- all requests ---- */

/* Sends a request of that kind.  `fixed`: if it is a policy, then this one.  Returns false if it
 * cannot be asked for now. */
static bool ask(enum request_kind kind, bool fixed)
{
	unsigned seq = asked.n++ % REQUESTS, client = 1 + seq % LAST_CLIENT;
	struct request *r = &asked.request[seq];
	struct msg_cpu_move move = { .cpu = sim_random(machine, machine->n_cpus),
				     .seq = seq,
				     .host = sim_random(machine, machine->n_nodes) };
	struct msg_host host = { .seq = seq, .op = kind == ASK_ADD ? HOST_ADD : HOST_REMOVE,
				 .host = sim_random(machine, machine->n_nodes + 1) };
	bool no_more = (unsigned)__builtin_popcount(daemon_first()->hosts) + asked.adds_open >=
		       machine->n_nodes;

	if (r->open || (kind == ASK_SAVE && asked.saver[client].pull.active) ||
	    (kind == ASK_ADD && no_more))
		return false;
	policies_other_request();
	*r = (struct request){ .kind = kind,
			       .open = true,
			       .what = kind == ASK_MOVE ? move.cpu : host.host,
			       .to = move.host,
			       .since_ns = machine->now_ns };
	asked.adds_open += kind == ASK_ADD;
	asked.open++;
	if (kind == ASK_MOVE)
		world_send_client(client, MSG_CPU_MOVE, &move, sizeof move);
	else if (kind == ASK_SAVE)
		save(&asked.saver[client], client, r);
	else if (kind == ASK_POLICY)
		r->what = policies_ask(client, seq, fixed);
	else
		world_send_client(client, MSG_HOST, &host, sizeof host);
	return true;
}

void hosts_change(struct sim *sim, struct sim_event *event)
{
	(void)sim, (void)event;
	ask(choose_request(), false);
}

void client_on_answer(unsigned client, const struct msg_header *header, const void *body)
{
	struct { uint32_t first, tag, third, fourth; } words; /* the first words of all answers */
	uint32_t seq;

	memcpy(&words, body, sizeof words);
	seq = words.tag;
	if (header->type == MSG_SNAPSHOT_ITEM) {
		pull_on_item(&asked.saver[client].pull, body, header->bytes);
	} else if (header->type == MSG_CPU_MOVED) {
		close_request(&asked.request[seq], words.third,
			      (const char *)body + sizeof(struct msg_cpu_moved),
			      header->bytes - sizeof(struct msg_cpu_moved));
	} else if (header->type == MSG_POLICY) {
		close_request(&asked.request[seq], words.third,
			      (const char *)body + sizeof(struct msg_policy),
			      header->bytes - sizeof(struct msg_policy));
	} else if (words.third == HOST_DONE) {
		close_request(&asked.request[seq], words.fourth,
			      (const char *)body + sizeof(struct msg_host),
			      header->bytes - sizeof(struct msg_host));
	}
}

void requests_lose(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		count.lost += asked.request[i].open;
	memset(asked.request, 0, sizeof asked.request);
	asked.open = asked.adds_open = 0;
	policies_other_request();
	for (unsigned i = 1; i <= LAST_CLIENT; i++) {
		asked.saver[i].pull.active = false;
		savefile_abandon(&asked.saver[i].to);
	}
}

void requests_writer_dies(void)
{
	if (asked.writes)
		longjmp(asked.writer_death, 1);
}

void requests_ask_fixed(void) { ask(ASK_POLICY, true); }

/* ---- a seed ---- */

void requests_open(void) { memset(&asked, 0, sizeof asked); }

void hosts_watch(struct sim *sim)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (asked.request[i].open &&
		    sim->now_ns - asked.request[i].since_ns > LIMIT_NS)
			sim_fail(sim, "request %u of kind %u for %u comes to no end; fault %u", i,
				 asked.request[i].kind, asked.request[i].what, trouble.number);
}

void requests_check_idle(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (asked.request[i].open)
			sim_fail(machine, "request %u of kind %u for %u is not answered", i,
				 asked.request[i].kind, asked.request[i].what);
}

void requests_close(void)
{
	for (unsigned i = 1; i <= LAST_CLIENT; i++) {
		kept_free(asked.saver[i].kept);
		savefile_abandon(&asked.saver[i].to);
	}
}

uint64_t requests_report(void)
{
	static const char *const kinds[] = { "moves of processors", "hosts that come",
					     "hosts that go", "snapshots", "policies" };

	for (unsigned i = 0; i < REQUEST_KINDS; i++)
		printf("%s%llu %s done, %llu as before", i ? "; " : "  ",
		       (unsigned long long)count.done[i], kinds[i],
		       (unsigned long long)count.as_before[i]);
	return count.lost;
}
