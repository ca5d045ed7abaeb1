/* other_version.c - in place of base/wire.o: a program whose messages are of another version
 * (base/wire.h). */
#undef WIRE_HASH
#define WIRE_HASH 0xbeef1234u
#include "base/wire.c"
