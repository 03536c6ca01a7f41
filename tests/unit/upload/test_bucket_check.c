/* Whether a run believes that this is the bucket of its marks, and what it keeps of that for the
 * next one. The marks are real; S3 is a script. */
#include "base/clock.h"
#include "store_spy.h"
#include "upload/bucket/bucket_check.h"

#define ID    "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

#define REPLY(...)                                                                                 \
	{                                                                                          \
		STEPS_REPLY(__VA_ARGS__), .close = true                                            \
	}
#define THERE(etag) REPLY("200", "Content-Length: 1\r\nETag: \"" etag "\"\r\n", "")
#define ID_OBJECT(id, headers)                                                                     \
	REPLY("200",                                                                               \
		"Content-Length: 76\r\nETag: \"e\"\r\nx-amz-meta-s3once-claim: " id                \
		"\r\n" headers,                                                                    \
		"")
#define GONE    REPLY("404", "Content-Length: 0\r\n", "")
#define NO_KEY  REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>")
#define DENIED  REPLY("403", "", "<Error><Code>AccessDenied</Code></Error>")
#define REFUSED REPLY("412", "", "<Error><Code>PreconditionFailed</Code></Error>")
#define STORED  REPLY("200", "ETag: \"e\"\r\n", "")
#define WRITTEN(hours)                                                                             \
	"Date: Fri, 02 Jan 2026 12:00:00 GMT\r\nLast-Modified: Fri, 02 Jan 2026 " hours            \
	":00:00 GMT\r\n"

static bool begin(struct steps *steps, const struct script_step *script, size_t n,
	const struct bucket_row *row)
{
	struct bucket_row written = *row, seen;
	if (!steps_begin_run(steps, script, n))
		return false;
	struct run *run = steps->run;
	atomic_store(&run->has_witness, false);
	atomic_store(&run->bucket_answers, false);
	if (*row->version) { /* there is one */
		written.version[0] = '\0';
		CHECK_INT(bucket_row_write(steps->push->conn, &run->space, &written, &no_limits,
				  &seen, &steps->problem),
			OUTCOME_OK);
	}
	return true;
}

static struct bucket_row row_of(struct steps *steps)
{
	struct bucket_row row;
	CHECK_INT(bucket_row_read(
			  steps->push->conn, &steps->run->space, &no_limits, &row, &steps->problem),
		OUTCOME_OK);
	return row;
}

static void end(struct steps *steps)
{
	steps->file = NULL;
	steps_end(steps);
}

#define HEAD_W "HEAD /b/w\n"
#define GET_W  "GET /b/w\n"
#define HEAD_I "HEAD /b/i\n"
#define GET_I  "GET /b/i\n"
#define PUT_I  "PUT /b/i\n"
#define I      .bucket_id_object = "i"
#define W_ROW                                                                                      \
	{                                                                                          \
		.version = "v", .last_key = "w", .last_etag = "e"                                  \
	}
#define I_ROW                                                                                      \
	{                                                                                          \
		.version = "v", .id_key = "i", .id = ID                                            \
	}

