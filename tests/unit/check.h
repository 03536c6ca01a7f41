/* Checks for unit tests. Unlike assert they stay in release builds; a failure is printed and the
 * test goes on. main() ends with `return check_result();`. */
#pragma once
#include <dirent.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One count for all files of a test program, and for all its threads. */
__attribute__((weak)) atomic_uint check_done, check_failed;

__attribute__((unused)) static bool check_that(
	bool ok, const char *file, int line, const char *what)
{
	check_done++;
	if (!ok) {
		check_failed++;
		fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	}
	return ok;
}

__attribute__((unused)) static bool check_ints(
	int64_t got, int64_t want, const char *file, int line, const char *what)
{
	if (check_that(got == want, file, line, what))
		return true;
	fprintf(stderr, "\tgot %" PRId64 ", want %" PRId64 "\n", got, want);
	return false;
}

__attribute__((unused)) static bool check_strings(
	const char *got, const char *want, const char *file, int line, const char *what)
{
	bool same = got == want || (got && want && strcmp(got, want) == 0);
	if (check_that(same, file, line, what))
		return true;
	fprintf(stderr, "\tgot  %s\n\twant %s\n", got ? got : "NULL", want ? want : "NULL");
	return false;
}

/* Each yields whether it held, so that a table can name its row after a false. Strings may be NULL.
 */
#define CHECK(condition)        check_that((condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(got, want)    check_ints((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got)
#define CHECK_STRING(got, want) check_strings((got), (want), __FILE__, __LINE__, #got)

/* The number of this process's open descriptors. */
__attribute__((unused)) static size_t count_descriptors(void)
{
	size_t n = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (folder && readdir(folder))
		n++;
	if (CHECK(folder))
		closedir(folder);
	return n;
}

/* The exit status for main: 0 only if something was checked and all of it held. */
__attribute__((unused)) static int check_result(void)
{
	if (check_failed)
		fprintf(stderr, "%u of %u checks failed\n", check_failed, check_done);
	return check_failed || !check_done;
}
