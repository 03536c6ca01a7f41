#include "../check.h"
#include "base/problem.h"

static void test_format(void)
{
	static const struct {
		struct problem problem;
		const char *want;
	} rows[] = {
		{{.text = "it broke"}, "it broke"},
		{{.text = "it broke", .code = "AccessDenied", .request_id = "R1", .status = 403},
			"it broke (AccessDenied, request id R1)"},
		{{.text = "it broke", .code = "SlowDown"}, "it broke (SlowDown)"},
		{{.text = "it broke", .status = 502}, "it broke (HTTP status 502)"},
		{{.text = "it broke", .request_id = "R1"}, "it broke (request id R1)"},
		{{.status = 500}, "unknown error (HTTP status 500)"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char line[200];
		problem_format(&rows[i].problem, line, sizeof line);
		CHECK_STRING(line, rows[i].want);
	}
	char small[6];
	problem_format(&rows[0].problem, small, sizeof small);
	CHECK_STRING(small, "it br");
}

int main(void)
{
	test_format();
	struct problem p = {.code = "Old", .status = 500, .request_id = "old"};
	problem_set(&p, "cannot read %s", "a.log");
	CHECK_STRING(p.text, "cannot read a.log");
	CHECK(!p.code[0] && !p.request_id[0] && p.status == 0);
	problem_prefix(&p, "key %d", 7);
	CHECK_STRING(p.text, "key 7: cannot read a.log");
	problem_set(NULL, "nobody listens");
	problem_prefix(NULL, "nobody listens");

	/* 3-byte characters do not divide the space: the last one is dropped whole. */
	char euros[3001];
	for (int i = 0; i < 1000; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 4);
	problem_set(&p, "x%s", euros);
	CHECK_INT(strlen(p.text), 997);
	problem_prefix(&p, "yz");
	CHECK_INT(strlen(p.text), 998);
	CHECK(strncmp(p.text, "yz: x", 5) == 0);
	return check_result();
}
