/* crew.c - starting, the loop of a process, joining and leaving. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "examples/phoenix/crew/crew.h"

enum { TAG_BEGIN = CREW_TAGS, TAG_FINISH, TAG_KNOCK, TAG_ENTER };
enum {
	NEVER_JOINED = 3,
	STAY_STEPS = 30,
	STAY_US = 1500000,
	IDLE_US = 2000,
	ATTEMPT_US = 300000,
	KNOCK_US = 10000000,
	JOIN_US = 5000000,
	MOST = 32,
	LARGE = 4096,
	TRACE_US = 1000
};

struct letter {
	struct letter *next;
	ph_vp_t dest;
	void *body;
	size_t len;
	int tag;
	long long timeout;
};
struct crew crew;
static const struct crew_app *app;
/* guards the application's state, crew.lo and crew.hi */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static struct letter *outbox, **outbox_end = &outbox;
static struct {
	int begin, join, port;
	bool join_elsewhere;
	const char *config, *tag, *session;
	long long every_us, stay_us;	/* options -e and -k, in microseconds */
	int trace;			/* the descriptor of option -T's file */
} options = { .begin = 2, .trace = -1 };
static bool begun, finishing;
static atomic_bool finished, right;
static char verdict[200];
static long long began_us, stopped_us;

/* ---- small things ---- */

void *allocate(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (!p) {
		perror("memory");
		_exit(1);
	}
	return p;
}

static void grow(struct bytes *b, size_t room)
{
	b->room = room;
	b->data = realloc(b->data, b->room);
	if (!b->data) {
		perror("memory");
		_exit(1);
	}
}

void bytes_expect(struct bytes *b, size_t n)
{
	if (n > b->room - b->len)
		grow(b, b->len + n);
}

void bytes_put(struct bytes *b, const void *from, size_t n)
{
	if (n > b->room - b->len)
		grow(b, 2 * b->room + n);
	if (n)
		memcpy(b->data + b->len, from, n);
	b->len += n;
}

void view_get(struct view *v, void *to, size_t n)
{
	if ((size_t)(v->end - v->p) < n) {
		fprintf(stderr, "%s: a truncated message\n", app->name);
		_exit(1);
	}
	if (n)
		memcpy(to, v->p, n);
	v->p += n;
}

