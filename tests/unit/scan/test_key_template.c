#include "../check.h"
#include "base/host_name.h"
#include "scan/key/key_template.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define S_NS INT64_C(1000000000)

static struct family_rules *families;

static struct key_template *make(const char *text, const char *time_zone, struct problem *problem)
{
	const struct key_template_options options = {
		.text = text, .time_zone = time_zone, .families = families};
	struct key_template *template = NULL;
	*problem = (struct problem){.text = ""};
	const int r = key_template_new(&options, &template, problem);
	CHECK_INT(r, template ? 0 : -EINVAL);
	return template;
}

/* The key after the prefix "p/", or the sentence. */
static void check_key(const struct key_template *template, const char *relative, int64_t mtime_ns,
	const char *want)
{
	const struct key_subject subject = {relative, mtime_ns, ID};
	struct text key = TEXT(4096);
	struct problem problem = {.text = ""};
	text_add(&key, "p/");
	const int r = key_template_render(template, &subject, &key, &problem);
	CHECK_STRING(r ? problem.text : text_string(&key), want);
	text_clear(&key);
}

static void test_fields(void)
{
	static const struct {
		const char *template, *relative, *want;
	} rows[] = {
		{"{path}", "a/b/app.log.gz", "p/a/b/app.log.gz"},
		{"{dir}{name}", "a/b/app.log.gz", "p/a/b/app.log.gz"},
		{"{dir}{name}", "app.log", "p/app.log"},
		{"{dir}{stem}-x{ext}", "a.b/app.log.gz", "p/a.b/app.log-x.gz"},
		{"{stem}|{ext}", "app", "p/app|"},
		{"{stem}|{ext}", "a.b/app", "p/app|"},
		{"{stem}|{ext}", ".profile", "p/.profile|"},
		{"{stem}|{ext}", "app.", "p/app|."},
		{"{stem}|{ext}", ".a.b", "p/.a|.b"},
		{"{family}/{name}", "x/app.log.3.gz", "p/app.log/app.log.3.gz"},
		{"{family}/{name}", "x/app-20260101.log", "p/app.log/app-20260101.log"},
		{"{mtime:%Y/%m/%d}/{name}", "n", "p/2026/11/21/n"},
		{"{mtime:%Y%m%dT%H%M%SZ}-{name}", "n", "p/20261121T075628Z-n"},
		{"{mtime:%s %j %V %e %p %a %b %Z %z %%}{name}", "n",
			"p/1795247788 325 47 21 AM Sat Nov UTC +0000 %n"},
		{"{id}", "n", "p/" ID},
		{"{id:8}{ext}", "n.log", "p/01234567.log"},
		{"{id:64}", "n", "p/" ID},
		{"{{{name}}}", "n", "p/{n}"},
		{"a{{}}{name}", "n", "p/a{}n"},
		{"{env:S3ONCE_SITE}/{path}", "a/b", "p/east{1}/a/b"},
		{"{name}", "\xff", "p/\xff"},
		{"{namespace}/{pod}/{container}/{stem}{ext}", "default_web-0_1f2e/app/0.log",
			"p/default/web-0/app/0.log"},
		{"{container}.{pod}.{namespace}", "x_y/z/kube-system_db.1_1f2e/a_b/0.log.1",
			"p/a_b.db.1.kube-system"},
	};
	setenv("S3ONCE_SITE", "east{1}", 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template = make(rows[i].template, NULL, &problem);
		if (!CHECK(template != NULL))
			fprintf(stderr, "\t%s: %s\n", rows[i].template, problem.text);
		else
			check_key(template, rows[i].relative, 1795247788 * S_NS + 1, rows[i].want);
		key_template_free(template);
	}
}

