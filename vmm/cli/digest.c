/* digest.c - see digest.h. */
#include "vmm/cli/digest.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/evp.h>
#include <unistd.h>

#define LIBCRYPTO "libcrypto.so.3"
#define FUNCTIONS(F) F(EVP_MD_CTX_new) F(EVP_MD_CTX_free) F(EVP_DigestInit_ex) F(EVP_DigestUpdate) \
	F(EVP_DigestFinal_ex) F(EVP_sha256)
#define POINTER(name) __typeof__(&name) name;
static struct { FUNCTIONS(POINTER) } crypto;

static bool load(void)
{
	static void *library;

	if (library)
		return true;
	library = dlopen(LIBCRYPTO, RTLD_NOW);
	if (!library)
		return false;
#define FIND(name) \
	if (!(*(void **)&crypto.name = dlsym(library, #name))) \
		goto missing;
	FUNCTIONS(FIND)
	return true;
missing:
	dlclose(library);
	library = NULL;
	return false;
}

static EVP_MD_CTX *begin(void)
{
	EVP_MD_CTX *context = load() ? crypto.EVP_MD_CTX_new() : NULL;

	if (context && !crypto.EVP_DigestInit_ex(context, crypto.EVP_sha256(), NULL)) {
		crypto.EVP_MD_CTX_free(context);
		return NULL;
	}
	return context;
}

bool digest_of(const void *data, size_t bytes, unsigned char digest[DIGEST_BYTES])
{
	EVP_MD_CTX *context = begin();
	bool ok = context && crypto.EVP_DigestUpdate(context, data, bytes) &&
		  crypto.EVP_DigestFinal_ex(context, digest, NULL);

	if (context)
		crypto.EVP_MD_CTX_free(context);
	return ok;
}

bool digest_of_file(int fd, unsigned char digest[DIGEST_BYTES])
{
	static char buffer[65536];
	EVP_MD_CTX *context = begin();
	bool ok = context;
	ssize_t n = 0;

	errno = 0;
	while (ok && (n = read(fd, buffer, sizeof buffer)) > 0)
		ok = crypto.EVP_DigestUpdate(context, buffer, (size_t)n);
	ok = ok && n == 0 && crypto.EVP_DigestFinal_ex(context, digest, NULL);
	if (context)
		crypto.EVP_MD_CTX_free(context);
	return ok;
}
