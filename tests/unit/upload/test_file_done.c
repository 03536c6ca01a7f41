/* The steps after an object is proven: the first objects are checked, and the mark says done,
 * unless another uploader has taken the file over. */
#include "store_spy.h"
#include "upload/file/file_done.h"
#include "upload/file/steps.h"

#define CONTENT  "123456789" /* whose CRC-32C is SAME */
#define SAME     "4waSgw=="
#define OTHER    "AAAAAA=="
#define SHA256_9 "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
#define SUM_9    "sha256:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="
#define MD5_9    "25f9e794323b453885f5181f1b624d0b"
#define MTIME_NS 1000000000000
#define THEIRS   "22222222222222222222222222222222"

#define HEAD_K         "HEAD /b/k\n"
#define ABORT          "DELETE /b/k.zst?uploadId=up\n"
#define NOT_FOUND      STEPS_REPLY("404", "", "")
#define REFUSED        STEPS_REPLY("403", "", "")
#define FAILS          STEPS_REPLY("500", "", "")
#define ABORTED        STEPS_REPLY("204", "", "")
#define SHOWN(headers) STEPS_REPLY("200", "Content-Length: 9\r\nETag: \"e\"\r\n" headers, "")

/* Begins a run whose file is claimed and read. */
static bool begin(struct steps *steps, const struct s3once_setting *settings, size_t n)
{
	if (!steps_make(steps, CONTENT, 9))
		return false;
	steps->options.settings = settings;
	steps->options.n_settings = n;
	if (!steps_begin(steps, NULL, 0) || !CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	steps->file->step = STEP_SEND;
	return CHECK_INT(
		file_compute_sums(steps->worker, steps->file, NULL, DIGEST_OF(CHECKSUM_CRC32C)),
		STEP_NEXT);
}

static void answer(struct steps *steps, size_t i, const char *reply)
{
	steps->server.steps[i] = (struct script_step){reply, .close = true};
}

static struct s3_object proven(void)
{
	return (struct s3_object){.size = 9,
		.etag = "e",
		.sum = {.kind = CHECKSUM_CRC32C, .text = SAME},
		.version_id = "v"};
}

static void record_upload(struct steps *steps)
{
	struct open_upload upload = {.id = strdup("up"),
		.is_open = true,
		.checksum = CHECKSUM_CRC32C,
		.suffix = ".zst",
		.part_bytes = 5,
		.size = 9};
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	CHECK_INT(mark_record_upload(&ref, &steps->file->claim, &upload, &steps->problem),
		OUTCOME_OK);
}

/* Another uploader has the file when the mark is written. */
static void claim_as_another(struct steps *steps, struct claim *ret)
{
	struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	struct mark seen = steps_mark(steps), present = {0};
	ref.session = THEIRS;
	CHECK_INT(mark_claim(&ref, &seen, ret, &present, &steps->problem), OUTCOME_OK);
	mark_clear(&seen);
}

static void is_claimed(struct steps *steps)
{
	struct claim claim = {0};
	claim_as_another(steps, &claim);
	claim_clear(&claim);
}

static void is_done(struct steps *steps, const struct version *version)
{
	struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	struct claim claim = {0};
	struct mark present = {0};
	claim_as_another(steps, &claim);
	ref.session = THEIRS;
	CHECK_INT(mark_done(&ref, &claim, version, ref.source, &present, &steps->problem),
		OUTCOME_OK);
	claim_clear(&claim);
}

static void is_done_alike(struct steps *steps)
{
	is_done(steps, &(struct version){.size = 9, .mtime_ns = MTIME_NS, .sum = "crc32c:" SAME});
}

static void is_done_otherwise(struct steps *steps)
{
	is_done(steps, &(struct version){.size = 9, .mtime_ns = MTIME_NS, .sum = "crc32c:" OTHER});
}

static void is_deleted(struct steps *steps)
{
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	struct mark seen = steps_mark(steps);
	CHECK_INT(mark_forget(&ref, &seen, &steps->problem), OUTCOME_OK);
	mark_clear(&seen);
}

/* As DynamoDB keeps it for a while. */
static void is_forgotten(struct steps *steps)
{
	char partition[PARTITION_MAX];
	struct item item = {0};
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	CHECK_INT(item_set_string(&item, "state", "forgotten"), 0);
	CHECK_INT(item_set_string(&item, "session", THEIRS), 0);
	CHECK_INT(item_set_string(&item, "claim", THEIRS), 0);
	CHECK_INT(item_set_number(&item, "expires", 1), 0);
	CHECK_INT(ref.conn->store->ops->write(ref.conn, mark_key(ref.space, ref.key, partition),
			  &(struct item_write){.item = &item}, &ref.limits, NULL, &steps->problem),
		OUTCOME_OK);
	item_clear(&item);
}

static bool always(void *arg)
{
	return true;
}

static const struct row {
	const char *name;
	bool is_adopted, was_sent, lacks_witness, is_clear, is_dry, has_expired;
	void (*before)(struct steps *steps); /* before the mark is written */
	char fails;                          /* the write that fails */
	enum outcome outcome;
	bool loses_reply; /* it was written all the same */
	enum step step;
	enum mark_state state; /* of its mark afterwards */
	const char *writes, *said;
} rows[] = {
	{"sent", .was_sent = true, .step = STEP_PROVEN, .state = MARK_DONE, .writes = "m"},
	{"found", .is_adopted = true, .step = STEP_PROVEN, .state = MARK_DONE, .writes = "M"},
	{"sent in an earlier turn, and found", .is_adopted = true, .was_sent = true,
		.step = STEP_PROVEN, .state = MARK_DONE, .writes = "m"},
	{"the first one", .was_sent = true, .lacks_witness = true, .step = STEP_PROVEN,
		.state = MARK_DONE, .writes = "Bm"},
	{"no witness can be kept", .was_sent = true, .lacks_witness = true, .fails = 'B',
		.outcome = OUTCOME_DENIED, .step = STEP_OVER, .state = MARK_CLAIMED, .writes = "B"},
	{"a dry run", .is_adopted = true, .lacks_witness = true, .is_dry = true,
		.step = STEP_LEFT_OUT, .state = MARK_CLAIMED, .writes = ""},
	{"it may lie there in clear", .was_sent = true, .lacks_witness = true, .is_clear = true,
		.step = STEP_SETTLED, .state = MARK_FAILED, .writes = "M",
		.said = "does not confirm the encryption"},
	{"found in clear", .is_adopted = true, .is_clear = true, .step = STEP_SETTLED,
		.state = MARK_FAILED, .writes = "M", .said = "does not confirm the encryption"},
	{"found in clear by a dry run", .is_adopted = true, .is_clear = true, .is_dry = true,
		.step = STEP_SETTLED, .state = MARK_CLAIMED, .writes = "",
		.said = "does not confirm the encryption"},
	{"taken over", .was_sent = true, .before = is_claimed, .step = STEP_OVER,
		.state = MARK_CLAIMED, .writes = "m", .said = "another uploader took over"},
	{"taken over, and done alike", .was_sent = true, .before = is_done_alike,
		.step = STEP_PROVEN, .state = MARK_DONE, .writes = "m"},
	{"taken over, and done otherwise", .was_sent = true, .before = is_done_otherwise,
		.step = STEP_OVER, .state = MARK_DONE, .writes = "m",
		.said = "another uploader took over"},
	{"deleted", .was_sent = true, .before = is_deleted, .step = STEP_OVER, .state = MARK_ABSENT,
		.writes = "m", .said = "was deleted"},
	{"forgotten", .was_sent = true, .before = is_forgotten, .step = STEP_OVER,
		.state = MARK_FORGOTTEN, .writes = "m", .said = "was deleted"},
	{"no answer", .was_sent = true, .fails = 'm', .outcome = OUTCOME_TRANSIENT,
		.step = STEP_LATER, .state = MARK_CLAIMED, .writes = "m"},
	{"the reply is lost", .was_sent = true, .fails = 'm', .outcome = OUTCOME_TRANSIENT,
		.loses_reply = true, .step = STEP_LATER, .state = MARK_DONE, .writes = "m"},
	{"the reply is lost, of one that was found", .is_adopted = true, .fails = 'M',
		.outcome = OUTCOME_TRANSIENT, .loses_reply = true, .step = STEP_LATER,
		.state = MARK_DONE, .writes = "M"},
	{"no permission", .was_sent = true, .fails = 'm', .outcome = OUTCOME_DENIED,
		.step = STEP_OVER, .state = MARK_CLAIMED, .writes = "m"},
	{"the lease has run out", .was_sent = true, .has_expired = true, .step = STEP_LATER,
		.state = MARK_CLAIMED, .writes = "m"},
};

static void test_done(const struct row *row)
{
	struct steps steps;
	if (!begin(&steps, NULL, 0))
		return;
	struct run *run = steps.run;
	struct candidate *c = steps.file->candidate;
	struct s3_object object = proven();
	struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
	ref.limits = (struct call_limits){0}; /* the run may be over */
	object.lacks_encryption = row->is_clear;
	c->was_sent = row->was_sent;
	run->dry = row->is_dry;
	atomic_store(&run->has_witness, !row->lacks_witness);
	if (row->has_expired)
		steps.worker->visible_limits.abandon = always;
	struct store_spy *spy = store_spy_begin(&steps);
	spy->before = row->before;
	spy->fails = row->fails;
	spy->outcome = row->outcome;
	spy->loses_reply = row->loses_reply;
	const enum s3once_event_type event =
		row->is_adopted ? S3ONCE_EVENT_ADOPTED : S3ONCE_EVENT_UPLOADED;
	const enum step step = file_finish(steps.worker, steps.file, &object, event);
	store_spy_end(spy);
	const bool is_done = step == STEP_PROVEN;
	struct mark mark;
	struct bucket_row bucket;
	bool good = CHECK_INT(step, row->step);
	good &= CHECK_STRING(spy->writes, row->writes);
	good &= CHECK_INT(steps.events[event], is_done || step == STEP_LEFT_OUT);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], row->is_clear);
	good &= CHECK_INT(atomic_load(&run->end.fenced), row->before && step == STEP_OVER);
	good &= CHECK_INT(atomic_load(&run->refusals.has_stored), !row->is_clear);
	/* A later turn finds the mark done, if its reply is lost. After LATER the queue has the
	 * candidate. */
	good &= CHECK_INT(c->was_marked_done, !row->is_clear);
	if (row->said)
		good &= steps_say(&steps, row->said);
	good &= CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
	good &= CHECK_INT(mark.state, row->state);
	if (is_done && !row->before) {
		good &= CHECK_INT(mark.done.size, 9);
		good &= CHECK_INT(mark.done.mtime_ns, MTIME_NS);
		good &= CHECK_STRING(mark.done.sum, "crc32c:" SAME);
		good &= CHECK_STRING(mark.done.etag, "e");
		good &= CHECK_STRING(mark.done.version_id, "v");
		good &= CHECK_STRING(mark.session, session_id(run->session));
	}
	mark_clear(&mark);
	/* The row of the bucket names the first object, and the run remembers the last one. */
	good &= CHECK_INT(bucket_row_read(steps.push->conn, &run->space, &(struct call_limits){0},
				  &bucket, &steps.problem),
		OUTCOME_OK);
	good &= CHECK_STRING(bucket.last_key, row->lacks_witness && is_done ? "k" : "");
	good &= CHECK_STRING(bucket.last_etag, row->lacks_witness && is_done ? "e" : "");
	good &= CHECK_STRING(run->locked.proven_key, is_done ? "k" : "");
	good &= CHECK_STRING(run->locked.proven_etag, is_done ? "e" : "");
	good &= CHECK_INT(atomic_load(&run->has_witness),
		!row->lacks_witness || is_done || step == STEP_LEFT_OUT);
	steps_asked(&steps, "");
	if (!good)
		fprintf(stderr, "\t%s\n", row->name);
	steps_end(&steps);
}

