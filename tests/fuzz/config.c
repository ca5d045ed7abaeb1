/* config.c - fuzzes the configuration language: the first line is the tag, the rest the text. */
#include <string.h>
#include "phoenix/calls/netconf.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t n = end ? (size_t)(end - data) : 0;
	struct netconf c;
	char tag[64];

	if (n >= sizeof tag)
		return 0;
	memcpy(tag, data, n);
	tag[n] = 0;
	data += end ? n + 1 : 0;
	size -= end ? n + 1 : 0;
	if (netconf_parse(&c, (const char *)data, size, n ? tag : NULL))
		FUZZ_CHECK(c.error[0] >= '1' && c.error[0] <= '9' && strchr(c.error, ':'));
	for (size_t i = 0; !c.error[0] && i < c.n_contacts; i++)
		FUZZ_CHECK(c.contacts[i].host[0] && c.contacts[i].port > 0 &&
			   c.contacts[i].port < 65536);
	netconf_free(&c);
	return 0;
}
