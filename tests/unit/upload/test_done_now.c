/* Whether a file is done at this very moment, which its mark, its content and S3 have to say
 * together. */
#include "steps.h"
#include "upload/file/done_now.h"

#define CONTENT    "123456789"                        /* whose CRC-32C is SAME */
#define MD5        "25f9e794323b453885f5181f1b624d0b" /* printf 123456789 | md5sum */
#define PARTS_ETAG "d41d8cd98f00b204e9800998ecf8427e-2"
#define SAME       "4waSgw=="
#define OTHER      "AAAAAA=="
#define MTIME_NS   1000000000000
#define HEAD       "HEAD /b/p/k\n"
/* printf 123456789 | sha256sum */
#define ID "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"

#define SHOWN(size, etag, sum)                                                                     \
	STEPS_REPLY("200",                                                                         \
		"Content-Length: " size "\r\nETag: \"" etag "\"\r\n"                               \
		"x-amz-version-id: v\r\nx-amz-checksum-crc32c: " sum "\r\n",                       \
		"")
#define SHOWN_WITHOUT_SUM(etag)                                                                    \
	STEPS_REPLY("200", "Content-Length: 9\r\nETag: \"" etag "\"\r\n", "")

enum trouble {
	NONE,
	NO_MARK,
	CLAIMED,
	UNREADABLE,
	CHANGED,       /* the file, since it was opened */
	ENDED,         /* the run, while the file is read */
	BY_ID,         /* the file is known by its content */
	BY_OTHER_ID,   /* so is its mark, and the content is another one by now */
	ENCRYPTED,     /* the run asks for encryption, which S3 does not confirm */
	MARK_CHANGES,  /* while the content is read */
	MARK_IS_TAKEN, /* likewise, by another uploader */
};

static const struct {
	const char *name;
	enum trouble trouble;
	struct version version; /* in the mark; size 0 stands for that of the file */
	bool is_read;
	const char *reply;
	enum proof proof;
	const char *says, *asked;
} rows[] = {
	{"done", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false, SHOWN("9", "e", SAME),
		PROOF_YES, "", HEAD},
	{"and read", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, true, SHOWN("9", "e", SAME),
		PROOF_YES, "", HEAD},
	{"no mark", NO_MARK, {.etag = "e"}, false, NULL, PROOF_NO,
		"no upload of it is marked as done", ""},
	{"under way", CLAIMED, {.etag = "e"}, false, NULL, PROOF_NO, "an uploader has it under way",
		""},
	{"a mark of later", UNREADABLE, {.etag = "e"}, false, NULL, PROOF_UNKNOWN,
		"its mark is damaged", ""},
	{"another size", NONE, {.size = 8, .sum = "crc32c:" SAME, .etag = "e"}, false, NULL,
		PROOF_NO, "is another version", ""},
	{"another time", NONE, {.mtime_ns = 1, .sum = "crc32c:" SAME, .etag = "e"}, false,
		SHOWN("9", "e", SAME), PROOF_YES, "", HEAD},
	{"another time, and read", NONE, {.mtime_ns = 1, .sum = "crc32c:" SAME, .etag = "e"}, true,
		NULL, PROOF_NO, "is another version", ""},
	{"another content", NONE, {.sum = "crc32c:" OTHER, .etag = "e"}, false, NULL, PROOF_NO,
		"although its size is", ""},
	{"no checksum", NONE, {.etag = "e"}, false, NULL, PROOF_NO, "has no checksum", ""},
	{"changed", CHANGED, {.sum = "crc32c:" SAME, .etag = "e"}, false, NULL, PROOF_NO,
		"it changed while it was read", ""},
	{"not read to its end", ENDED, {.sum = "crc32c:" SAME, .etag = "e"}, false, NULL,
		PROOF_UNKNOWN, "it cannot be read: ", ""},
	{"by its id", BY_ID, {.content_id = ID, .etag = "e"}, false, SHOWN_WITHOUT_SUM("e"),
		PROOF_YES, "", HEAD},
	{"not by its id", BY_OTHER_ID, {.content_id = "c0ffee", .etag = "e"}, false, NULL, PROOF_NO,
		"its content is not what was uploaded", ""},
	{"compressed", NONE,
		{.sum = "crc32c:" SAME,
			.etag = "e",
			.suffix = ".zst",
			.object_bytes = 5,
			.object_sum = "crc32c:" OTHER},
		false, SHOWN("5", "e", OTHER), PROOF_YES, "", "HEAD /b/p/k.zst\n"},
	{"S3 does not have it", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		STEPS_REPLY("404", "", ""), PROOF_NO, "S3 does not hold its object any more", HEAD},
	{"S3 does not say", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		STEPS_REPLY("403", "", ""), PROOF_UNKNOWN, "; allow s3:GetObject", HEAD},
	{"S3 fails", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false, STEPS_REPLY("500", "", ""),
		PROOF_UNKNOWN, "S3 does not show its object: ", HEAD},
	{"S3 has another one", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		SHOWN("9", "e", OTHER), PROOF_NO, "S3 holds another object under its key", HEAD},
	{"S3 shows nothing", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		SHOWN_WITHOUT_SUM("x"), PROOF_NO, "or returns nothing", HEAD},
	/* Some servers return one etag of the parts, and later another one. */
	{"the etag of parts has become an MD5", NONE, {.sum = "crc32c:" SAME, .etag = PARTS_ETAG},
		false, SHOWN_WITHOUT_SUM(MD5), PROOF_YES, "", HEAD},
	{"of other content", NONE, {.sum = "crc32c:" SAME, .etag = PARTS_ETAG}, false,
		SHOWN_WITHOUT_SUM("d41d8cd98f00b204e9800998ecf8427e"), PROOF_NO,
		"or returns nothing", HEAD},
	{"an etag that is not of parts", NONE, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		SHOWN_WITHOUT_SUM(MD5), PROOF_NO, "or returns nothing", HEAD},
	{"not encrypted", ENCRYPTED, {.sum = "crc32c:" SAME, .etag = "e"}, false,
		SHOWN("9", "e", SAME), PROOF_NO, "does not confirm the encryption", HEAD},
	{"the mark changes", MARK_CHANGES, {.sum = "crc32c:" SAME, .etag = "e"}, false, NULL,
		PROOF_NO, "its mark changed meanwhile", ""},
	{"the mark is taken", MARK_IS_TAKEN, {.sum = "crc32c:" SAME, .etag = "e"}, false, NULL,
		PROOF_NO, "its uploader has ended", ""},
};

