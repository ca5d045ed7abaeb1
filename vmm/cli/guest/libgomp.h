/* libgomp.h - which libgomp a dynamic OpenMP program gets in the guest: this computer's, or the one
 * that knows hosts (libgomp-patches/). */
#ifndef VMM_CLI_GUEST_LIBGOMP_H
#define VMM_CLI_GUEST_LIBGOMP_H

#include "base/types.h"
#include "vmm/cli/guest/elfdeps.h"

#define LIBGOMP "libgomp.so.1"

/* Why the program gets the one or the other; the first that holds counts. */
#define LIBGOMP_REASONS(X) \
	X(ONE_HOST, false, "the machine has one host") \
	X(OFF, false, "--without gomp") \
	X(PRIVATE, false, "the program brings one of its own") \
	X(ABSENT, false, "no other is there: `make guest` builds it") \
	X(OLDER, false, "it has versions that the other lacks") \
	X(OURS, true, "it knows hosts")
enum libgomp_reason {
#define X(name, ...) LIBGOMP_##name,
	LIBGOMP_REASONS(X)
#undef X
	LIBGOMP_REASON_COUNT
};

struct libgomp_facts {
	uint32_t hosts;	     /* of the machine */
	uint32_t without;    /* its mechanisms that are off */
	const char *path;    /* of the libgomp that the loader would find on this computer */
	bool there;	     /* the one that knows hosts is there and undamaged */
	bool has_all;	     /* it defines all versions of symbols that the other one does */
};

/* Pure. */
enum libgomp_reason libgomp_decide(const struct libgomp_facts *facts);
bool libgomp_is_ours(enum libgomp_reason reason);

/* Replaces the path of libgomp among these libraries, if it is to be replaced; the log says at
 * level info which one the program gets, and why. */
void libgomp_choose(struct elfdeps *deps, uint32_t hosts, uint32_t without);

#endif
