/* Reads the names of a log's objects. The rules are those of source_key.c in src/scan, which makes
 * them. */
#include "cat/log_name.h"
#include "base/clock.h"
#include "base/files.h"
#include "scan/key/rotated_name.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TIME_CHARS strlen("20261120T075959Z")

int log_name_set(struct log_name *ret, const char *family)
{
	const char *base = path_name(family), *dot = strrchr(base, '.');
	ret->prefix = TEXT(2 * KEY_BYTES_MAX);
	/* As for {stem} and {ext}, a dot at the beginning of a name begins no extension. */
	ret->ext = dot && dot != base ? dot : base + strlen(base);
	text_add_bytes(&ret->prefix, family, (size_t)(ret->ext - family));
	text_add_char(&ret->prefix, '-');
	return ret->prefix.error ? -ENOMEM : 0;
}

void log_name_clear(struct log_name *name)
{
	text_clear(&name->prefix);
}

/* Reads "20261120T075959Z-0f3c9a61". Returns the rest, or NULL if s does not begin like that. */
static const char *read_time_and_id(const char *s, struct log_key *ret)
{
	/* 0 stands for a decimal digit, x for a hex digit, and any other character for itself. */
	static const char form[] = "00000000T000000Z-xxxxxxxx";
	char iso[32];
	for (size_t i = 0; form[i]; i++) {
		const bool is_digit = s[i] >= '0' && s[i] <= '9';
		const bool is_hex = is_digit || (s[i] >= 'a' && s[i] <= 'f');
		const bool fits = form[i] == '0'   ? is_digit
				  : form[i] == 'x' ? is_hex
						   : s[i] == form[i];
		if (!fits)
			return NULL;
	}
	snprintf(iso, sizeof iso, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", s, s + 4, s + 6, s + 9, s + 11,
		s + 13);
	ret->time_s = clock_parse_iso(iso);
	snprintf(ret->id, sizeof ret->id, "%s", s + TIME_CHARS + 1);
	return ret->time_s < 0 ? NULL : s + strlen(form);
}

/* Reads the part after the extension: "~6000" and a suffix of compression, each of which may be
 * missing. Returns false if it is anything else. */
static bool read_end(const char *s, struct log_key *ret)
{
	char digits[24];
	ret->offset = 0;
	if (*s == '~') {
		const size_t n = strspn(s + 1, "0123456789");
		if (n >= sizeof digits)
			return false;
		snprintf(digits, n + 1, "%s", s + 1);
		if (!decimal_read(digits, INT64_MAX, &ret->offset) || !ret->offset)
			return false;
		s += 1 + n;
	}
	ret->suffix = s;
	for (size_t i = 0; i <= FAMILY_SUFFIXES; i++)
		if (strcmp(s, family_suffix(i)) == 0)
			return true;
	return false;
}

bool log_key_read(const struct log_name *name, const char *key, struct log_key *ret)
{
	const size_t ext_bytes = strlen(name->ext);
	if (strncmp(key, text_string(&name->prefix), name->prefix.len) != 0)
		return false;
	const char *end = read_time_and_id(key + name->prefix.len, ret);
	return end && strncmp(end, name->ext, ext_bytes) == 0 && read_end(end + ext_bytes, ret);
}

bool log_family_of_object(const char *base_name, struct text *family)
{
	struct text found = TEXT(2 * KEY_BYTES_MAX);
	struct log_key read;
	bool is_object = false;
	for (const char *dash = base_name; !is_object && (dash = strchr(dash, '-')); dash++) {
		const char *end = read_time_and_id(dash + 1, &read);
		if (!end)
			continue;
		/* The extension ends where the rest of the name is an offset or a suffix, or at the
		 * end of the name. */
		const char *ext_end = end;
		while (!read_end(ext_end, &read))
			ext_end++;
		text_reset(&found);
		text_add_bytes(&found, base_name, (size_t)(dash - base_name));
		text_add_bytes(&found, end, (size_t)(ext_end - end));
		/* "a.b-…" would belong to the family "a.b", whose objects are called "a-….b". */
		struct log_name name;
		is_object = log_name_set(&name, text_string(&found)) == 0 &&
			    log_key_read(&name, base_name, &read);
		log_name_clear(&name);
	}
	if (is_object)
		text_add(family, text_string(&found));
	text_clear(&found);
	return is_object;
}
