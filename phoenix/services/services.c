/* services.c - start and end of the services, and which of them a message is for. */
#include "phoenix/flow/flow_upcalls.h"
#include "phoenix/services/services_private.h"

void services_on_message(struct phnx *ph, const struct rmsg *m)
{
	if (m->pub.tag == TAG_MIGRATION)
		migrate_on_message(ph, m);
	else if (m->pub.tag == TAG_MULTICAST)
		collective_on_message(ph, m);
	else
		reduce_on_message(ph, m);
}

void services_peer_gone(struct phnx *ph, ph_vp_t peer)
{
	migrate_peer_gone(ph, peer);
}

bool services_call_back(const struct phnx *ph)
{
	return ph->migration->app.give || ph->migration->app.take;
}

int services_init(struct phnx *ph)
{
	ph->migration = calloc(1, sizeof *ph->migration);
	ph->collectives = calloc(1, sizeof *ph->collectives);
	return ph->migration && ph->collectives ? 0 : -1;
}

void services_free(struct phnx *ph)
{
	if (ph->collectives)
		reduce_free(ph);
	free(ph->collectives);
	if (ph->migration)
		free(ph->migration->state);
	free(ph->migration);
}
