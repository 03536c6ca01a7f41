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
		struct text text = TEXT(4);
		if (!CHECK_INT(named_file_read(rows[i].path, &text, NULL), rows[i].want))
			fprintf(stderr, "\t%s\n", rows[i].path);
		CHECK_STRING(text_string(&text), i == 0 ? "text" : "");
		text_clear(&text);
	}
	struct text small = TEXT(3);
	struct stat status = {0};
	CHECK_INT(named_file_read("file", &small, &status), -EFBIG);
	CHECK_INT(status.st_size, 4);
	text_clear(&small);
	CHECK_STRING(named_file_error(-ENOTSUP), "it is not a regular file");
	CHECK(unlink("file") == 0 && unlink("fifo") == 0 && rmdir(folder) == 0);
	return check_result();
}
