/* intsort.c - integer sort by buckets, like IS of NAS (PPoPP 2003, section 4.3.1; thesis, section
 * 2.2.3).
 *
 * N keys in [0, M) are divided into a chunk for each of SPACE virtual nodes.  Bucket j, of the keys
 * in [j M/SPACE, (j+1) M/SPACE), belongs to virtual node j.  The keys of a chunk go to the buckets
 * by the multicasting idiom: one message has the keys for the whole space.  Each receiver takes
 * those for its own virtual nodes.  It sends those below, and those above, in one message each to
 * the middle of what is left.
 *
 *   intsort [OPTIONS of crew.h] [LOG2_N [LOG2_M]]     classes of NAS: S 16 11, W 20 16, A 23 19
 */
#include <string.h>
#include "examples/phoenix/crew/crew.h"
#include "examples/phoenix/intsort/keys.h"

enum { SPACE = 64, TAG_KEYS = 1, TAG_REPORT };

struct cell {			/* the state of one virtual node */
	uint32_t *chunk;	/* keys to be sent, or NULL */
	struct bytes bucket;
	unsigned chunks;	/* the chunks whose keys have arrived */
	bool sorted;
};
struct keys {	/* head of a message; the counts of [lo, hi) follow, then the keys by bucket */
	unsigned lo, hi;
};
struct report {
	unsigned bucket;
	uint32_t least, most;
	uint64_t count, sum;
	bool ordered;
};
static long sizes[] = { 20, 16 };
static struct cell cells[SPACE];
/* used at the holder of virtual node 0 */
static struct { struct report reports[SPACE]; unsigned n; } total;

static size_t chunk_keys(void) { return (size_t)1 << sizes[0] >> 6; }
static unsigned bucket_of(uint32_t key) { return key >> (sizes[1] - 6); }

/* ---- the multicasting idiom ---- */

/* Sends the keys for the buckets [lo, hi) to the holder of the middle one. */
static void send_keys(unsigned lo, unsigned hi, const uint32_t *counts, const uint32_t *keys)
{
	struct bytes b = { 0 };
	struct keys head = { lo, hi };
	size_t n = 0;

	if (lo >= hi)
		return;
	for (unsigned i = 0; i < hi - lo; i++)
		n += counts[i];
	bytes_expect(&b, sizeof head + (hi - lo) * sizeof *counts + n * sizeof *keys);
	bytes_put(&b, &head, sizeof head);
	bytes_put(&b, counts, (hi - lo) * sizeof *counts);
	bytes_put(&b, keys, n * sizeof *keys);
	crew_give(lo + (hi - lo) / 2, &b, TAG_KEYS);
}

/* Takes the keys for the buckets here, and sends the rest on. */
static void take_keys(unsigned lo, unsigned hi, const uint32_t *counts, const uint32_t *keys)
{
	const uint32_t *at = keys, *above = keys;
	unsigned first = lo, end = lo;

	for (unsigned i = lo; i < hi; at += counts[i++ - lo]) {
		if (!crew_holds(i)) {
			first += end == lo && first == i;
			continue;
		}
		bytes_put(&cells[i].bucket, at, counts[i - lo] * sizeof *at);
		cells[i].chunks++;
		end = i + 1;
		above = at + counts[i - lo];
	}
	send_keys(lo, first, counts, keys);
	send_keys(end, hi, counts + (end - lo), above);
}

static void on_keys(const struct ph_msg *m)
{
	struct view in = { m->body, (const unsigned char *)m->body + m->len };
	uint32_t counts[SPACE];
	struct keys head;

	view_get(&in, &head, sizeof head);
	view_get(&in, counts, (head.hi - head.lo) * sizeof *counts);
	take_keys(head.lo, head.hi, counts, (const uint32_t *)(const void *)in.p);
}

/* ---- work ---- */

static void distribute(struct cell *c)
{
	static uint32_t *keys;
	uint32_t counts[SPACE];

	if (!keys)
		keys = allocate(chunk_keys() * sizeof *keys);
	partition(c->chunk, chunk_keys(), (unsigned)sizes[1] - 6, SPACE, counts, keys);
	take_keys(0, SPACE, counts, keys);
	free(c->chunk);
	c->chunk = NULL;
}