/* The version that the mark gets of a file that was sent. */
static void test_version(bool is_encoded, bool has_sum)
{
	static char id[] = "c0ffee", gz[] = ".gz";
	struct steps steps;
	if (!begin(&steps, NULL, 0))
		return;
	struct file *file = steps.file;
	struct s3_object object = proven();
	file->candidate->content_id = id;
	file->candidate->suffix = gz;
	file->sent_part_bytes = 5;
	snprintf(file->parts_sum, sizeof file->parts_sum, "sha256:x-2");
	atomic_store(&steps.run->has_witness, false);
	snprintf(object.etag, sizeof object.etag, MD5_9);
	s3_set_support(steps.run->s3, S3_ETAG_IS_MD5, has_sum ? S3_NO : S3_YES);
	if (is_encoded) {
		file->object_sums = (struct sums){.bytes = 4};
		if (has_sum)
			CHECK_INT(digest_bytes(DIGEST_OF(CHECKSUM_CRC32C), "1234", 4,
					  &file->object_sums),
				0);
	}
	CHECK_INT(file_finish(steps.worker, file, &object, S3ONCE_EVENT_ADOPTED), STEP_PROVEN);
	struct mark mark = steps_mark(&steps);
	CHECK_STRING(mark.done.etag, MD5_9);
	CHECK_INT(mark.done.etag_is_md5, !has_sum);
	CHECK_STRING(mark.done.content_id, id);
	CHECK_STRING(mark.done.suffix, gz);
	CHECK_STRING(mark.done.sum, "crc32c:" SAME);
	CHECK_INT(mark.done.size, 9);
	CHECK_INT(mark.done.part_bytes, 5);
	CHECK_STRING(mark.done.parts_sum, "sha256:x-2");
	CHECK_INT(mark.done.object_bytes, is_encoded ? 4 : 0);
	CHECK_STRING(mark.done.object_sum, !is_encoded ? ""
					   : has_sum   ? "crc32c:9jr07g=="
						       : "crc32c:" SAME);
	mark_clear(&mark);
	/* The witness is the object, and not the key of its mark. */
	CHECK_STRING(steps.run->locked.bucket.last_key, "k.gz");
	CHECK_STRING(steps.run->locked.proven_key, "k.gz");
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* The first objects of a run at a server other than AWS. */
static void test_first_looks(void)
{
	static const struct s3once_setting ia[] = {{"storage-class", "STANDARD_IA"}};
#define BLANK   (UINT64_C(1) << ' ')
#define BRACKET (UINT64_C(1) << ('[' - 64))
#define IS_IA   SHOWN("x-amz-storage-class: STANDARD_IA\r\n")
	static const struct {
		const char *name, *key; /* of the object */
		size_t settings;        /* 1: a storage class is asked for */
		bool is_adopted, in_parts, is_aws;
		uint64_t seen[2]; /* characters of keys before '@', and from there on */
		unsigned settings_seen[2];
		const char *reply;
		enum step step;
		unsigned warnings;
		const char *asked, *said;
	} tests[] = {
		{"nothing is new", "k-._~/", .step = STEP_PROVEN, .asked = ""},
		{"a blank", "a b", .reply = SHOWN(""), .step = STEP_PROVEN,
			.asked = "HEAD /b/a%20b\n"},
		{"a blank, which was seen", "a b", .seen[0] = BLANK, .step = STEP_PROVEN,
			.asked = ""},
		{"at AWS", "a b", 1, .is_aws = true, .step = STEP_PROVEN, .asked = ""},
		{"not ASCII", "\303\244", .reply = SHOWN(""), .step = STEP_PROVEN,
			.asked = "HEAD /b/%C3%A4\n"},
		{"a character from the second half", "[", .reply = SHOWN(""), .step = STEP_PROVEN,
			.asked = "HEAD /b/%5B\n"},
		{"which was seen", "[", .seen[1] = BRACKET, .step = STEP_PROVEN, .asked = ""},
		{"another one was seen", "[", .seen[1] = UINT64_C(1) << (']' - 64),
			.reply = SHOWN(""), .step = STEP_PROVEN, .asked = "HEAD /b/%5B\n"},
		{"it was found, and not sent", "a b", .is_adopted = true, .step = STEP_PROVEN,
			.asked = ""},
		{"under another key", "a b", .reply = NOT_FOUND, .step = STEP_SETTLED,
			.asked = "HEAD /b/a%20b\n", .said = "uploaded, but there is no object"},
		{"it is not shown", "a b", .reply = REFUSED, .step = STEP_PROVEN, .warnings = 1,
			.asked = "HEAD /b/a%20b\n", .said = "cannot be seen without s3:GetObject"},
		{"no answer", "a b", .reply = FAILS, .step = STEP_LATER,
			.asked = "HEAD /b/a%20b\n"},
		{"a setting is kept", "k", 1, .reply = IS_IA, .step = STEP_PROVEN, .asked = HEAD_K},
		{"a setting is ignored", "k", 1, .reply = SHOWN(""), .step = STEP_PROVEN,
			.warnings = 1, .asked = HEAD_K,
			.said = "ignored --storage-class STANDARD_IA: the object of "},
		{"a setting is found to be ignored", "k", 1, .is_adopted = true,
			.step = STEP_PROVEN, .asked = ""},
		{"a setting was seen", "k", 1, .settings_seen = {UINT32_MAX, 0},
			.step = STEP_PROVEN, .asked = ""},
		{"it was seen of parts", "k", 1, .settings_seen = {0, UINT32_MAX}, .reply = IS_IA,
			.step = STEP_PROVEN, .asked = HEAD_K},
		{"it was seen of whole objects", "k", 1, .in_parts = true,
			.settings_seen = {UINT32_MAX, 0}, .reply = SHOWN(""), .step = STEP_PROVEN,
			.warnings = 1, .asked = HEAD_K,
			.said = "of the objects sent in parts, only this one"},
		{"whether it is kept is not shown", "k", 1, .reply = REFUSED, .step = STEP_PROVEN,
			.asked = HEAD_K},
		{"whether it is kept is not answered", "k", 1, .reply = FAILS, .step = STEP_PROVEN,
			.asked = HEAD_K HEAD_K HEAD_K},
		{"there is no object at all", "k", 1, .reply = NOT_FOUND, .step = STEP_SETTLED,
			.asked = HEAD_K, .said = "uploaded, but there is no object"},
	};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct steps steps;
		if (!begin(&steps, ia, tests[i].settings))
			return;
		struct stored_seen *seen = &steps.run->stored;
		const struct s3_object object = proven();
		steps.file->target.key = tests[i].key;
		steps.run->aws->s3_is_aws = tests[i].is_aws;
		steps.file->sent_part_bytes = tests[i].in_parts ? 5 : 0;
		for (size_t k = 0; k < 2; k++) {
			atomic_store(&seen->characters[k], tests[i].seen[k]);
			atomic_store(&seen->settings[k], tests[i].settings_seen[k]);
		}
		for (size_t k = 0; k < 3; k++)
			answer(&steps, k, tests[i].reply);
		const enum step step = file_finish(steps.worker, steps.file, &object,
			tests[i].is_adopted ? S3ONCE_EVENT_ADOPTED : S3ONCE_EVENT_UPLOADED);
		bool good = CHECK_INT(step, tests[i].step);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], tests[i].warnings);
		struct mark mark = {0};
		if (step != STEP_LATER)
			mark = steps_mark(&steps);
		if (step != STEP_LATER)
			good &= CHECK_INT(
				mark.state, step == STEP_PROVEN ? MARK_DONE : MARK_FAILED);
		mark_clear(&mark);
		if (tests[i].said)
			good &= steps_say(&steps, tests[i].said);
		/* The next object like this one is not looked at, unless nobody has answered. */
		const bool is_seen = step == STEP_PROVEN && tests[i].reply;
		if (strcmp(tests[i].key, "a b") == 0)
			good &= CHECK_INT(atomic_load(&seen->characters[0]),
				is_seen ? BLANK : tests[i].seen[0]);
		if (strcmp(tests[i].key, "[") == 0)
			good &= CHECK(atomic_load(&seen->characters[1]) & BRACKET);
		steps_asked(&steps, tests[i].asked);
		if (!good)
			fprintf(stderr, "\t%s\n", tests[i].name);
		steps_end(&steps);
	}
}

