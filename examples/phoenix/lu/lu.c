/* lu.c - LU factorisation by blocks (PPoPP 2003, section 4.3.2).
 *
 * Block i of the matrix (row by row) belongs to virtual node v(i) = K i mod |V|, where |V| is the
 * number of blocks and K is prime to it.  So every part of the matrix is spread over all processes,
 * however the virtual nodes are divided.
 *
 * Block (i, j) is done when it has taken min(i, j) updates and was then factored (i = j), or solved
 * with the diagonal block of its column (i > j) or row (i < j).  What other blocks need of it is an
 * `operand`.  The multicasting idiom sends it to the holder of a block that needs it.  That process
 * takes it for all its blocks, and sends it on to a holder below its virtual nodes and one above.
 * So each process gets an operand once.
 *
 *   lu [OPTIONS of crew.h] [N [B]]     an N x N matrix in B x B blocks
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "examples/phoenix/crew/crew.h"
#include "examples/phoenix/lu/kernel.h"

enum { MAX_BLOCKS = 64, TAG_OPERAND = 1, TAG_RESULT };

enum kind { DIAGONAL, LEFT, UPPER, N_KINDS };	/* factored (k, k); L of (i, k); U of (k, j) */
struct block {
	double *a;		/* NULL: the block is not here */
	int step;		/* how many updates it has taken */
	bool done;
};
struct operand {		/* head of a message; the operand's block follows */
	enum kind kind;
	int k, index;		/* the operand's step, and its row (LEFT) or column (UPPER) */
	ph_vp_t lo, hi;		/* it is for blocks whose virtual nodes are in [lo, hi) */
};
static long sizes[] = { 512, 32 };
static int n_blocks;		/* blocks in a row */
static ph_vp_t space;
static ph_vp_t multiplier = 61;	/* K: larger than most numbers of processes */
static struct block blocks[MAX_BLOCKS][MAX_BLOCKS];
/* [kind][k][index]; of a block that is here it is the block's own memory */
static double *operands[N_KINDS][MAX_BLOCKS][MAX_BLOCKS];
static bool arrived;		/* blocks have come from another process since work() last looked */
/* blocks or operands have come, or a block was done: more may be ready now */
static bool news;
/* used at the holder of virtual node 0 */
static struct { double *a[MAX_BLOCKS][MAX_BLOCKS]; long n; } result;

static size_t block_bytes(void) { return (size_t)(sizes[1] * sizes[1]) * sizeof(double); }
static int last_step(int i, int j) { return i < j ? i : j; }
static enum kind kind_of(int i, int j) { return i == j ? DIAGONAL : i > j ? LEFT : UPPER; }
static int index_of(int i, int j) { return i > j ? i : j; }
static ph_vp_t vp_of(int i, int j) { return multiplier * (i * n_blocks + j) % space; }

/* ---- the multicasting idiom ---- */

static bool needs(int i, int j, enum kind kind, int k, int index)
{
	switch (kind) {
	case DIAGONAL:
		return (i == k && j > k) || (j == k && i > k);
	case LEFT:
		return i == index && j > k;
	default:
		return j == index && i > k;
	}
}

/* Sends an operand to the holder of a block that needs it: the one in [lo, hi) that is nearest
 * to the middle. */
static void send_operand(struct operand o, const double *a)
{
	ph_vp_t best = PH_INVALID_VP, middle = o.lo + (o.hi - o.lo) / 2;
	struct bytes b = { 0 };

	for (int i = o.k; i < n_blocks; i++)
		for (int j = o.k; j < n_blocks; j++) {
			ph_vp_t v = vp_of(i, j);
			if (v >= o.lo && v < o.hi && needs(i, j, o.kind, o.k, o.index) &&
			    (best == PH_INVALID_VP || llabs(v - middle) < llabs(best - middle)))
				best = v;
		}
	if (best == PH_INVALID_VP)
		return;
	bytes_expect(&b, sizeof o + block_bytes());
	bytes_put(&b, &o, sizeof o);
	bytes_put(&b, a, block_bytes());
	crew_give(best, &b, TAG_OPERAND);
}

static void keep_operand(enum kind kind, int k, int index, const void *a)
{
	double **at = &operands[kind][k][index];

	if (*at)
		return;
	*at = allocate(block_bytes());
	memcpy(*at, a, block_bytes());
	news = true;
}

