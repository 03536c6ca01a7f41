/* Shared by all targets. A target is one function: it reads bytes as the program would, and aborts
 * if a property that must hold for all input does not. libFuzzer calls it (-Dfuzzers=true, with
 * clang). In every other build, standalone.c calls it with each file of the target's corpus. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENSURE(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The bytes up to the first NUL as a string of its own, with nothing behind it that could be read
 * unnoticed. The caller frees it. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	size_t n = size ? strnlen((const char *)data, size) : 0;
	char *s = malloc(n + 1);
	ENSURE(s);
	if (n)
		memcpy(s, data, n);
	s[n] = '\0';
	return s;
}

/* A file with these bytes: a descriptor to close, and a path to open it again. */
static inline int fuzz_file(const uint8_t *data, size_t size, char ret_path[static 32])
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	ENSURE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(ret_path, 32, "/proc/self/fd/%d", fd);
	return fd;
}
