/* identity.c - see identity.h. */
#include "vpg/peer/identity.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include "vpg/wire/folder.h"

struct judge { identity_judge judge; void *arg; };

static EVP_PKEY *read_key(const char *folder, struct why *why)
{
	char text[2048];
	long n = folder_read(folder, "key", text, sizeof text);
	EVP_PKEY *key = NULL;
	BIO *bio;

	if (n == -EACCES) {
		why_set(why, "%s/key: must be yours and have mode 0600", folder);
		return NULL;
	}
	if (n < 0) {
		why_set(why, "%s/key: %s", folder, strerror((int)-n));
		return NULL;
	}
	bio = BIO_new_mem_buf(text, (int)n);
	if (bio)
		key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	BIO_free(bio);
	OPENSSL_cleanse(text, sizeof text);
	if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) {
		why_set(why, "%s/key: no Ed25519 key in PEM; remove it, and join again", folder);
		EVP_PKEY_free(key);
		return NULL;
	}
	return key;
}

static int make_key(const char *folder, struct why *why)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	BIO *bio = BIO_new(BIO_s_mem());
	int error = -ENOMEM;
	char *text;

	if (key && bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)) {
		long n = BIO_get_mem_data(bio, &text);
		error = folder_write(folder, "key", text, (size_t)n);
	}
	EVP_PKEY_free(key);
	BIO_free(bio);
	return error ? why_set(why, "%s/key: cannot make it: %s", folder, strerror(-error)) : 0;
}

/* Makes a certificate that carries the key.  Nobody checks its dates. */
static X509 *make_cert(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;

	if (name && X509_set_version(cert, 2) &&
	    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -86400) &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), 86400L * 36500) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"vmp-peer",
				       -1, -1, 0) &&
	    X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key) &&
	    X509_sign(cert, key, NULL))
		return cert;
	X509_free(cert);
	return NULL;
}

int identity_open(struct identity *id, const char *folder, struct why *why)
{
	size_t n = KEY_BYTES;
	char text[8];

	*id = (struct identity){ 0 };
	if (folder_read(folder, "key", text, sizeof text) == -ENOENT && make_key(folder, why))
		return -1;
	id->key = read_key(folder, why);
	if (!id->key)
		return -1;
	id->cert = make_cert(id->key);
	if (id->cert && EVP_PKEY_get_raw_public_key(id->key, id->public, &n) == 1)
		return 0;
	identity_close(id);
	return why_set(why, "out of memory");
}

void identity_close(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->cert);
	*id = (struct identity){ 0 };
}

static int key_of_cert(X509 *cert, unsigned char key[KEY_BYTES])
{
	EVP_PKEY *public = cert ? X509_get0_pubkey(cert) : NULL;
	size_t n = KEY_BYTES;

	return public && EVP_PKEY_get_base_id(public) == EVP_PKEY_ED25519 &&
	       EVP_PKEY_get_raw_public_key(public, key, &n) == 1 && n == KEY_BYTES ? 0 : -1;
}

/* Takes the place of checking a chain of certificates: only the key counts. */
static int verify(X509_STORE_CTX *store, void *arg)
{
	const struct judge *j = arg;
	unsigned char key[KEY_BYTES];
	int error = X509_V_ERR_CERT_UNTRUSTED;

	if (!key_of_cert(X509_STORE_CTX_get0_cert(store), key))
		error = j->judge(j->arg, key);
	X509_STORE_CTX_set_error(store, error ? error : X509_V_OK);
	return !error;
}

static void free_judge(void *parent, void *p, CRYPTO_EX_DATA *d, int i, long l, void *q)
{
	(void)parent, (void)d, (void)i, (void)l, (void)q;
	free(p);
}

SSL_CTX *identity_context(const struct identity *id, identity_judge judge, void *arg)
{
	static int slot = -1;
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	struct judge *j = malloc(sizeof *j);

	if (slot < 0)
		slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_judge);
	if (!ctx || !j || !SSL_CTX_set_ex_data(ctx, slot, j)) {
		free(j);
		SSL_CTX_free(ctx);
		return NULL;
	}
	*j = (struct judge){ judge, arg };
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, verify, j);
	if (SSL_CTX_use_certificate(ctx, id->cert) == 1 &&
	    SSL_CTX_use_PrivateKey(ctx, id->key) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

int identity_of_peer(SSL *ssl, unsigned char key[KEY_BYTES])
{
	return key_of_cert(SSL_get0_peer_certificate(ssl), key);
}

const char *identity_failure(bool open)
{
	unsigned long error = ERR_peek_last_error();
	int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;

	ERR_clear_error();
	switch (reason) {
	case 0: return "";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED: return "the key of this computer was revoked";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return "it does not know the key of this computer";
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
		return IDENTITY_NICK_TAKEN;
	case SSL_R_CERTIFICATE_VERIFY_FAILED: return "its key is not one of the network's";
	default:
		return open ? "a computer on the way has changed the data"
			    : "the TLS handshake failed";
	}
}