/* The message about each setting that the object lacks. */
static void test_ignored_settings(void)
{
	static const struct {
		struct s3once_setting setting;
		const char *reply; /* to the HEAD */
		const char *said[2];
	} tests[] = {
		{{"storage-class", "GLACIER_IR"}, SHOWN(""),
			{"ignored --storage-class GLACIER_IR: ", "k is stored as STANDARD; "}},
		{{"storage-class", "GLACIER_IR"}, SHOWN("x-amz-storage-class: GLACIER\r\n"),
			{"ignored --storage-class GLACIER_IR: ", "k is stored as GLACIER; "}},
		{{"metadata", "a=b"}, SHOWN(""),
			{"ignored --metadata: ", "k does not have all of this metadata; "}},
		{{"metadata", "a=b"}, SHOWN("x-amz-meta-a: b\r\n"), {NULL}},
		{{"tag", "a=b"}, SHOWN(""),
			{"ignored --tag: ", "k does not have all of these tags; "}},
		{{"header", "Cache-Control: no-store"}, SHOWN(""),
			{"ignored --header", "k does not have this value; "}},
		{{"header", "Cache-Control: no-store"}, SHOWN("Cache-Control: no-store\r\n"),
			{NULL}},
	};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct steps steps;
		if (!begin(&steps, &tests[i].setting, 1))
			return;
		const struct s3_object object = proven();
		answer(&steps, 0, tests[i].reply);
		answer(&steps, 1, STEPS_REPLY("200", "", "<Tagging><TagSet></TagSet></Tagging>"));
		bool good = CHECK_INT(
			file_finish(steps.worker, steps.file, &object, S3ONCE_EVENT_UPLOADED),
			STEP_PROVEN);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], tests[i].said[0] != NULL);
		if (tests[i].said[0]) {
			good &= steps_say(&steps, tests[i].said[0]) &&
				steps_say(&steps, tests[i].said[1]) &&
				steps_say(&steps, "(of the objects sent whole, only this one");
		}
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

