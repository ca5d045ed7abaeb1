/* fuzz.h - what a fuzzing target and its driver (libFuzzer, or replay.c) agree on. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(x) do { if (!(x)) abort(); } while (0)

#endif