static const struct {
	const char *what;
	struct bucket_row row;
	struct {
		enum s3once_bucket_is bucket_is;
		const char *bucket_id_object;
		int dry_run;
	} options;
	struct script_step steps[6];
	const char *asked;
	const char *problem; /* a part of it; NULL: the bucket is believed */
	bool has_witness, is_shown;
	/* The row afterwards. */
	int generation;
	const char *id_key, *id;
	const char *last_key; /* the witness that the run remembers, or NULL */
} rows[] = {
	{"nothing is known", .asked = ""},
	{"shown", W_ROW, .steps = {THERE("e")}, .asked = HEAD_W, .has_witness = true,
		.is_shown = true, .last_key = "w"},
	{"shown, of a later generation",
		{.version = "v", .last_key = "w", .last_etag = "e", .generation = 2},
		.steps = {THERE("e")}, .asked = HEAD_W, .has_witness = true, .is_shown = true,
		.generation = 2, .last_key = "w"},
	/* Only an id object is written again once it is old. */
	{"shown, and uploaded long ago", W_ROW,
		.steps = {REPLY("200", "Content-Length: 1\r\nETag: \"e\"\r\n" WRITTEN("00"), "")},
		.asked = HEAD_W, .has_witness = true, .is_shown = true, .last_key = "w"},
	{"refused, with an id object", W_ROW, {I}, {DENIED, DENIED, DENIED, DENIED},
		HEAD_W GET_W HEAD_I GET_I, .problem = "--bucket-id-object i cannot be looked at"},
	{"the id object is refused", I_ROW, {I}, {DENIED, DENIED, DENIED, DENIED},
		HEAD_I GET_I HEAD_I GET_I, .problem = "--bucket-id-object i cannot be looked at"},
	{"another id object is known", {.version = "v", .id_key = "j", .id = OTHER}, {I},
		{ID_OBJECT(OTHER, ""), ID_OBJECT(ID, "")}, "HEAD /b/j\n" HEAD_I,
		.has_witness = true, .is_shown = true, .id_key = "i", .id = ID},
	{"gone", W_ROW, .steps = {GONE, NO_KEY}, .asked = HEAD_W GET_W, .problem = "--bucket"},
	{"gone, and the bucket is new", W_ROW, {S3ONCE_BUCKET_NEW}, {GONE, NO_KEY}, HEAD_W GET_W,
		.generation = 1},
	{"gone, and the bucket is the same", W_ROW, {S3ONCE_BUCKET_SAME, "i"},
		{GONE, NO_KEY, ID_OBJECT(ID, "")}, HEAD_W GET_W HEAD_I, .has_witness = true,
		.is_shown = true, .id_key = "i", .id = ID},
	{"shown, though it is called new", W_ROW, {S3ONCE_BUCKET_NEW}, {THERE("e")}, HEAD_W,
		.has_witness = true, .is_shown = true},
	{"refused", W_ROW, .steps = {DENIED, DENIED}, .asked = HEAD_W GET_W, .has_witness = true},
	{"refused, and the bucket is new", W_ROW, {S3ONCE_BUCKET_NEW}, {DENIED, DENIED},
		HEAD_W GET_W, .generation = 1},
	{"gone, in a dry run that is called new", W_ROW, {S3ONCE_BUCKET_NEW, NULL, 1},
		{GONE, NO_KEY}, HEAD_W GET_W},
	{"the id object is made", .options = {I},
		.steps = {GONE, NO_KEY, STORED, ID_OBJECT(ID, "")},
		.asked = HEAD_I GET_I PUT_I HEAD_I, .has_witness = true, .is_shown = true,
		.id_key = "i", .id = ID},
	{"another uploader makes it", .options = {I},
		.steps = {GONE, NO_KEY, REFUSED, ID_OBJECT(OTHER, "")},
		.asked = HEAD_I GET_I PUT_I HEAD_I, .has_witness = true, .is_shown = true,
		.id_key = "i", .id = OTHER},
	{"it is there", .options = {I}, .steps = {ID_OBJECT(ID, "")}, .asked = HEAD_I,
		.has_witness = true, .is_shown = true, .id_key = "i", .id = ID},
	{"the key has another object", .options = {I}, .steps = {THERE("e")}, .asked = HEAD_I,
		.problem = "--bucket-id-object i is an object of other use: name another key"},
	{"the object has no id of ours", .options = {I}, .steps = {ID_OBJECT("abc", "")},
		.asked = HEAD_I,
		.problem = "--bucket-id-object i is an object of other use: name another key"},
	{"it cannot be looked at", .options = {I}, .steps = {DENIED, DENIED}, .asked = HEAD_I GET_I,
		.problem = "--bucket-id-object i cannot be looked at: allow s3:GetObject and "
			   "s3:ListBucket"},
	{"it cannot be written", .options = {I}, .steps = {GONE, NO_KEY, DENIED},
		.asked = HEAD_I GET_I PUT_I, .problem = "--bucket-id-object i cannot be written"},
	{"it is not kept", .options = {I}, .steps = {GONE, NO_KEY, STORED, GONE, NO_KEY},
		.asked = HEAD_I GET_I PUT_I HEAD_I GET_I,
		.problem = "--bucket-id-object i was written and is not there"},
	{"not in a dry run", .options = {.bucket_id_object = "i", .dry_run = 1}, .asked = ""},
	{"it is known", I_ROW, {I}, {ID_OBJECT(ID, WRITTEN("11"))}, HEAD_I, .has_witness = true,
		.is_shown = true, .id_key = "i", .id = ID},
	{"it is old", I_ROW, {I}, {ID_OBJECT(ID, WRITTEN("00")), STORED}, HEAD_I PUT_I,
		.has_witness = true, .is_shown = true, .id_key = "i", .id = ID},
	{"it is old and cannot be written again", I_ROW, {I},
		{ID_OBJECT(ID, WRITTEN("00")), DENIED}, HEAD_I PUT_I, .has_witness = true,
		.is_shown = true, .id_key = "i", .id = ID},
	{"it is old in a dry run", I_ROW, {.bucket_id_object = "i", .dry_run = 1},
		{ID_OBJECT(ID, WRITTEN("00"))}, HEAD_I, .has_witness = true, .is_shown = true,
		.id_key = "i", .id = ID},
	{"it has another id", I_ROW, {I}, {ID_OBJECT(OTHER, "")}, HEAD_I, .problem = "--bucket"},
	{"its key was not kept", {.version = "v", .id = ID}, {I},
		{ID_OBJECT(ID, ""), ID_OBJECT(ID, "")}, HEAD_I, .has_witness = true,
		.is_shown = true, .id_key = "", .id = ID},
	{"the witness is shown, and then made", W_ROW, {I},
		{THERE("e"), GONE, NO_KEY, STORED, ID_OBJECT(ID, "")},
		HEAD_W HEAD_I GET_I PUT_I HEAD_I, .has_witness = true, .is_shown = true,
		.id_key = "i", .id = ID},
	{"the id object is gone, and the bucket is the same", I_ROW, {S3ONCE_BUCKET_SAME, "i"},
		{GONE, NO_KEY, GONE, NO_KEY, STORED, ID_OBJECT(OTHER, "")},
		HEAD_I GET_I HEAD_I GET_I PUT_I HEAD_I, .has_witness = true, .is_shown = true,
		.id_key = "i", .id = OTHER},
};