/* A setting that the server ignores is reported once, and not of each object. */
static void test_ignored_once(void)
{
	static const struct s3once_setting ia[] = {{"storage-class", "STANDARD_IA"}};
	struct steps steps;
	if (!begin(&steps, ia, 1))
		return;
	const struct s3_object object = proven();
	struct mark mark;
	answer(&steps, 0, SHOWN(""));
	answer(&steps, 1, SHOWN(""));
	CHECK_INT(
		file_finish(steps.worker, steps.file, &object, S3ONCE_EVENT_UPLOADED), STEP_PROVEN);
	mark = steps_mark(&steps);
	struct mark present = {0};
	const struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
	claim_clear(&steps.file->claim);
	CHECK_INT(
		mark_claim(&ref, &mark, &steps.file->claim, &present, &steps.problem), OUTCOME_OK);
	steps.file->sent_part_bytes = 5;
	CHECK_INT(
		file_finish(steps.worker, steps.file, &object, S3ONCE_EVENT_UPLOADED), STEP_PROVEN);
	CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], 1);
	steps_asked(&steps, HEAD_K HEAD_K);
	steps_end(&steps);
}

/* An object that has the content, but may be compressed differently. */
static void test_done_otherwise(void)
{
	static const struct {
		const char *name;
		bool is_encoded, has_content, is_piped, has_upload, is_dry, in_parts;
		const char *reply;
		enum step step;
		const char *asked;
		const char *sum, *object_sum; /* of the mark */
	} tests[] = {
		{"as it is", .step = STEP_IN_S3, .asked = "", .sum = "crc32c:" OTHER,
			.object_sum = ""},
		{"as it is, with the sum of its parts", .in_parts = true, .step = STEP_IN_S3,
			.asked = "", .sum = "", .object_sum = ""},
		{"compressed", true, true, .step = STEP_IN_S3, .asked = "", .sum = SUM_9,
			.object_sum = "crc32c:" OTHER},
		{"compressed, of unknown content", true, .step = STEP_IN_S3, .asked = "", .sum = "",
			.object_sum = "crc32c:" OTHER},
		{"the output of a program", .is_piped = true, .step = STEP_IN_S3, .asked = "",
			.sum = "crc32c:" OTHER, .object_sum = ""},
		{"an upload is aborted", .has_upload = true, .reply = ABORTED, .step = STEP_IN_S3,
			.asked = ABORT, .sum = "crc32c:" OTHER, .object_sum = ""},
		{"an upload is not aborted", .has_upload = true, .reply = FAILS, .step = STEP_LATER,
			.asked = ABORT},
		{"a dry run aborts nothing", .has_upload = true, .is_dry = true,
			.step = STEP_LEFT_OUT, .asked = ""},
	};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct steps steps;
		if (!begin(&steps, NULL, 0))
			return;
		struct file *file = steps.file;
		struct s3_object object = proven();
		const struct mark_ref ref = file_mark_ref(steps.worker, file);
		snprintf(object.etag, sizeof object.etag, MD5_9);
		s3_set_support(steps.run->s3, S3_ETAG_IS_MD5, tests[i].is_encoded ? S3_NO : S3_YES);
		snprintf(object.sum.text, sizeof object.sum.text, "%s%s", OTHER,
			tests[i].in_parts ? "-2" : "");
		object.meta = (struct s3_meta){.mtime_ns = 7, .part_bytes = 4};
		if (tests[i].is_encoded) {
			snprintf(object.meta.encoding, sizeof object.meta.encoding, "gzip-1.2");
			object.meta.content_bytes = 77;
		}
		if (tests[i].has_content)
			snprintf(object.meta.content_id, sizeof object.meta.content_id, SHA256_9);
		if (tests[i].has_upload)
			record_upload(&steps);
		file->candidate->is_piped = tests[i].is_piped;
		steps.run->dry = tests[i].is_dry;
		answer(&steps, 0, tests[i].reply);
		struct store_spy *spy = store_spy_begin(&steps);
		const enum step step = file_finish_by_metadata(steps.worker, file, &object, ".gz");
		store_spy_end(spy);
		bool good = CHECK_INT(step, tests[i].step);
		good &= CHECK_STRING(spy->writes, step == STEP_IN_S3 ? "M" : "");
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_ADOPTED], step != STEP_LATER);
		struct mark mark;
		good &= CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
		good &= CHECK_INT(mark.state, step == STEP_IN_S3 ? MARK_DONE : MARK_CLAIMED);
		good &= CHECK_STRING(
			mark.upload.id, tests[i].has_upload && step != STEP_IN_S3 ? "up" : NULL);
		if (step == STEP_IN_S3) {
			good &= CHECK_STRING(mark.done.etag, MD5_9);
			good &= CHECK_INT(mark.done.etag_is_md5, !tests[i].is_encoded);
			good &= CHECK_STRING(mark.done.version_id, "v");
			good &= CHECK_STRING(mark.done.suffix, ".gz");
			good &= CHECK_INT(mark.done.mtime_ns, tests[i].is_piped ? 7 : MTIME_NS);
			good &= CHECK_INT(mark.done.part_bytes, 4);
			good &= CHECK_INT(mark.done.size, tests[i].is_encoded ? 77 : 9);
			good &= CHECK_INT(mark.done.object_bytes, tests[i].is_encoded ? 9 : 0);
			good &= CHECK_STRING(mark.done.sum, tests[i].sum);
			good &= CHECK_STRING(mark.done.object_sum, tests[i].object_sum);
		}
		mark_clear(&mark);
		steps_asked(&steps, tests[i].asked);
		if (!good)
			fprintf(stderr, "\t%s\n", tests[i].name);
		steps_end(&steps);
	}
}

/* If the done mark is not written, the file goes back to the queue, which then has its candidate.
 */
static void test_metadata_put_back(void)
{
	struct steps steps;
	if (!begin(&steps, NULL, 0))
		return;
	struct s3_object object = proven();
	struct store_spy *spy = store_spy_begin(&steps);
	spy->fails = 'M';
	spy->outcome = OUTCOME_TRANSIENT;
	CHECK_INT(file_finish_by_metadata(steps.worker, steps.file, &object, ".gz"), STEP_LATER);
	store_spy_end(spy);
	CHECK(!steps.file->candidate);
	steps_end(&steps);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_done(&rows[i]);
	test_version(false, false);
	test_version(true, true);
	test_version(true, false);
	test_first_looks();
	test_ignored_settings();
	test_ignored_once();
	test_done_otherwise();
	test_metadata_put_back();
	return check_result();
}
