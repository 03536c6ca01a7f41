#include "../check.h"
#include "base/problem.h"
#include "base/text.h"

int main(void)
{
	CHECK_STRING(quote("").text, "");
	CHECK_STRING(quote("a b").text, "a b");
	CHECK_STRING(quote("a\x1b[2J\n").text, "a\\x1b[2J\\n");
	CHECK_STRING(quote("\xc3\xa4\xff").text, "\xc3\xa4\\xff");
	CHECK_STRING(quote_bytes("abc", 2).text, "ab");
	char name[1000];
	memset(name, 'x', sizeof name);
	CHECK_INT(strlen(quote_bytes(name, sizeof name).text), 255);
	for (size_t i = 0; i + 1 < sizeof name; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	for (size_t skip = 0; skip < 2; skip++) {
		name[skip] = 'x';
		struct quoted cut = quote_bytes(name + skip, sizeof name - skip);
		CHECK(utf8_valid(cut.text, strlen(cut.text)));
		CHECK_STRING(cut.text + strlen(cut.text) - 3, "...");
	}
	CHECK_STRING(quote_url("https://host:1/path").text, "https://host:1/path");
	CHECK_STRING(quote_url("https://user:pass@host/").text, "https://***@host/");
	CHECK_STRING(quote_url("https://user:p/a@ss@host/").text, "https://***@host/");
	CHECK_STRING(quote_url("https://host/?token=x").text, "https://host/?***");
	CHECK_STRING(quote_url("https://u:p@host/?token=x#y").text, "https://***@host/?***");
	CHECK_STRING(quote_url("https://u:p?w@host/").text, "https://***@?***");
	CHECK_STRING(quote_url("user:pass@host").text, "***@host");
	return check_result();
}