static void test_refused_templates(void)
{
	static const struct {
		const char *template, *time_zone, *want;
	} rows[] = {
		{"{nmae}", NULL, "--key has no field {nmae}; did you mean {name}?"},
		{"{mtim:%Y}", NULL, "--key has no field {mtim}; did you mean {mtime}?"},
		{"{now}", NULL,
			"--key has no field {now}, because the next run would make another key of "
			"the same file; {mtime:%Y/%m/%d} is the file's own time"},
		{"{counter}", NULL,
			"--key has no field {counter}; there are {path}, {dir}, {name}, {stem}, "
			"{ext}, {family}, {namespace}, {pod}, {container}, {host}, {fqdn}, "
			"{mtime:%Y/%m/%d}, {id:8} and {env:NAME}"},
		{"{}", NULL,
			"--key has no field {}; there are {path}, {dir}, {name}, {stem}, {ext}, "
			"{family}, {namespace}, {pod}, {container}, {host}, {fqdn}, "
			"{mtime:%Y/%m/%d}, {id:8} and {env:NAME}"},
		{"{name", NULL,
			"the { at character 1 of --key has no }; write {{ for a brace as it is"},
		{"{name}}", NULL,
			"the } at character 7 of --key has no {; write }} for a brace as it is"},
		{"}{name}", NULL,
			"the } at character 1 of --key has no {; write }} for a brace as it is"},
		{"}name}", NULL,
			"the } at character 1 of --key has no {; write }} for a brace as it is"},
		{"{na{me}", NULL,
			"the { at character 1 of --key has no }; write {{ for a brace as it is"},
		{"{name:x}", NULL, "{name:x} of --key: write it as {name}"},
		{"{id:}", NULL, "{id:} of --key: write it as {id:8}"},
		{"{id:0}", NULL,
			"{id:0} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{id:65}", NULL,
			"{id:65} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{id:8x}", NULL,
			"{id:8x} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{id:08}", NULL,
			"{id:08} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{id:+8}", NULL,
			"{id:+8} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{id:-8}", NULL,
			"{id:-8} of --key: an id has 64 hex digits, and {id:8} is its first eight"},
		{"{mtime}", NULL, "{mtime} of --key: write it as {mtime:%Y/%m/%d}"},
		{"{mtime:day}", NULL,
			"{mtime:…} of --key needs a format as of strftime(3), such as "
			"{mtime:%Y/%m/%d}"},
		{"{mtime:%i}", NULL, "{mtime:%i} of --key: there is no %i; did you mean %I?"},
		{"{mtime:%Y%Q}", NULL,
			"{mtime:%Y%Q} of --key: there is no %Q; the most common are %Y %m %d %H %M "
			"%S"},
		{"{mtime:%}", NULL,
			"{mtime:%} of --key: a % is followed by no conversion; the most common are "
			"%Y %m %d %H %M %S"},
		{"{mtime:%c}", NULL, "{mtime:%c} of --key: there is no %c; did you mean %C?"},
		{"{env}", NULL, "{env} of --key: write it as {env:NAME}"},
		{"{env:S3ONCE_NONE}/{name}", NULL,
			"{env:S3ONCE_NONE} of --key: this variable is not set, or is empty"},
		{"{dir}/{name}", NULL,
			"{dir} of --key ends in a slash already: leave out the one behind it"},
		{"/{name}", NULL,
			"--key begins with a slash, or has two in a row: parts of keys are not "
			"empty"},
		{"a//{name}", NULL,
			"--key begins with a slash, or has two in a row: parts of keys are not "
			"empty"},
		{"logs", NULL,
			"--key has no field of the file, such as {name}, so that all files would "
			"have one key; --as names the key of one file"},
		{"", NULL,
			"--key has no field of the file, such as {name}, so that all files would "
			"have one key; --as names the key of one file"},
		{"{name}", "Europe/Berlin",
			"--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one"},
	};
	unsetenv("S3ONCE_NONE");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template = make(rows[i].template, rows[i].time_zone, &problem);
		CHECK(!template);
		CHECK_STRING(problem.text, rows[i].want);
		key_template_free(template);
	}
	struct problem problem;
	CHECK(!make("{mtime:%Y}-{name}", "Europe/Berln", &problem));
	CHECK(strstr(problem.text, "--time-zone: there is no time zone \"Europe/Berln\"") != NULL);
}

