/* Lists of paths: whatever a list holds, nothing outside of the directory is reached, every line is
 * accounted for, and paths come in order, each once. The directory has one file, "a", and one below
 * it, "d/b". */
#include "base/text.h"
#include "fuzz.h"
#include "scan/source.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static void make_file(int directory, const char *name)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ENSURE(fd >= 0);
	close(fd);
}

static int directory = -1;
static char path[] = "/tmp/fuzz_files_from.XXXXXX";

static void remove_directory(void)
{
	unlinkat(directory, "a", 0);
	unlinkat(directory, "d/b", 0);
	unlinkat(directory, "d", AT_REMOVEDIR);
	rmdir(path);
}

static void make_directory(void)
{
	ENSURE(mkdtemp(path));
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ENSURE(directory >= 0 && mkdirat(directory, "d", 0700) == 0);
	make_file(directory, "a");
	make_file(directory, "d/b");
	atexit(remove_directory);
}

static bool is_listed(const uint8_t *data, size_t size, const char *name)
{
	return memmem(data, size, name, strlen(name)) != NULL;
}

static void read_list(const struct scan_options *options, const uint8_t *data, size_t size)
{
	struct files_from *list = NULL;
	struct problem problem = {0};
	struct scan_entry entry = {0};
	char last[4096] = "";
	bool a = false;
	int error = files_from_open(directory, options, &list, &problem);
	bool nul_in_lines = size > PATH_MAX && !memchr(data, 0, PATH_MAX) && memchr(data, 0, size);
	ENSURE(error == (nul_in_lines ? -EINVAL : 0) && !error == !problem.text[0]);
	if (error)
		return;
	while ((error = files_from_next(list, &entry, &problem)) == 1) {
		ENSURE(*entry.relative && strcmp(entry.relative, last) > 0);
		snprintf(last, sizeof last, "%s", entry.relative);
		bool is_a = strcmp(last, "a") == 0, is_b = strcmp(last, "d/b") == 0;
		ENSURE(entry.kind == (is_a || is_b ? SCAN_FILE : SCAN_PROBLEM));
		ENSURE(entry.kind == SCAN_FILE || entry.problem.text[0]);
		a |= is_a;
	}
	ENSURE(error == 0);
	ENSURE(!a || is_listed(data, size, "a"));
	files_from_close(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[32];
	if (directory < 0)
		make_directory();
	int fd = fuzz_file(data, size, name);
	const struct scan_options options = {.files_from = name};
	read_list(&options, data, size);
	close(fd);
	return 0;
}
