/* virtqueue_ram.h - the memory of a guest that a unit test plays: `memory` reads and writes
 * ram[RAM], which the test defines before it includes this. */
static bool ram_read(void *ctx, uint64_t gpa, void *to, uint32_t bytes)
{
	(void)ctx;
	if (gpa > RAM || bytes > RAM - gpa)
		return false;
	memcpy(to, ram + gpa, bytes);
	return true;
}

static bool ram_write(void *ctx, uint64_t gpa, const void *from, uint32_t bytes)
{
	(void)ctx;
	if (gpa > RAM || bytes > RAM - gpa)
		return false;
	memcpy(ram + gpa, from, bytes);
	return true;
}

static const struct virtqueue_memory memory = { NULL, ram_read, ram_write };
