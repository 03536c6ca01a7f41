/* The lines of a log, printed from its objects: in order, once, and not without a word about those
 * that are missing. */
#include "cat/log_cat.h"
#include "objects.h"
#include <fcntl.h>
#include <signal.h>
#include <zlib.h>

/* The printed output, with '$' for each newline, and the messages about objects. */
struct printed {
	char lines[4000], said[4000];
	struct log_cat cat;
	enum outcome outcome;
	struct problem problem;
	int64_t bytes; /* of all that was printed */
	unsigned heads, gets;
};

static void note(void *arg, enum log_report kind, const char *sentence)
{
	struct printed *printed = arg;
	const size_t n = strlen(printed->said);
	snprintf(printed->said + n, sizeof printed->said - n, "%s%s\n",
		kind == LOG_REPORT_ERROR ? "" : "note: ", sentence);
}

/* How the log is printed. Zero: all of it, to a file. */
struct how {
	int64_t from_s, to_s;
	bool only_lists;
	const char *list_status;
	int fd; /* 0: a file whose content is compared */
};

/* Puts the ids that the test wrote into the keys in place of those in the bucket. */
static void write_as_in_test(const struct object *list, char *said)
{
	for (const struct object *object = list; object->key; object++) {
		struct text key = TEXT(200);
		objects_add_key(&key, object);
		for (char *at = said; (at = strstr(at, text_string(&key))); at++)
			memcpy(object_id_in(at), object_id_in(object->key), OBJECT_ID_CHARS);
		text_clear(&key);
	}
}

static void print_log(const struct object *list, const struct how *how, struct printed *ret)
{
	struct objects objects;
	struct log_name name;
	char path[] = "/tmp/cat-XXXXXX";
	const int file = mkstemp(path);
	*ret = (struct printed){.outcome = OUTCOME_LOCAL};
	if (!CHECK(file >= 0 && unlink(path) == 0) || !objects_begin(&objects, list))
		return;
	objects.list_status = how->list_status;
	CHECK_INT(log_name_set(&name, "a.log"), 0);
	ret->cat = (struct log_cat){.place = {.s3 = objects.s3, .conn = objects.conn},
		.bucket = "b",
		.name = &name,
		.from_s = how->from_s,
		.to_s = how->to_s ? how->to_s : INT64_MAX,
		.fd = how->fd ? how->fd : file,
		.report = note,
		.arg = ret};
	ret->outcome = how->only_lists ? log_cat_list(&ret->cat, &ret->problem)
				       : log_cat_print(&ret->cat, &ret->problem);
	ret->bytes = lseek(file, 0, SEEK_END);
	const ssize_t n = pread(file, ret->lines, sizeof ret->lines - 1, 0);
	ret->lines[n < 0 ? 0 : n] = '\0';
	for (char *c = ret->lines; !how->only_lists && (c = strchr(c, '\n'));)
		*c = '$';
	close(file);
	objects_end(&objects);
	write_as_in_test(list, ret->lines);
	write_as_in_test(list, ret->said);
	write_as_in_test(list, ret->problem.text);
	ret->heads = objects.heads;
	ret->gets = objects.gets;
	log_name_clear(&name);
}

static const struct how all_of_it;

/* Checks what is printed of all objects, and what is said. */
static void prints(const struct object *list, const char *lines, const char *said)
{
	struct printed printed;
	print_log(list, &all_of_it, &printed);
	CHECK_INT(printed.outcome, OUTCOME_OK);
	CHECK_STRING(printed.lines, lines);
	CHECK_STRING(printed.said, said);
	uint64_t n = 0, errors = 0;
	while (list[n].key)
		n++;
	for (const char *c = said; *c; c = strchr(c, '\n') + 1)
		errors += strncmp(c, "note: ", 6) != 0;
	CHECK_INT(printed.cat.objects, n);
	CHECK_INT(printed.cat.missing, errors);
}

