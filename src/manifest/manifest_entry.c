/* A line of a manifest: it is made of a mark, written, read back, and converted to a line of a list
 * for other programs. The run writes lines; verify and `s3once manifest` read them. Pure. */
#include "manifest/manifest_entry.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "scan/scan.h"
#include <assert.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define MTIME_CHARS 40 /* more than a time with nanoseconds has, with its NUL */

/* Sets a checksum of the entry. `sum` is a checksum as a mark keeps it, such as "crc32c:BASE64"; ""
 * sets nothing. */
static void set_recorded_sum(struct manifest_entry *entry, const char *sum)
{
	const struct s3_sum parsed = mark_sum_parse(sum);
	if (*parsed.text)
		snprintf(entry->sums[parsed.kind], sizeof entry->sums[parsed.kind], "%s",
			parsed.text);
}

void manifest_entry_set_version(struct manifest_entry *entry, const struct version *version)
{
	unsigned char md5[16];
	size_t n;
	entry->file_size = version->size;
	entry->mtime_ns = version->mtime_ns;
	entry->content = version->content_id;
	entry->version_id = version->version_id;
	entry->etag = version->etag;
	entry->etag_is_md5 = version->etag_is_md5;
	entry->size = version_object_bytes(version);
	/* An etag that is the MD5 of the whole content is a checksum, too, and is written in base64
	 * like the others. */
	if (entry->etag_is_md5 && strlen(entry->etag) == 2 * sizeof md5 &&
		OPENSSL_hexstr2buf_ex(md5, sizeof md5, &n, entry->etag, '\0') == 1)
		checksum_to_base64(CHECKSUM_MD5, md5, entry->sums[CHECKSUM_MD5]);
	/* The order matters: if both are of one kind, the checksum of the whole object replaces
	 * that of its parts. */
	set_recorded_sum(entry, version->parts_sum);
	set_recorded_sum(entry, version_object_sum(version));
}

void manifest_entry_set_sums(struct manifest_entry *entry, const struct sums *sums)
{
	for (enum checksum kind = 0; kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind))
			checksum_to_base64(kind, sums_bytes(sums, kind), entry->sums[kind]);
}

/* Returns the text, or a JSON null if the text is "". A server may choose any bytes for a version
 * or an etag. If these are not UTF-8, the result is NULL, and the "o*" of json_pack() leaves the
 * member out. */
static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

/* Writes a time as "2026-11-21T07:56:28.000000001Z", with all nanoseconds, so that two versions of
 * a file do not look the same. */
static void format_ns(int64_t time_ns, char ret[static MTIME_CHARS])
{
	char second[21];
	int64_t s = time_ns / (int64_t)NS_PER_S, ns = time_ns % (int64_t)NS_PER_S;
	if (ns < 0) { /* C rounds a time before 1970 up to the next second */
		s--;
		ns += (int64_t)NS_PER_S;
	}
	clock_format_iso(s, second);
	snprintf(ret, MTIME_CHARS, "%.19s.%09" PRId64 "Z", second, ns);
}

char *manifest_entry_line(const struct manifest_entry *entry)
{
	char mtime[MTIME_CHARS];
	json_t *sums = json_object();
	format_ns(entry->mtime_ns, mtime);
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		if (*entry->sums[kind])
			json_object_set_new(
				sums, checksum_kinds[kind].name, json_string(entry->sums[kind]));
	json_t *object = json_pack("{s:s, s:s, s:s, s:o*, s:I, s:o*, s:b, s:o, s:o*}", "event",
		entry->event, "bucket", entry->bucket, "key", entry->key, "version_id",
		text_or_null(entry->version_id), "size", (json_int_t)entry->size, "etag",
		text_or_null(entry->etag), "etag_is_md5", entry->etag_is_md5, "checksums", sums,
		"content_id", text_or_null(entry->content));
	json_set_bytes(object, "path", entry->path);
	json_object_set_new(object, "file_size", json_integer((json_int_t)entry->file_size));
	json_object_set_new(object, "mtime", json_string(mtime));
	char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	return line;
}

/* Sets *ret to the text of a member, or to "" if the member is missing or null. Returns false with
 * a sentence if it is not a text. */
