/* report_command.c - `vmp report`: looks at a running machine for a while, and writes what it did
 * as a page; or makes the page of a record that a run has left. */
#include <event2/event.h>
#include <stdio.h>
#include <time.h>
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/watch/recorder.h"
#include "vmm/cli/watch/reportpage.h"
#include "vmm/cli/watch/watching.h"

static struct reporter {
	struct watch watch;
	struct recorder recorder;
	struct event *over;
} reporter;

static void on_sample(void *context)
{
	(void)context;
	watch_is_answered(&reporter.watch);
	recorder_take(&reporter.recorder);
}

static void on_over(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events, (void)context;
	watch_end(&reporter.watch, 0, "");
}

static int write_report(struct watch *w)
{
	struct recording_about about = { .name = w->rundir.name,
					 .kernel = w->info.kernel,
					 .cpus = w->info.machine.cpus,
					 .mem_mib = w->info.machine.mem_mib,
					 .written = time(NULL) };

	recorder_stop(&reporter.recorder, NULL);
	return reportpage_write(w->o->file, &reporter.recorder.recording, &about, &w->why);
}

static void look(struct watch *w)
{
	const struct timeval limit = { w->o->for_ms / 1000, w->o->for_ms % 1000 * 1000 };

	w->sampler.on_sample = on_sample;
	reporter.over = evtimer_new(w->base, on_over, NULL);
	if (!reporter.over || event_add(reporter.over, &limit) ||
	    recorder_start(&reporter.recorder, w->base, &w->sampler, w->info.machine.mem_mib)) {
		problem(&w->why, "no memory");
		return;
	}
	event_base_dispatch(w->base);
	if (!w->status && !w->why.line[0])
		write_report(w);
}

static int convert(const struct options *o)
{
	struct problem p;

	if (!reportpage_convert(o->file, o->from, &p))
		return 0;
	log_error("%s", p.line);
	return EXIT_VMP_FAILURE;
}

int report_command(const struct options *o)
{
	struct watch *w = &reporter.watch;

	if (o->from)
		return convert(o);
	if (!watch_open(w, o) && !reportpage_check(o->file, &w->why))
		look(w);
	if (reporter.over)
		event_free(reporter.over);
	recorder_free(&reporter.recorder);
	return watch_close(w);
}
