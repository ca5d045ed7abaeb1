/* daemon_user.c - the user of daemon-sim, who types the input of the machine's command, and reads
 * its output and its errors; see daemons.h.
 *
 * The process that owns the machine has three pipes; some hold no more than a page.  The user
 * types, in pieces, as much as the guest is to read in this run, and reads now and then, or leaves.
 * Each byte that comes out must be the next one.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "vmm/cli/run/run_private.h"

enum { TYPES, READS, SMALL_PIPE = 4096, STREAMS = 3 };

static struct {
	int typing, reading[STREAMS]; /* the user's ends; -1: closed */
	uint32_t pos[STREAMS];	      /* bytes that were typed, or read */
	bool will_type, will_read;
} user = { .typing = -1, .reading = { -1, -1, -1 } };

static void later(uint32_t id)
{
	world_after_ns(1 + sim_random(machine, sim_chance(machine, 5) ? 3000000 : 300000),
		       WORLD_USER, OWNER, PORT_USER, id, NULL, 0);
}

static void new_pipe(int *mine, int *theirs, unsigned my_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		die("no pipe");
	if (sim_chance(machine, 30) && fcntl(ends[0], F_SETPIPE_SZ, SMALL_PIPE) < 0)
		die("no small pipe");
	*mine = ends[my_end];
	*theirs = ends[!my_end];
	if (fcntl(*mine, F_SETFL, O_NONBLOCK))
		die("no pipe");
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void user_open(struct run *run, const struct witness *from)
{
	int out, err;

	signal(SIGPIPE, SIG_IGN);
	new_pipe(&user.typing, &run->in.fd, 1);
	new_pipe(&user.reading[1], &out, 0);
	new_pipe(&user.reading[2], &err, 0);
	if (stream_out_start(&run->out, &run->client, 1, out) ||
	    stream_out_start(&run->err, &run->client, 2, err))
		die("no memory");
	user.pos[0] = from ? from->typed : 0;
	for (unsigned s = 1; s < STREAMS; s++)
		user.pos[s] = from ? from->cpu[s].guest.pos : 0;
	user.will_type = user.will_read = false;
	user_plan();
}

void user_close(struct run *run)
{
	close_end(&user.typing);
	close_end(&user.reading[1]);
	close_end(&user.reading[2]);
	close_end(&run->in.fd);
	close_end(&run->out.fd);
	close_end(&run->err.fd);
	stream_in_free(&run->in);
	stream_out_stop(&run->out);
	stream_out_stop(&run->err);
}

/* ---- typing ---- */

void user_plan(void)
{
	if (!user.will_type && user.typing >= 0)
		later(TYPES);
	user.will_type = true;
}

static void type_some(void)
{
	uint8_t bytes[2 * SMALL_PIPE];
	uint32_t n = 1 + sim_random(machine, sim_chance(machine, 30) ? sizeof bytes : 200),
		 left = guest_quota(0) - user.pos[0];
	ssize_t done;

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = guest_byte(0, user.pos[0] + i);
	done = left ? write(user.typing, bytes, n < left ? n : left) : 0;
	user.pos[0] += done > 0 ? (uint32_t)done : 0;
	sim_trace(machine, "%u of %u bytes are typed", user.pos[0], guest_quota(0));
	if (user.pos[0] == guest_quota(0) && guest_input_ends())
		close_end(&user.typing);
	user.will_type = user.pos[0] != guest_quota(0);
	if (user.will_type)
		later(TYPES);
	world_look_at_files();
}

/* ---- reading ---- */

static void read_some(unsigned s, uint32_t most)
{
	uint8_t bytes[4 * SMALL_PIPE];
	ssize_t n = read(user.reading[s], bytes, most < sizeof bytes ? most : sizeof bytes);

	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] != guest_byte(s, user.pos[s]++))
			sim_fail(machine, "byte %u of stream %u is not what comes next",
				 user.pos[s] - 1, s);
}

static bool is_to_be_read(unsigned s)
{
	struct pollfd file = { .fd = user.reading[s], .events = POLLIN };

	return user.reading[s] >= 0 && poll(&file, 1, 0) && file.revents & POLLIN;
}

void user_look(void)
{
	if (user.will_read || !(is_to_be_read(1) || is_to_be_read(2)))
		return;
	user.will_read = true;
	later(READS);
}

void user_on_event(uint32_t id)
{
	if (id == TYPES && user.typing >= 0)
		type_some();
	if (id != READS)
		return;
	user.will_read = false;
	for (unsigned s = 1; s < STREAMS; s++)
		if (is_to_be_read(s))
			read_some(s, 1 + sim_random(machine, 4 * SMALL_PIPE));
	if (sim_chance(machine, 1))
		close_end(&user.reading[1 + sim_random(machine, 2)]);
	world_look_at_files();
	user_look();
}

/* ---- the end ---- */

/* Reads all output that was held: as in run_end(), nothing will be printed again. */
static void read_all(struct stream_out *out, unsigned s, bool all)
{
	stream_out_release(out);
	while (is_to_be_read(s)) {
		read_some(s, ~0u);
		stream_out_release(out);
	}
	if (all && user.reading[s] >= 0 && user.pos[s] != guests[s].pos)
		sim_fail(machine, "%u bytes of stream %u have come, of %u that were said",
			 user.pos[s], s, guests[s].pos);
}

void user_check(struct run *run, bool all)
{
	read_all(&run->out, 1, all);
	read_all(&run->err, 2, all);
}
