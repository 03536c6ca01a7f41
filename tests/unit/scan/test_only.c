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
	struct names only = {0};
	if (!CHECK_INT(only_folders_init(&only, "/data", folders, sizeof folders / sizeof *folders),
		    0))
		return;
	CHECK(only_has(&only, ""));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_INT(only_has(&only, rows[i].relative), rows[i].has);
		CHECK_INT(only_reaches_below(&only, rows[i].relative), rows[i].leads);
	}
	names_clear(&only);
}

static void test_the_root(void)
{
	static const char *const folders[] = {"/x/y"};
	struct names only = {0};
	if (!CHECK_INT(only_folders_init(&only, "/", folders, 1), 0))
		return;
	CHECK(!only_has(&only, "") && only_reaches_below(&only, "x") && only_has(&only, "x/y"));
	names_clear(&only);
	if (!CHECK_INT(only_folders_init(&only, "/x/yz", folders, 1), 0))
		return;
	CHECK(!only_has(&only, "") && !only_reaches_below(&only, "y"));
	names_clear(&only);
}

int main(void)
{
	test_folders();
	test_the_root();
	return check_result();
}
