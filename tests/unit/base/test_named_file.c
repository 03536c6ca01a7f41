/* Files that a user named: what is no file is refused at once. */
#include "../check.h"
#include "base/files.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	char folder[] = "/tmp/named_file_XXXXXX";
	if (!CHECK(mkdtemp(folder)) || !CHECK_INT(chdir(folder), 0))
		return check_result();
	FILE *stream = fopen("file", "we");
	CHECK(stream && fputs("text", stream) >= 0 && fclose(stream) == 0);
	CHECK_INT(mkfifo("fifo", 0600), 0);
	static const struct {
		const char *path;
		int want;
	} rows[] = {
		{"file", 0},
		{"/dev/null", 0},
		{"fifo", -ENOTSUP}, /* nobody writes to it: a plain open() would wait */
		{"/dev/zero", -ENOTSUP},
		{"/", -EISDIR},
		{"none", -ENOENT},
		{"file/below", -ENOTDIR},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int error = named_file_stream(rows[i].path, &stream);
		if (!CHECK_INT(error, rows[i].want))
			fprintf(stderr, "\t%s\n", rows[i].path);
		if (!error)
			fclose(stream);
	}
	CHECK_STRING(named_file_error(-ENOTSUP), "it is not a regular file");
	CHECK(unlink("file") == 0 && unlink("fifo") == 0 && rmdir(folder) == 0);
	return check_result();
}