static bool take_text(
	const json_t *object, const char *name, const char **ret, struct problem *ret_problem)
{
	const json_t *value = json_object_get(object, name);
	*ret = "";
	if (!value || json_is_null(value))
		return true;
	if (!json_is_string(value))
		return problem_error(ret_problem, false, "its \"%s\" is not a text", name);
	*ret = json_string_value(value);
	return true;
}

/* Sets entry->sums to the "checksums" of a line. Returns false with a sentence if one of them is
 * not a checksum of its kind. */
static bool take_sums(
	const json_t *object, struct manifest_entry *entry, struct problem *ret_problem)
{
	const json_t *sums = json_object_get(object, "checksums");
	if (!json_is_object(sums))
		return problem_error(ret_problem, false, "its \"checksums\" is not an object");
	for (unsigned kind = 0; kind < CHECKSUMS; kind++) {
		unsigned char bytes[CHECKSUM_BYTES_MAX];
		const char *text, *name = checksum_kinds[kind].name;
		if (!take_text(sums, name, &text, ret_problem))
			return false;
		/* Only the part before a "-" is base64: a checksum of parts ends in "-" and their
		 * number. */
		const bool is_base64 =
			checksum_from_base64(kind, text, strcspn(text, "-"), bytes) == 0;
		const int length =
			snprintf(entry->sums[kind], sizeof entry->sums[kind], "%s", text);
		const bool fits = length < (int)sizeof entry->sums[kind];
		if (*text && (!is_base64 || !fits))
			return problem_error(
				ret_problem, false, "its \"%s\" is not such a checksum", name);
	}
	return true;
}

/* Sets *ret by the members of a line, except "file_size" and "mtime". Returns false with a sentence
 * if the members cannot be those of an object. */
static bool take_entry(
	const json_t *object, struct manifest_entry *ret, struct problem *ret_problem)
{
	/* For a value that is missing or of another type, Jansson returns NULL or 0, which is
	 * refused below. */
	const json_t *size = json_object_get(object, "size");
	*ret = (struct manifest_entry){.size = (uint64_t)json_integer_value(size),
		.etag_is_md5 = json_is_true(json_object_get(object, "etag_is_md5"))};
	if (!json_is_object(object))
		return problem_error(ret_problem, false, "it is no JSON object");
	if (!take_text(object, "event", &ret->event, ret_problem) ||
		!take_text(object, "bucket", &ret->bucket, ret_problem) ||
		!take_text(object, "key", &ret->key, ret_problem) ||
		!take_text(object, "version_id", &ret->version_id, ret_problem) ||
		!take_text(object, "etag", &ret->etag, ret_problem) ||
		!take_text(object, "content_id", &ret->content, ret_problem) ||
		!take_text(object, "path", &ret->path, ret_problem))
		return false;
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return problem_error(ret_problem, false, "its \"size\" is not a number of bytes");
	if (!take_sums(object, ret, ret_problem))
		return false;
	const bool has_names = *ret->bucket && *ret->key;
	const bool is_too_long =
		strlen(ret->key) > KEY_BYTES_MAX + SUFFIX_MAX || strlen(ret->etag) > S3_ETAG_MAX;
	if (!has_names || is_too_long)
		return problem_error(ret_problem, false, "it names no object");
	return true;
}

bool manifest_entry_read(const char *line, size_t n, struct manifest_entry *ret, json_t **ret_owner,
	struct problem *ret_problem)
{
	json_error_t error;
	json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		return problem_error(
			ret_problem, false, "it is no JSON (%s)", quote(error.text).text);
	const bool good = take_entry(object, ret, ret_problem);
	if (good)
		*ret_owner = object;
	else
		json_decref(object);
	return good;
}

const char *const manifest_format_names[MANIFEST_FORMATS + 1] = {
	[MANIFEST_JSON] = "json",
	[MANIFEST_SHA256SUM] = "sha256sum",
	[MANIFEST_SHA1SUM] = "sha1sum",
	[MANIFEST_MD5SUM] = "md5sum",
	[MANIFEST_S3_BATCH] = "s3-batch",
	[MANIFEST_S3_BATCH_VERSIONS] = "s3-batch-versions",
};

/* Adds a line as sha256sum writes it, "HEX  NAME". If the name has a backslash or a line break,
 * these are escaped, and the line begins with a backslash (GNU Coreutils, "cksum output modes"). */
