/* registers.c - see registers.h. */
#include "vmm/gdb/registers.h"

#include <errno.h>
#include <string.h>
#include "vmm/gdb/rsp.h"

enum { FLOAT_FIRST = DEBUG_CORE_REGISTERS, FLOAT_WORD_FIRST = FLOAT_FIRST + GDB_FLOATS,
       SYSTEM_FIRST = FLOAT_WORD_FIRST + GDB_FLOAT_WORDS, SETTABLE = 10 };

/* GDB counts registers by their order here: sixteen, then the FPU's, then ours. */
const char gdb_target_xml[] =
	"<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">"
	"<architecture>i386</architecture><feature name=\"org.gnu.gdb.i386.core\">"
	"<flags id=\"eflags_type\" size=\"4\"><field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"PF\" start=\"2\" end=\"2\"/>"
	"<field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"ZF\" start=\"6\" end=\"6\"/>"
	"<field name=\"SF\" start=\"7\" end=\"7\"/><field name=\"TF\" start=\"8\" end=\"8\"/>"
	"<field name=\"IF\" start=\"9\" end=\"9\"/><field name=\"DF\" start=\"10\" end=\"10\"/>"
	"<field name=\"OF\" start=\"11\" end=\"11\"/><field name=\"NT\" start=\"14\" end=\"14\"/>"
	"<field name=\"AC\" start=\"18\" end=\"18\"/><field name=\"ID\" start=\"21\" end=\"21\"/></flags>"
#define WORD(name, type) "<reg name=\"" name "\" bitsize=\"32\" type=\"" type "\"/>"
#define FLOAT(name) "<reg name=\"" name "\" bitsize=\"80\" type=\"i387_ext\"/>"
	WORD("eax", "int32") WORD("ecx", "int32") WORD("edx", "int32") WORD("ebx", "int32")
	WORD("esp", "data_ptr") WORD("ebp", "data_ptr") WORD("esi", "int32") WORD("edi", "int32")
	WORD("eip", "code_ptr") WORD("eflags", "eflags_type")
	WORD("cs", "int32") WORD("ss", "int32") WORD("ds", "int32") WORD("es", "int32") WORD("fs", "int32") WORD("gs", "int32")
	FLOAT("st0") FLOAT("st1") FLOAT("st2") FLOAT("st3") FLOAT("st4") FLOAT("st5") FLOAT("st6") FLOAT("st7")
	WORD("fctrl", "int") WORD("fstat", "int") WORD("ftag", "int") WORD("fiseg", "int") WORD("fioff", "int")
	WORD("foseg", "int") WORD("fooff", "int") WORD("fop", "int")
	"</feature><feature name=\"vmp.system\">"
	WORD("fs_base", "data_ptr") WORD("gs_base", "data_ptr") WORD("cr0", "int32") WORD("cr2", "data_ptr")
	WORD("cr3", "int32") WORD("cr4", "int32")
	"</feature></target>";
#undef WORD
#undef FLOAT
const size_t gdb_target_xml_bytes = sizeof gdb_target_xml - 1;

static char *put_unknown(char *text, size_t bytes)
{
	memset(text, 'x', 2 * bytes);
	text[2 * bytes] = 0;
	return text + 2 * bytes;
}

void gdb_registers_text(const struct debug_registers *r, char *text)
{
	rsp_hex(r->core, sizeof r->core, text);
	text = put_unknown(text + 2 * sizeof r->core, 10 * GDB_FLOATS + 4 * GDB_FLOAT_WORDS);
	rsp_hex((const char *)r + sizeof r->core, sizeof *r - sizeof r->core, text);
}

int gdb_register_text(const struct debug_registers *r, uint32_t number, char *text)
{
	if (number < FLOAT_FIRST)
		rsp_hex(r->core + number, 4, text);
	else if (number < SYSTEM_FIRST)
		put_unknown(text, number < FLOAT_WORD_FIRST ? 10 : 4);
	else if (number - SYSTEM_FIRST < sizeof *r / 4 - DEBUG_CORE_REGISTERS)
		rsp_hex((const char *)r + sizeof r->core + 4 * (number - SYSTEM_FIRST), 4, text);
	else
		return -EINVAL;
	return 0;
}

int gdb_registers_set(struct debug_registers *r, const char *text)
{
	uint32_t core[SETTABLE];

	if (rsp_unhex(text, core, sizeof core) != sizeof core)
		return -EINVAL;
	memcpy(r->core, core, sizeof core);
	return 0;
}

int gdb_register_set(struct debug_registers *r, uint32_t number, const char *text)
{
	uint32_t value;

	if (number >= SETTABLE || rsp_unhex(text, &value, sizeof value) != sizeof value)
		return -EINVAL;
	r->core[number] = value;
	return 0;
}
