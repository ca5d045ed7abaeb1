/* load_flow.c - the command's streams: what the machine's stream device sends, and how the streams
 * begin to flow when the machine has started or is back. */
#include "vmm/cli/run/run_private.h"

#include <string.h>
#include "base/guest_abi.h"
#include "base/log.h"

static void see_output(struct run *run)
{
	run->output_seen = true;
	run_hide_progress(run);
}

void run_on_stream(struct run *run, const struct message *m, const struct msg_stream *stream)
{
	if (m->payload_bytes)
		see_output(run);
	if (stream->stream == 0 && stream->eof) /* the guest reads no more */
		stream_in_stop(&run->in);
	else if ((stream->stream != 1 && stream->stream != 2) ||
		 !stream_out_take(stream->stream == 1 ? &run->out : &run->err, m->payload,
				  m->payload_bytes))
		run_end(run, EXIT_VMP_FAILURE, "the I/O server broke the rules of the streams; "
			"this is a bug in vmp");
}

void run_on_stream_room(struct run *run, const struct message *m,
			const struct msg_stream_room *room)
{
	(void)m;
	if (room->stream)
		return;
	if (run_is_there(run)) {
		stream_in_room(&run->in, room->bytes);
	} else {
		run->input_room += room->bytes;
		run->input_taken = room->taken;
	}
}

void run_attach_streams(struct run *run)
{
	if (run->in.client) {
		stream_in_again(&run->in, run->input_taken, run->input_room);
		stream_out_again(&run->out);
		stream_out_again(&run->err);
	} else if (stream_in_start(&run->in, &run->client, run->input_taken,
				   run->loads ? run->input_room : STREAM_WINDOW)) {
		die("no memory");
	}
}
