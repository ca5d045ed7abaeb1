/* recorder.c - see recorder.h. */
#include "vmm/cli/watch/recorder.h"

#include <errno.h>
#include "base/clock.h"
#include "base/layout.h"

/* The first samples come more often, so that a short run has some. */
static uint32_t pause_ms(const struct recording *r)
{
	return r->n < RECORDING_DENSE && !r->slides ? RECORDING_DENSE_MS : r->interval_ms;
}

/* Asks for a sample, and once more after the recording's interval, which doubles when it is
 * full. */
static void on_tick(evutil_socket_t fd, short events, void *context)
{
	struct recorder *r = context;
	uint32_t ms = pause_ms(&r->recording);
	struct timeval pause = { ms / 1000, ms % 1000 * 1000 };

	(void)fd, (void)events;
	if (r->sampler == &r->own && !r->own.open)
		sampler_open(&r->own, r->base); /* asks as soon as node 0 has said the hosts */
	else
		sampler_ask(r->sampler);
	event_add(r->tick, &pause);
}

static void on_own_sample(void *context) { recorder_take(context); }
static void on_own_lost(void *context, const char *why) { (void)context, (void)why; }

int recorder_start(struct recorder *r, struct event_base *base, struct sampler *sampler,
		   uint32_t mem_mib)
{
	static const struct timeval now = { 0, 0 };

	r->base = base;
	r->sampler = sampler;
	sampler->wants_pages = true;
	if (recording_begin(&r->recording, ram_pages_of(mem_mib)))
		return -ENOMEM;
	r->tick = evtimer_new(base, on_tick, r);
	return r->tick && !event_add(r->tick, &now) ? 0 : -ENOMEM;
}

int recorder_start_own(struct recorder *r, struct event_base *base, const char *rundir,
		       uint32_t mem_mib)
{
	r->own = (struct sampler){ .rundir = rundir, .context = r, .on_sample = on_own_sample,
				   .on_lost = on_own_lost };
	if (recorder_start(r, base, &r->own, mem_mib))
		return -ENOMEM;
	r->recording.begin_ns = r->recording.last.at_ns = clock_now_ns();
	return 0;
}

void recorder_take(struct recorder *r)
{
	pageheat_sort(&r->sampler->now.report.heat);
	recording_add(&r->recording, &r->sampler->now);
}

void recorder_stop(struct recorder *r, struct status_look *last)
{
	if (!r->tick)
		return;
	event_free(r->tick);
	r->tick = NULL;
	if (r->sampler == &r->own) {
		sampler_close(&r->own);
		pageheat_free(&r->own.now.report.heat);
	}
	if (last) {
		pageheat_sort(&last->report.heat);
		recording_add(&r->recording, last);
	}
}

void recorder_free(struct recorder *r)
{
	recorder_stop(r, NULL);
	recording_free(&r->recording);
}
