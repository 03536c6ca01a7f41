#include "../check.h"
#include "cat/log_name.h"

static void test_keys(void)
{
	static const struct {
		const char *family, *key;
		uint64_t offset;
		const char *suffix; /* NULL: it is no object of the log */
	} rows[] = {
		{"web1/access.log", "web1/access-20261120T075959Z-0f3c9a61.log", 0, ""},
		{"web1/access.log", "web1/access-20261120T075959Z-0f3c9a61.log~6000", 6000, ""},
		{"web1/access.log", "web1/access-20261120T075959Z-0f3c9a61.log.gz", 0, ".gz"},
		{"web1/access.log", "web1/access-20261120T075959Z-0f3c9a61.log~6000.zst", 6000,
			".zst"},
		{"syslog", "syslog-20261120T075959Z-0f3c9a61.xz", 0, ".xz"},
		{".profile", ".profile-20261120T075959Z-0f3c9a61", 0, ""},
		{"v1.2/app", "v1.2/app-20261120T075959Z-0f3c9a61", 0, ""},
		{"a-b.c.log", "a-b.c-20261120T075959Z-0f3c9a61.log", 0, ""},
		{"a.log", "a-20261120T075959Z-0f3c9a61.log~", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.log~0", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.log~6.log", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.log~99999999999999999999", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.log~999999999999999999999999999", 0, NULL},
		{"a.log", "a-20261120T075959Z-0F3C9A61.log", 0, NULL},
		{"a.log", "a-20261320T075959Z-0f3c9a61.log", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a6.log", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.logs", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a61.txt", 0, NULL},
		{"a.log", "a-20261120T075959Z-0f3c9a6g.log", 0, NULL},
		{"a.log", "a-20261120T075959Z-", 0, NULL},
		{"a.log", "a-", 0, NULL},
		{"a.log", "a-error-20261120T075959Z-0f3c9a61.log", 0, NULL},
		{"a.log", "b/a-20261120T075959Z-0f3c9a61.log", 0, NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct log_name name;
		struct log_key key = {.time_s = 0};
		CHECK_INT(log_name_set(&name, rows[i].family), 0);
		const bool is_of_log = log_key_read(&name, rows[i].key, &key);
		if (!CHECK(is_of_log == (rows[i].suffix != NULL)))
			fprintf(stderr, "\t%s\n", rows[i].key);
		if (is_of_log && rows[i].suffix) {
			CHECK_INT(key.time_s, 1795161599);
			CHECK_INT(key.offset, rows[i].offset);
			CHECK_STRING(key.suffix, rows[i].suffix);
		}
		log_name_clear(&name);
	}
}

static void test_families(void)
{
	static const struct {
		const char *base, *family; /* NULL: it is no object of a log */
	} rows[] = {
		{"access-20261120T075959Z-0f3c9a61.log", "access.log"},
		{"access-20261120T075959Z-0f3c9a61.log~6000.zst", "access.log"},
		{"a-b-20261120T075959Z-0f3c9a61.gz", "a-b"},
		{"a.b-20261120T075959Z-0f3c9a61", NULL},
		{"a-20261120T075959Z-0f3c9a61.b.log", NULL},
		{"access.log", NULL},
		{"access-20261120.log", NULL},
		{"", NULL},
		{"-", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text family = TEXT(KEY_BYTES_MAX);
		CHECK(log_family_of_object(rows[i].base, &family) == (rows[i].family != NULL));
		CHECK_STRING(text_string(&family), rows[i].family ? rows[i].family : "");
		text_clear(&family);
	}
}

int main(void)
{
	test_keys();
	test_families();
	return check_result();
}
