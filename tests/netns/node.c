/* node.c - one process of tests/netns/run.  It sends to every other process until it is told to
 * stop, and checks that each message of the others arrives once and in order, and each of their
 * multicasts once.  At the end a reduction combines all values.
 *
 *   node CONFIG TAG INDEX COUNT NEIGHBOURS
 *
 * COUNT processes share the virtual nodes, WIDTH each.  NEIGHBOURS ("0,3,4") are the processes to
 * which it must have a direct link at the end, and to no others.  The script and the processes
 * communicate by files in the current folder (the script makes the first four):
 *
 *   enough   send no more; announce the number of messages to every process
 *   stop     leave
 *   away.I   process I leaves for a while, with its state in state.I and its messages in log.I;
 *            it reads both when it starts again
 *   late.I   process I will start later: do not wait for its first message
 *   met.I    process I writes it when it has received a message from each process
 *   done.I   process I writes it when it has received everything, and has the right neighbours
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "phnx/phnx.h"

enum {
	WIDTH = 5,
	MOST = 16,
	MOST_MESSAGES = 1 << 16,
	LARGE = 100000,
	LARGE_EVERY = 32,
	PACE_US = 10000,
	CAST_EVERY = 16,
	REDUCE_US = 300000000,
	TAG = 1,
	CAST = 2,
	REDUCTION = 3
};

struct message {
	int source;
	unsigned number;	/* of the source's messages to this process */
	bool last;		/* the last message; `number` is the number of those before it */
	/* the number of the source's multicasts; of a multicast, `number` counts these */
	unsigned casts;
};
struct peer {
	unsigned sent, received, announced;
	/* multicasts received from it; for this process itself: sent by it */
	unsigned casts, casts_announced;
	unsigned char cast_seen[MOST_MESSAGES];
	/* the smallest number that may arrive at each virtual node */
	unsigned next[WIDTH];
	bool told, heard_last;
	ph_vp_t name;
	unsigned char seen[MOST_MESSAGES];
};
static struct peer peers[MOST];
static int me, count;

static bool exists(const char *name, int i)
{
	char path[64];

	snprintf(path, sizeof path, i < 0 ? "%s" : "%s.%d", name, i);
	return access(path, F_OK) == 0;
}

static void create(const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "%s.%d", name, me);
	FILE *f = fopen(path, "w");
	if (f)
		fclose(f);
}

static void on_error(void *arg, int error, const char *text)
{
	(void)arg;
	fprintf(stderr, "%d: %s: %s\n", me, ph_strerror(error), text);
}

static void fail(const char *what, int source, unsigned number)
{
	fprintf(stderr, "%d: WRONG: %s: %u of process %d\n", me, what, number, source);
	_exit(1);
}

/* A message that finds no room in a queue is sent again in the next round: a process that waits
 * cannot be stopped. */
static void send_next(int to, bool last)
{
	static char buf[LARGE];
	struct peer *p = peers + to;
	struct message m = { me, p->sent, last, peers[me].casts };
	size_t len = !last && p->sent % LARGE_EVERY == LARGE_EVERY - 1 ? LARGE : sizeof m;

	memcpy(buf, &m, sizeof m);
	if (ph_sendx(to * WIDTH + p->sent % WIDTH, buf, len, TAG, 0))
		return;
	if (last)
		p->told = true;
	else
		p->sent++;
}

static void cast(void)
{
	struct message m = { .source = me, .number = peers[me].casts };

	if (m.number < MOST_MESSAGES && ph_multicast(0, count * WIDTH, &m, sizeof m, CAST) == 0)
		peers[me].casts++;
}

static void receive_cast(ph_msg_t msg)
{
	struct message m;

	memcpy(&m, msg->body, sizeof m);
	if (msg->len != sizeof m || m.source < 0 || m.source >= count || m.number >= MOST_MESSAGES)
		fail("a multicast of nonsense", m.source, m.number);
	if (m.source == me)
		return;
	if (peers[m.source].cast_seen[m.number]++)
		fail("a multicast received twice", m.source, m.number);
	peers[m.source].casts++;
}

static void receive(ph_msg_t msg)
{
	struct message m;

	if (msg->len < sizeof m || msg->dest / WIDTH != me)
		fail("not for this process", (int)msg->dest, 0);
	memcpy(&m, msg->body, sizeof m);
	if (m.source < 0 || m.source >= count || m.number >= MOST_MESSAGES)
		fail("nonsense", m.source, m.number);
	struct peer *p = peers + m.source;
	p->name = ph_get_source(msg);
	if (m.last) {
		if (p->heard_last)
			fail("the last message twice", m.source, m.number);
		p->heard_last = true;
		p->announced = m.number;
		p->casts_announced = m.casts;
		return;
	}
	if (p->seen[m.number])
		fail("received twice", m.source, m.number);
	if (m.number < p->next[msg->dest % WIDTH])
		fail("out of order", m.source, m.number);
	p->seen[m.number] = 1;
	p->next[msg->dest % WIDTH] = m.number;
	p->received++;
}

