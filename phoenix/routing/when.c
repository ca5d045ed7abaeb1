/* when.c - see when.h. */
#include "phoenix/core/bounds.h"
#include "phoenix/routing/when.h"

enum {
	REST = 2000, REST_PER_LINK = 100,
	LIMIT = 20000, LIMIT_PER_LINK = 300,
	FIRST_LIMIT = 300000, FIRST_PER_LINK = 5000,
	/* how long a node that has answered once may take for the next answer */
	BUSY = 50000,
	/* a dialed node that has not answered in so long, and twice the time of the slowest
	 * neighbour, is not there */
	LEAST_ANSWER = 5000,
	/* nobody waits for names, and sending them takes processor time from nodes that still
	 * connect */
	NAME_RESTS = 4,
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t rest(unsigned n_links, uint64_t lateness)
{
	return REST + (uint64_t)n_links * REST_PER_LINK + PAUSE_TURNS * lateness;
}

uint64_t when_at_rest(uint64_t progress, unsigned n_links, uint64_t lateness)
{
	return progress + rest(n_links, lateness);
}

/* Returns when everything is told at the latest. */
static uint64_t limit(const struct when_facts *f)
{
	uint64_t most = f->urgent ? f->urgent + LIMIT + (uint64_t)f->n_links * LIMIT_PER_LINK
				  : f->since + FIRST_LIMIT + (uint64_t)f->n_links * FIRST_PER_LINK;

	return most + MANY_TURNS * f->lateness;
}

struct when when_to_tell(const struct when_facts *f)
{
	uint64_t most = limit(f), pause = rest(f->n_links, f->lateness);
	uint64_t answers = f->progress + PAUSE_TURNS * f->lateness;
	uint64_t made = f->proving   ? answers + BUSY
			: f->hopeful ? answers + LEAST_ANSWER + 2 * f->slowest
				     : most_of(answers, f->now);
	uint64_t named =
		f->unnamed ? most_of(f->progress, f->named) + BUSY + (NAME_RESTS + 1) * pause : 0;

	return (struct when){
		.away = most_of(least_of(made, most), f->not_before),
		.here = most_of(least_of(made, most), f->not_before),
		.names = least_of(most_of(made, f->progress + NAME_RESTS * pause), most),
		.all = most_of(least_of(most_of(made, named), most), f->not_before),
	};
}
