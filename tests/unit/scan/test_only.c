#include "../check.h"
#include "scan/source.h"

static void test_folders(void)
{
	static const char *const folders[] = {"/data/b/c", "/data", "/data/a b", "/data/b-c/d",
		"/database", "/other/b", "/data/b/c", "/data/x/file"};
	static const struct {
		const char *relative;
		bool has, leads;
	} rows[] = {
		{"a b", true, true},
		{"a", false, false},
		{"b", false, true},
		{"b/c", true, true},
		{"b/c/d", false, false},
		{"b-c", false, true},
		{"b-c/d", true, true},
		{"b/", false, false},
		{"x", false, true},
		{"x/file", true, true},
		{"x/file2", false, false},
		{"base", false, false},
		{"zzz", false, false},
	};
	struct names wanted = {0};
	if (!CHECK_INT(wanted_init(&wanted, "/data", folders, sizeof folders / sizeof *folders), 0))
		return;
	CHECK(wanted_has(&wanted, ""));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_INT(wanted_has(&wanted, rows[i].relative), rows[i].has);
		CHECK_INT(wanted_reaches_below(&wanted, rows[i].relative), rows[i].leads);
	}
	names_clear(&wanted);
}

static void test_the_root(void)
{
	static const char *const folders[] = {"/x/y"};
	struct names wanted = {0};
	if (!CHECK_INT(wanted_init(&wanted, "/", folders, 1), 0))
		return;
	CHECK(!wanted_has(&wanted, "") && wanted_reaches_below(&wanted, "x") &&
		wanted_has(&wanted, "x/y"));
	names_clear(&wanted);
	if (!CHECK_INT(wanted_init(&wanted, "/x/yz", folders, 1), 0))
		return;
	CHECK(!wanted_has(&wanted, "") && !wanted_reaches_below(&wanted, "y"));
	names_clear(&wanted);
}

int main(void)
{
	test_folders();
	test_the_root();
	return check_result();
}
