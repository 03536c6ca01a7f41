/* Templates against paths: the first line is the template, all others are paths. What is made is
 * made again alike, has no empty part, and braces come out as they were written. */
#include "fuzz.h"
#include "scan/content/content.h"
#include "scan/key/key_template.h"

static void render(const struct key_template *template, const char *path, size_t nth)
{
	static const int64_t times_ns[] = {0, -1, 1774746000000000000, INT64_MIN, INT64_MAX};
	const struct key_subject subject = {path, times_ns[nth % 5],
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
	struct text key = TEXT(1U << 20), again = TEXT(1U << 20);
	struct problem problem = {.text = ""};
	const int r = key_template_render(template, &subject, &key, &problem);
	ENSURE(r == key_template_render(template, &subject, &again, &problem));
	ENSURE(strcmp(text_string(&key), text_string(&again)) == 0);
	if (r == 0 && !key.error) {
		const char *made = text_string(&key);
		ENSURE(*made && *made != '/' && made[strlen(made) - 1] != '/');
		ENSURE(!strstr(made, "//") && strncmp(made, "../", 3) != 0);
	} else if (r) {
		ENSURE(problem.text[0]);
	}
	text_clear(&key);
	text_clear(&again);
}

/* A template that is nothing but {path} and these bytes, each brace twice. */
static void through_braces(const char *bytes, const struct family_rules *families)
{
	struct text quoted = TEXT(8192), key = TEXT(8192);
	struct key_template *template;
	struct problem problem;
	text_add(&quoted, "{path}");
	for (const char *p = bytes; *p; p++) {
		text_add_char(&quoted, *p);
		if (*p == '{' || *p == '}')
			text_add_char(&quoted, *p);
	}
	const struct key_template_options options = {
		.text = text_string(&quoted), .families = families};
	const struct key_subject subject = {.relative = "f"};
	if (!quoted.error && key_template_new(&options, &template, &problem) == 0) {
		if (key_template_render(template, &subject, &key, &problem) == 0)
			ENSURE(strcmp(text_string(&key) + 1, bytes) == 0);
		key_template_free(template);
	}
	text_clear(&quoted);
	text_clear(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 2000)
		return 0;
	char *text = fuzz_string(data, size), *lines = text;
	const char *first = strsep(&lines, "\n");
	struct family_rules *families;
	struct key_template *template;
	struct problem problem = {.text = ""};
	ENSURE(family_rules_new(&families, &problem) == 0);
	const struct key_template_options options = {
		.text = first, .families = families, .names_families = size % 2};
	if (strstr(first, "{fqdn}")) /* would ask name servers */
		goto done;
	through_braces(first, families);
	if (key_template_new(&options, &template, &problem) == 0) {
		size_t nth = 0;
		for (const char *path; (path = strsep(&lines, "\n"));)
			if (*path)
				render(template, path, nth++);
		key_template_free(template);
	} else {
		ENSURE(problem.text[0]);
	}
done:
	family_rules_free(families);
	free(text);
	return 0;
}
