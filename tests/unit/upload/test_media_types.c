#include "../check.h"
#include "upload/body/object_rules.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/s3once-media-types-XXXXXX";

static void write_bytes(const char *content, size_t n)
{
	FILE *file = fopen(path, "w");
	CHECK(file && fwrite(content, 1, n, file) == n && fclose(file) == 0);
}

static void write_types(const char *content)
{
	write_bytes(content, strlen(content));
}

static void check_refused(const char *of, const char *named)
{
	const struct s3once_options options = {.media_types = of};
	struct object_rules *rules = NULL;
	struct problem problem = {0};
	CHECK_INT(object_rules_new(&options, &rules, &problem), -EINVAL);
	CHECK(rules == NULL);
	if (!CHECK(strstr(problem.text, of) != NULL && strstr(problem.text, named) != NULL))
		fprintf(stderr, "\t%s does not name %s and %s\n", problem.text, of, named);
}

static void test_sentences(void)
{
	static const char with_nul[] = "text/plain txt\nimage/png png\0\nimage/gif gif\n";
	write_types("text/plain txt\n\nno-type ext\n");
	check_refused(path, "line 3 is not a type and extensions");
	write_bytes(with_nul, sizeof with_nul - 1);
	check_refused(path, "line 2 is not a type and extensions");
	check_refused("/tmp", "cannot be read: Is a directory");
	check_refused("/nonexistent", "cannot be read: No such file");
}

static unsigned left; /* allocations of jansson that succeed yet */

static void *allocate(size_t n)
{
	return left && left-- ? malloc(n) : NULL;
}

/* Whichever allocation fails, the line is not what is wrong. */
static void test_without_memory(void)
{
	const struct s3once_options options = {.media_types = path};
	struct object_rules *rules = NULL;
	unsigned most = 0;
	int error = -ENOMEM;
	write_types("# of a test\ntext/plain txt LOG # comment\nimage/png png");
	json_set_alloc_funcs(allocate, free);
	for (; error == -ENOMEM && most < 100; most++) {
		struct problem problem = {0};
		left = most;
		error = object_rules_new(&options, &rules, &problem);
		CHECK_STRING(problem.text, "");
	}
	CHECK_INT(error, 0);
	CHECK(most > 3);
	CHECK_STRING(object_rules_type(rules, "a/b.log"), "text/plain");
	CHECK_STRING(object_rules_type(rules, "b.PNG"), "image/png");
	CHECK_STRING(object_rules_type(rules, "png"), NULL);
	object_rules_free(rules);
}

int main(void)
{
	const int fd = mkstemp(path);
	CHECK(fd >= 0 && close(fd) == 0);
	test_sentences();
	test_without_memory();
	unlink(path);
	return check_result();
}