static void add_hex_and_name(struct text *t, const char *hex, const char *name)
{
	static const char raw[] = "\\\n\r", shown[] = "\\nr";
	if (strpbrk(name, raw))
		text_add_char(t, '\\');
	text_addf(t, "%s  ", hex);
	for (; *name; name++) {
		const char *at = strchr(raw, *name);
		if (at)
			text_add_char(t, '\\');
		text_add_char(t, at ? shown[at - raw] : *name);
	}
}

/* Whether the name points to a file below the folder in which the list is checked: it is neither
 * empty nor absolute, and no part of it is "..". */
static bool stays_in_folder(const char *name)
{
	char path[KEY_BYTES_MAX + SUFFIX_MAX + 3];
	snprintf(path, sizeof path, "/%s/", name); /* so that each part has a '/' on both sides */
	return *name && *name != '/' && !strstr(path, "/../");
}

/* Adds the line of a list of checksums of this kind. */
static bool add_line_of_sums(enum checksum kind, const struct manifest_entry *entry,
	const char *base, struct text *ret, struct problem *ret_problem)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	char hex[2 * CHECKSUM_BYTES_MAX + 1];
	const char *sum = entry->sums[kind];
	if (strncmp(entry->key, base, strlen(base)) != 0)
		return problem_error(
			ret_problem, false, "its key is not below %s", quote(base).text);
	const char *name = entry->key + strlen(base);
	if (!stays_in_folder(name))
		return problem_error(ret_problem, false,
			"its name in the list would be '%s', which is not a file below the folder "
			"in which the list is checked",
			quote(name).text);
	/* This refuses "", which is unknown, and a checksum of parts, which ends in "-" and a
	 * number. */
	if (checksum_from_base64(kind, sum, strlen(sum), bytes) < 0)
		return problem_error(ret_problem, false,
			"its %s is not known: push with --checksum %s, and with a --part-size that "
			"is larger than the file",
			checksum_kinds[kind].name, checksum_kinds[kind].name);
	hex_encode(bytes, checksum_kinds[kind].bytes, hex);
	/* sha256sum takes the name "-" for its standard input. */
	add_hex_and_name(ret, hex, strcmp(name, "-") == 0 ? "./-" : name);
	return true;
}

enum batch_columns { BUCKET_AND_KEY, BUCKET_KEY_AND_VERSION };

/* Adds the line of a list for S3 Batch Operations. */
static bool add_line_of_batch(enum batch_columns columns, const struct manifest_entry *entry,
	struct text *ret, struct problem *ret_problem)
{
	const bool has_version = columns == BUCKET_KEY_AND_VERSION;
	if (has_version && !*entry->version_id)
		return problem_error(ret_problem, false,
			"its version is not known: --format s3-batch makes a list without versions");
	if (has_version && strpbrk(entry->version_id, ",\"\r\n"))
		return problem_error(ret_problem, false,
			"its version %s has a comma, a quotation mark or a line "
			"break, which cannot stand in such a list",
			quote(entry->version_id).text);
	text_addf(ret, "%s,", entry->bucket);
	/* Keys in such lists are URL-encoded (Amazon S3 User Guide, "Specifying a manifest"). */
	uri_encode_path(ret, entry->key, strlen(entry->key));
	if (has_version)
		text_addf(ret, ",%s", entry->version_id);
	return true;
}

bool manifest_add_list_line(enum manifest_format format, const struct manifest_entry *entry,
	const char *base, struct text *ret, struct problem *ret_problem)
{
	switch (format) {
	case MANIFEST_SHA256SUM:
		return add_line_of_sums(CHECKSUM_SHA256, entry, base, ret, ret_problem);
	case MANIFEST_SHA1SUM:
		return add_line_of_sums(CHECKSUM_SHA1, entry, base, ret, ret_problem);
	case MANIFEST_MD5SUM:
		return add_line_of_sums(CHECKSUM_MD5, entry, base, ret, ret_problem);
	case MANIFEST_S3_BATCH:
		return add_line_of_batch(BUCKET_AND_KEY, entry, ret, ret_problem);
	case MANIFEST_S3_BATCH_VERSIONS:
		return add_line_of_batch(BUCKET_KEY_AND_VERSION, entry, ret, ret_problem);
	case MANIFEST_JSON: /* is not a list for other programs */
	case MANIFEST_FORMATS:
		break;
	}
	assert(false);
	return false;
}
