/* filter.h - how the VM process writes its seccomp filters: each ends with GIVE(REFUSE), and the
 * one who includes this defines REFUSE. */
#ifndef VMPROC_FILTER_H
#define VMPROC_FILTER_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_AT(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define LOAD_LOW(n) LOAD_AT(offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD_HIGH(n) LOAD_AT(offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#define GIVE(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Continue if the loaded word is k, otherwise refuse. */
#define MUST_BE(k) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), 1, 0), GIVE(REFUSE)
#define BELOW_4_GIB(n) LOAD_HIGH(n), MUST_BE(0)
/* All 64 bits of an argument. */
#define ADDRESS(n, k) LOAD_LOW(n), MUST_BE(k), LOAD_HIGH(n), MUST_BE((uint64_t)(k) >> 32)
/* Skip `length` instructions unless the loaded word is k. */
#define IF(k, length) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), 0, (length))
/* Loads the low half of the address behind the `syscall`, after a check of the upper one. */
#define FROM_UPPER(k) \
	LOAD_AT(offsetof(struct seccomp_data, instruction_pointer) + 4), \
	MUST_BE((uint64_t)(k) >> 32), LOAD(instruction_pointer)

long vmproc_install_filter(struct sock_filter *filter, unsigned short length);

#endif