static void test_start(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		struct problem problem = {.text = ""};
		if (!steps_make(&steps, "x", 1))
			return;
		steps.options.bucket_is = rows[i].options.bucket_is;
		steps.options.bucket_id_object = rows[i].options.bucket_id_object;
		steps.options.dry_run = rows[i].options.dry_run;
		if (!begin(&steps, rows[i].steps, 6, &rows[i].row))
			return;
		const bool good = bucket_check(steps.run, steps.push->conn, &problem);
		const struct bucket_row row = row_of(&steps);
		bool same = CHECK_INT(good, rows[i].problem == NULL) &&
			    CHECK_INT(row.generation, rows[i].generation) &&
			    CHECK_INT(atomic_load(&steps.run->has_witness), rows[i].has_witness) &&
			    CHECK_INT(steps.run->locked.is_proven, rows[i].is_shown);
		if (rows[i].problem)
			same &= CHECK(strstr(problem.text, rows[i].problem) != NULL);
		else if (!rows[i].options.dry_run)
			same &= CHECK_INT(steps.run->space.generation, rows[i].generation);
		if (rows[i].id_key)
			same &= CHECK_STRING(row.id_key, rows[i].id_key) &&
				CHECK_STRING(row.id, rows[i].id);
		if (rows[i].last_key)
			same &= CHECK_STRING(steps.run->locked.proven_key, rows[i].last_key);
		if (!rows[i].problem)
			same &= CHECK_INT(
				atomic_load(&steps.run->bucket_answers), rows[i].has_witness);
		steps_asked(&steps, rows[i].asked);
		if (!same)
			fprintf(stderr, "\t%s: %s\n", rows[i].what, problem.text);
		end(&steps);
	}
}

static const struct bucket_row no_row, w_row = W_ROW;

/* Writes the row as another uploader does, with another witness or generation. */
static void write_row(struct steps *steps, const char *last_key, int generation)
{
	struct bucket_row row = row_of(steps), seen;
	snprintf(row.last_key, sizeof row.last_key, "%s", last_key);
	snprintf(row.last_etag, sizeof row.last_etag, "e");
	row.generation = generation;
	CHECK_INT(bucket_row_write(steps->push->conn, &steps->run->space, &row, &no_limits, &seen,
			  &steps->problem),
		OUTCOME_OK);
}