static bool heard_of_all(void)
{
	for (int i = 0; i < count; i++)
		if (i != me && !peers[i].name && !exists("late", i))
			return false;
	return true;
}

static bool received_all(void)
{
	for (int i = 0; i < count; i++)
		if (i != me && (!peers[i].heard_last || peers[i].received != peers[i].announced ||
				peers[i].casts != peers[i].casts_announced))
			return false;
	return true;
}

static unsigned neighbours(void)
{
	unsigned set = 0;

	for (int i = 0; i < count; i++)
		if (i != me && peers[i].name && ph_get_rtt(peers[i].name) >= 0)
			set |= 1U << i;
	return set;
}

static unsigned parse_set(char *list)
{
	unsigned set = 0;

	for (char *item = strtok(list, ","); item; item = strtok(NULL, ","))
		set |= 1U << atoi(item);
	return set;
}

/* Save or load the state of a process that is away, except its messages, which ph_finalize()
 * stores. */
static bool state(const char *mode)
{
	char path[64];

	snprintf(path, sizeof path, "state.%d", me);
	FILE *f = fopen(path, mode);
	bool ok = f && (*mode == 'w' ? fwrite(peers, sizeof peers, 1, f)
				     : fread(peers, sizeof peers, 1, f)) == 1;
	return (!f || fclose(f) == 0) && ok;
}

static void leave_for_a_while(void)
{
	char log[64];

	snprintf(log, sizeof log, "log.%d", me);
	ph_finalize(log, 5);
	_exit(state("w") ? 0 : 1);
}

/* Send one message to every process.  False: every process has been sent its last message. */
static bool send_round(void)
{
	static unsigned round;
	bool enough = exists("enough", -1), more = false;

	if (!enough && ++round % CAST_EVERY == 0)
		cast();
	for (int i = 0; i < count; i++)
		if (i != me && !peers[i].told) {
			send_next(i, enough || peers[i].sent + 1 == MOST_MESSAGES);
			more = true;
		}
	return more;
}

static void unite(void *into, const void *from, size_t len)
{
	*(unsigned *)into |= *(const unsigned *)from;
	(void)len;
}

/* Reduce a bit of each process to all processes. */
static bool reduce_all(void)
{
	unsigned all;
	int error;

	do {
		all = 1U << me;
		error = ph_reduce(0, count * WIDTH, REDUCTION, &all, sizeof all, unite, REDUCE_US);
	} while (error == PH_EBUSY);
	if (error || all != (1U << count) - 1)
		fprintf(stderr, "%d: WRONG: the reduction: %s, %#x\n", me, ph_strerror(error), all);
	return !error && all == (1U << count) - 1;
}

static void run(unsigned wanted)
{
	bool met = false, done = false;

	while (!exists("stop", -1)) {
		if (exists("away", me))
			leave_for_a_while();
		bool sending = send_round();
		ph_msg_t msg;
		for (long long wait = PACE_US; (msg = ph_timed_recv(TAG, wait)); wait = 0) {
			receive(msg);
			ph_msg_destroy(msg);
		}
		for (; (msg = ph_try_recv(CAST)); ph_msg_destroy(msg))
			receive_cast(msg);
		if (!met && heard_of_all()) {
			met = true;
			create("met");
		}
		if (!done && !sending && received_all() && neighbours() == wanted) {
			done = true;
			create("done");
		}
	}
	if (!done) {
		for (int i = 0; i < count; i++)
			fprintf(stderr,
				"%d: of process %d: %u received, %u announced; %u and %u "
				"multicasts\n",
				me, i, peers[i].received, peers[i].announced, peers[i].casts,
				peers[i].casts_announced);
		fprintf(stderr, "%d: neighbours %#x, expected %#x\n", me, neighbours(), wanted);
		_exit(1);
	}
	if (!reduce_all())
		_exit(1);
}

int main(int argc, char **argv)
{
	char log[64];

	if (argc != 6 || (count = atoi(argv[4])) > MOST) {
		fprintf(stderr, "usage: node CONFIG TAG INDEX COUNT NEIGHBOURS\n");
		return 2;
	}
	me = atoi(argv[3]);
	snprintf(log, sizeof log, "log.%d", me);
	bool back = state("r");
	ph_set_error_callback(on_error, NULL);
	ph_init(0, count * WIDTH, argv[1], argv[2], "netns",
		back && access(log, F_OK) == 0 ? log : NULL);
	ph_vps_t mine = ph_vps_create_range(me * WIDTH, (me + 1) * WIDTH);
	ph_assume_vps(mine);
	ph_vps_destroy(mine);
	run(parse_set(argv[5]));
	ph_finalize(NULL, 3);
	return 0;
}