#define AT(second)  "a-20260101T0000" second "Z-"
#define LOG         "00000000.log"
#define S3(key)     "s3://b/" key ": "
#define OF_TABLE(t) "x-amz-meta-s3once-table: " t "\r\n"
#define CONTENT(id) "x-amz-meta-s3once-content: " id "\r\n"
#define SHA256_ONE  "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
#define SHA256_BOTH "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
#define SHA256_TWO  "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"

static void test_pieces(void)
{
	/* Two logs of one family, whose pieces are mixed. */
	prints((const struct object[]){{AT("01") LOG, "one\n"}, {AT("02") LOG, "a longer one\n"},
		       {AT("03") LOG "~4", "two\n"}, {AT("04") LOG "~13", "end\n"}, {NULL}},
		"one$a longer one$two$end$", "");
	/* Other keys are of other logs. */
	struct printed printed;
	print_log((const struct object[]){{AT("01") LOG, "one\n"}, {AT("02") LOG "x", "x\n"},
			  {"a-b-20260101T000002Z-00000000.log", "x\n"}, {NULL}},
		&all_of_it, &printed);
	CHECK_STRING(printed.lines, "one$");
	CHECK_INT(printed.cat.objects, 1);
	CHECK_INT(printed.cat.last_s, 1767225601);
	print_log((const struct object[]){{NULL}}, &all_of_it, &printed);
	CHECK_INT(printed.outcome, OUTCOME_OK);
	CHECK_INT(printed.cat.last_s, -1);
}

static void test_gaps(void)
{
	prints((const struct object[]){{AT("01") LOG, "one\n"}, {AT("02") LOG "~8", "three\n"},
		       {AT("03") LOG "~14", "four\n"}, {NULL}},
		"one$three$four$",
		S3(AT("02") LOG "~8") "the bytes of the log from 4 to 8 are missing before it: "
				      "there is no object a-….log~4\n");
	prints((const struct object[]){{AT("02") LOG "~8", "three\n"}, {NULL}}, "three$",
		S3(AT("02") LOG "~8") "the bytes of the log from 0 to 8 are missing before it: "
				      "there is no object a-….log\n");
	/* A log that ends behind the piece is not the one that lacks bytes. */
	prints((const struct object[]){{AT("01") LOG, "a longer one\n"},
		       {AT("02") LOG "~8", "three\n"}, {NULL}},
		"a longer one$three$",
		S3(AT("02") LOG "~8") "the bytes of the log from 0 to 8 are missing before it: "
				      "there is no object a-….log\n");
}

/* Objects of one second are in the order in which they were written, and the last piece of a log
 * comes before the next log. */
static void test_order(void)
{
#define WRITTEN(time) "x-amz-meta-mtime: " time "\r\n"
	prints((const struct object[]){{AT("01") "aaaaaaaa.log", "2\n", .headers = WRITTEN("1.2")},
		       {AT("01") "bbbbbbbb.log", "1\n", .headers = WRITTEN("1.1")}, {NULL}},
		"1$2$", "");
	prints((const struct object[]){{AT("01") LOG, "1\n"}, {AT("02") "aaaaaaaa.log", "3\n"},
		       {AT("02") "bbbbbbbb.log~2", "2\n"}, {NULL}},
		"1$2$3$", "");
	/* But not before one of an earlier second, whatever its file says. */
	prints((const struct object[]){{AT("01") LOG, "1\n", .headers = WRITTEN("9")},
		       {AT("02") LOG, "2\n", .headers = WRITTEN("8")}, {NULL}},
		"1$2$", "");
	/* Nor is a piece of a later second, although it continues a log that is known. */
	prints((const struct object[]){{AT("01") LOG, "1\n"},
		       {AT("02") "aaaaaaaa.log", "2\n", .headers = WRITTEN("5")},
		       {AT("03") LOG "~2", "3\n", .headers = WRITTEN("5")}, {NULL}},
		"1$2$3$", "");
	prints((const struct object[]){{AT("02") "aaaaaaaa.log~2", "2\n"},
		       {AT("02") "bbbbbbbb.log", "1\n"}, {NULL}},
		"1$2$", "");
}