#define NO_POD                                                                                     \
	"is not in a folder NAMESPACE_POD_UID/CONTAINER as the kubelet makes them, which {pod} "   \
	"of --key needs"

static void test_keys_that_are_none(void)
{
	static const struct {
		const char *template, *relative, *want;
	} rows[] = {
		{"{ext}", "app", "--key makes an empty key of it"},
		{"{ext}/{name}", "app",
			"--key makes the key \"/app\" of it, which has an empty part: it begins or "
			"ends with a slash, or has two in a row"},
		{"{name}/{ext}", "app",
			"--key makes the key \"app/\" of it, which has an empty part: it begins or "
			"ends with a slash, or has two in a row"},
		{"{name}/{ext}/x", "app",
			"--key makes the key \"app//x\" of it, which has an empty part: it begins "
			"or ends with a slash, or has two in a row"},
		{"{ext}./{name}", "a.",
			"--key makes the key \"../a.\" of it, which has the part \".\" or \"..\""},
		{"{ext}/{name}", "a.",
			"--key makes the key \"./a.\" of it, which has the part \".\" or \"..\""},
		{"{pod}", "0.log", NO_POD},
		{"{pod}", "a_b_c/0.log", NO_POD},
		{"{pod}", "a_b/app/0.log", NO_POD},
		{"{pod}", "a__c/app/0.log", NO_POD},
		{"{pod}", "a_b_c_d/app/0.log", NO_POD},
		{"{pod}", "_b_c/app/0.log", NO_POD},
		{"{pod}", "a_b_c/app/x/0.log", NO_POD},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template = make(rows[i].template, NULL, &problem);
		if (template)
			check_key(template, rows[i].relative, 0, rows[i].want);
		key_template_free(template);
	}
}

static void test_time_zones(void)
{
	static const struct {
		const char *zone;
		int64_t mtime_ns;
		const char *want;
	} rows[] = {
		{NULL, 1774746000 * S_NS, "p/20260329T010000+0000 n"},
		{"Europe/Berlin", 1774746000 * S_NS - 1, "p/20260329T015959+0100 n"},
		{"Europe/Berlin", 1774746000 * S_NS, "p/20260329T030000+0200 n"},
		{"Europe/Berlin", 1792890000 * S_NS, "p/20261025T020000+0100 n"},
		{"Asia/Kathmandu", 0, "p/19700101T053000+0530 n"},
		{"Asia/Kathmandu", 1795247788 * S_NS, "p/20261121T134128+0545 n"},
		{"America/St_Johns", -1, "p/19691231T202959-0330 n"},
		{NULL, -1, "p/19691231T235959+0000 n"},
		/* these stand for all that is too far away */
		{NULL, INT64_MIN, "its modification time is not a date, which --key needs"},
		{NULL, INT64_MAX, "its modification time is not a date, which --key needs"},
		{NULL, INT64_MAX - 1, "p/22620411T234716+0000 n"},
	};
	setenv("TZ", "Asia/Tokyo", 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template =
			make("{mtime:%Y%m%dT%H%M%S%z} {name}", rows[i].zone, &problem);
		if (template)
			check_key(template, "n", rows[i].mtime_ns, rows[i].want);
		key_template_free(template);
	}
	unsetenv("TZ");
}

static void test_names_of_the_host(void)
{
	char host[256] = "", want[300];
	struct problem problem;
	CHECK_INT(gethostname(host, sizeof host - 1), 0);
	host[strcspn(host, ".")] = '\0';
	snprintf(want, sizeof want, "p/%s/n", host);
	struct key_template *template = make("{host}/{name}", NULL, &problem);
	if (template)
		check_key(template, "n", 0, want);
	key_template_free(template);
}

