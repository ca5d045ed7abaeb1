/* cpufeatures.h - what programs can find out about a processor by CPUID and may then use: words
 * that are compared bit by bit.
 *
 * A machine has one set of them, whatever hosts it has: each host has at least these, and its
 * monitors show the guest no others.
 */
#ifndef BASE_CPUFEATURES_H
#define BASE_CPUFEATURES_H

#include "base/types.h"

/* CPU_FEATURE_STATE: the word that names the state that a guest may have, as XCR0 does. */
enum { CPU_FEATURE_WORDS = 9, CPU_FEATURE_STATE = 5 };
enum { CPU_VENDOR_TEXT = 13 }; /* "AuthenticAMD" */
struct cpu_features { uint32_t word[CPU_FEATURE_WORDS]; };

/* Read this computer's features: those of its processor that its kernel lets programs use. */
void cpufeatures_look(struct cpu_features *features);
void cpufeatures_vendor(char vendor[CPU_VENDOR_TEXT]);
uint64_t cpufeatures_xcr0(void); /* XCR0; 0 without XSAVE */

/* The functions below are pure. */

/* True if one of `wanted` is missing in `here`; its name is then in `name`. */
bool cpufeatures_lacking(const struct cpu_features *wanted, const struct cpu_features *here,
			 char *name, size_t bytes);
/* What CPUID answers (eax ebx ecx edx), less the features that are not among `features`; and XCR0,
 * likewise.  A leaf without subleaves has subleaf 0. */
void cpufeatures_hide(const struct cpu_features *features, uint32_t leaf, uint32_t subleaf,
		      uint32_t regs[4]);
uint64_t cpufeatures_hide_state(const struct cpu_features *features, uint64_t xcr0);

/* As text: hexadecimal words with commas between. parse: 0 or -EINVAL. */
enum { CPU_FEATURES_TEXT = CPU_FEATURE_WORDS * 9 };
void cpufeatures_print(const struct cpu_features *features, char text[CPU_FEATURES_TEXT]);
int cpufeatures_parse(struct cpu_features *features, const char *text);

#endif
