/* invitation.c - see invitation.h.
 *
 * The text is "vmp-peer:" and base64 of: 1, expiry (8 bytes), port (2), key, token, number of
 * addresses, each address with its length before it, and 4 bytes of the SHA-256 of all that.
 */
#include "vpg/peer/invitation.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define HEAD "vmp-peer:"
enum { FORMAT = 1, CHECK_BYTES = 4, RAW_MAX = 1 + 8 + 2 + KEY_BYTES + TOKEN_BYTES + 1 +
	INVITATION_ADDRESSES * INVITATION_HOST + CHECK_BYTES };

static int check(const unsigned char *raw, size_t n, unsigned char digest[EVP_MAX_MD_SIZE])
{
	return EVP_Digest(raw, n, digest, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

static void swap(char *text, char a, char b)
{
	for (; *text; text++)
		*text = *text == a ? b : *text;
}

int invitation_print(const struct invitation *i, char text[INVITATION_TEXT])
{
	unsigned char raw[RAW_MAX + 2] = { FORMAT }, digest[EVP_MAX_MD_SIZE];
	size_t n = 1, head = strlen(HEAD);

	for (int b = 0; b < 8; b++)
		raw[n++] = (unsigned char)(i->expires >> 8 * b);
	raw[n++] = (unsigned char)i->port;
	raw[n++] = (unsigned char)(i->port >> 8);
	memcpy(raw + n, i->key, KEY_BYTES);
	memcpy(raw + n + KEY_BYTES, i->token, TOKEN_BYTES);
	n += KEY_BYTES + TOKEN_BYTES;
	raw[n++] = (unsigned char)i->n_hosts;
	for (unsigned h = 0; h < i->n_hosts; h++) {
		size_t bytes = strlen(i->hosts[h]);

		raw[n++] = (unsigned char)bytes;
		memcpy(raw + n, i->hosts[h], bytes);
		n += bytes;
	}
	if (check(raw, n, digest))
		return -ENOSPC;
	memcpy(raw + n, digest, CHECK_BYTES);
	n += CHECK_BYTES;
	n += (3 - n % 3) % 3;	/* pad with zeros, so that base64 needs no = at its end */
	if (head + n / 3 * 4 >= INVITATION_TEXT)
		return -ENOSPC;
	strcpy(text, HEAD);
	EVP_EncodeBlock((unsigned char *)text + head, raw, (int)n);
	swap(text + head, '+', '-');
	swap(text + head, '/', '_');
	return 0;
}

static int read_hosts(struct invitation *i, const unsigned char **at, const unsigned char *end)
{
	i->n_hosts = *(*at)++;
	if (i->n_hosts > INVITATION_ADDRESSES)
		return -EPROTO;
	for (unsigned h = 0; h < i->n_hosts; h++) {
		size_t bytes = *at < end ? *(*at)++ : INVITATION_HOST;

		if (bytes >= INVITATION_HOST || (size_t)(end - *at) < bytes)
			return -EPROTO;
		memcpy(i->hosts[h], *at, bytes);
		*at += bytes;
	}
	return 0;
}

static int read_raw(struct invitation *i, const unsigned char *raw, size_t n)
{
	enum { FIXED = 1 + 8 + 2 + KEY_BYTES + TOKEN_BYTES + 1 };
	const unsigned char *at = raw + 11, *end = raw + n;
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (n < FIXED + CHECK_BYTES || raw[0] != FORMAT)
		return -EPROTO;
	for (int b = 0; b < 8; b++)
		i->expires |= (uint64_t)raw[1 + b] << 8 * b;
	i->port = raw[9] | (unsigned)raw[10] << 8;
	memcpy(i->key, at, KEY_BYTES);
	memcpy(i->token, at + KEY_BYTES, TOKEN_BYTES);
	at += KEY_BYTES + TOKEN_BYTES;
	if (read_hosts(i, &at, end) || end - at < CHECK_BYTES || end - at > CHECK_BYTES + 2 ||
	    check(raw, (size_t)(at - raw), digest) || memcmp(at, digest, CHECK_BYTES))
		return -EPROTO;
	return 0;
}

int invitation_read(struct invitation *i, const char *text)
{
	char copy[INVITATION_TEXT];
	unsigned char raw[INVITATION_TEXT];
	int n;

	*i = (struct invitation){ 0 };
	if (strncmp(text, HEAD, strlen(HEAD)) || strlen(text) >= sizeof copy)
		return -EPROTO;
	snprintf(copy, sizeof copy, "%s", text + strlen(HEAD));
	swap(copy, '-', '+');
	swap(copy, '_', '/');
	if (strlen(copy) % 4 || strchr(copy, '='))
		return -EPROTO;
	n = EVP_DecodeBlock(raw, (const unsigned char *)copy, (int)strlen(copy));
	return n < 0 ? -EPROTO : read_raw(i, raw, (size_t)n);
}