/* The row is written only if no other uploader has written it since it was read. */
static void test_contested(void)
{
	struct script_step steps_new[16];
	for (unsigned i = 0; i < 16; i++)
		steps_new[i] = i % 2 ? (struct script_step)NO_KEY : (struct script_step)GONE;
	struct steps steps;
	struct problem problem = {.text = ""};
	if (!steps_make(&steps, "x", 1))
		return;
	steps.options.bucket_is = S3ONCE_BUCKET_NEW;
	if (!begin(&steps, steps_new, 16, &w_row))
		return;
	struct store_spy *spy = store_spy_begin(&steps);
	spy->fails = 'B';
	spy->outcome = OUTCOME_REFUSED;
	CHECK(!bucket_check(steps.run, steps.push->conn, &problem));
	CHECK_STRING(problem.text, "other uploaders keep writing what the marks know of the "
				   "bucket: run again");
	CHECK_STRING(spy->writes, "BBBBB");
	store_spy_end(spy);
	script_stop(&steps.server);
	end(&steps);
}

static void begin_generation(void *arg)
{
	write_row(arg, "w", 1);
}

/* Two runs with --bucket new begin one generation: the second one uses that of the first. */
static void test_two_begin_anew(void)
{
	struct script_step replies[] = {GONE, NO_KEY, THERE("e")};
	struct steps steps;
	struct problem problem = {.text = ""};
	if (!steps_make(&steps, "x", 1))
		return;
	replies[1].meanwhile = begin_generation;
	replies[1].arg = &steps;
	steps.options.bucket_is = S3ONCE_BUCKET_NEW;
	if (!begin(&steps, replies, 3, &w_row))
		return;
	CHECK(bucket_check(steps.run, steps.push->conn, &problem));
	CHECK_INT(row_of(&steps).generation, 1);
	CHECK_INT(steps.run->space.generation, 1);
	steps_asked(&steps, HEAD_W GET_W HEAD_W);
	end(&steps);
}

/* Marks that refuse the row of the bucket end the run. */
static void test_row_that_cannot_be_written(void)
{
	struct steps steps;
	if (!steps_make(&steps, "x", 1) || !begin(&steps, NULL, 0, &no_row))
		return;
	CHECK(bucket_check(steps.run, steps.push->conn, &steps.problem));
	struct store_spy *spy = store_spy_begin(&steps);
	spy->fails = 'B';
	spy->outcome = OUTCOME_DENIED;
	CHECK(!bucket_ensure_witness(steps.run, steps.push->conn, "k", "e"));
	CHECK_STRING(spy->writes, "B");
	CHECK(atomic_load(&steps.run->end.failed_setup));
	store_spy_end(spy);
	steps_asked(&steps, "");
	end(&steps);
}

/* Later in a run its generation stays: one that another uploader has begun ends the run. */
static void test_generation_begun_by_another(void)
{
	struct steps steps;
	if (!steps_make(&steps, "x", 1) || !begin(&steps, NULL, 0, &no_row))
		return;
	CHECK(bucket_check(steps.run, steps.push->conn, &steps.problem));
	write_row(&steps, "", 1);
	CHECK(!bucket_ensure_trusted(steps.run, steps.push->conn));
	steps_say(&steps, "another uploader has begun anew with --bucket new: run again");
	CHECK(atomic_load(&steps.run->end.failed_setup));
	steps_asked(&steps, "");
	end(&steps);
}

/* A mark that says done is believed once a witness was shown, also if none was known at first. */
static void test_believed_later(void)
{
	static const struct script_step shown[] = {THERE("e")};
	for (unsigned has_witness = 0; has_witness < 2; has_witness++) {
		struct steps steps;
		if (!steps_make(&steps, "x", 1) || !begin(&steps, shown, 1, &no_row))
			return;
		CHECK(bucket_check(steps.run, steps.push->conn, &steps.problem));
		if (has_witness)
			write_row(&steps, "w", 0);
		CHECK_INT(bucket_ensure_trusted(steps.run, steps.push->conn), has_witness);
		if (!has_witness)
			steps_say(
				&steps, "marks that said done are gone a moment later: run again");
		else
			CHECK(bucket_ensure_trusted(steps.run, steps.push->conn)); /* no request */
		steps_asked(&steps, has_witness ? HEAD_W : "");
		end(&steps);
	}
}

