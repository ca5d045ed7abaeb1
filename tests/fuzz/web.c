/* web.c - fuzzes what browsers and strangers send to `vmp web` and `vmp metrics`.  The first byte
 * chooses: a form with a command, a form with a size, a target, or a request's parts, each on a
 * line (method, target, Host, Origin, Authorization; an empty line: it is missing). */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "tests/fuzz/fuzz.h"
#include "vmm/cli/watch/httpgate.h"
#include "vmm/cli/web/webwords.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

enum { PARTS = 5, PART_BYTES = 128 };

static const struct httpgate_page pages[] = {
	{ "/", false, false, true },	  { "/api/record", false, true, false },
	{ "/keys", false, false, false }, { "/keys", true, false, false },
};

/* A command that is taken has one of the known beginnings, and words that lead nowhere else. */
static void read_command(const char *form, size_t bytes)
{
	struct webwords words;
	const char *why = NULL;
	int error = webwords_parse(form, bytes, &words, &why);

	FUZZ_CHECK(!error || (error == -EINVAL && why && *why));
	if (error)
		return;
	FUZZ_CHECK(words.n >= 2 && words.n <= 4 && words.file < words.n);
	for (unsigned i = 0; i < words.n; i++) {
		const char *word = words.word[i];

		FUZZ_CHECK(strnlen(word, WEBWORDS_BYTES) < WEBWORDS_BYTES);
		FUZZ_CHECK(isalnum((unsigned char)*word) && !strpbrk(word, "/%=& \n"));
	}
	FUZZ_CHECK(!strcmp(words.word[0], "cpu") || !strcmp(words.word[0], "host") ||
		   !strcmp(words.word[0], "policy") || !strcmp(words.word[0], "snapshot"));
	FUZZ_CHECK(!words.file == !!strcmp(words.word[0], "snapshot"));
}

static void read_size(const char *form, size_t bytes)
{
	uint32_t columns, rows;

	if (webwords_size(form, bytes, &columns, &rows))
		FUZZ_CHECK(columns && columns <= 1000 && rows && rows <= 1000);
}

static void read_target(const char *data, size_t bytes)
{
	char *target = strndup(data, bytes);

	FUZZ_CHECK(target);
	if (webwords_from(target))
		FUZZ_CHECK(strstr(target, "?from="));
	free(target);
}

/* Copies the line at `data` into `part`.  Returns the number of bytes that it takes. */
static size_t take_line(const char *data, size_t bytes, char part[PART_BYTES])
{
	const char *end = memchr(data, '\n', bytes);
	size_t n = end ? (size_t)(end - data) : bytes;
	size_t kept = n < PART_BYTES ? n : PART_BYTES - 1;

	memcpy(part, data, kept);
	part[kept] = 0;
	return end ? n + 1 : n;
}

/* Only who names this server, comes from no other page and has the token gets a page that is not
 * public. */
static void ask(const char *data, size_t bytes)
{
	char part[PARTS][PART_BYTES] = { "" };
	struct httpgate_request r;
	struct httpgate gate;
	const char *why;
	unsigned page = 0;
	int status;

	for (unsigned i = 0; i < PARTS; i++) {
		size_t n = take_line(data, bytes, part[i]);

		data += n;
		bytes -= n;
	}
	r = (struct httpgate_request){
		.reads = !strcmp(part[0], "GET"), .posts = !strcmp(part[0], "POST"),
		.twice = !strcmp(part[0], "GET GET"), .target = *part[1] ? part[1] : NULL,
		.host = *part[2] ? part[2] : NULL, .origin = *part[3] ? part[3] : NULL,
		.authorization = *part[4] ? part[4] : NULL };
	httpgate_set(&gate, "127.0.0.1:0", 91, TOKEN);
	status = httpgate_check(&gate, &r, pages, sizeof pages / sizeof *pages, &page, &why);
	FUZZ_CHECK((status == 200) == !*why);
	if (status != 200)
		return;
	FUZZ_CHECK(page < sizeof pages / sizeof *pages && pages[page].posts == r.posts);
	FUZZ_CHECK(!strncmp(r.target, pages[page].path, strlen(pages[page].path)));
	FUZZ_CHECK(!strcasecmp(r.host, "127.0.0.1:91") || !strcasecmp(r.host, "localhost:91"));
	FUZZ_CHECK(!r.origin || !strcasecmp(r.origin, "http://127.0.0.1:91") ||
		   !strcasecmp(r.origin, "http://localhost:91"));
	FUZZ_CHECK(pages[page].is_public ||
		   (r.authorization && !strncasecmp(r.authorization, "Bearer ", 7) &&
		    !strcmp(r.authorization + 7, TOKEN)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const read[])(const char *, size_t) = {
		read_command, read_size, read_target, ask
	};

	if (size)
		read[data[0] % 4]((const char *)data + 1, size - 1);
	return 0;
}