static struct {
	struct store_ops ops;
	const struct store_ops *real;
	struct steps *steps;
	enum trouble trouble;
	unsigned reads;
} spy;

/* Writes a mark by hand, whatever is there: of a later version of s3once, or another uploader's. */
static void put_mark(struct steps *steps, const char *state, const char *sum)
{
	struct store_conn *conn = steps->worker->marks;
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	const struct item_key at = mark_key(&steps->run->space, "p/k", partition);
	item_set_string(&item, "state", state);
	item_set_string(&item, "session", "22222222222222222222222222222222");
	item_set_string(&item, "claim", "33333333333333333333333333333333");
	item_set_string(&item, "sum", sum);
	item_set_string(&item, "etag", "e");
	item_set_number(&item, "size", 9);
	item_set_number(&item, "mtime", MTIME_NS);
	CHECK_INT(spy.real->write(conn, at, &(struct item_write){.item = &item}, &no_limits,
			  &present, &steps->problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

/* Before the second read of the mark, another uploader has written it. */
static enum outcome spy_get(struct store_conn *conn, struct item_key key,
	enum consistency consistent, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	if (++spy.reads == 2 && spy.trouble == MARK_CHANGES)
		put_mark(spy.steps, "done", "crc32c:" OTHER);
	if (spy.reads == 2 && spy.trouble == MARK_IS_TAKEN)
		put_mark(spy.steps, "claimed", "crc32c:" SAME);
	return spy.real->get(conn, key, consistent, limits, ret, ret_problem);
}

static bool always(void *arg)
{
	return true;
}

static void test_row(size_t i)
{
	static const struct s3once_setting sse = {"sse", "AES256"};
	static char id[] = ID, other_id[] = "c0ffee";
	const struct script_step script[] = {{rows[i].reply, .close = true}};
	const enum trouble trouble = rows[i].trouble;
	struct version version = rows[i].version;
	struct done_object object;
	struct problem problem = {0};
	struct steps steps;
	struct mark seen;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.prefix = "p";
	steps.options.settings = &sse;
	steps.options.n_settings = trouble == ENCRYPTED;
	if (!steps_begin(&steps, script, 1))
		return;
	struct file *file = steps.file;
	if (trouble == BY_ID)
		file->candidate->content_id = id;
	if (trouble == BY_OTHER_ID)
		file->candidate->content_id = other_id;
	version.size = version.size ? version.size : 9;
	version.mtime_ns += MTIME_NS;
	if (trouble != NO_MARK)
		CHECK_INT(steps_claim(&steps), STEP_NEXT);
	const struct mark_ref ref = file_mark_ref(steps.worker, file);
	if (trouble != NO_MARK && trouble != CLAIMED)
		CHECK_INT(mark_done(&ref, &file->claim, &version, ref.source, &seen, &problem),
			OUTCOME_OK);
	struct store *store = steps.run->store;
	spy.steps = &steps;
	spy.trouble = trouble;
	spy.reads = 0;
	spy.real = store->ops;
	spy.ops = *store->ops;
	spy.ops.get = spy_get;
	store->ops = &spy.ops;
	if (trouble == UNREADABLE)
		put_mark(&steps, "resting", "");
	if (trouble == CHANGED)
		steps_append(steps.path);
	if (trouble == ENDED)
		steps.worker->reader.abandon = always;
	bool good = CHECK_INT(
		prove_done_now(steps.worker, file,
			rows[i].is_read ? CONTENT_PROVEN : CONTENT_UNREAD, &object, &problem),
		rows[i].proof);
	store->ops = spy.real;
	good &= CHECK(strstr(problem.text, rows[i].says) != NULL);
	good &= CHECK(rows[i].proof != PROOF_YES || !*problem.text);
	/* Each sentence is said only where it is meant. */
	good &= CHECK_INT(strstr(problem.text, "or returns nothing") != NULL,
		strstr(rows[i].says, "or returns nothing") != NULL);
	good &= CHECK_INT(strstr(problem.text, "allow s3:GetObject") != NULL,
		strstr(rows[i].says, "allow s3:GetObject") != NULL);
	/* The reported values: those of S3, or the reason. */
	steps.said[0] = '\0';
	report_done_object(steps.run, file, S3ONCE_EVENT_UNPROVEN,
		rows[i].proof == PROOF_YES ? &object : NULL, &problem);
	good &= CHECK_STRING(steps.said, problem.text);
	if (!good)
		fprintf(stderr, "\t%s: %s\n", rows[i].name, problem.text);
	steps_end_row(&steps, good, rows[i].asked, i);
}

static struct s3once_event passed;
static char passed_key[100], passed_path[100], passed_sum[100], passed_version[20], passed_etag[20];

static void keep_event(void *arg, const struct s3once_event *event)
{
	passed = *event;
	snprintf(passed_key, sizeof passed_key, "%s", event->key);
	snprintf(passed_path, sizeof passed_path, "%s", event->path);
	snprintf(passed_sum, sizeof passed_sum, "%s", event->checksum);
	snprintf(passed_version, sizeof passed_version, "%s", event->version_id);
	snprintf(passed_etag, sizeof passed_etag, "%s", event->etag);
}

/* A report of a proven file has the values that S3 shows of its object. */
static void test_report(void)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0))
		return;
	struct done_object object = {.object = {.sum = {.kind = CHECKSUM_CRC32C}}};
	snprintf(object.key, sizeof object.key, "k.zst");
	snprintf(object.object.sum.text, sizeof object.object.sum.text, SAME);
	snprintf(object.object.etag, sizeof object.object.etag, "e");
	snprintf(object.object.version_id, sizeof object.object.version_id, "v");
	steps.run->report.callback = keep_event;
	report_done_object(steps.run, steps.file, S3ONCE_EVENT_REMOVED, &object, PROBLEM("no"));
	CHECK_INT(passed.type, S3ONCE_EVENT_REMOVED);
	CHECK_STRING(passed_key, "k.zst");
	CHECK_STRING(passed_path, steps.path);
	CHECK_STRING(passed_sum, "crc32c:" SAME);
	CHECK_STRING(passed_version, "v");
	CHECK_STRING(passed_etag, "e");
	CHECK_INT(passed.bytes, 9);
	object.object.sum.text[0] = '\0';
	report_done_object(steps.run, steps.file, S3ONCE_EVENT_PROVEN, &object, NULL);
	CHECK_STRING(passed_sum, "");
	report_done_object(steps.run, steps.file, S3ONCE_EVENT_KEPT, NULL, PROBLEM("no"));
	CHECK_STRING(passed_key, "k");
	CHECK_STRING(passed_etag, "");
	steps.run->report.callback = NULL;
	script_stop(&steps.server);
	steps_end(&steps);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(i);
	test_report();
	return check_result();
}
