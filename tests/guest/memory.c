/* memory.c - mmap in its forms, mprotect, mremap, memory that processes share, files that are
 * mapped, brk, large arrays. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { PAGE = 4096 };

static sigjmp_buf back;

static void leave(int signal) { siglongjmp(back, signal); }

static bool faults_on_write(volatile char *at)
{
	if (sigsetjmp(back, 1))
		return true;
	*at = 1;
	return false;
}

static bool faults_on_read(volatile char *at)
{
	if (sigsetjmp(back, 1))
		return true;
	(void)*at;
	return false;
}

static void test_anonymous(void)
{
	enum { PAGES = 1000 };
	volatile char *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool zero = true, kept = true;

	for (int i = 0; i < PAGES; i++)
		zero = zero && m[i * PAGE + i] == 0;
	expect("fresh memory is zero", zero);
	for (int i = 0; i < PAGES; i++)
		m[i * PAGE + i] = (char)(i * 7);
	for (int i = 0; i < PAGES; i++)
		kept = kept && m[i * PAGE + i] == (char)(i * 7);
	expect("and keeps what is written", kept);
	expect("munmap", munmap((void *)m, PAGES * PAGE) == 0 && faults_on_read(m));
}

static void test_protection(void)
{
	volatile char *m = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	m[0] = m[PAGE] = 5;
	expect("mprotect to read-only",
	       mprotect((void *)m, PAGE, PROT_READ) == 0 && faults_on_write(m) && m[0] == 5);
	expect("its neighbour is still writable", !faults_on_write(m + PAGE));
	expect("mprotect to nothing",
	       mprotect((void *)m, PAGE, PROT_NONE) == 0 && faults_on_read(m));
	expect("mprotect back", mprotect((void *)m, PAGE, PROT_READ | PROT_WRITE) == 0 &&
					m[0] == 5 && !faults_on_write(m));
	for (int i = 0; i < 200; i++) {
		mprotect((void *)(m + PAGE), PAGE, PROT_READ);
		if (!faults_on_write(m + PAGE))
			break;
		mprotect((void *)(m + PAGE), PAGE, PROT_READ | PROT_WRITE);
		m[PAGE] = (char)i;
	}
	expect("two hundred times there and back", m[PAGE] == (char)199);
}

static void test_shared(void)
{
	volatile int *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 10000; i++)
			__sync_fetch_and_add(m, 1);
		_exit(0);
	}
	for (int i = 0; i < 10000; i++)
		__sync_fetch_and_add(m, 1);
	waitpid(pid, &status, 0);
	expect("two processes count in shared memory", *m == 20000);
}

static void test_file(void)
{
	char name[] = "/tmp/memory-XXXXXX", bytes[8] = "";
	int fd = mkstemp(name);
	volatile char *m, *copy;

	expect("a file of three pages", fd >= 0 && ftruncate(fd, 3 * PAGE) == 0);
	m = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	copy = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	strcpy((char *)m + PAGE, "mapped");
	expect("a write through the mapping is in the file",
	       pread(fd, bytes, 7, PAGE) == 7 && !strcmp(bytes, "mapped"));
	expect("and in the private mapping", !strcmp((char *)copy + PAGE, "mapped"));
	copy[PAGE] = 'M';
	expect("a write to the private mapping is not",
	       pread(fd, bytes, 7, PAGE) == 7 && bytes[0] == 'm' && m[PAGE] == 'm');
	close(fd);
	unlink(name);
}

static void test_remap(void)
{
	char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *bigger;

	strcpy(m + PAGE, "moved");
	bigger = mremap(m, 2 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
	expect("mremap keeps the contents",
	       bigger != MAP_FAILED && !strcmp(bigger + PAGE, "moved"));
	bigger[299 * PAGE] = 1;
	expect("a mapping at a chosen place",
	       mmap((void *)0x20000000, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)0x20000000 &&
		       !faults_on_write((char *)0x20000000));
}

static void test_heap(void)
{
	enum { BLOCKS = 500 };
	static char *blocks[BLOCKS];
	bool kept = true;

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc((size_t)i * 97 + 1);
		memset(blocks[i], i, (size_t)i * 97 + 1);
	}
	for (int i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
	for (int i = 1; i < BLOCKS; i += 2)
		kept = kept && blocks[i][0] == (char)i && blocks[i][i * 97] == (char)i;
	expect("the heap keeps its blocks", kept);
}

/* Code written, run, rewritten, run again. */
static void test_code(void)
{
	unsigned char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool good = true;

	for (int i = 0; i < 100; i++) {
		code[0] = 0xb8; /* mov $imm32, %eax; ret */
		memcpy(code + 1, &i, 4);
		code[5] = 0xc3;
		good = good && ((int (*)(void))code)() == i;
	}
	expect("code that is rewritten a hundred times", good);
}

int main(void)
{
	signal(SIGSEGV, leave);
	signal(SIGBUS, leave);
	test_anonymous();
	test_protection();
	test_shared();
	test_file();
	test_remap();
	test_heap();
	test_code();
	return check_result();
}
