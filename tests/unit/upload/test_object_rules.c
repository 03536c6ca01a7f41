/* The settings of each object: those for all files, those of the last rule whose pattern matches,
 * and those of the command line, of which each replaces the ones before. */
#include "../check.h"
#include "upload/body/object_rules.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CLASS   "storage-class"
#define CONTROL "header Cache-Control"

static char path[] = "/tmp/object_rules.XXXXXX";

static void write_rules(const char *text)
{
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static const char rules_text[] = "[default]\n"
				 "storage-class = STANDARD_IA\n"
				 "tag =\n"
				 "  a = 1\n"
				 "[rule \"*.log\"]\n"
				 "storage-class = GLACIER\n"
				 "header = Cache-Control: no-store\n"
				 "[rule \"b/*\"]\n"
				 "storage-class = ONEZONE_IA\n"
				 "[rule \"*.log\"]\n"
				 "sse = AES256\n";

static const struct s3once_setting intelligent[] = {{CLASS, "INTELLIGENT_TIERING"}},
				   none[] = {{CLASS, ""}};

static const struct {
	bool has_file;
	const struct s3once_setting *settings; /* one, or NULL */
	const char *relative;
	const char *class, *control, *sse; /* NULL: not set */
	bool has_tag;
} rows[] = {
	{false, NULL, "a.txt", NULL, NULL, NULL, false},
	{false, intelligent, "a.txt", "INTELLIGENT_TIERING", NULL, NULL, false},
	{true, NULL, "a.txt", "STANDARD_IA", NULL, NULL, true},
	/* Of two rules with one pattern, only the last one counts. */
	{true, NULL, "a.log", "STANDARD_IA", NULL, "AES256", true},
	{true, NULL, "b/a.txt", "ONEZONE_IA", NULL, NULL, true},
	{true, NULL, "b/a.log", "STANDARD_IA", NULL, "AES256", true},
	{true, intelligent, "a.log", "INTELLIGENT_TIERING", NULL, "AES256", true},
	{true, intelligent, "b/a.txt", "INTELLIGENT_TIERING", NULL, NULL, true},
	{true, none, "b/a.txt", NULL, NULL, NULL, true},
};

static void test_settings_of_a_file(void)
{
	write_rules(rules_text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct s3once_options options = {.rules_file = rows[i].has_file ? path : NULL,
			.settings = rows[i].settings,
			.n_settings = rows[i].settings != NULL};
		struct object_rules *rules;
		struct problem problem = {0};
		if (!CHECK_INT(object_rules_new(&options, &rules, &problem), 0)) {
			fprintf(stderr, "\t%s\n", problem.text);
			continue;
		}
		const struct s3_target target = object_rules_target(rules, "k", rows[i].relative);
		bool good = CHECK_STRING(target.key, "k");
		good &= CHECK_STRING(s3_headers_value(target.headers, CLASS), rows[i].class);
		good &= CHECK_STRING(s3_headers_value(target.headers, CONTROL), rows[i].control);
		good &= CHECK_STRING(s3_headers_value(target.headers, "sse"), rows[i].sse);
		good &= CHECK_INT(s3_headers_value(target.headers, "tag") != NULL, rows[i].has_tag);
		good &= CHECK(!object_rules_keys(rules)[0]);
		good &= CHECK(!object_rules_requester_pays(rules) && !object_rules_owner(rules));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		object_rules_free(rules);
	}
}

/* The settings of [default] are those of all rules, wherever it stands in the file. */
static void test_default_comes_last(void)
{
	const struct s3once_options options = {.rules_file = path};
	struct object_rules *rules;
	struct problem problem = {0};
	write_rules("[rule \"*.log\"]\nstorage-class = GLACIER\n"
		    "[default]\nstorage-class = STANDARD_IA\nsse = AES256\n");
	if (!CHECK_INT(object_rules_new(&options, &rules, &problem), 0))
		return;
	struct s3_target target = object_rules_target(rules, "k", "a.log");
	CHECK_STRING(s3_headers_value(target.headers, CLASS), "GLACIER");
	CHECK_STRING(s3_headers_value(target.headers, "sse"), "AES256");
	target = object_rules_target(rules, "k", "a");
	CHECK_STRING(s3_headers_value(target.headers, CLASS), "STANDARD_IA");
	object_rules_free(rules);
}

/* Settings for all requests are options of push itself. */
static void test_settings_of_all_requests(void)
{
	static const struct s3once_setting settings[] = {
		{"header", "x-amz-request-payer: requester"},
		{"header", "x-amz-expected-bucket-owner: 123456789012"}};
	for (size_t n = 0; n < 3; n++) {
		const struct s3once_options options = {.settings = settings, .n_settings = n};
		struct object_rules *rules;
		struct problem problem = {0};
		if (!CHECK_INT(object_rules_new(&options, &rules, &problem), 0))
			return;
		CHECK_INT(object_rules_requester_pays(rules), n > 0);
		CHECK_STRING(object_rules_owner(rules), n > 1 ? "123456789012" : NULL);
		object_rules_free(rules);
	}
}

/* A Content-Encoding that goes with --compress is none of the rules' settings, and the last one
 * says whether objects get it or a suffix. Without --compress it is a header like any other. */
static void test_encoding(void)
{
	static const struct s3once_setting both[] = {{"header", "Content-Encoding: gzip"},
		{"header", "Content-Encoding:"}, {"header", "Cache-Control: no-store"}};
	static const struct {
		const char *compress;
		size_t from, n;
		bool names_encoding, is_header;
	} cases[] = {
		{NULL, 0, 0, false, false},
		{NULL, 0, 1, false, true},
		{"gzip", 0, 0, false, false},
		{"gzip", 0, 1, true, false},
		{"gzip", 0, 2, false, false},
		{"gzip", 1, 1, false, false},
		{"gzip", 1, 2, false, false},
		{"gzip", 2, 1, false, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct s3once_options options = {.compress = cases[i].compress,
			.settings = both + cases[i].from,
			.n_settings = cases[i].n};
		struct object_rules *rules;
		struct problem problem = {0};
		if (!CHECK_INT(object_rules_new(&options, &rules, &problem), 0))
			return;
		bool good = CHECK_INT(object_rules_name_encoding(rules), cases[i].names_encoding);
		const struct s3_target target = object_rules_target(rules, "k", "a");
		good &= CHECK_INT(
			s3_headers_value(target.headers, "header Content-Encoding") != NULL,
			cases[i].is_header);
		if (!good)
			fprintf(stderr, "\tcase %zu\n", i);
		object_rules_free(rules);
	}
}

/* The keys of the caller's own, of the rules that have one. */
static void test_keys(void)
{
	char key_path[] = "/tmp/object_key.XXXXXX", text[400];
	const int fd = mkstemp(key_path);
	CHECK_INT(write(fd, "0123456789abcdef0123456789abcdef", 32), 32);
	close(fd);
	for (int of_all = 0; of_all < 2; of_all++) {
		const struct s3once_options options = {.rules_file = path};
		struct object_rules *rules;
		struct problem problem = {0};
		snprintf(text, sizeof text,
			"[%s]\nsse-c-key-file = %s\n[rule \"*.b\"]\ntag =\n  a = 1\n",
			of_all ? "default" : "rule \"*.a\"", key_path);
		write_rules(text);
		if (!CHECK_INT(object_rules_new(&options, &rules, &problem), 0)) {
			fprintf(stderr, "\t%s\n", problem.text);
			break;
		}
		const struct s3_headers *const *keys = object_rules_keys(rules);
		size_t n = 0;
		for (; keys[n]; n++)
			CHECK(*s3_headers_key_md5(keys[n]) != 0);
		CHECK_INT(n, of_all ? 2 : 1); /* of all other files, and of the rule */
		object_rules_free(rules);
	}
	unlink(key_path);
}

static void test_refused(void)
{
	static const struct {
		const char *text, *says;
	} faults[] = {
		{"storage-class = GLACIER\n", "line 1"},
		{"[other]\ntag =\n  a = 1\n", "the section [other] is unknown"},
		{"[rule \"[\"]\ntag =\n  a = 1\n", "unclosed ["},
		{"[default]\nnothing = 1\n", "[default]"},
		{"[default]\nheader = x-amz-request-payer: requester\n", "is for all requests"},
		{"[rule \"*\"]\nheader = x-amz-expected-bucket-owner: 123456789012\n",
			"is for all requests"},
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		const struct s3once_options options = {.rules_file = path};
		struct object_rules *rules = NULL;
		struct problem problem = {0};
		write_rules(faults[i].text);
		bool good = CHECK_INT(object_rules_new(&options, &rules, &problem), -EINVAL);
		good &= CHECK(strstr(problem.text, faults[i].says) != NULL);
		good &= CHECK(strncmp(problem.text, "the rules /tmp/", 15) == 0);
		if (!good)
			fprintf(stderr, "\tfault %zu: %s\n", i, problem.text);
	}
	struct object_rules *rules;
	struct problem problem = {0};
	CHECK_INT(object_rules_new(&(struct s3once_options){.rules_file = "/nowhere/at/all"},
			  &rules, &problem),
		-EINVAL);
	CHECK(strstr(problem.text, "cannot be read") != NULL);
}

int main(void)
{
	close(mkstemp(path));
	test_settings_of_a_file();
	test_default_comes_last();
	test_settings_of_all_requests();
	test_encoding();
	test_keys();
	test_refused();
	unlink(path);
	return check_result();
}