/* The first object of a run becomes the witness, unless another uploader was first: then S3 has to
 * show that one's. */
static void test_first_witness(void)
{
	static const struct {
		bool is_contested;
		struct script_step steps[2];
		const char *asked, *last_key;
		bool good;
	} firsts[] = {{false, {THERE("e")}, "", "k", true}, {true, {THERE("e")}, HEAD_W, "w", true},
		{true, {GONE, NO_KEY}, HEAD_W GET_W, "w", false}};
	for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
		struct steps steps;
		if (!steps_make(&steps, "x", 1) || !begin(&steps, firsts[i].steps, 2, &no_row))
			return;
		struct run *run = steps.run;
		CHECK(bucket_check(run, steps.push->conn, &steps.problem));
		if (firsts[i].is_contested)
			write_row(&steps, "w", 0);
		CHECK_INT(bucket_ensure_witness(run, steps.push->conn, "k", "e1"), firsts[i].good);
		CHECK_INT(atomic_load(&run->has_witness), firsts[i].good);
		CHECK_INT(run->locked.is_proven, firsts[i].good);
		CHECK_INT(atomic_load(&run->end.failed_setup), !firsts[i].good);
		/* The next one is none. */
		if (firsts[i].good)
			CHECK(bucket_ensure_witness(run, steps.push->conn, "other", "e1"));
		const struct bucket_row row = row_of(&steps);
		CHECK_STRING(row.last_key, firsts[i].last_key);
		steps_asked(&steps, firsts[i].asked);
		end(&steps);
	}
}

/* At the end the object that was proven last becomes the witness, if the row may be written. */
static void test_last_witness(void)
{
	static const struct {
		const char *what, *saw_key, *saw_etag;
		bool is_shown, has_id, is_dry, is_stopping;
		const char *last_key;
	} lasts[] = {
		{"the last one", "k", "e1", true, false, false, false, "k"},
		{"another key", "k", "e", true, false, false, false, "k"},
		{"another etag", "w", "e1", true, false, false, false, "w"},
		{"none was seen", "", "", true, false, false, false, "w"},
		{"the bucket was not shown", "k", "e1", false, false, false, false, "w"},
		{"an id object is the witness", "k", "e1", true, true, false, false, "w"},
		{"a dry run", "k", "e1", true, false, true, false, "w"},
		{"a run that is stopped", "k", "e1", true, false, false, true, "w"},
		{"the same one", "w", "e", true, false, false, false, "w"},
	};
	for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++) {
		struct steps steps;
		if (!steps_make(&steps, "x", 1) || !begin(&steps, NULL, 0, &w_row))
			return;
		struct run *run = steps.run;
		const struct bucket_row before = row_of(&steps);
		run->locked.bucket = before;
		run->locked.is_proven = lasts[i].is_shown;
		run->dry = lasts[i].is_dry;
		if (lasts[i].has_id)
			snprintf(run->locked.bucket.id, sizeof run->locked.bucket.id, ID);
		if (*lasts[i].saw_key)
			bucket_note_object(run, lasts[i].saw_key, lasts[i].saw_etag);
		CHECK_INT(atomic_load(&run->bucket_answers), *lasts[i].saw_key != 0);
		if (lasts[i].is_stopping)
			run_ask_to_stop(run);
		bucket_save_witness(run, steps.push->conn);
		const struct bucket_row after = row_of(&steps);
		const bool is_written = strcmp(before.version, after.version) != 0;
		if (!CHECK_STRING(after.last_key, lasts[i].last_key) ||
			!CHECK_INT(is_written, i < 3))
			fprintf(stderr, "\t%s\n", lasts[i].what);
		if (i < 3)
			CHECK_STRING(after.last_etag, lasts[i].saw_etag);
		steps_asked(&steps, "");
		end(&steps);
	}
}

int main(void)
{
	test_start();
	test_contested();
	test_two_begin_anew();
	test_row_that_cannot_be_written();
	test_generation_begun_by_another();
	test_believed_later();
	test_first_witness();
	test_last_witness();
	return check_result();
}
