/* verify.c - the program verify-vmlinux: proves that no sensitive instruction was left untreated.
 *
 * It decodes every executable section of a linked kernel, function by function, with a decoder
 * (Zydis) that is independent of the rewriter's parsing, but with the same table,
 * instructions.def.  It reports each instruction that the table wants marked or replaced and that
 * is not, and each jump that would enter behind a marker.  allowed.list has the exceptions with
 * their reasons; an exception that no longer occurs is an error too, so that the list stays true.
 *
 * It cannot see indirect jumps into the middle of a function.  The kernel has none but jump tables,
 * whose targets are labels, and labels are before markers.
 *
 * usage: verify-vmlinux VMLINUX ALLOWED-LIST
 * exit status 0: proved; 1: not; 125: the check could not be made
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "base/guest_abi.h"
#include "base/log.h"
#include "base/types.h"

enum operands { ANY, FROM_CS, FAR, FAR_DIRECT, CONTROL };
enum action { MARKER, REPLACE, TRAPS, NATIVE };
enum { MARKER_BYTES = 2, MAX_ALLOWED = 64, MAX_REASON = 160 };

struct instruction_class {
	const char *name, *mnemonics, *why;
	enum operands operands;
	enum action action;
	unsigned marked, bare, allowed;
};

static struct instruction_class classes[] = {
#define INSTRUCTION(class_, gas_, zydis_, operands_, action_, replacement_, why_) \
	{ .name = #class_, .mnemonics = zydis_, .why = why_, .operands = operands_, \
	  .action = action_ },
#define BYTES(class, bytes, action)
#include "asm-rewriter/instructions.def"
#undef INSTRUCTION
#undef BYTES
};

struct symbol {
	uint32_t address;
	const char *name;
};

struct allowed {
	char symbol[64], mnemonic[16], reason[MAX_REASON];
	unsigned met;
};

/* A growing list of addresses. */
struct addresses {
	uint32_t *at;
	size_t count, room;
};

struct verifier {
	ZydisDecoder decoder;
	struct symbol *symbols;
	size_t symbol_count;
	struct allowed allowed[MAX_ALLOWED];
	unsigned allowed_count;
	struct addresses behind_markers, branch_targets;
	unsigned instructions, undecodable, failures;
};

static void *check_memory(void *p)
{
	if (!p)
		die("no memory");
	return p;
}

static void addresses_add(struct addresses *a, uint32_t address)
{
	if (a->count == a->room) {
		a->room = a->room * 2 + 1024;
		a->at = check_memory(realloc(a->at, a->room * sizeof *a->at));
	}
	a->at[a->count++] = address;
}

static int address_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int symbol_compare(const void *a, const void *b)
{
	return address_compare(&((const struct symbol *)a)->address,
			       &((const struct symbol *)b)->address);
}

/* Return the last symbol at or before `address`; NULL: there is none. */
static const struct symbol *symbol_find(const struct verifier *v, uint32_t address)
{
	size_t low = 0, high = v->symbol_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (v->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &v->symbols[low - 1] : NULL;
}

static bool word_in(const char *word, const char *words)
{
	size_t length = strlen(word);

	for (const char *p = words; (p = strstr(p, word)); p += length)
		if ((p == words || p[-1] == ' ') && (!p[length] || p[length] == ' '))
			return true;
	return false;
}

static bool is_control(ZydisRegister reg)
{
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);

	return class == ZYDIS_REGCLASS_CONTROL || class == ZYDIS_REGCLASS_DEBUG ||
	       class == ZYDIS_REGCLASS_TEST;
}

static bool operands_match(enum operands kind, const ZydisDecodedInstruction *insn,
			   const ZydisDecodedOperand *operands)
{
	switch (kind) {
	case ANY:
		return true;
	case FROM_CS:
		for (unsigned i = 0; i < insn->operand_count_visible; i++)
			if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    operands[i].reg.value == ZYDIS_REGISTER_CS)
				return true;
		return false;
	case FAR:
		return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	case FAR_DIRECT:
		return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR &&
		       operands[0].type == ZYDIS_OPERAND_TYPE_POINTER;
	case CONTROL:
		for (unsigned i = 0; i < insn->operand_count_visible; i++)
			if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    is_control(operands[i].reg.value))
				return true;
		return false;
	}
	return false;
}

