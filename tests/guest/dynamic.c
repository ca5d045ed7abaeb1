/* dynamic.c - a dynamically linked program: its loader and libraries come from the host. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include "tests/guest/check.h"

static void *answer(void *in) { return (void *)((intptr_t)in * 2); }

int main(void)
{
	volatile double two = 2;
	pthread_t id;
	void *result = NULL;

	expect("the C library prints", true);
	expect("libm computes", fabs(pow(two, 0.5) - 1.4142135623730951) < 1e-15);
	expect("libpthread starts a thread", pthread_create(&id, NULL, answer, (void *)21) == 0);
	pthread_join(id, &result);
	expect("and gets its result", (intptr_t)result == 42);
	expect("symbols are found at run time", dlsym(RTLD_DEFAULT, "printf") != NULL);
	return check_result();
}