/* printf 'one\ntwo\n' | gzip -n */
static const unsigned char packed[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0xcf, 0x4b, 0xe5,
	0x2a, 0x29, 0xcf, 0xe7, 2, 0, 0xe6, 11, 0xba, 0x12, 8, 0, 0, 0};

/* A run with other marks has uploaded the log from its beginning again. */
static void test_repetitions(void)
{
	static const char key[] = AT("03") LOG;
	const struct object first = {AT("01") LOG, "one\n",
				    .headers = OF_TABLE("t") CONTENT(SHA256_ONE)},
			    second = {AT("02") LOG "~4", "two\n",
				    .headers = OF_TABLE("t") CONTENT(SHA256_TWO)};
	prints((const struct object[]){first, second,
		       {key, "one\ntwo\nthree\n", .headers = OF_TABLE("u")}, {NULL}},
		"one$two$three$",
		"note: " S3(AT("03") LOG) "its first 8 bytes are in objects before it, and are "
					  "not repeated\n");
	prints((const struct object[]){first, second, {key, "one\ntwo\n", .headers = OF_TABLE("u")},
		       {NULL}},
		"one$two$",
		"note: " S3(AT("03") LOG) "all of its lines are in objects before it, and are not "
					  "repeated\n");
	/* It goes on from there. */
	prints((const struct object[]){first, second,
		       {key, "one\ntwo\nthree\n", .headers = OF_TABLE("u")},
		       {AT("04") LOG "~14", "four\n"}, {NULL}},
		"one$two$three$four$",
		"note: " S3(AT("03") LOG) "its first 8 bytes are in objects before it, and are "
					  "not repeated\n");
	/* Another log: of the same marks, with other bytes, or equal to the one before. */
	prints((const struct object[]){first, second,
		       {key, "one\ntwo\nthree\n", .headers = OF_TABLE("t")}, {NULL}},
		"one$two$one$two$three$", "");
	prints((const struct object[]){first, second,
		       {key, "one\nTWO\nthree\n", .headers = OF_TABLE("u")}, {NULL}},
		"one$two$one$TWO$three$", "");
	prints((const struct object[]){first, {key, "one\n", .headers = OF_TABLE("u")}, {NULL}},
		"one$one$", "");
	prints((const struct object[]){{AT("01") LOG, "one\ntwo\n",
					       .headers = OF_TABLE("t") CONTENT(SHA256_BOTH)},
		       {AT("03") LOG ".gz", (const char *)packed, sizeof packed, SHA256_BOTH,
			       .headers = OF_TABLE("u")},
		       {NULL}},
		"one$two$one$two$", "");
	/* A log of one range that is repeated, and goes on. */
	prints((const struct object[]){first, {key, "one\ntwo\n", .headers = OF_TABLE("u")},
		       {NULL}},
		"one$two$",
		"note: " S3(AT("03") LOG) "its first 4 bytes are in objects before it, and are "
					  "not repeated\n");
	/* Ranges without an id prove nothing. */
	prints((const struct object[]){{AT("01") LOG, "one\n", .headers = OF_TABLE("t")},
		       {AT("02") LOG "~4", "two\n", .headers = OF_TABLE("t")},
		       {key, "one\ntwo\nthree\n", .headers = OF_TABLE("u")}, {NULL}},
		"one$two$one$two$three$", "");
}

static void test_compressed(void)
{
	/* Its length is unknown, so the next piece may continue it. */
	prints((const struct object[]){{AT("01") LOG ".gz", (const char *)packed, sizeof packed,
					       SHA256_BOTH},
		       {AT("02") LOG "~8", "three\n"}, {NULL}},
		"one$two$three$", "");
	/* s3once has compressed it, and says how long it is. */
	prints((const struct object[]){{AT("01") LOG ".gz", (const char *)packed, sizeof packed,
					       SHA256_BOTH,
					       .headers = "x-amz-meta-s3once-encoding: gzip\r\n"
							  "x-amz-meta-s3once-size: 8\r\n"},
		       {AT("02") LOG "~9", "three\n"}, {NULL}},
		"one$two$three$",
		S3(AT("02") LOG "~9") "the bytes of the log from 8 to 9 are missing before it: "
				      "there is no object a-….log~8\n");
	prints((const struct object[]){{AT("01") LOG ".gz", (const char *)packed,
					       sizeof packed - 1},
		       {AT("02") LOG, "three\n"}, {NULL}},
		"three$",
		S3(AT("01") LOG ".gz") "it cannot be decompressed: it is damaged or cut off\n");
}

