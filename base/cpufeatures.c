/* cpufeatures.c - see cpufeatures.h. */
#include "base/cpufeatures.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leaf, subleaf, which of eax ebx ecx edx, and the bits that depend on the processor alone. */
struct feature_word { uint32_t leaf, subleaf; uint8_t reg; uint32_t mask; };
static const struct feature_word feature_words[CPU_FEATURE_WORDS] = {
	{ 1, 0, 2, ~(1u << 27 /* OSXSAVE */ | 1u << 31 /* hypervisor */) }, { 1, 0, 3, ~0u },
	{ 7, 0, 1, ~0u }, { 7, 0, 2, ~(1u << 4 /* OSPKE */) }, { 7, 0, 3, ~0u },
	[CPU_FEATURE_STATE] = { 0xd, 0, 0, 0xe7 /* the state that a guest can have */ },
	{ 0x80000001, 0, 2, ~0u }, { 0x80000001, 0, 3, ~0u },
	{ 0xd, 1, 0, 0x7 /* XSAVEOPT, XSAVEC, XGETBV with ECX 1 */ },
};
static const struct { uint8_t word, bit; const char *name; } feature_names[] = {
	{ 0, 0, "SSE3" }, { 0, 9, "SSSE3" }, { 0, 12, "FMA" }, { 0, 19, "SSE4.1" },
	{ 0, 20, "SSE4.2" }, { 0, 23, "POPCNT" },
	{ 0, 25, "AES" }, { 0, 26, "XSAVE" }, { 0, 28, "AVX" }, { 0, 30, "RDRAND" },
	{ 1, 25, "SSE" }, { 1, 26, "SSE2" },
	{ 2, 3, "BMI1" }, { 2, 5, "AVX2" }, { 2, 8, "BMI2" }, { 2, 16, "AVX-512" },
	{ 2, 18, "RDSEED" }, { 2, 29, "SHA" },
	{ 5, 2, "AVX state" }, { 5, 5, "AVX-512 state" }, { 6, 6, "SSE4A" }, { 6, 16, "FMA4" },
	{ 8, 0, "XSAVEOPT" },
	{ 8, 1, "XSAVEC" },
};

uint64_t cpufeatures_xcr0(void)
{
	uint32_t low = 0, high = 0, regs[4];

	if (!__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) || !(regs[2] & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low | (uint64_t)high << 32;
}

void cpufeatures_vendor(char vendor[CPU_VENDOR_TEXT])
{
	uint32_t most, words[3];

	__cpuid(0, most, words[0], words[2], words[1]);
	memcpy(vendor, words, sizeof words);
	vendor[sizeof words] = 0;
}

void cpufeatures_look(struct cpu_features *features)
{
	for (unsigned i = 0; i < CPU_FEATURE_WORDS; i++) {
		uint32_t regs[4] = { 0 };

		if (feature_words[i].leaf <=
		    __get_cpuid_max(feature_words[i].leaf & 0x80000000, NULL))
			__cpuid_count(feature_words[i].leaf, feature_words[i].subleaf, regs[0],
				      regs[1], regs[2], regs[3]);
		features->word[i] = regs[feature_words[i].reg] & feature_words[i].mask;
	}
	features->word[CPU_FEATURE_STATE] &= (uint32_t)cpufeatures_xcr0();
}

bool cpufeatures_lacking(const struct cpu_features *wanted, const struct cpu_features *here,
			 char *name, size_t bytes)
{
	uint32_t missing = 0;
	unsigned word = 0;

	while (word < CPU_FEATURE_WORDS && !(missing = wanted->word[word] & ~here->word[word]))
		word++;
	if (!missing)
		return false;
	snprintf(name, bytes, "feature %u of CPUID leaf %x", (unsigned)__builtin_ctz(missing),
		 feature_words[word].leaf);
	for (size_t i = 0; i < ARRAY_LEN(feature_names); i++)
		if (feature_names[i].word == word && missing >> feature_names[i].bit & 1)
			snprintf(name, bytes, "%s", feature_names[i].name);
	return true;
}

void cpufeatures_hide(const struct cpu_features *features, uint32_t leaf, uint32_t subleaf,
		      uint32_t regs[4])
{
	for (unsigned i = 0; i < CPU_FEATURE_WORDS; i++)
		if (feature_words[i].leaf == leaf && feature_words[i].subleaf == subleaf)
			regs[feature_words[i].reg] &= features->word[i] | ~feature_words[i].mask;
}

uint64_t cpufeatures_hide_state(const struct cpu_features *features, uint64_t xcr0)
{
	return xcr0 & (features->word[CPU_FEATURE_STATE] |
		       ~(uint64_t)feature_words[CPU_FEATURE_STATE].mask);
}

void cpufeatures_print(const struct cpu_features *features, char text[CPU_FEATURES_TEXT])
{
	for (unsigned i = 0, at = 0; i < CPU_FEATURE_WORDS; i++)
		at += (unsigned)sprintf(text + at, "%s%x", i ? "," : "", features->word[i]);
}

int cpufeatures_parse(struct cpu_features *features, const char *text)
{
	for (unsigned i = 0; i < CPU_FEATURE_WORDS; i++) {
		char *end;
		unsigned long word = strtoul(text, &end, 16);

		if (end == text || word > UINT32_MAX ||
		    *end != (i + 1 < CPU_FEATURE_WORDS ? ',' : 0))
			return -EINVAL;
		features->word[i] = (uint32_t)word;
		text = end + 1;
	}
	return 0;
}
