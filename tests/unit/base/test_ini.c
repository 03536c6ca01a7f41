#include "../check.h"
#include "base/ini.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const char config[] = "\xEF\xBB\xBF# a comment\r\n"
			     "[default]\r\n"
			     "region = eu-west-1\r\n"
			     "output=json ; trailing\n"
			     "Mixed_Case : yes\n"
			     "url = http://host:1/#frag;x\n"
			     "empty =\n"
			     "\n"
			     "[profile dev]   # the other one\n"
			     "region=us-west-2 # close to home\n"
			     "s3 =\n"
			     "  addressing_style = path\n"
			     "  ; a comment inside\n"
			     "\tendpoint_url = http://127.0.0.1:9000\n"
			     "max_attempts = 5\n"
			     "process = /bin/sh -c \"x ; y\" '# z' ; \"trailing\"\n"
			     "apostrophe = it's ; trailing\n"
			     "text = one\n"
			     "  two\n"
			     "    three\n"
			     "[profile \"with  space\"]\n"
			     "region = a b\n"
			     "[sso-session corp]\n"
			     "sso_start_url = https://corp.example/start#/\n"
			     "[default]\n"
			     "region = eu-central-1";

static int load(const char *bytes, size_t n, struct ini **ret, int *ret_line)
{
	char path[] = "/tmp/test_ini.XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
	int error = ini_load(path, ret, ret_line);
	unlink(path);
	return error;
}

static void test_values(void)
{
	static const struct {
		const char *section, *key, *want;
	} rows[] = {
		{"default", "region", "eu-central-1"},
		{"default", "output", "json"},
		{"default", "mixed_case", "yes"},
		{"default", "url", "http://host:1/#frag;x"},
		{"default", "empty", ""},
		{"default", "missing", NULL},
		{"missing", "region", NULL},
		{"profile dev", "region", "us-west-2"},
		{"profile dev", "s3", ""},
		{"profile dev", "s3.addressing_style", "path"},
		{"profile dev", "s3.endpoint_url", "http://127.0.0.1:9000"},
		{"profile dev", "addressing_style", NULL},
		{"profile dev", "max_attempts", "5"},
		{"profile dev", "process", "/bin/sh -c \"x ; y\" '# z'"},
		{"profile dev", "apostrophe", "it's"},
		{"profile dev", "text", "one\ntwo\nthree"},
		{"profile with space", "region", "a b"},
		{"sso-session corp", "sso_start_url", "https://corp.example/start#/"},
	};
	struct ini *ini;
	if (!CHECK_INT(load(config, sizeof config - 1, &ini, NULL), 0))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK_STRING(ini_get(ini, rows[i].section, rows[i].key), rows[i].want);
	CHECK(ini_has_section(ini, "profile dev"));
	CHECK(!ini_has_section(ini, "dev"));
	ini_free(ini);
}

static void test_errors(void)
{
	static const struct {
		const char *text;
		size_t n;
		int line;
	} rows[] = {
		{"a = b\n", 6, 1},
		{"\n\n[x\n", 5, 3},
		{"[x]\nno delimiter\n", 17, 2},
		{"[x]\na =\n  sub\n", 14, 3},
		{"[ ]\n", 4, 1},
		{"[x]\n= value\n", 12, 2},
		{"[x]\nk = a\0b\n", 12, 2},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ini *ini = NULL;
		int line = 0;
		CHECK_INT(load(rows[i].text, rows[i].n, &ini, &line), -EBADMSG);
		if (!CHECK_INT(line, rows[i].line))
			fprintf(stderr, "\trow %zu\n", i);
	}
	struct ini *ini;
	CHECK_INT(ini_load("/nonexistent/config", &ini, NULL), -ENOENT);
	CHECK_INT(ini_load("/", &ini, NULL), -EISDIR);
	CHECK_INT(ini_load("/dev/zero", &ini, NULL), -ENOTSUP);
	if (CHECK_INT(ini_load("/dev/null", &ini, NULL), 0))
		ini_free(ini);
}

int main(void)
{
	test_values();
	test_errors();
	return check_result();
}