/* Each value that an object can be verified by. */
static void test_proofs(void)
{
	static const struct {
		const char *headers, *etag;
		bool is_right;
	} rows[] = {
		{"", "e", true}, /* there is none */
		{"x-amz-checksum-crc32c: ojecDQ==\r\n", "e", true},
		{"x-amz-checksum-crc32c: AAAAAA==\r\n", "e", false},
		{"x-amz-checksum-crc32c: AAAAAA==-2\r\n", "e", true},
		{CONTENT(SHA256_ONE), "e", true},
		{CONTENT(SHA256_TWO), "e", false},
		{"", "5bbf5a52328e7439ae6e719dfe712200", true},
		{"", "5bbf5a52328e7439ae6e719dfe712201", false},
		/* A checksum sent by s3once counts before S3's own, and that before the others. */
		{"x-amz-meta-s3once-sums: crc32c:AAAAAA==\r\nx-amz-checksum-crc32c: ojecDQ==\r\n",
			"e", false},
		{"x-amz-checksum-crc32c: ojecDQ==\r\n" CONTENT(SHA256_TWO),
			"5bbf5a52328e7439ae6e719dfe712201", true},
		{CONTENT(SHA256_ONE), "5bbf5a52328e7439ae6e719dfe712201", true},
		/* The etag of an encrypted object is no MD5. */
		{"x-amz-server-side-encryption: aws:kms\r\n", "5bbf5a52328e7439ae6e719dfe712201",
			true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct object list[] = {
			{AT("01") LOG, "one\n", .headers = rows[i].headers, .etag = rows[i].etag},
			{NULL}};
		struct printed printed;
		print_log(list, &all_of_it, &printed);
		bool good = CHECK_INT(printed.outcome, OUTCOME_OK) &&
			    CHECK_STRING(printed.lines, rows[i].is_right ? "one$" : "") &&
			    CHECK_STRING(printed.said,
				    rows[i].is_right
					    ? ""
					    : S3(AT("01") LOG) "it is damaged: its checksum is not "
							       "that which it was uploaded with; "
							       "its last lines are not printed\n");
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* An object that another client has written under the name: its checksums are right, and its
 * content is not that of the name. */
static void test_another_content(void)
{
	static const struct {
		const char *headers;
		bool is_right;
	} rows[] = {
		{"", false},
		{"x-amz-checksum-crc32c: ojecDQ==\r\n", false},
		{CONTENT(SHA256_ONE), false},
		{CONTENT(SHA256_TWO) "x-amz-checksum-crc32c: ojecDQ==\r\n", true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct object list[] = {
			{AT("01") LOG, "one\n", 4, SHA256_TWO, .headers = rows[i].headers}, {NULL}};
		struct printed printed;
		print_log(list, &all_of_it, &printed);
		bool good = CHECK_STRING(printed.lines, rows[i].is_right ? "one$" : "");
		good &= CHECK_STRING(printed.said,
			rows[i].is_right
				? ""
				: S3(AT("01") LOG) "another client has replaced it: the SHA-256 in "
						   "its name is not that of its content; its last "
						   "lines are not printed\n");
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* An object that is gone, archived or replaced does not end the printing; no access does. */
static void test_objects_that_cannot_be_read(void)
{
	static const struct {
		struct object object;
		const char *said; /* NULL: it ends the printing */
	} rows[] = {
		{{AT("01") LOG, "one\n", .head_status = "404 Not Found"},
			"it was removed after it was listed"},
		{{AT("01") LOG, "one\n", .get_status = "404 Not Found"},
			"it was removed after it was listed"},
		{{AT("01") LOG, "one\n", .get_etag = "other"}, "it was replaced while it was read"},
		{{AT("01") LOG, "one\n", .get_status = "403 Forbidden",
			 .get_body = "<Error><Code>InvalidObjectState</Code></Error>"},
			"it is archived, and has to be restored before it can be read: aws s3api "
			"restore-object --bucket b --key '" AT("01") LOG
			"' --restore-request Days=7; after some hours, print it again"},
		{{AT("01") LOG, "one\n", .get_status = "403 Forbidden"}, NULL},
		{{AT("01") LOG, "one\n", .head_status = "403 Forbidden"}, NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct object list[] = {rows[i].object, {AT("02") LOG, "two\n"}, {NULL}};
		struct printed printed;
		char said[1000] = "";
		print_log(list, &all_of_it, &printed);
		if (rows[i].said)
			snprintf(said, sizeof said, S3(AT("01") LOG) "%s\n", rows[i].said);
		bool good = CHECK_INT(printed.outcome == OUTCOME_OK, rows[i].said != NULL) &&
			    CHECK_STRING(printed.lines, rows[i].said ? "two$" : "") &&
			    CHECK_STRING(printed.said, said) &&
			    CHECK_INT(printed.cat.missing, rows[i].said != NULL);
		if (!rows[i].said)
			good &= CHECK(strstr(printed.problem.text, S3(AT("01") LOG)));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* The last bytes of a damaged object are not printed, and the line before them is ended. */
static void test_damage_behind_a_whole_piece(void)
{
	static char content[300000];
	memset(content, 'x', sizeof content);
	const struct object list[] = {{AT("01") LOG, content, sizeof content,
					      .headers = "x-amz-checksum-crc32c: AAAAAA==\r\n"},
		{AT("02") LOG, "two\n"}, {NULL}};
	struct objects objects;
	struct log_name name;
	struct printed printed = {.outcome = OUTCOME_OK};
	int pipes[2];
	static char got[300010];
	size_t n = 0;
	ssize_t more;
	char path[] = "/tmp/cat-XXXXXX";
	pipes[0] = mkstemp(path);
	if (!CHECK(pipes[0] >= 0 && unlink(path) == 0) || !objects_begin(&objects, list))
		return;
	CHECK_INT(log_name_set(&name, "a.log"), 0);
	printed.cat = (struct log_cat){.place = {.s3 = objects.s3, .conn = objects.conn},
		.bucket = "b",
		.name = &name,
		.to_s = INT64_MAX,
		.fd = pipes[0],
		.report = note,
		.arg = &printed};
	CHECK_INT(log_cat_print(&printed.cat, &printed.problem), OUTCOME_OK);
	while ((more = pread(pipes[0], got + n, sizeof got - n, (off_t)n)) > 0)
		n += (size_t)more;
	CHECK_INT(n, (256 << 10) + 1 + 4);
	CHECK(memcmp(got + (256 << 10), "\ntwo\n", 5) == 0);
	close(pipes[0]);
	objects_end(&objects);
	log_name_clear(&name);
}

#define S(second) (1767225600 + (second))

/* From the first object of the one time to the first one of the other, with those of its second.
 * The objects before them are looked at, so that no bytes of a log seem to be missing. */
static void test_selection(void)
{
	static const struct object list[] = {{AT("01") LOG, "one\n"}, {AT("02") LOG "~4", "two\n"},
		{AT("04") LOG "~8", "three\n"}, {AT("05") "aaaaaaaa.log~14", "four\n"},
		{AT("05") "bbbbbbbb.log", "live\n"}, {AT("06") LOG "~19", "five\n"}, {NULL}};
	static const struct {
		int64_t from_s, to_s;
		const char *lines;
		unsigned objects, heads, gets;
		int64_t last_s;
	} rows[] = {{0, 0, "one$two$three$four$live$five$", 6, 6, 6, S(6)},
		{S(2), S(2), "two$", 1, 2, 1, S(4)}, {S(3), S(3), "three$", 1, 3, 1, S(5)},
		{S(3), S(5), "three$four$live$", 3, 5, 3, S(6)}, {S(7), 0, "", 0, 0, 0, S(6)}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct printed printed;
		const struct how how = {.from_s = rows[i].from_s, .to_s = rows[i].to_s};
		print_log(list, &how, &printed);
		bool good = CHECK_INT(printed.outcome, OUTCOME_OK) &&
			    CHECK_STRING(printed.lines, rows[i].lines) &&
			    CHECK_STRING(printed.said, "") &&
			    CHECK_INT(printed.cat.objects, rows[i].objects) &&
			    CHECK_INT(printed.cat.last_s, rows[i].last_s) &&
			    CHECK_INT(printed.heads, rows[i].heads) &&
			    CHECK_INT(printed.gets, rows[i].gets);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* A repetition that is longer than what is unpacked at once. */
static void test_long_repetition(void)
{
	static char content[700000 + 5], headers[200];
	unsigned char sha256[SHA256_DIGEST_LENGTH];
	char hex[2 * sizeof sha256 + 1];
	const size_t n = sizeof content - 5;
	memset(content, 'x', n);
	memcpy(content + n, "more\n", 5);
	SHA256((const unsigned char *)content, n, sha256);
	hex_encode(sha256, sizeof sha256, hex);
	snprintf(headers, sizeof headers, OF_TABLE("t") CONTENT("%s"), hex);
	const struct object list[] = {{AT("01") LOG, content, n, .headers = headers},
		{AT("02") LOG, content, n + 5, .headers = OF_TABLE("u")}, {NULL}};
	struct printed printed;
	print_log(list, &all_of_it, &printed);
	CHECK_INT(printed.outcome, OUTCOME_OK);
	CHECK_INT(printed.bytes, (int64_t)n + 5);
	CHECK_STRING(printed.said,
		"note: " S3(AT("02") LOG) "its first 700000 bytes are in objects before it, and "
					  "are not repeated\n");
}

/* Gaps beside objects that are not selected are not reported. */
static void test_gap_before(void)
{
	static const struct object list[] = {
		{AT("02") LOG "~4", "two\n"}, {AT("04") LOG "~8", "three\n"}, {NULL}};
	const struct how how = {.from_s = S(3)};
	struct printed printed;
	print_log(list, &how, &printed);
	CHECK_STRING(printed.lines, "three$");
	CHECK_STRING(printed.said, "");
	CHECK_INT(printed.cat.missing, 0);
}

/* Only so many objects before the first one are looked at, the last ones. */
static void test_many_before(void)
{
	enum { N = KNOWN_LOGS_MAX + 4 };
	static char keys[N][60];
	struct object list[N + 1] = {{NULL}};
	for (unsigned i = 0; i < N; i++) {
		snprintf(keys[i], sizeof keys[i], "a-20260101T0000%02uZ-00000000.log%s", i,
			i == N - 1 ? "~10" : "");
		list[i] = (struct object){
			.key = keys[i], .content = i == N - 2 ? "123456789\n" : "x\n"};
	}
	struct printed printed;
	const struct how how = {.from_s = S(N - 1)};
	print_log(list, &how, &printed);
	CHECK_STRING(printed.lines, "x$");
	CHECK_STRING(printed.said, "");
	CHECK_INT(printed.heads, KNOWN_LOGS_MAX + 1);
}

static void test_list(void)
{
	static const struct object list[] = {
		{AT("01") LOG, "one\n"}, {AT("02") LOG "~4", "two\n"}, {NULL}};
	struct printed printed;
	const struct how how = {.from_s = S(2), .only_lists = true};
	print_log(list, &how, &printed);
	CHECK_INT(printed.outcome, OUTCOME_OK);
	CHECK_STRING(
		printed.lines, "2026-01-01T00:00:02Z            4 s3://b/" AT("02") LOG "~4\n");
	CHECK_INT(printed.heads, 0);
}

/* A reader that has gone away is no error; a full disk is one. */
static void test_writing(void)
{
	static const struct object list[] = {
		{AT("01") LOG, "one\n"}, {AT("02") LOG "~4", "two\n"}, {NULL}};
	for (unsigned lists = 0; lists < 2; lists++) {
		int gone[2];
		struct printed printed;
		CHECK_INT(pipe(gone), 0);
		close(gone[0]);
		struct how how = {.fd = gone[1], .only_lists = lists};
		print_log(list, &how, &printed);
		CHECK_INT(printed.outcome, OUTCOME_OK);
		CHECK(printed.cat.is_closed);
		CHECK_INT(printed.cat.objects, lists ? 1 : 2);
		close(gone[1]);
		how.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		print_log(list, &how, &printed);
		CHECK_INT(printed.outcome, OUTCOME_LOCAL);
		CHECK_STRING(printed.problem.text,
			"cannot write to standard output: No space left on device");
		close(how.fd);
	}
}

/* More objects than are planned at once. Those of one second stay together. */
static void test_many_objects(void)
{
	enum { N = 300 };
	static char keys[N][60], contents[N][8];
	static struct object list[N + 1];
	static char lines[N * 8];
	for (unsigned i = 0; i < N; i++) {
		/* The objects 250 to 299 are of one second, and come in the order of their
		 * offsets, not of their names. */
		const unsigned offset = i < 250 ? i * 4 : (549 - i) * 4;
		snprintf(keys[i], sizeof keys[i], "a-20260101T00%02u%02uZ-%08u.log",
			i < 250 ? i / 60 : 10, i < 250 ? i % 60 : 0, i);
		if (offset)
			snprintf(keys[i] + strlen(keys[i]), 20, "~%u", offset);
		snprintf(contents[i], sizeof contents[i], "%03u\n", offset / 4);
		list[i] = (struct object){.key = keys[i], .content = contents[i]};
		snprintf(lines + 4 * i, 5, "%03u$", i);
	}
	list[N].key = NULL;
	prints(list, lines, "");
}

/* Objects of several ranges, compressed and not. Their content is verified, too. */
static void test_large_objects(void)
{
	enum { N = 9 << 20 };
	unsigned char *content = malloc(N), *stored = malloc(N + 20000);
	size_t n;
	z_stream z = {
		.next_in = content, .avail_in = N, .next_out = stored, .avail_out = N + 20000};
	unsigned char sha256[SHA256_DIGEST_LENGTH];
	char hex[2 * sizeof sha256 + 1], headers[200];
	struct printed printed;
	if (!CHECK(content && stored))
		return;
	for (size_t i = 0; i < N; i++)
		content[i] = (unsigned char)(i * i / 7 + i / 251);
	CHECK_INT(deflateInit2(&z, 0, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = (size_t)z.total_out;
	deflateEnd(&z);
	SHA256(content, N, sha256);
	hex_encode(sha256, sizeof sha256, hex);
	snprintf(headers, sizeof headers, "x-amz-meta-s3once-content: %s\r\n", hex);
	const struct object list[] = {{AT("01") LOG, (const char *)content, N, .headers = headers},
		{AT("02") LOG ".gz", (const char *)stored, n, hex, .headers = headers}, {NULL}};
	print_log(list, &all_of_it, &printed);
	CHECK_INT(printed.outcome, OUTCOME_OK);
	CHECK_STRING(printed.said, "");
	CHECK_INT(printed.bytes, 2 * N);
	CHECK_INT(printed.gets, 6);
	free(content);
	free(stored);
}

static void test_no_listing(void)
{
	static const struct object none[] = {{NULL}};
	const struct how how = {.list_status = "403 Forbidden"};
	struct printed printed;
	print_log(none, &how, &printed);
	CHECK_INT(printed.outcome, OUTCOME_DENIED);
	CHECK(strstr(printed.problem.text, "a log's objects are found by the bucket's listing, "
					   "which is refused; allow s3:ListBucket of the bucket"));
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_pieces();
	test_gaps();
	test_order();
	test_repetitions();
	test_compressed();
	test_proofs();
	test_another_content();
	test_objects_that_cannot_be_read();
	test_damage_behind_a_whole_piece();
	test_selection();
	test_gap_before();
	test_long_repetition();
	test_many_before();
	test_list();
	test_writing();
	test_many_objects();
	test_large_objects();
	test_no_listing();
	return check_result();
}