static void sort(unsigned i)
{
	struct cell *c = cells + i;
	struct report r = { .bucket = i, .least = UINT32_MAX, .ordered = true };
	uint32_t *keys = (uint32_t *)(void *)c->bucket.data, base = (uint32_t)i << (sizes[1] - 6);

	r.count = c->bucket.len / sizeof *keys;
	counting_sort(keys, r.count, base, 1U << (sizes[1] - 6));
	for (size_t k = 0; k < r.count; k++) {
		r.sum += keys[k];
		r.least = keys[k] < r.least ? keys[k] : r.least;
		r.most = keys[k] > r.most ? keys[k] : r.most;
		r.ordered &= k == 0 || keys[k - 1] <= keys[k];
	}
	c->sorted = true;
	crew_post(0, &r, sizeof r, TAG_REPORT, 0);
}

static bool work(void)
{
	for (unsigned i = (unsigned)crew.lo; i < crew.hi; i++)
		if (cells[i].chunk) {
			distribute(cells + i);
			return true;
		}
	for (unsigned i = (unsigned)crew.lo; i < crew.hi; i++)
		if (cells[i].chunks == SPACE && !cells[i].sorted) {
			sort(i);
			return true;
		}
	return false;
}

/* ---- the end ---- */

static bool is_right(void)
{
	uint64_t counts[SPACE] = { 0 }, sums[SPACE] = { 0 }, n = 1ULL << sizes[0];
	bool right = true;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t key = key_number(i, (unsigned)sizes[1]);
		counts[bucket_of(key)]++;
		sums[bucket_of(key)] += key;
	}
	for (unsigned j = 0; j < SPACE; j++) {
		const struct report *r = total.reports + j;
		right &= r->ordered && r->count == counts[j] && r->sum == sums[j] &&
			 (r->count == 0 || (bucket_of(r->least) == j && bucket_of(r->most) == j));
	}
	return right;
}

static void receive(const struct ph_msg *m)
{
	struct view in = { m->body, (const unsigned char *)m->body + m->len };
	struct report r;

	if (m->tag == TAG_KEYS) {
		on_keys(m);
		return;
	}
	view_get(&in, &r, sizeof r);
	total.reports[r.bucket] = r;
	if (++total.n < SPACE)
		return;
	crew_stop_clock();
	crew_finish(is_right(), "2^%ld keys below 2^%ld", sizes[0], sizes[1]);
}

/* ---- state ---- */

static void begin(ph_vp_t lo, ph_vp_t hi)
{
	for (ph_vp_t v = lo; v < hi; v++) {
		cells[v].chunk = allocate(chunk_keys() * sizeof *cells[v].chunk);
		for (size_t i = 0; i < chunk_keys(); i++)
			cells[v].chunk[i] =
				key_number((uint64_t)v * chunk_keys() + i, (unsigned)sizes[1]);
	}
}

static void pack(ph_vp_t lo, ph_vp_t hi, struct bytes *out)
{
	if (lo == 0)
		bytes_put(out, &total, sizeof total);
	for (ph_vp_t v = lo; v < hi; v++) {
		struct cell *c = cells + v;
		bytes_put(out, c, sizeof *c);
		if (c->chunk)
			bytes_put(out, c->chunk, chunk_keys() * sizeof *c->chunk);
		bytes_put(out, c->bucket.data, c->bucket.len);
		free(c->chunk);
		free(c->bucket.data);
		*c = (struct cell){ 0 };
	}
}

static void unpack(ph_vp_t lo, ph_vp_t hi, struct view *in)
{
	if (lo == 0)
		view_get(in, &total, sizeof total);
	for (ph_vp_t v = lo; v < hi; v++) {
		struct cell *c = cells + v;
		view_get(in, c, sizeof *c);
		if (c->chunk) {
			c->chunk = allocate(chunk_keys() * sizeof *c->chunk);
			view_get(in, c->chunk, chunk_keys() * sizeof *c->chunk);
		}
		size_t len = c->bucket.len;
		c->bucket = (struct bytes){ allocate(len), len, len };
		view_get(in, c->bucket.data, len);
	}
}

int main(int argc, char **argv)
{
	crew_options(argc, argv, sizes, 2, "[LOG2_N [LOG2_M]]");
	if (sizes[0] < 6 || sizes[0] > 30 || sizes[1] < 6 || sizes[1] > 24)
		return 2;
	struct crew_app app = { "intsort", SPACE,   (size_t)2 * sizeof(uint32_t) << sizes[0],
				begin,	   receive, work,
				pack,	   unpack,  NULL };
	return crew_run(&app);
}
