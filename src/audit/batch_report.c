#include "audit/batch_report.h"
#include "audit/batch_rows.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/named_file.h"
#include "base/quote.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PATH_BYTES_MAX 8192

/* The fields of a row: "ReportSchema" of the manifest. The documentation names the code before the
 * status, and shows them the other way round in its examples. */
enum { BUCKET, KEY, VERSION, TASK_STATUS, CODE, STATUS, MESSAGE, FIELDS };

struct batch_report {
	const char *bucket, *prefix;
	struct batch_rows *rows;
	uint64_t n_rows;
	int64_t made_s;
};

int batch_report_new(const char *bucket, const char *prefix, struct batch_report **ret,
	struct problem *ret_problem)
{
	struct batch_report *report = calloc(1, sizeof *report);
	int error = -ENOMEM;
	if (!report)
		problem_set(ret_problem, "out of memory");
	else
		error = batch_rows_new(&report->rows, ret_problem);
	if (error) {
		free(report);
		return error;
	}
	report->bucket = bucket;
	report->prefix = prefix;
	*ret = report;
	return 0;
}

void batch_report_free(struct batch_report *report)
{
	if (!report)
		return;
	batch_rows_free(report->rows);
	free(report);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A key as it stands in the report, URL-encoded as in forms. What is not encoded so is taken as it
 * is. */
static void add_decoded(struct text *t, const char *key)
{
	struct text decoded = TEXT(CSV_RECORD_BYTES);
	bool is_encoded = true;
	for (const char *c = key; *c && is_encoded; c++) {
		const int high = *c == '%' ? hex_digit(c[1]) : 0;
		const int low = *c == '%' && high >= 0 ? hex_digit(c[2]) : 0;
		is_encoded = high >= 0 && low >= 0 && (*c != '%' || high || low);
		if (is_encoded && *c == '%') {
			text_add_char(&decoded, (char)(high << 4 | low));
			c += 2;
		} else {
			text_add_char(&decoded, *c == '+' ? ' ' : *c);
		}
	}
	text_add(t, is_encoded ? text_string(&decoded) : key);
	if (decoded.error)
		t->error = decoded.error;
	text_clear(&decoded);
}

static bool is_number(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

static int add_record(
	struct batch_report *report, const struct csv_record *record, struct problem *ret_problem)
{
	const char *const *fields = record->fields;
	if (record->n != FIELDS) {
		problem_set(ret_problem,
			"a row of it has %zu fields and not the %d of a completion report: Bucket, "
			"Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage",
			record->n, FIELDS);
		return -EBADMSG;
	}
	if (strcmp(fields[BUCKET], report->bucket) != 0 || !*fields[KEY])
		return 0;
	const bool is_code_first = !is_number(fields[CODE]);
	const char *version = fields[VERSION];
	struct text key = TEXT(CSV_RECORD_BYTES);
	add_decoded(&key, fields[KEY]);
	const struct batch_row row = {
		.key = text_string(&key),
		.version_id = strcmp(version, "null") == 0 ? "" : version,
		.has_failed = strcasecmp(fields[TASK_STATUS], "succeeded") != 0,
		.is_absent = strcmp(fields[is_code_first ? STATUS : CODE], "404") == 0,
		.code = fields[is_code_first ? CODE : STATUS],
		.message = fields[MESSAGE],
	};
	int error = key.error;
	if (error) {
		problem_set(ret_problem, "out of memory");
	} else if (strncmp(row.key, report->prefix, strlen(report->prefix)) == 0) {
		error = batch_rows_add(report->rows, &row, ret_problem);
		report->n_rows++;
	}
	text_clear(&key);
	return error;
}

static int add_rows(struct batch_report *report, FILE *stream, struct problem *ret_problem)
{
	struct csv *csv = csv_new(stream, FIELDS);
	struct csv_record record;
	int r = -ENOMEM;
	if (!csv)
		problem_set(ret_problem, "out of memory");
	while (csv && (r = csv_next(csv, &record, ret_problem)) > 0 &&
		(r = add_record(report, &record, ret_problem)) == 0)
		;
	csv_free(csv);
	return r;
}

/* Whether the rest of the stream has this MD5, in hexadecimal. */
static int check_md5(FILE *stream, const char *md5, struct problem *ret_problem)
{
	struct digest digest;
	struct sums sums;
	char bytes[16384], hex[2 * sizeof sums.md5 + 1];
	size_t n;
	int error = digest_init(&digest, DIGEST_MD5);
	if (error) {
		problem_set(ret_problem, "its MD5 cannot be computed: %s", strerror(-error));
		return error;
	}
	while ((n = fread(bytes, 1, sizeof bytes, stream)) > 0)
		digest_update(&digest, bytes, n);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	hex_encode(sums.md5, sizeof sums.md5, hex);
	if (ferror(stream)) {
		error = errno ? -errno : -EIO;
		problem_set(ret_problem, "it cannot be read: %s", strerror(-error));
	} else if (strcasecmp(hex, md5) != 0) {
		error = -EBADMSG;
		problem_set(ret_problem, "its MD5 is %s, and the report's manifest says %s", hex,
			quote(md5).text);
	}
	rewind(stream);
	return error;
}

static int open_file(const char *path, FILE **ret, struct problem *ret_problem)
{
	const int error = named_file_stream(path, ret);
	if (error)
		problem_set(ret_problem, "it cannot be opened: %s", named_file_error(error));
	return error;
}

/* A file that the manifest names by its key, beside it or in "results" there. */
static int open_result(
	const char *manifest, const char *key, FILE **ret, struct problem *ret_problem)
{
	static const char *const folders[] = {"results/", ""};
	const char *slash = strrchr(manifest, '/'), *last = strrchr(key, '/');
	const int folder = slash ? (int)(slash + 1 - manifest) : 0;
	int error = -ENOENT;
	for (size_t i = 0; i < 2 && error == -ENOENT; i++) {
		struct text path = TEXT(PATH_BYTES_MAX);
		text_addf(&path, "%.*s%s%s", folder, manifest, folders[i], last ? last + 1 : key);
		error = path.error ? path.error : open_file(text_string(&path), ret, ret_problem);
		text_clear(&path);
	}
	if (error == -ENOENT)
		problem_set(ret_problem,
			"it names %s, which is neither beside it nor in the folder results there: "
			"copy the whole folder of the report",
			quote(key).text);
	else if (error)
		problem_prefix(ret_problem, "%s", quote(key).text);
	return error;
}

static int add_result(struct batch_report *report, const char *manifest, const json_t *result,
	struct problem *ret_problem)
{
	const char *key = json_text(result, "Key"), *md5 = json_text(result, "MD5Checksum");
	FILE *stream;
	int error = open_result(manifest, key, &stream, ret_problem);
	if (error)
		return error;
	if (*md5)
		error = check_md5(stream, md5, ret_problem);
	if (!error)
		error = add_rows(report, stream, ret_problem);
	if (error)
		problem_prefix(ret_problem, "%s", quote(key).text);
	fclose(stream);
	return error;
}

static int add_manifest(struct batch_report *report, const char *path, const json_t *manifest,
	struct problem *ret_problem)
{
	const json_t *results = json_object_get(manifest, "Results"), *result;
	const int64_t made_s = clock_parse_iso(json_text(manifest, "ReportCreationDate"));
	size_t i;
	int error = 0;
	if (strcmp(json_text(manifest, "Format"), "Report_CSV_20180820") != 0 ||
		!json_is_array(results)) {
		problem_set(ret_problem,
			"it is not the manifest of a completion report, whose Format is "
			"Report_CSV_20180820");
		return -EBADMSG;
	}
	if (made_s > 0 && (!report->made_s || made_s < report->made_s))
		report->made_s = made_s;
	json_array_foreach(results, i, result) if (!error) error =
		add_result(report, path, result, ret_problem);
	return error;
}

static int read_manifest(
	struct batch_report *report, const char *path, FILE *stream, struct problem *ret_problem)
{
	json_error_t why;
	json_t *manifest = json_loadf(stream, JSON_REJECT_DUPLICATES, &why);
	if (!manifest) {
		problem_set(ret_problem, "it is not JSON: %s", quote(why.text).text);
		return -EBADMSG;
	}
	const int error = add_manifest(report, path, manifest, ret_problem);
	json_decref(manifest);
	return error;
}

int batch_report_add(struct batch_report *report, const char *path, struct problem *ret_problem)
{
	FILE *stream;
	int error = open_file(path, &stream, ret_problem);
	if (!error) {
		const int first = getc(stream);
		rewind(stream);
		error = first == '{' ? read_manifest(report, path, stream, ret_problem)
				     : add_rows(report, stream, ret_problem);
		fclose(stream);
	}
	if (error)
		problem_prefix(ret_problem, "the report %s", quote(path).text);
	return error;
}

uint64_t batch_report_rows(const struct batch_report *report)
{
	return report->n_rows;
}

int64_t batch_report_made_s(const struct batch_report *report)
{
	return report->made_s;
}

int batch_report_next(
	struct batch_report *report, struct batch_row *ret, struct problem *ret_problem)
{
	return batch_rows_next(report->rows, ret, ret_problem);
}
