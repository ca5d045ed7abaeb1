/* locked.c - see locked.h. */
#include "vcpu/locked.h"

bool locked_insn(const uint8_t *code, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		switch (code[i]) {
		case 0xf0: /* LOCK */
			return true;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: /* segments */
		case 0x66: case 0x67: case 0xf2: case 0xf3:
			continue;
		case 0x86: case 0x87: /* XCHG, with memory unless ModRM names two registers */
			return i + 1 < bytes && code[i + 1] < 0xc0;
		default:
			return false;
		}
	return false;
}
