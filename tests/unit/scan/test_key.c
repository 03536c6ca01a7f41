#include "../check.h"
#include "scan/key/key.h"
#include "scan/names.h"
#include "scan/scan.h"

static void test_base(void)
{
	static const struct {
		const char *prefix, *want;
	} rows[] = {
		{"", ""}, {"p", "p/"}, {"p/", "p/"}, {"p//", "p//"}, {"/", "/"}, {"a/b", "a/b/"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text key = TEXT(KEY_BYTES_MAX);
		key_add_base(&key, rows[i].prefix);
		CHECK_STRING(text_string(&key), rows[i].want);
		text_clear(&key);
	}
}

static void test_valid(void)
{
	static const struct {
		const char *key;
		const char *want; /* how the sentence begins; NULL: valid */
	} rows[] = {
		{"a", NULL},
		{"a b/+%&='\"#?;~\\*[]", NULL},
		{"..foo/.bar", NULL},
		{"\t\n\r", NULL},
		{"caf\xc3\xa9", NULL},
		{"cafe\xcc\x81", NULL},
		{"\x7f\xc2\x80", NULL},
		{"\xef\xbf\xbd", NULL},
		{"\xf0\x9f\xbf\xbe", NULL}, /* U+1FFFE */
		{"", "the key is empty"},
		{"caf\xe9", "the name is not UTF-8"},
		{"\xed\xa0\x80", "the name is not UTF-8"}, /* a surrogate */
		{"\xc0\xaf", "the name is not UTF-8"},
		{"a\x01", "the name contains the character U+0001"},
		{"a\x1b[0m", "the name contains the character U+001B"},
		{"\x1f", "the name contains the character U+001F"},
		{"a\xef\xbf\xbe", "the name contains the character U+FFFE"},
		{"\xef\xbf\xbf", "the name contains the character U+FFFF"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem = {.text = ""};
		bool valid = key_valid(rows[i].key, strlen(rows[i].key), &problem);
		if (!CHECK_INT(valid, rows[i].want == NULL))
			fprintf(stderr, "\trow %zu\n", i);
		const char *want = rows[i].want ? rows[i].want : "";
		problem.text[strlen(want)] = '\0';
		CHECK_STRING(problem.text, want);
	}
}

static void test_length(void)
{
	char key[1026];
	struct problem problem;
	memset(key, 'x', sizeof key);
	CHECK(key_valid(key, 1024, &problem));
	CHECK(!key_valid(key, 1025, &problem));
	CHECK(strstr(problem.text, "1025 bytes") != NULL);
	/* bytes count, not characters */
	for (size_t i = 0; i < 1026; i += 2)
		memcpy(key + i, "\xc3\xa4", 2);
	CHECK(key_valid(key, 1024, &problem));
	CHECK(!key_valid(key, 1026, &problem));
}

static void test_names(void)
{
	/* directories by their tag; in the order that whole paths have */
	static const char *const want[] = {"d!", "f.hidden", "fa", "fa!", "da-b", "fa.txt", "da",
		"fa0", "fab", "f\xc3\xa9", "f\xff"};
	enum { N = sizeof want / sizeof *want };
	struct names names = {0};
	for (size_t i = 0; i < N; i++) {
		const char *name = want[(i * 7 + 3) % N];
		CHECK_INT(names_add(&names, name[0], name + 1, strlen(name + 1)), 0);
	}
	names_sort(&names);
	for (size_t i = 0; i < N; i++) {
		CHECK_STRING(names_get(&names, i), want[i] + 1);
		CHECK_INT(names_tag(&names, i), want[i][0]);
	}
	CHECK_INT(names_add(&names, 'f', "zz", 2), 0);
	CHECK_INT(names_add(&names, 'f', "zz", 2), 0);
	names_sort(&names);
	CHECK_INT(names.n, N + 1);
	names_clear(&names);
	CHECK_INT(names.n, 0);
}

int main(void)
{
	test_base();
	test_valid();
	test_length();
	test_names();
	return check_result();
}