static void pass_operand_on(struct operand o, const double *a)
{
	struct operand below = o, above = o;

	below.hi = crew.lo < o.hi ? crew.lo : o.hi;
	above.lo = crew.hi > o.lo ? crew.hi : o.lo;
	send_operand(below, a);
	send_operand(above, a);
}

/* ---- the result ---- */

static double factored(long i, long j)
{
	return result.a[i / sizes[1]][j / sizes[1]][i % sizes[1] * sizes[1] + j % sizes[1]];
}

static void take_result(int i, int j, const void *a)
{
	result.a[i][j] = allocate(block_bytes());
	memcpy(result.a[i][j], a, block_bytes());
	if (++result.n < space)
		return;
	crew_stop_clock();
	double error = residual(sizes[0], factored);
	crew_finish(error < 1e-9, "%ld x %ld in blocks of %ld", sizes[0], sizes[0], sizes[1]);
}

/* ---- work ---- */

static bool ready(int i, int j)
{
	const struct block *b = &blocks[i][j];
	int k = b->step;

	if (!b->a || b->done)
		return false;
	if (k == last_step(i, j))
		return i == j || operands[DIAGONAL][k][k];
	return operands[LEFT][k][i] && operands[UPPER][k][j];
}

static void finish_block(int i, int j)
{
	struct block *b = &blocks[i][j];
	int k = b->step, n = (int)sizes[1], at[] = { i, j };
	struct operand o = { kind_of(i, j), k, index_of(i, j), 0, space };
	struct bytes r = { 0 };

	if (i == j)
		block_factor(b->a, n);
	else if (i > j)
		block_solve_right(b->a, operands[DIAGONAL][k][k], n);
	else
		block_solve_left(b->a, operands[DIAGONAL][k][k], n);
	b->done = news = true;
	if (!operands[o.kind][k][o.index])
		operands[o.kind][k][o.index] = b->a;
	pass_operand_on(o, b->a);
	if (crew_holds(0)) {
		take_result(i, j, b->a);
		return;
	}
	bytes_expect(&r, sizeof at + block_bytes());
	bytes_put(&r, at, sizeof at);
	bytes_put(&r, b->a, block_bytes());
	crew_give(0, &r, TAG_RESULT);
}

/* Returns a step below which all blocks here are done. */
static int least_step(void)
{
	static int least;	/* a block from another process may be at an earlier step */
	int k = arrived ? 0 : least;

	arrived = false;
	for (bool open = false; k < n_blocks && !open; k += !open)
		for (int i = k; i < n_blocks && !open; i++)
			open = (blocks[i][k].a && !blocks[i][k].done) ||
			       (blocks[k][i].a && !blocks[k][i].done);
	return least = k;
}

static bool step(int i, int j)
{
	struct block *b = &blocks[i][j];

	if (!ready(i, j))
		return false;
	if (b->step == last_step(i, j)) {
		finish_block(i, j);
	} else {
		block_update(b->a, operands[LEFT][b->step][i], operands[UPPER][b->step][j],
			     (int)sizes[1]);
		b->step++;
	}
	return true;
}

/* Works on a block that will be done first, since most other blocks wait for these; the rest of
 * the matrix is updated while operands are under way.  If nothing has come, goes on where it
 * was. */
static bool work(void)
{
	static int k, i;

	if (news)
		k = i = least_step();
	news = false;
	for (; k < n_blocks; i = ++k)
		for (; i < n_blocks; i++)
			if (step(i, k) || step(k, i))
				return true;
	return false;
}

static void receive(const struct ph_msg *m)
{
	struct view in = { m->body, (const unsigned char *)m->body + m->len };
	struct operand o;

	if (m->tag == TAG_RESULT) {
		int at[2];
		view_get(&in, at, sizeof at);
		take_result(at[0], at[1], in.p);
		return;
	}
	view_get(&in, &o, sizeof o);
	keep_operand(o.kind, o.k, o.index, in.p);
	pass_operand_on(o, (const double *)(const void *)in.p);
}

/* ---- state ---- */

static void begin(ph_vp_t lo, ph_vp_t hi)
{
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++) {
			if (vp_of(i, j) < lo || vp_of(i, j) >= hi)
				continue;
			blocks[i][j].a = allocate(block_bytes());
			news = true;
			block_fill(blocks[i][j].a, i, j, (int)sizes[1], sizes[0]);
		}
}

