/* The keys of manifests. The run makes them, and the audits find manifests by them and distinguish
 * them from other objects. Pure. */
#include "manifest/manifest_name.h"
#include "base/clock.h"
#include "base/random.h"
#include "scan/key/key.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "_s3once/runs/"
/* length of the name of a run: its time, '-', its session's id */
#define RUN_CHARS (16 + 1 + ID_CHARS)

void manifest_add_folder(struct text *key, const char *prefix)
{
	key_add_base(key, prefix);
	text_add(key, FOLDER);
}

void manifest_add_key(struct text *key, const struct manifest_run *run)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	char started[17], name[RUN_CHARS + 1];
	clock_format_amz(run->started_s, started);
	snprintf(name, sizeof name, "%s-%s", started, run->session);
	/* It cannot fail, since the name begins with the time. */
	manifest_add_day_folder(key, run->prefix, name);
	text_add(key, "host=");
	/* Query engines read "host=HOST" as a partition. Such a value ends at a '/', and a '%' in
	 * it is decoded. So every character that is not plain becomes '_'. */
	for (const char *c = *run->host ? run->host : "unknown"; *c; c++)
		text_add_char(key, strchr(plain, *c) ? *c : '_');
	text_addf(key, "/%s" MANIFEST_SUFFIX, name);
}

/* Whether s begins with a match of the pattern, in which 0 stands for any digit. */
static bool begins_as(const char *s, const char *pattern)
{
	for (; *pattern; pattern++, s++)
		if (*pattern == '0' ? !isdigit((unsigned char)*s) : *s != *pattern)
			return false;
	return true;
}

bool manifest_add_day_folder(struct text *key, const char *prefix, const char *run_name)
{
	if (!begins_as(run_name, "00000000T")) /* 0 stands for any digit */
		return false;
	manifest_add_folder(key, prefix);
	text_addf(key, "dt=%.4s-%.2s-%.2s/", run_name, run_name + 4, run_name + 6);
	return true;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n > m && strcmp(s + n - m, end) == 0;
}

/* Whether a key has "dt=YYYY-MM-DD/host=HOST/NAME.jsonl.gz" after FOLDER, or the same with ".sig"
 * at the end. NAME begins with the time of the run, such as "20261122T135501Z", so that a date of
 * nine digits is not one of ours. */
static bool is_manifest_path(const char *behind_folder)
{
	static const char day_and_host[] = "dt=0000-00-00/host=", date[] = "00000000";
	if (!begins_as(behind_folder, day_and_host))
		return false;
	const char *slash = strchr(behind_folder + strlen(day_and_host), '/');
	if (!slash)
		return false;
	const char *name = slash + 1;
	const bool begins_with_date =
		begins_as(name, date) && !isdigit((unsigned char)name[strlen(date)]);
	return begins_with_date && !strchr(name, '/') &&
	       (ends_with(name, MANIFEST_SUFFIX) || ends_with(name, MANIFEST_SUFFIX ".sig"));
}

bool manifest_is_key_or_signature(const char *key)
{
	for (const char *at = key; (at = strstr(at, FOLDER)); at++)
		if ((at == key || at[-1] == '/') && is_manifest_path(at + strlen(FOLDER)))
			return true;
	return false;
}

bool manifest_is_key(const char *key)
{
	return manifest_is_key_or_signature(key) && ends_with(key, MANIFEST_SUFFIX);
}
