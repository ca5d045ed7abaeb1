/* standby.c - fuzzes what a standby receives (vmm/cli/standby/record.h).  The first byte says in
 * what pieces the rest arrives, as records.  Those of orders together are orders, as takeover.c
 * takes them.
 *
 * Whatever is sent: no record is larger than a message, the pieces make no difference, and orders
 * that were accepted, printed and parsed again are the same.
 */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "vmm/cli/standby/orders.h"
#include "vmm/cli/standby/record.h"

static struct {
	char text[MAX_ORDERS];
	size_t n;
	uint32_t sum; /* of all records */
	bool over;
} heard;

static void on_orders(void)
{
	static struct orders orders, again;
	static char text[MAX_ORDERS], back[MAX_ORDERS];
	struct problem p;
	size_t n;

	if (orders_parse(&orders, heard.text, heard.n, &p)) {
		FUZZ_CHECK(memchr(p.line, 0, sizeof p.line) && p.line[0]);
		return;
	}
	n = orders_print(&orders, text, sizeof text);
	FUZZ_CHECK(n < sizeof text && !orders_parse(&again, text, n, &p));
	FUZZ_CHECK(orders_print(&again, back, sizeof back) == n && !memcmp(text, back, n));
}

static bool on_record(void *context, const struct snapfile_record *record, const void *data)
{
	const uint8_t *bytes = data;

	(void)context;
	FUZZ_CHECK(record->bytes <= MAX_MSG_PAYLOAD);
	heard.sum = (heard.sum * 31 + record->kind) * 31 + record->index;
	for (uint32_t i = 0; i < record->bytes; i++)
		heard.sum = heard.sum * 31 + bytes[i];
	heard.over = record->kind == STANDBY_END || heard.n + record->bytes > sizeof heard.text;
	if (record->kind != STANDBY_ORDERS || heard.over)
		return !heard.over;
	memcpy(heard.text + heard.n, data, record->bytes);
	heard.n += record->bytes;
	if (record->index) {
		on_orders();
		heard.n = 0;
	}
	return true;
}

/* Returns how it ends: -EPROTO, or 0. */
static int listen(const uint8_t *data, size_t size, size_t piece)
{
	static struct record_reader reader;
	int error = 0;

	reader = (struct record_reader){ .on_record = on_record };
	heard.n = heard.sum = heard.over = 0;
	for (size_t n; size && !error && !heard.over; data += n, size -= n) {
		n = piece && piece < size ? piece : size;
		error = record_read(&reader, data, n);
	}
	return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t sum;
	int error;

	if (!size)
		return 0;
	error = listen(data + 1, size - 1, 0);
	sum = heard.sum;
	FUZZ_CHECK(listen(data + 1, size - 1, *data) == error && heard.sum == sum);
	return 0;
}