static struct instruction_class *class_find(const ZydisDecodedInstruction *insn,
					    const ZydisDecodedOperand *operands)
{
	const char *mnemonic = ZydisMnemonicGetString(insn->mnemonic);

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (word_in(mnemonic, classes[i].mnemonics) &&
		    operands_match(classes[i].operands, insn, operands))
			return &classes[i];
	return NULL;
}

static struct allowed *allowed_find(struct verifier *v, const char *symbol, const char *mnemonic)
{
	for (unsigned i = 0; i < v->allowed_count; i++)
		if (!strcmp(v->allowed[i].symbol, symbol) &&
		    !strcmp(v->allowed[i].mnemonic, mnemonic))
			return &v->allowed[i];
	return NULL;
}

static void fail(struct verifier *v, uint32_t address, const char *what, const char *why)
{
	const struct symbol *symbol = symbol_find(v, address);

	printf("%08x %s+0x%x: %s: %s\n", address, symbol ? symbol->name : "?",
	       symbol ? address - symbol->address : 0, what, why);
	v->failures++;
}

static void on_sensitive(struct verifier *v, struct instruction_class *class, uint32_t address,
			 const char *mnemonic, bool marked)
{
	const struct symbol *symbol = symbol_find(v, address);
	struct allowed *allowed;

	if (class->action == MARKER && marked) {
		class->marked++;
		addresses_add(&v->behind_markers, address);
		return;
	}
	if (class->action == TRAPS || class->action == NATIVE) {
		class->bare++;
		return;
	}
	allowed = symbol ? allowed_find(v, symbol->name, mnemonic) : NULL;
	if (allowed) {
		allowed->met++;
		class->allowed++;
		return;
	}
	class->bare++;
	fail(v, address, mnemonic, class->why);
}

/* Check `bytes` of code from `address` on: a function, or the piece between two symbols. */
static void verify_piece(struct verifier *v, uint32_t address, const uint8_t *code, size_t bytes)
{
	bool marked = false;

	while (bytes) {
		ZydisDecodedInstruction insn;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		struct instruction_class *class;
		ZyanU64 target;

		ZyanStatus status =
			ZydisDecoderDecodeFull(&v->decoder, code, bytes, &insn, operands);

		if (ZYAN_FAILED(status)) {
			v->undecodable++;
			fail(v, address, "data",
			     "cannot be decoded, so it cannot be checked");
			return;
		}
		v->instructions++;
		class = class_find(&insn, operands);
		if (class)
			on_sensitive(v, class, address, ZydisMnemonicGetString(insn.mnemonic),
				     marked);
		if (insn.attributes & ZYDIS_ATTRIB_IS_RELATIVE &&
		    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operands[0], address, &target)))
			addresses_add(&v->branch_targets, target);
		marked = insn.mnemonic == ZYDIS_MNEMONIC_INT &&
			 operands[0].imm.value.u == VMP_INT_MARKER;
		address += insn.length;
		code += insn.length;
		bytes -= insn.length;
	}
}

static void verify_section(struct verifier *v, uint32_t address, const uint8_t *code, size_t bytes)
{
	const struct symbol *end = v->symbols + v->symbol_count;
	const struct symbol *next = v->symbols;

	while (bytes) {
		size_t piece = bytes;

		while (next < end && next->address <= address)
			next++;
		if (next < end && next->address - address < bytes)
			piece = next->address - address;
		verify_piece(v, address, code, piece);
		address += piece;
		code += piece;
		bytes -= piece;
	}
}

static void verify_branches(struct verifier *v)
{
	struct addresses *behind = &v->behind_markers;

	qsort(behind->at, behind->count, sizeof *behind->at, address_compare);
	for (size_t i = 0; i < v->branch_targets.count; i++) {
		uint32_t target = v->branch_targets.at[i];

		if (bsearch(&target, behind->at, behind->count, sizeof target, address_compare))
			fail(v, target, "branch", "a jump enters behind the marker");
	}
}

