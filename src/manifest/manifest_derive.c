#include "manifest/manifest_derive.h"
#include "base/quote.h"
#include "base/text.h"
#include <string.h>

const char *const manifest_format_names[MANIFEST_FORMATS + 1] = {
	[MANIFEST_JSON] = "json",
	[MANIFEST_SHA256SUM] = "sha256sum",
	[MANIFEST_SHA1SUM] = "sha1sum",
	[MANIFEST_MD5SUM] = "md5sum",
	[MANIFEST_S3_BATCH] = "s3-batch",
	[MANIFEST_S3_BATCH_VERSIONS] = "s3-batch-versions",
};

/* Of a name with a newline or a backslash the line begins with a backslash, and they are escaped
 * (GNU Coreutils, "cksum output modes"). */
static void add_sum_line(struct text *t, const char *hex, const char *name)
{
	if (strpbrk(name, "\\\n\r"))
		text_add_char(t, '\\');
	text_addf(t, "%s  ", hex);
	for (; *name; name++)
		switch (*name) {
		case '\\':
			text_add(t, "\\\\");
			break;
		case '\n':
			text_add(t, "\\n");
			break;
		case '\r':
			text_add(t, "\\r");
			break;
		default:
			text_add_char(t, *name);
		}
}

/* Whether the name leads to a file below the folder in which the list is checked. */
static bool is_below(const char *name)
{
	const char *part = name;
	if (!*name || *name == '/')
		return false;
	do {
		const size_t n = strcspn(part, "/");
		if (n == 2 && strncmp(part, "..", 2) == 0)
			return false;
		part += n + (part[n] == '/');
	} while (*part);
	return true;
}

static bool derive_sum(enum checksum kind, const struct manifest_entry *entry, const char *base,
	struct text *ret, struct problem *ret_problem)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	char hex[2 * CHECKSUM_BYTES_MAX + 1];
	const char *sum = entry->sums[kind];
	const size_t n = strlen(base);
	if (strncmp(entry->key, base, n) != 0) {
		problem_set(ret_problem, "its key is not below %s", quote(base).text);
		return false;
	}
	if (!is_below(entry->key + n)) {
		problem_set(ret_problem,
			"its name in the list would be '%s', which is not a file below the folder "
			"in which the list is checked",
			quote(entry->key + n).text);
		return false;
	}
	if (checksum_from_base64(kind, sum, strlen(sum), bytes) < 0) {
		problem_set(ret_problem,
			"its %s is not known: push with --checksum %s, and with a --part-size that "
			"is larger than the file",
			checksum_kinds[kind].name, checksum_kinds[kind].name);
		return false;
	}
	hex_encode(bytes, checksum_kinds[kind].bytes, hex);
	/* sha256sum reads its standard input for "-". */
	add_sum_line(ret, hex, strcmp(entry->key + n, "-") == 0 ? "./-" : entry->key + n);
	return true;
}

/* Keys in such lists are URL-encoded (Amazon S3 User Guide, "Specifying a manifest"). */
static void add_encoded(struct text *t, const char *key)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/";
	for (; *key; key++)
		if (strchr(plain, *key))
			text_add_char(t, *key);
		else
			text_addf(t, "%%%02X", (unsigned char)*key);
}

bool manifest_derive(enum manifest_format format, const struct manifest_entry *entry,
	const char *base, struct text *ret, struct problem *ret_problem)
{
	switch (format) {
	case MANIFEST_SHA256SUM:
		return derive_sum(CHECKSUM_SHA256, entry, base, ret, ret_problem);
	case MANIFEST_SHA1SUM:
		return derive_sum(CHECKSUM_SHA1, entry, base, ret, ret_problem);
	case MANIFEST_MD5SUM:
		return derive_sum(CHECKSUM_MD5, entry, base, ret, ret_problem);
	default:
		break;
	}
	const bool has_version = format == MANIFEST_S3_BATCH_VERSIONS;
	if (has_version && !*entry->version_id) {
		problem_set(ret_problem,
			"its version is not known: --format s3-batch makes a list without versions");
		return false;
	}
	if (has_version && strpbrk(entry->version_id, ",\"\r\n")) {
		problem_set(ret_problem,
			"its version %s has a comma, a quotation mark or a line "
			"break, which cannot stand in such a list",
			quote(entry->version_id).text);
		return false;
	}
	text_addf(ret, "%s,", entry->bucket);
	add_encoded(ret, entry->key);
	if (has_version)
		text_addf(ret, ",%s", entry->version_id);
	return true;
}
