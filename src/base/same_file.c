#include "base/same_file.h"
#include <string.h>
#include <sys/stat.h>

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	return strcmp(name_of(a), name_of(b)) == 0 && !stat(a, &of_a) && !stat(b, &of_b) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}
