/* registers.c - see registers.h. */
#include "vmm/cli/gdb/registers.h"

#include <errno.h>
#include <string.h>
#include "vmm/cli/gdb/rsp.h"

/* GDB numbers registers by their order here, which is the order of struct debug_registers. */
const char gdb_target_xml[] =
	"<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">"
	"<architecture>i386</architecture><feature name=\"org.gnu.gdb.i386.core\">"
	"<flags id=\"eflags_type\" size=\"4\">"
	"<field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"PF\" start=\"2\" end=\"2\"/>"
	"<field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"ZF\" start=\"6\" end=\"6\"/>"
	"<field name=\"SF\" start=\"7\" end=\"7\"/><field name=\"TF\" start=\"8\" end=\"8\"/>"
	"<field name=\"IF\" start=\"9\" end=\"9\"/><field name=\"DF\" start=\"10\" end=\"10\"/>"
	"<field name=\"OF\" start=\"11\" end=\"11\"/><field name=\"NT\" start=\"14\" end=\"14\"/>"
	"<field name=\"AC\" start=\"18\" end=\"18\"/><field name=\"ID\" start=\"21\" end=\"21\"/>"
	"</flags>"
#define WORD(name, type) "<reg name=\"" name "\" bitsize=\"32\" type=\"" type "\"/>"
#define VECTOR(id, of, count) "<vector id=\"" id "\" type=\"" of "\" count=\"" count "\"/>"
#define VIEW(name, type) "<field name=\"" name "\" type=\"" type "\"/>"
#define XMM(name) "<reg name=\"" name "\" bitsize=\"128\" type=\"vec128\" group=\"vector\"/>"
#define FLOAT(name) "<reg name=\"" name "\" bitsize=\"80\" type=\"i387_ext\"/>"
	WORD("eax", "int32") WORD("ecx", "int32") WORD("edx", "int32") WORD("ebx", "int32")
	WORD("esp", "data_ptr") WORD("ebp", "data_ptr") WORD("esi", "int32") WORD("edi", "int32")
	WORD("eip", "code_ptr") WORD("eflags", "eflags_type")
	WORD("cs", "int32") WORD("ss", "int32") WORD("ds", "int32") WORD("es", "int32")
	WORD("fs", "int32") WORD("gs", "int32")
	FLOAT("st0") FLOAT("st1") FLOAT("st2") FLOAT("st3")
	FLOAT("st4") FLOAT("st5") FLOAT("st6") FLOAT("st7")
	WORD("fctrl", "int") WORD("fstat", "int") WORD("ftag", "int") WORD("fiseg", "int")
	WORD("fioff", "int")
	WORD("foseg", "int") WORD("fooff", "int") WORD("fop", "int")
	"</feature><feature name=\"org.gnu.gdb.i386.sse\">"
	VECTOR("v4f", "ieee_single", "4") VECTOR("v2d", "ieee_double", "2")
	VECTOR("v16i8", "int8", "16")
	VECTOR("v8i16", "int16", "8") VECTOR("v4i32", "int32", "4") VECTOR("v2i64", "int64", "2")
	"<union id=\"vec128\">"
	VIEW("v4_float", "v4f") VIEW("v2_double", "v2d") VIEW("v16_int8", "v16i8")
	VIEW("v8_int16", "v8i16")
	VIEW("v4_int32", "v4i32") VIEW("v2_int64", "v2i64") VIEW("uint128", "uint128") "</union>"
	XMM("xmm0") XMM("xmm1") XMM("xmm2") XMM("xmm3") XMM("xmm4") XMM("xmm5") XMM("xmm6")
	XMM("xmm7") WORD("mxcsr", "int")
	"</feature><feature name=\"vmp.system\">"
	WORD("fs_base", "data_ptr") WORD("gs_base", "data_ptr")
	WORD("cr0", "int32") WORD("cr2", "data_ptr")
	WORD("cr3", "int32") WORD("cr4", "int32")
	"</feature></target>";
#undef WORD
#undef FLOAT
#undef XMM
#undef VIEW
#undef VECTOR
const size_t gdb_target_xml_bytes = sizeof gdb_target_xml - 1;

/* Groups of consecutive registers: how many, of how many bytes each, and whether a debugger may set
 * them. */
static const struct row { uint8_t count, bytes; bool settable; } rows[] = {
	{ 10, 4, true }, { 6, 4, false }, /* up to eflags; selectors */
	{ 8, 10, true },
	{ 3, 4, true }, { 5, 4, false }, /* fctrl, fstat, ftag; those of the last instruction */
	{ 8, 16, true }, { 1, 4, true },
	{ 6, 4, false }, /* system registers */
};

struct place { size_t at, bytes; bool settable; };

/* Returns false if there is no such register. */
static bool find(uint32_t number, struct place *place)
{
	*place = (struct place){ 0 };
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; number -= rows[i++].count) {
		if (number < rows[i].count) {
			place->at += number * rows[i].bytes;
			place->bytes = rows[i].bytes;
			place->settable = rows[i].settable;
			return true;
		}
		place->at += rows[i].count * rows[i].bytes;
	}
	return false;
}

void gdb_registers_text(const struct debug_registers *r, char *text)
{
	rsp_hex(r, sizeof *r, text);
}

int gdb_register_text(const struct debug_registers *r, uint32_t number, char *text)
{
	struct place place;

	if (!find(number, &place))
		return -EINVAL;
	rsp_hex((const char *)r + place.at, place.bytes, text);
	return 0;
}

int gdb_registers_set(struct debug_registers *r, const char *text)
{
	char all[sizeof *r];
	size_t n = rsp_unhex(text, all, sizeof all);
	struct place place;

	if (n < sizeof r->core)
		return -EINVAL;
	for (uint32_t number = 0; find(number, &place) && place.at + place.bytes <= n; number++)
		if (place.settable)
			memcpy((char *)r + place.at, all + place.at, place.bytes);
	return 0;
}

int gdb_register_set(struct debug_registers *r, uint32_t number, const char *text)
{
	struct place place;
	char value[16];

	if (!find(number, &place) || !place.settable ||
	    rsp_unhex(text, value, place.bytes) != place.bytes)
		return -EINVAL;
	memcpy((char *)r + place.at, value, place.bytes);
	return 0;
}
