#include "base/same_file.h"
#include "base/path.h"
#include <string.h>
#include <sys/stat.h>

bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	return strcmp(path_name(a), path_name(b)) == 0 && !stat(a, &of_a) && !stat(b, &of_b) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}