static void test_dependencies_of_a_key(void)
{
	static const struct {
		const char *template;
		bool is_of_version, has_id;
	} rows[] = {
		{"{path}", false, false},
		{"{mtime:%Y}{name}", true, false},
		{"{id:8}", true, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template = make(rows[i].template, NULL, &problem);
		if (!CHECK(template != NULL))
			continue;
		CHECK_INT(key_template_depends_on_version(template), rows[i].is_of_version);
		CHECK_INT(key_template_needs_id(template), rows[i].has_id);
		key_template_free(template);
	}
}

static void test_halves_of_the_family(void)
{
	const struct key_template_options options = {
		.text = "{dir}{stem}-{id:4}{ext}", .families = families, .names_families = true};
	struct key_template *template = NULL;
	struct problem problem;
	if (!CHECK_INT(key_template_new(&options, &template, &problem), 0))
		return;
	check_key(template, "x/app.log.3.gz", 0, "p/x/app-0123.log");
	check_key(template, "x/app.1.log", 0, "p/x/app-0123.log");
	key_template_free(template);
}

static void test_no_field_of_a_rotated_log(void)
{
	const struct key_template_options options = {
		.text = "logs", .families = families, .names_families = true};
	struct key_template *template = NULL;
	struct problem problem;
	CHECK_INT(key_template_new(&options, &template, &problem), -EINVAL);
	CHECK_STRING(problem.text,
		"--key has no field of the file, such as {family} or {id:8}, so that all files "
		"would have one key");
}

/* Which keys are those of other hosts. A variable stands for the name of the host. */
static void test_keys_of_other_hosts(void)
{
	static const struct {
		const char *template, *key;
		bool is_elsewhere;
	} rows[] = {
		{"{env:H}/{path}", "web1/a.log", false},
		{"{env:H}/{path}", "web2/a.log", true},
		{"{env:H}/{path}", "web10/a.log", true},
		{"{env:H}/{path}", "web1", false}, /* no host makes it */
		{"{env:H}/{path}", "a.log", false},
		{"{env:H}/{path}", "web2/web1/a.log", true},
		{"{family}/{mtime:%Y/%m}/{env:H}-{name}", "a/2026/11/web1-a", false},
		{"{family}/{mtime:%Y/%m}/{env:H}-{name}", "a/2026/11/web2-a.gz", true},
		{"{family}/{mtime:%Y/%m}/{env:H}-{name}", "a/2026/11/web2a", false},
		{"{dir}{env:H}/{name}", "web10/web1/a", false},
		{"{dir}{env:H}/{name}", "web10/web2/a", true},
		{"{dir}{stem}.{env:H}", "x/a.web1.zst", false},
		{"{dir}{stem}.{env:H}", "x/a.web2.zst", true},
		{"logs/{env:H}/{name}", "logs/web2/a", true},
		{"logs/{env:H}/{name}", "data/web2/a", false},
		{"{env:H}/{env:H}-{name}", "web1/web2-a", true},
		/* Without a field of the host, all hosts have the same keys. */
		{"logs/{name}", "data/a", false},
	};
	setenv("H", "web1", 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem;
		struct key_template *template = make(rows[i].template, NULL, &problem);
		if (!template)
			continue;
		if (!CHECK_INT(
			    key_template_is_elsewhere(template, rows[i].key), rows[i].is_elsewhere))
			fprintf(stderr, "\t%s: %s\n", rows[i].template, rows[i].key);
		CHECK_INT(key_template_names_host(template),
			strstr(rows[i].template, "{env:H}") != NULL);
		key_template_free(template);
	}
	/* No key has room for such a value. */
	static char long_value[KEY_BYTES_MAX + 2];
	memset(long_value, 'x', KEY_BYTES_MAX + 1);
	setenv("H", long_value, 1);
	struct problem problem;
	struct key_template *template = make("{env:H}/{path}", NULL, &problem);
	if (template)
		CHECK(key_template_is_elsewhere(template, "web2/a"));
	key_template_free(template);
	unsetenv("H");
}

int main(void)
{
	struct problem problem;
	CHECK_INT(family_rules_new(&families, &problem), 0);
	test_fields();
	test_refused_templates();
	test_keys_that_are_none();
	test_time_zones();
	test_names_of_the_host();
	test_dependencies_of_a_key();
	test_halves_of_the_family();
	test_keys_of_other_hosts();
	test_no_field_of_a_rotated_log();
	family_rules_free(families);
	return check_result();
}