uint64_t crew_random(void)
{
	static uint64_t x;

	if (!x)
		x = (uint64_t)crew_now_us() << 20 ^ (uint64_t)getpid();
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

long long crew_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* ---- what the application calls ---- */

static void post(ph_vp_t dest, struct bytes *b, int tag, long long timeout)
{
	struct letter *l = allocate(sizeof *l);

	*l = (struct letter){ .dest = dest,
			      .body = b->data,
			      .len = b->len,
			      .tag = tag,
			      .timeout = timeout };
	*b = (struct bytes){ 0 };
	*outbox_end = l;
	outbox_end = &l->next;
}

void crew_post(ph_vp_t dest, const void *body, size_t len, int tag, long long timeout)
{
	struct bytes b = { 0 };

	bytes_put(&b, body, len);
	post(dest, &b, tag, timeout);
}

void crew_give(ph_vp_t dest, struct bytes *b, int tag)
{
	post(dest, b, tag, 0);
}

void crew_stop_clock(void)
{
	stopped_us = crew_now_us();
}

void crew_finish(bool is_right, const char *format, ...)
{
	va_list args;

	finishing = true;
	right = is_right;
	if (!stopped_us)
		crew_stop_clock();
	va_start(args, format);
	vsnprintf(verdict, sizeof verdict, format, args);
	va_end(args);
}

/* ---- called by the library, in whatever thread runs its loop ---- */

/* Notes at once that the run is over: a virtual node that moves after this message takes that
 * along. */
static void on_finish(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	(void)arg;
	(void)source;
	right = m->len == sizeof(bool) && *(const bool *)m->body;
	finished = true;
}

static int give(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	struct bytes out = { 0 };

	(void)arg;
	pthread_mutex_lock(&state_lock);
	bool over[] = { finished, right };
	bytes_put(&out, over, sizeof over);
	app->pack(lo, hi, &out);
	if (lo == crew.lo)
		crew.lo = hi;
	else
		crew.hi = lo;
	pthread_mutex_unlock(&state_lock);
	*state = out.data;
	*len = out.len;
	return 0;
}

static void take(void *arg, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	struct view in = { state, (const unsigned char *)state + len };

	bool over[2];

	(void)arg;
	pthread_mutex_lock(&state_lock);
	view_get(&in, over, sizeof over);
	if (over[0]) {
		right = over[1];
		finished = true;
	}
	app->unpack(lo, hi, &in);
	if (crew.lo == crew.hi)
		crew.lo = crew.hi = lo;
	crew.lo = lo < crew.lo ? lo : crew.lo;
	crew.hi = hi > crew.hi ? hi : crew.hi;
	pthread_mutex_unlock(&state_lock);
}

/* ---- the trace for a plot ---- */

static void note(const char *what, unsigned steps)
{
	if (options.trace >= 0)
		dprintf(options.trace, "%lld %d %s %u\n", crew_now_us(), (int)getpid(), what,
			steps);
}

static void note_step(bool last)
{
	static unsigned steps;
	static long long noted_us;

	steps += !last;
	if (options.trace < 0 || (!last && crew_now_us() < noted_us + TRACE_US))
		return;
	note("steps", steps);
	steps = 0;
	noted_us = crew_now_us();
}

/* ---- the loop ---- */

/* Sends a message.  A large one is lent to the library, unless there is no room for it now. */
static void send_letter(struct letter *l)
{
	if (l->timeout)
		ph_timed_send(l->dest, l->body, l->len, l->tag, l->timeout);
	else if (l->len < LARGE || ph_send_page(l->dest, l->body, l->len, l->tag, free, l->body))
		ph_send(l->dest, l->body, l->len, l->tag);
	else
		return;
	free(l->body);
}

static void send_all(void)
{
	while (outbox) {
		struct letter *l = outbox;
		outbox = l->next;
		if (!outbox)
			outbox_end = &outbox;
		send_letter(l);
		free(l);
	}
	if (finishing) {
		finishing = false;
		printf("%s: %s: %s, %.3f s\n", app->name, verdict, right ? "verified" : "WRONG",
		       (double)(stopped_us - began_us) / 1e6);
		fflush(stdout);
		ph_multicast(0, app->space, &(bool){ right }, sizeof(bool), TAG_FINISH);
	}
}

static void on_begin(void)
{
	begun = true;
	began_us = crew_now_us();
}

static void handle(ph_msg_t m)
{
	if (m->tag == TAG_BEGIN) {
		on_begin();
	} else if (m->tag == TAG_KNOCK) {
		ph_send(ph_get_source(m), NULL, 0, TAG_ENTER);
	} else {
		pthread_mutex_lock(&state_lock);
		if (crew_holds(m->dest))
			app->receive(m);
		else
			crew_post(m->dest, m->body, m->len, m->tag, 0);
		pthread_mutex_unlock(&state_lock);
		send_all();
	}
	ph_msg_destroy(m);
}

/* Does a step, and handles what has arrived.  False: there was nothing to work on. */
static bool turn(void)
{
	pthread_mutex_lock(&state_lock);
	bool busy = begun && app->work();
	pthread_mutex_unlock(&state_lock);
	if (busy)
		note_step(false);
	send_all();
	ph_msg_t m = busy ? ph_try_recv(PH_MSG_ANY_TAG) : ph_timed_recv(PH_MSG_ANY_TAG, IDLE_US);
	for (; m; m = finished ? NULL : ph_try_recv(PH_MSG_ANY_TAG))
		handle(m);
	return busy;
}

/* ---- a process that joins and leaves ---- */

static void leave(void)
{
	crew.leaving = true;
	pthread_mutex_lock(&state_lock);
	if (app->evacuate)
		app->evacuate();
	pthread_mutex_unlock(&state_lock);
	send_all();
	while (!finished && ph_leave_vps(ATTEMPT_US)) {
		ph_msg_t m = ph_timed_recv(PH_MSG_ANY_TAG, IDLE_US);
		for (; m; m = finished ? NULL : ph_try_recv(PH_MSG_ANY_TAG))
			handle(m);
	}
}

/* Returns whether all founders are past the barrier, which counts virtual nodes: until then none
 * may move to a process that is not in it. */
static bool founders_are_ready(void)
{
	ph_timed_send(0, NULL, 0, TAG_KNOCK, KNOCK_US);
	ph_msg_t m = ph_timed_recv(TAG_ENTER, KNOCK_US);
	if (m)
		ph_msg_destroy(m);
	return m;
}

static int guest(int index)
{
	/* the founders begin when it has joined */
	bool awaited = index == 0 && !options.join_elsewhere;

	if (options.join_elsewhere && !founders_are_ready())
		return NEVER_JOINED;
	while (ph_join_vps(JOIN_US))
		if (!awaited)
			return NEVER_JOINED;
	if (awaited)
		ph_multicast(0, app->space, NULL, 0, TAG_BEGIN);
	on_begin();
	note("join", 0);
	long long end = began_us + (options.stay_us ? options.stay_us : STAY_US);
	for (int steps = 0; !finished && (options.join_elsewhere || crew_now_us() < end);
	     steps += turn())
		if (!options.stay_us && steps >= STAY_STEPS && !options.join_elsewhere)
			break;
	if (!finished)
		leave();
	note_step(true);
	note("leave", 0);
	return 0;
}

static int founder(int index, int gate)
{
	crew.lo = app->space * index / options.begin;
	crew.hi = app->space * (index + 1) / options.begin;
	app->begin(crew.lo, crew.hi);
	ph_vps_t mine = ph_vps_create_range(crew.lo, crew.hi);
	ph_assume_vps(mine);
	ph_vps_destroy(mine);
	if (ph_barrier(0, app->space, 1, -1))
		return 1;
	close(gate);		/* closing the last founder's end lets the guests in */
	if (options.join == 0)
		on_begin();
	while (!finished)
		turn();
	note_step(true);
	note("end", 0);
	return right ? 0 : 1;
}

static int process(int index, int gate)
{
	struct ph_migration migration = { give, take, NULL };
	char text[128], c;

	if (index >= options.begin) {
		while (read(gate, &c, 1) > 0) {}
		usleep((useconds_t)((index - options.begin) * options.every_us));
	}
	ph_init(0, app->space, options.config, options.tag, options.session, NULL);
	if (!options.config) {
		int end = options.port + options.begin + options.join;
		int n = snprintf(text, sizeof text, "listen_port [%d-%d]\ndest localhost:[%d-%d]\n",
				 options.port, end, options.port, end);
		ph_read_config(text, (size_t)n, NULL);
	}
	ph_set_migration(&migration);
	ph_set_handler(TAG_FINISH, on_finish, NULL);
	int status = index < options.begin ? founder(index, gate) : guest(index - options.begin);
	ph_finalize(NULL, 2);
	return status;
}

/* ---- the parent process ---- */

static bool port_is_free(int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	bool is;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	is = fd >= 0 && bind(fd, (struct sockaddr *)&in, sizeof in) == 0;
	close(fd);
	return is;
}

/* Returns the first of n ports in a row that are free, below those that the system hands out; or
 * -1.  Programs that start at once begin to look at different places. */
static int free_ports(int n)
{
	enum { FIRST = 10000, PLACES = 22000 / MOST };
	int place = getpid() % PLACES;

	for (int i = 0; i < PLACES; i++, place = (place + 1) % PLACES) {
		int port = FIRST + place * MOST, k = 0;

		while (k < n && port_is_free(port + k))
			k++;
		if (k == n)
			return port;
	}
	return -1;
}

static void read_option(int c)
{
	switch (c) {
	case 'n':
		options.begin = atoi(optarg);
		break;
	case 'j':
		options.join = atoi(optarg);
		break;
	case 'J':
		options.join_elsewhere = true;
		options.begin = 0;
		options.join = 1;
		break;
	case 'e':
		options.every_us = atoll(optarg) * 1000;
		break;
	case 'k':
		options.stay_us = atoll(optarg) * 1000;
		break;
	case 'T':
		options.trace = open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		break;
	case 'c':
		options.config = optarg;
		break;
	case 't':
		options.tag = optarg;
		break;
	case 's':
		options.session = optarg;
		break;
	default:
		options.begin = -1;
	}
}

void crew_options(int argc, char **argv, long *sizes, int n_sizes, const char *usage)
{
	int c;

	while ((c = getopt(argc, argv, "n:j:e:k:JT:c:t:s:")) != -1)
		read_option(c);
	for (int i = 0; i < n_sizes && optind + i < argc; i++)
		sizes[i] = atol(argv[optind + i]);
	if (options.begin < 0 || options.join < 0 || options.begin + options.join > MOST ||
	    (options.begin == 0 && !options.config)) {
		fprintf(stderr,
			"usage: %s [-n N] [-j N [-e MS] [-k MS]] [-J] [-T FILE] "
			"[-c CONFIG [-t TAG]] [-s SESSION] %s\n",
			argv[0], usage);
		exit(2);
	}
}

int crew_run(const struct crew_app *what)
{
	int came = 0, failed = 0, status, gate[2];
	pid_t pids[MOST];

	app = what;
	if (options.join && app->state_bytes > PH_MSG_MAX / 2) {
		fprintf(stderr, "%s: a state of %zu bytes is too large to move\n", app->name,
			app->state_bytes);
		return 2;
	}
	if (pipe(gate)) {
		perror("pipe");
		return 1;
	}
	if (!options.config && (options.port = free_ports(options.begin + options.join + 1)) < 0) {
		fprintf(stderr, "%s: there are no free ports in a row\n", app->name);
		return 1;
	}
	for (int i = 0; i < options.begin + options.join; i++)
		if ((pids[i] = fork()) == 0) {
			close(gate[i < options.begin ? 0 : 1]);
			_exit(process(i, gate[i < options.begin ? 1 : 0]));
		}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < options.begin + options.join; i++) {
		waitpid(pids[i], &status, 0);
		came += i >= options.begin && status == 0;
		failed +=
			status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == NEVER_JOINED);
	}
	if (options.join)
		printf("%s: %d of %d processes came meanwhile\n", app->name, came, options.join);
	return failed ? 1 : 0;
}
