/* monitor_fpstate.c - FPU and vector registers as bytes (monitor/fpstate.c): between processors
 * that keep them at different offsets, from damaged input, and between two real processes; and in a
 * debugger's form (monitor/fpregs.c).
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "monitor/fpregs.h"
#include "monitor/fpstate.h"
#include "tests/unit/unit.h"

/* Two processors with AVX and AVX-512, at different offsets, and one with AVX alone. */
static const struct xsave_layout here = { .offset = { 0, 0, 576, 0, 0, 832, 896, 1408 },
					  .bytes = { 0, 0, 256, 0, 0, 64, 512, 1024 } };
static const struct xsave_layout there = { .offset = { 0, 0, 576, 0, 0, 1088, 1152, 1664 },
					   .bytes = { 0, 0, 256, 0, 0, 64, 512, 1024 } };
static const struct xsave_layout small = { .offset = { 0, 0, 576 }, .bytes = { 0, 0, 256 } };

static uint8_t area[XSAVE_MAX_BYTES], other[XSAVE_MAX_BYTES], packed[FPSTATE_MAX_BYTES];
static char why[128];

static int fill(uint64_t in_use)
{
	for (unsigned i = 0; i < sizeof area; i++)
		area[i] = (uint8_t)(i * 7 + i / 256);
	memset(area + 24, 0, 4);     /* MXCSR */
	memset(area + 512, 0, 64);
	memcpy(area + 512, &in_use, sizeof in_use);
	memset(other, 0, sizeof other);
	memset(other + 28, 0xff, 2); /* MXCSR's mask */
	return fpstate_pack(&here, area, 2432, packed);
}

static void between_layouts(void)
{
	int n = fill(0xe7);
	uint64_t in_use;

	CU_ASSERT(n > 0 && n <= FPSTATE_MAX_BYTES);
	CU_ASSERT_EQUAL(fpstate_unpack(&there, packed, n, other, 2688, why, sizeof why), 0);
	CU_ASSERT(!memcmp(area, other, 28));
	CU_ASSERT(!memcmp(area + 32, other + 32, 432));
	for (unsigned c = 2; c < XSAVE_COMPONENTS; c++)
		CU_ASSERT(!memcmp(area + here.offset[c], other + there.offset[c], here.bytes[c]));
	memcpy(&in_use, other + 512, sizeof in_use);
	CU_ASSERT_EQUAL(in_use, 0xe7);
}

/* A stack of three whose top is register 5: a zero, a number, a NaN; and back. */
static void for_a_debugger(void)
{
	static const uint8_t one[10] = { 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f },
			     nan[10] = { 0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x7f };
	struct debug_registers r = { 0 }, again = { 0 };
	uint8_t back[512] = { 0 };

	fill(3);
	memcpy(area, &(uint16_t){ 0x37f }, 2);
	memcpy(area + 2, &(uint16_t){ 5 << 11 }, 2);
	area[4] = 0xe0;
	memset(area + 32, 0, 10);
	memcpy(area + 48, one, sizeof one);
	memcpy(area + 64, nan, sizeof nan);
	fpregs_get(area, &r);
	CU_ASSERT_EQUAL(r.fctrl, 0x37f);
	/* 2: the NaN, 0: the number, 1: the zero, 3: the empty ones */
	CU_ASSERT_EQUAL(r.ftag, 0x87ff);
	CU_ASSERT(!memcmp(r.st[1], one, sizeof one) && !memcmp(r.xmm[7], area + 160 + 7 * 16, 16));
	CU_ASSERT(!fpregs_same(&r, &again));
	fpregs_set(back, &r);
	fpregs_get(back, &again);
	CU_ASSERT(fpregs_same(&r, &again));
	CU_ASSERT_EQUAL(back[4], 0xe0);
}

/* What is not in use is not sent, and so is no reason to refuse. */
static void to_a_smaller_processor(void)
{
	int n = fill(0x7);

	CU_ASSERT_EQUAL(fpstate_unpack(&small, packed, n, other, 832, why, sizeof why), 0);
	n = fill(0xe7);
	CU_ASSERT_EQUAL(fpstate_unpack(&small, packed, n, other, 832, why, sizeof why), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "AVX-512"));
}

static void cut_anywhere(void)
{
	int n = fill(0xe7);

	for (int bytes = 0; bytes < n; bytes++)
		CU_ASSERT_EQUAL(fpstate_unpack(&there, packed, bytes, other, 2688, why, sizeof why),
				-1);
}

static void damaged(void)
{
	int n = fill(0xe7);
	const int first_part = 8 + 464;

	packed[0] ^= 1;
	CU_ASSERT_EQUAL(fpstate_unpack(&there, packed, n, other, 2688, why, sizeof why), -1);
	packed[0] ^= 1;
	for (int at = first_part; at < first_part + 8; at++) {
		packed[at] ^= 0x80;
		CU_ASSERT_EQUAL(fpstate_unpack(&there, packed, n, other, 2688, why, sizeof why),
				-1);
		packed[at] ^= 0x80;
	}
	packed[8 + 26] = 0xff; /* bits of MXCSR that no processor has: ptrace would refuse them */
	CU_ASSERT_EQUAL(fpstate_unpack(&there, packed, n, other, 2688, why, sizeof why), -1);
}

/* ---- real processes ---- */

/* Stops itself; its exit status then says whether %xmm5 holds `value`. */
static pid_t start_process(uint32_t value, bool set)
{
	pid_t pid = fork();
	uint32_t found = 0;

	if (pid) {
		CU_ASSERT(waitpid(pid, NULL, 0) == pid);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		_exit(2);
	if (set)
		__asm__ volatile("movd %0, %%xmm5" :: "r"(value) : "xmm5");
	__asm__ volatile("pxor %%xmm6, %%xmm6; int3; movd %%xmm5, %0"
			 : "=r"(found)::"xmm6", "memory");
	_exit(found == value ? 0 : 1);
}

static void between_processes(void)
{
	pid_t from = start_process(0xfeed, true), to = start_process(0xfeed, false);
	int n = fpstate_save(from, packed), status;

	CU_ASSERT_FATAL(n > 0);
	CU_ASSERT_EQUAL(fpstate_load(to, packed, n, why, sizeof why), 0);
	ptrace(PTRACE_CONT, to, 0, 0);
	CU_ASSERT(waitpid(to, &status, 0) == to);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	kill(from, SIGKILL);
	waitpid(from, NULL, 0);
	CU_ASSERT(fpstate_save(from, packed) < 0); /* gone */
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "between layouts", between_layouts },
		{ "for a debugger", for_a_debugger },
		{ "to a smaller processor", to_a_smaller_processor },
		{ "cut anywhere", cut_anywhere },
		{ "damaged", damaged },
		{ "between processes", between_processes },
		UNIT_END
	};

	return UNIT_RUN("fpstate", tests);
}
