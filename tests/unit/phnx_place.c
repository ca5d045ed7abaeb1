/* phnx_place.c - tests of phoenix/routing/place.c alone: neighbours that name theirs. */
#include "phoenix/routing/routing_private.h"
#include "tests/unit/unit.h"

enum { N = 8, ME = 1000 };

static uint64_t op_now(void *ctx) { (void)ctx; return 1; }
static const struct phnx_ops ops = { .now = op_now };
static struct routes routes;
static struct contacts contacts;
static struct phnx ph = { .ops = &ops, .name = ME, .routes = &routes, .contacts = &contacts };
static struct neighbour neighbours[N];
static struct plink links[N];		/* to the nodes 0 to N - 1 */
static struct plink *all;

/* ---- what place.c calls ---- */

struct plink *link_first(const struct phnx *of)
{
	(void)of;
	return all;
}

unsigned link_count(const struct phnx *of)
{
	unsigned n = 0;

	(void)of;
	for (const struct plink *l = all; l; l = l->next)
		n++;
	return n;
}

struct plink *route_link_to(struct phnx *of, ph_vp_t peer)
{
	struct plink *l = all;

	(void)of;
	while (l && l->peer != peer)
		l = l->next;
	return l;
}

/* ---- the tests ---- */

static void connect(unsigned k)
{
	neighbours[k] = (struct neighbour){ 0 };
	links[k] = (struct plink){ .next = all, .ph = &ph, .state = LINK_UP, .slot = k,
				   .peer = k, .neighbour = neighbours + k };
	all = links + k;
	routes.up[0] |= 1u << k;
	place_link_up(links + k);
}

static void disconnect(unsigned k)
{
	struct plink **at = &all;

	while (*at != links + k)
		at = &(*at)->next;
	*at = links[k].next;
	routes.up[0] &= ~(1ull << k);
	place_link_down(links + k);
	place_forget(links + k);
}

static void begin(unsigned n)
{
	while (all)
		disconnect(all->slot);
	routes = (struct routes){ .up_words = 1 };
	contacts = (struct contacts){ 0 };
	for (unsigned k = 0; k < n; k++)
		connect(k);
}

/* Node k names all its neighbours.  Returns whether it is taken for one of another place. */
static bool name_all(unsigned k, uint64_t which)
{
	struct promise p = { .sender = links + k, .words = 1, .bits = { which } };

	place_named(links + k);
	return place_keep(links + k, &p);
}

/* Node k names these n nodes. */
static void name_some(unsigned k, unsigned n, const ph_vp_t *which)
{
	struct writer w = { 0 };

	put8(&w, (uint8_t)n);
	for (unsigned i = 0; i < n; i++)
		put64(&w, (uint64_t)which[i]);
	struct reader r = { w.data, w.data + w.len, false };
	place_get_some(links + k, &r);
	CU_ASSERT_EQUAL(r.bad, n > SOME_NAMES);
	free(w.data);
}

static void a_silent_neighbour_is_of_this_place(void)
{
	begin(2);
	CU_ASSERT(place_is_here(&routes, 0) && place_is_here(&routes, 1));
	CU_ASSERT(place_waits(&routes));
	CU_ASSERT(!place_any_away(&routes));
}

static void who_has_half_of_the_neighbours_is_of_this_place(void)
{
	begin(6);
	CU_ASSERT(!name_all(0, 1 << 0 | 1 << 1 | 1 << 2));
	CU_ASSERT(place_is_here(&routes, 0) && place_is_here(&routes, 2));
	CU_ASSERT(place_has_named(links, 2) && !place_has_named(links, 3));
	CU_ASSERT(name_all(5, 1 << 5));
	CU_ASSERT(!place_is_here(&routes, 5));
	CU_ASSERT(place_any_away(&routes));
	CU_ASSERT(place_waits(&routes));
	for (unsigned k = 1; k < 5; k++)
		name_all(k, 0x1f);
	CU_ASSERT(!place_waits(&routes));
}

/* A neighbour that has named only strangers is of another place, until they are neighbours. */
static void who_names_strangers_is_of_another_place(void)
{
	static const ph_vp_t strangers[] = { 4, 5, 6, 7 };

	begin(4);
	name_some(3, 4, strangers);
	CU_ASSERT(!place_is_here(&routes, 3));
	connect(4);
	place_judge(&ph);
	CU_ASSERT(!place_is_here(&routes, 3));
	connect(5);
	place_judge(&ph);
	CU_ASSERT(place_is_here(&routes, 3));
	CU_ASSERT_EQUAL(routes.places.n_unsure, 0);
}

/* If there are other places, one that names hardly any is of this one only if somebody here names
 * it. */
static void who_names_hardly_any_must_be_named(void)
{
	static const ph_vp_t me[] = { ME }, three[] = { ME, 3 };

	begin(4);
	name_some(2, 1, me);
	name_some(0, 2, three);
	CU_ASSERT(place_is_here(&routes, 2) && place_is_here(&routes, 0));
	contacts.failed = true;
	name_some(2, 1, me);
	name_some(3, 1, me);
	CU_ASSERT(!place_is_here(&routes, 2));
	CU_ASSERT(place_is_here(&routes, 3));
}

static void a_list_that_is_too_long_counts_for_nothing(void)
{
	static const ph_vp_t many[SOME_NAMES + 1] = { 0 };

	begin(2);
	name_some(1, SOME_NAMES + 1, many);
	CU_ASSERT_EQUAL(routes.places.n_unsure, 0);
	CU_ASSERT(place_is_here(&routes, 1));
}

static void a_link_that_ends_leaves_nothing(void)
{
	static const ph_vp_t strangers[] = { 6, 7 };

	begin(4);
	name_all(0, 0xf);
	name_some(3, 2, strangers);
	CU_ASSERT_EQUAL(routes.places.n_unsure, 1);
	disconnect(3);
	CU_ASSERT_EQUAL(routes.places.n_unsure, 0);
	CU_ASSERT(!place_is_here(&routes, 3));
	CU_ASSERT(!place_has_named(links, 3));
	disconnect(0);
	disconnect(1);
	disconnect(2);
	CU_ASSERT(!place_waits(&routes));
	for (unsigned i = 0; i < MAX_LINKS / 64; i++)
		CU_ASSERT(!routes.places.silent[i] && !routes.places.here[i] &&
			  !routes.places.away[i]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(a_silent_neighbour_is_of_this_place),
		UNIT_TEST(who_has_half_of_the_neighbours_is_of_this_place),
		UNIT_TEST(who_names_strangers_is_of_another_place),
		UNIT_TEST(who_names_hardly_any_must_be_named),
		UNIT_TEST(a_list_that_is_too_long_counts_for_nothing),
		UNIT_TEST(a_link_that_ends_leaves_nothing),
		UNIT_END
	};
	int status = UNIT_RUN("phnx_place", tests);

	begin(0);
	return status;
}