/* Packs an operand if one of the blocks that move has yet to take it. */
static void pack_operands(ph_vp_t lo, ph_vp_t hi, enum kind kind, int k, int index,
			  struct bytes *out)
{
	bool needed = false;

	if (!operands[kind][k][index])
		return;
	for (int i = k; i < n_blocks && !needed; i++)
		for (int j = k; j < n_blocks && !needed; j++)
			needed = vp_of(i, j) >= lo && vp_of(i, j) < hi && blocks[i][j].a &&
				 !blocks[i][j].done && blocks[i][j].step <= k &&
				 needs(i, j, kind, k, index);
	if (!needed)
		return;
	struct operand o = { kind, k, index, 0, 0 };
	bytes_put(out, &o, sizeof o);
	bytes_put(out, operands[kind][k][index], block_bytes());
}

static void pack_result(struct bytes *out)
{
	bytes_put(out, &result, sizeof result);
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++)
			if (result.a[i][j]) {
				bytes_put(out, result.a[i][j], block_bytes());
				free(result.a[i][j]);
			}
	memset(&result, 0, sizeof result);
}

static void unpack_result(struct view *in)
{
	view_get(in, &result, sizeof result);
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++)
			if (result.a[i][j]) {
				result.a[i][j] = allocate(block_bytes());
				view_get(in, result.a[i][j], block_bytes());
			}
}

static void pack(ph_vp_t lo, ph_vp_t hi, struct bytes *out)
{
	if (lo == 0)
		pack_result(out);
	size_t count_at = out->len;
	int n = 0;
	bytes_put(out, &n, sizeof n);
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++)
			if (vp_of(i, j) >= lo && vp_of(i, j) < hi) {
				n++;
				bytes_put(out, &i, sizeof i);
				bytes_put(out, &j, sizeof j);
				bytes_put(out, &blocks[i][j], sizeof blocks[i][j]);
				bytes_put(out, blocks[i][j].a, block_bytes());
			}
	memcpy(out->data + count_at, &n, sizeof n);
	for (int kind = 0; kind < N_KINDS; kind++)
		for (int k = 0; k < n_blocks; k++)
			for (int index = 0; index < n_blocks; index++)
				pack_operands(lo, hi, (enum kind)kind, k, index, out);
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++)
			if (vp_of(i, j) >= lo && vp_of(i, j) < hi) {
				if (operands[kind_of(i, j)][last_step(i, j)][index_of(i, j)] !=
				    blocks[i][j].a)
					free(blocks[i][j].a);
				blocks[i][j] = (struct block){ 0 };
			}
}

static void unpack(ph_vp_t lo, ph_vp_t hi, struct view *in)
{
	struct operand o;
	int n, i, j;

	(void)hi;
	arrived = news = true;
	if (lo == 0)
		unpack_result(in);
	for (view_get(in, &n, sizeof n); n; n--) {
		view_get(in, &i, sizeof i);
		view_get(in, &j, sizeof j);
		view_get(in, &blocks[i][j], sizeof blocks[i][j]);
		blocks[i][j].a = allocate(block_bytes());
		view_get(in, blocks[i][j].a, block_bytes());
	}
	while (in->p < in->end) {
		view_get(in, &o, sizeof o);
		keep_operand(o.kind, o.k, o.index, in->p);
		in->p += block_bytes();
	}
}

static ph_vp_t common_divisor(ph_vp_t a, ph_vp_t b) { return b ? common_divisor(b, a % b) : a; }

int main(int argc, char **argv)
{
	crew_options(argc, argv, sizes, 2, "[N [B]]");
	if (sizes[1] < 1 || sizes[0] < sizes[1] || sizes[0] % sizes[1] ||
	    sizes[0] / sizes[1] > MAX_BLOCKS)
		return 2;
	n_blocks = (int)(sizes[0] / sizes[1]);
	space = (ph_vp_t)n_blocks * n_blocks;
	while (common_divisor(multiplier, space) > 1)
		multiplier++;
	struct crew_app app = { "lu",  space,	(size_t)(sizes[0] * sizes[0]) * sizeof(double) * 3,
				begin, receive, work,
				pack,  unpack,	NULL };
	return crew_run(&app);
}
