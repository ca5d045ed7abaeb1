/* wire.c - fuzzes what a node makes of the bytes of its neighbours.
 *
 * Three nodes in one process: the target in the middle, with a link to each of the others.  The
 * input is a list of steps, one byte each with what it needs: let a neighbour do something legal
 * and pass its bytes on, perhaps with one of them changed; invent a frame; pass a stranger's bytes
 * to a link that has proved nothing; let time pass; call the target.  So every frame can arrive in
 * every state, and the proofs of the handshake keep no input out.  The target must neither crash
 * nor grow without bound.  The same holds for its neighbours, which have the same code.
 */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"
#include "tests/fuzz/fuzz.h"

enum { SPACE = 96, WIDTH = 32, MAX_STEPS = 200 };
enum { TARGET, LEFT, RIGHT, N_NODES };

struct wire {			/* a connection between the target and another node */
	struct plink *near_end, *far_end;
};
static struct phnx *node[N_NODES];
static struct wire wires[N_NODES];		/* [TARGET]: the stranger's, without a far end */
static uint64_t now, randomness;
static struct reader in;

/* ---- the transport ---- */

static uint64_t op_now(void *ctx) { (void)ctx; return now; }
static void op_dial(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static void op_undial(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static void op_kick(void *ctx, struct plink *l) { (void)ctx; (void)l; }
static void op_report(void *ctx, int error, const char *text)
{
	(void)ctx;
	FUZZ_CHECK(error < 0 && text);
}
static void op_arrived(void *ctx) { (void)ctx; }

static void op_random(void *ctx, void *buf, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++) {
		randomness = randomness * 6364136223846793005u + 1442695040888963407u;
		((unsigned char *)buf)[i] = (unsigned char)(randomness >> 56);
	}
}

static void op_close(void *ctx, struct plink *l)
{
	struct wire *w = l->transport;

	(void)ctx;
	if (w->near_end == l)
		w->near_end = NULL;
	else
		w->far_end = NULL;
}

static const struct phnx_ops ops = { op_now,  op_random, op_dial,   op_undial,
				     op_kick, op_close,	 op_report, op_arrived };

/* ---- bytes from one end to the other ---- */

/* Gives n bytes to a link, in pieces; *end becomes NULL if it closes. */
static void feed(struct plink **end, const unsigned char *data, size_t n, size_t piece)
{
	while (n && *end) {
		size_t room;
		unsigned char *to = link_space(*end, &room);
		FUZZ_CHECK(to && room);
		size_t k = n < room ? n : room;
		k = k < piece ? k : piece;
		memcpy(to, data, k);
		data += k;
		n -= k;
		if (link_input(*end, k))
			*end = NULL;
	}
}

static void take_all(struct plink *l, struct writer *w)
{
	while (l->out) {
		struct outframe *f = l->out;
		size_t len = f->head_len + (f->body ? f->body->len : 0);
		put_bytes(w, f->head, f->head_len);
		if (f->body)
			put_bytes(w, f->body->data, f->body->len);
		link_taken(l, len);
	}
}

/* Passes what `from` has to send to `to`; the byte at `at` is changed by `change`. */
static void pass_on(struct plink **from, struct plink **to, size_t at, unsigned char change,
		    size_t piece)
{
	struct writer w = { 0 };

	if (*from)
		take_all(*from, &w);
	if (!w.bad && w.len) {
		w.data[at % w.len] ^= change;
		feed(to, w.data, w.len, piece);
	}
	free(w.data);
}

static void poll_all(void)
{
	for (int i = 0; i < N_NODES; i++)
		node_poll(node[i]);
}

static void settle(void)
{
	for (int round = 0; round < 6; round++) {
		poll_all();
		for (struct wire *w = wires + LEFT; w < wires + N_NODES; w++) {
			pass_on(&w->near_end, &w->far_end, 0, 0, 4096);
			pass_on(&w->far_end, &w->near_end, 0, 0, 4096);
		}
	}
}

static void lose(struct plink **end)
{
	struct plink *l = *end;

	*end = NULL;
	if (l)
		link_lost(l);
}

static void reconnect(int far)
{
	struct wire *w = wires + far;

	lose(&w->near_end);
	lose(&w->far_end);
	w->near_end = link_open(node[TARGET], w, NULL, NULL);
	if (far != TARGET)
		w->far_end = link_open(node[far], w, NULL, NULL);
}

/* ---- steps ---- */

static void range_of(struct ph_vps **vps)
{
	ph_vp_t lo = get8(&in) % SPACE;

	*vps = ph_vps_create_range(lo, lo + 1 + get8(&in) % WIDTH);
}

static void send_message(struct phnx *ph, unsigned kind)
{
	static char body[20000];
	ph_vp_t dest = get8(&in) % SPACE;
	struct pbuf *b = pbuf_new(body, kind & 1 ? sizeof body : get8(&in));

	flow_send_own(ph, dest, b, kind & 2 ? 1 : 2, kind & 4 ? DATA_UNORDERED : 0,
		      kind & 8 ? now + 1000000 : 0);
	pbuf_put(b);
}

/* Something that an application may do. */
static void act(struct phnx *ph)
{
	unsigned kind = get8(&in);
	struct ph_vps *vps;
	struct rmsg *m;

	switch (kind >> 4) {
	default:
		send_message(ph, kind);
		break;
	case 1:
		range_of(&vps);
		mapping_assume(ph, vps);
		ph_vps_destroy(vps);
		break;
	case 2:
		range_of(&vps);
		mapping_release(ph, vps);
		ph_vps_destroy(vps);
		break;
	case 3:
		collective_multicast(ph, 0, SPACE, 1, "multicast", kind & 7);
		break;
	case 4:
		migrate_begin(ph, WISH_JOIN + (kind & 3), 1 + get8(&in) % WIDTH, kind & 4 ? 1 : -1);
		break;
	case 5:
		migrate_cancel(ph);
		break;
	case 6:
		while ((m = flow_receive(ph, kind & 3)))
			free(m);
		break;
	case 7:
		reduce_begin(ph, 0, SPACE, kind & 3, 6);
		break;
	}
}

static void made_up_frame(struct plink **end)
{
	unsigned char frame[FRAME_HEAD + 256] = { 'P', 'H' };

	frame[2] = get8(&in) % N_FRAME_TYPES;
	frame[3] = PHNX_VERSION;
	frame[4] = get8(&in);
	size_t left = (size_t)(in.end - in.p), n = frame[4] < left ? frame[4] : left;
	frame[4] = (unsigned char)n;
	get_bytes(&in, frame + FRAME_HEAD, n);
	feed(end, frame, FRAME_HEAD + n, sizeof frame);
}

static void step(void)
{
	unsigned op = get8(&in);
	int far = op & 8 ? LEFT : RIGHT;
	struct wire *w = wires + far;
	size_t at, piece;

	switch (op & 7) {
	case 0:
		act(node[far]);
		break;
	case 1:
		act(node[TARGET]);
		break;
	case 2:
		at = get8(&in);
		at |= (size_t)get8(&in) << 8;
		piece = 1 + get8(&in) % 64u * 64u;
		pass_on(&w->far_end, &w->near_end, at, get8(&in), piece);
		break;
	case 3:
		settle();
		break;
	case 4:
		made_up_frame(&w->near_end);
		break;
	case 5:
		now += (uint64_t)1000 << get8(&in) % 16u;
		poll_all();
		break;
	case 6:
		reconnect(op & 16 ? TARGET : far);
		break;
	case 7:
		pass_on(&wires[TARGET].near_end, &(struct plink *){ NULL }, 0, 0, 1);
		made_up_frame(&wires[TARGET].near_end);
		break;
	}
}

static int give(void *arg, ph_vp_t lower, ph_vp_t upper, void **state, size_t *len)
{
	(void)arg;
	FUZZ_CHECK(lower < upper);
	*state = calloc(1, *len = 100);
	return 0;
}

static void take(void *arg, ph_vp_t lower, ph_vp_t upper, const void *state, size_t len)
{
	unsigned char sum = 0;

	(void)arg;
	FUZZ_CHECK(lower < upper);
	for (size_t i = 0; i < len; i++)
		sum ^= ((const unsigned char *)state)[i];
	randomness ^= sum;		/* every byte was read */
}

static void gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	(void)arg;
	(void)name;
	(void)returned;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct reader){ data, data + size, false };
	now = 1000000;
	randomness = 1;
	memset(wires, 0, sizeof wires);
	for (int i = 0; i < N_NODES; i++) {
		node[i] = node_new(&ops, NULL, 0, SPACE);
		migrate_set_app(node[i], &(struct ph_migration){ give, take, NULL });
		detect_set_timeout(node[i], 20000000);
		flow_set_gone(node[i], PH_GONE_RETURN, gone, NULL);
		struct ph_vps *mine = ph_vps_create_range(i * WIDTH, (i + 1) * WIDTH);
		mapping_assume(node[i], mine);
		ph_vps_destroy(mine);
	}
	for (int i = LEFT; i < N_NODES; i++)
		reconnect(i);
	settle();
	for (int i = 0; i < MAX_STEPS && in.p < in.end; i++)
		step();
	settle();
	for (int i = 0; i < N_NODES; i++) {
		FUZZ_CHECK(node[i]->flows->in_bytes <= RECV_QUEUE_BYTES + MAX_FRAME);
		node_free(node[i]);
	}
	return 0;
}
