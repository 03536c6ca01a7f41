#include "../check.h"
#include "base/text.h"
#include <errno.h>

static void test_cap(void)
{
	struct text t = TEXT(5);
	CHECK_STRING(text_string(&t), "");
	text_add(&t, "abc");
	text_addf(&t, "%d", 42);
	CHECK_STRING(text_string(&t), "abc42");
	CHECK_INT(t.error, 0);
	text_add_char(&t, '!');
	CHECK_INT(t.error, -EMSGSIZE);
	text_add(&t, ""); /* errors stick */
	CHECK_INT(t.error, -EMSGSIZE);
	CHECK_STRING(text_string(&t), "abc42");
	text_reset(&t);
	CHECK_INT(t.error, 0);
	CHECK_INT(t.len, 0);
	text_add(&t, "again");
	CHECK_STRING(text_string(&t), "again");
	text_wipe(&t);
	CHECK(!t.data && t.max == 5);
}

static void test_growth(void)
{
	struct text t = TEXT(100000);
	for (int i = 0; i < 20000; i++)
		text_addf(&t, "%05d", i);
	CHECK_INT(t.len, 100000);
	CHECK_INT(t.error, 0);
	CHECK(memcmp(t.data + 99995, "19999", 6) == 0);
	text_clear(&t);
}

static void test_escaped(void)
{
	static const struct {
		const char *in, *out;
		size_t n; /* 0: strlen */
	} rows[] = {
		{"plain ~ text", "plain ~ text"},
		{"a\nb\tc\rd", "a\\nb\\tc\\x0dd"},
		{"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"},
		{"back\\slash", "back\\\\slash"},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
			"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xc2\x9b C1", "\\xc2\\x9b C1"},
		{"\xe2\x80\xae txt.exe", "\\xe2\\x80\\xae txt.exe"},
		{"\xe2\x81\xa6\xd8\x9c", "\\xe2\\x81\\xa6\\xd8\\x9c"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"cut \xe2\x82", "cut \\xe2\\x82"},
		{"over \xc0\xaf", "over \\xc0\\xaf"},
		{"nul\0in", "nul\\x00in", 6},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text t = TEXT(200);
		text_add_escaped(&t, rows[i].in, rows[i].n ? rows[i].n : strlen(rows[i].in));
		CHECK_STRING(text_string(&t), rows[i].out);
		text_clear(&t);
	}
	struct text again = TEXT(1000);
	text_add_escaped_again(&again, "back\\\\slash\\n\x1b");
	CHECK_STRING(text_string(&again), "back\\\\slash\\n\\x1b");
	text_clear(&again);
}

static void test_utf8(void)
{
	static const struct {
		const char *s;
		bool valid;
	} rows[] = {
		{"", true},
		{"ascii", true},
		{"\xc2\x80", true},
		{"\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", true},
		{"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
		{"\xed\x9f\xbf\xee\x80\x80", true},
		{"\x80", false},
		{"\xc1\xbf", false},
		{"\xe0\x9f\xbf", false},
		{"\xed\xa0\x80", false}, /* surrogate */
		{"\xed\xbf\xbf", false},
		{"\xf0\x8f\xbf\xbf", false},
		{"\xf4\x90\x80\x80", false},
		{"\xf8\x88\x80\x80\x80", false},
		{"\xe2\x82", false},
		{"\xe2\x28\xa1", false},
		{"\xff", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!CHECK_INT(utf8_valid(rows[i].s, strlen(rows[i].s)), rows[i].valid))
			fprintf(stderr, "\trow %zu\n", i);
	CHECK(utf8_valid("a\0b", 3));
}

static void test_encodings(void)
{
	char hex[9];
	hex_encode((const unsigned char *)"\x00\x9f\xa0\xff", 4, hex);
	CHECK_STRING(hex, "009fa0ff");

	static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
		{"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"}, {"\xfb\xff\xfe", "+//+"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char encoded[16];
		unsigned char decoded[16] = {0};
		struct text text = TEXT(100);
		text_add_base64(&text, rows[i][0], strlen(rows[i][0]));
		CHECK_STRING(text_string(&text), rows[i][1]);
		text_clear(&text);
		base64_encode((const unsigned char *)rows[i][0], strlen(rows[i][0]), encoded);
		CHECK_STRING(encoded, rows[i][1]);
		CHECK_INT(base64_decode(rows[i][1], decoded), strlen(rows[i][0]));
		CHECK_STRING((const char *)decoded, rows[i][0]);
	}
	static const char *const bad[] = {
		"Zg=", "Zg", "====", "A===", "Z g=", "Zg==Zg==", "Zh==", "Zm9=", "Zm9\xff", "=m9v"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		unsigned char decoded[16];
		if (!CHECK_INT(base64_decode(bad[i], decoded), -EINVAL))
			fprintf(stderr, "\t%s\n", bad[i]);
	}
}

static void test_uri_encode(void)
{
	static const struct {
		const char *in, *out;
		int keep_slash;
	} cases[] = {
		{"", "", 0},
		{"AZaz09-._~", "AZaz09-._~", 0},
		{"a/b c", "a%2Fb%20c", 0},
		{"a/b c", "a/b%20c", 1},
		{"\xc3\xbc+%&='\"#?;\\*[]!()",
			"%C3%BC%2B%25%26%3D%27%22%23%3F%3B%5C%2A%5B%5D%21%28%29", 1},
		{"../\x01\xff", "../%01%FF", 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct text t = TEXT(200);
		(cases[i].keep_slash ? uri_encode_path : uri_encode)(
			&t, cases[i].in, strlen(cases[i].in));
		CHECK_STRING(text_string(&t), cases[i].out);
		text_clear(&t);
	}
}

static void test_decimal(void)
{
	static const char *const others[] = {
		NULL, "", " 1", "+1", "-1", "1.0", "1 ", "0x1", "300001", "18446744073709551616"};
	uint64_t n = 7;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK(!decimal_read(others[i], 300000, &n));
	CHECK_INT(n, 7);
	CHECK(decimal_read("300000", 300000, &n));
	CHECK_INT(n, 300000);
	CHECK(decimal_read("18446744073709551615", UINT64_MAX, &n) && n == UINT64_MAX);
}

int main(void)
{
	test_cap();
	test_growth();
	test_escaped();
	test_utf8();
	test_encodings();
	test_uri_encode();
	test_decimal();
	return check_result();
}
