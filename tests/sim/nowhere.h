/* nowhere.h - the part of struct outside (vmm/node/outside.h) that the simulator and the fuzzer of
 * the daemon do not play: nobody dials, nothing is sent late, no process is bound to a processor,
 * and the computer's clock tells nothing.
 */
#ifndef TESTS_SIM_NOWHERE_H
#define TESTS_SIM_NOWHERE_H

#include "vmm/node/outside.h"

static inline void nowhere_dial(struct node *node, unsigned peer, const char *where, size_t bytes)
{
	(void)node, (void)peer, (void)where, (void)bytes;
}
static inline void nowhere_nothing(struct node *node) { (void)node; }
static inline uint32_t nowhere_silent(const struct node *node)
{
	(void)node;
	return 0;
}
static inline void nowhere_bind(pid_t pid, const cpu_set_t *to) { (void)pid, (void)to; }
static inline void nowhere_memory(struct hostmem *memory, const char *root)
{
	(void)root;
	*memory = (struct hostmem){ .mib = 1024 };
}
static inline struct tsc_mark nowhere_mark(void) { return (struct tsc_mark){ 0 }; }
static inline uint32_t nowhere_khz(const struct tsc_mark *then) { (void)then; return 1000000; }
static inline bool nowhere_trusted(void) { return false; }

#define NOWHERE \
	.dial = nowhere_dial, .silent = nowhere_silent, .cork = nowhere_nothing, \
	.uncork = nowhere_nothing, .be_prompt = nowhere_nothing, .flush = nowhere_nothing, \
	.bind = nowhere_bind, .memory = nowhere_memory, .tsc_mark = nowhere_mark, \
	.tsc_khz_since = nowhere_khz, .tsc_trusted = nowhere_trusted

#endif