static void verify_allowed(struct verifier *v)
{
	for (unsigned i = 0; i < v->allowed_count; i++) {
		if (v->allowed[i].met)
			continue;
		printf("allowed.list: %s in %s is not there (any more)\n", v->allowed[i].mnemonic,
		       v->allowed[i].symbol);
		v->failures++;
	}
}

/* Read lines `SYMBOL MNEMONIC REASON...`; # starts a comment line. */
static void allowed_read(struct verifier *v, const char *path)
{
	FILE *file = fopen(path, "r");
	char line[512];

	if (!file)
		die("cannot open %s: %s", path, strerror(errno));
	while (fgets(line, sizeof line, file)) {
		struct allowed *a = &v->allowed[v->allowed_count];

		if (line[0] == '#' || line[strspn(line, " \t\n")] == 0)
			continue;
		if (v->allowed_count == MAX_ALLOWED)
			die("%s: more than %d exceptions", path, MAX_ALLOWED);
		if (sscanf(line, "%63s %15s %159[^\n]", a->symbol, a->mnemonic, a->reason) != 3)
			die("%s: not `symbol mnemonic reason`: %s", path, line);
		v->allowed_count++;
	}
	fclose(file);
}

static bool section_is_code(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR);
}

static void symbols_read(struct verifier *v, Elf *elf)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		Elf_Data *data;
		size_t count;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		count = header.sh_size / header.sh_entsize;
		v->symbols = check_memory(calloc(count, sizeof *v->symbols));
		for (size_t i = 0; i < count; i++) {
			GElf_Sym symbol;

			if (gelf_getsym(data, i, &symbol) && symbol.st_shndx < SHN_LORESERVE &&
			    GELF_ST_TYPE(symbol.st_info) != STT_SECTION &&
			    section_is_code(elf, symbol.st_shndx))
				v->symbols[v->symbol_count++] = (struct symbol){
					symbol.st_value,
					elf_strptr(elf, header.sh_link, symbol.st_name)
				};
		}
	}
	if (!v->symbol_count)
		die("no symbols: not an unstripped vmlinux");
	qsort(v->symbols, v->symbol_count, sizeof *v->symbols, symbol_compare);
}

static void sections_verify(struct verifier *v, Elf *elf)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    header.sh_type != SHT_PROGBITS)
			continue;
		data = elf_getdata(section, NULL);
		if (!data)
			die("cannot read a section: %s", elf_errmsg(-1));
		verify_section(v, header.sh_addr, data->d_buf, data->d_size);
	}
}

static void print_counts(const struct verifier *v)
{
	static const char *const actions[] = {"marker", "replace", "traps", "native"};

	printf("%-16s %-8s %8s %8s %8s\n", "class", "action", "marked", "bare", "allowed");
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		const struct instruction_class *c = &classes[i];

		if (c->marked || c->bare || c->allowed)
			printf("%-16s %-8s %8u %8u %8u\n", c->name, actions[c->action], c->marked,
			       c->bare, c->allowed);
	}
	printf("%u instructions, %u failures\n", v->instructions, v->failures);
}

int main(int argc, char **argv)
{
	static struct verifier v;
	Elf *elf;
	int fd;

	log_open("verify-vmlinux", 2, LOG_WARN);
	if (argc != 3)
		die("usage: verify-vmlinux VMLINUX ALLOWED-LIST");
	if (elf_version(EV_CURRENT) == EV_NONE)
		die("libelf: %s", elf_errmsg(-1));
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("cannot open %s: %s", argv[1], strerror(errno));
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS32)
		die("%s is not a 32-bit ELF file", argv[1]);
	ZydisDecoderInit(&v.decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
	allowed_read(&v, argv[2]);
	symbols_read(&v, elf);
	sections_verify(&v, elf);
	verify_branches(&v);
	verify_allowed(&v);
	print_counts(&v);
	elf_end(elf);
	close(fd);
	return v.failures ? 1 : 0;
}
