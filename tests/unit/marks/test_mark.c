/* The rules of a mark on a real store, and on one whose wire sends every write twice, as libcurl
 * does when a reused connection drops: each refusal is then the echo of our own write. */
#include "../check.h"
#include "marks/mark_row.h"
#include "store/item_pack.h"
#include <stdlib.h>

/* A store that forwards to another and performs every write twice, answering the second. */
struct echo_conn {
	struct store_conn conn;
	struct store_conn *inner;
};

static enum outcome write_twice(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	struct store_conn *inner = ((struct echo_conn *)conn)->inner;
	inner->store->ops->write(inner, key, write, limits, ret_present, ret_problem);
	item_clear(ret_present);
	return inner->store->ops->write(inner, key, write, limits, ret_present, ret_problem);
}

static enum outcome get(struct store_conn *conn, struct item_key key, enum consistency consistency,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	struct store_conn *inner = ((struct echo_conn *)conn)->inner;
	return inner->store->ops->get(inner, key, consistency, limits, ret, ret_problem);
}

static int64_t echo_time_s = 1000;

static int64_t time_s(const struct store *store)
{
	(void)store;
	return echo_time_s;
}

static const struct store_ops echo_ops = {.write = write_twice, .get = get, .time_s = time_s};
static struct store echo_store = {&echo_ops};

static const struct mark_space space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 16}};
static const char ours[] = "11111111111111111111111111111111",
		  theirs[] = "22222222222222222222222222222222";
static struct version version = {.size = 5, .mtime_ns = 7, .sum = "crc32c:AAAAAA==", .etag = "e"};

static struct mark_ref ref_of(struct store_conn *conn, const char *session)
{
	return (struct mark_ref){.conn = conn,
		.space = &space,
		.key = "a/b",
		.suffix = "",
		.session = session,
		.source = "host:/dir"};
}

static struct mark present(const struct mark_ref *ref)
{
	struct mark mark;
	struct problem problem;
	CHECK_INT(mark_get(ref, &mark, &problem), OUTCOME_OK);
	return mark;
}

static struct open_upload upload_named(const char *id)
{
	return (struct open_upload){.id = strdup(id),
		.is_open = true,
		.checksum = CHECKSUM_SHA256,
		.encryption = "bWQ1",
		.part_bytes = 8,
		.size = 5,
		.mtime_ns = 7,
		.content_id = "c0ffee"};
}

/* From absent to done, and what another session may do at each point. */
static void test_life(struct store_conn *conn)
{
	const struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, image = {0};
	struct problem problem;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_claim(&b, &(struct mark){0}, &second, &seen, &problem), OUTCOME_REFUSED);
	CHECK_INT(seen.state, MARK_CLAIMED);
	CHECK_STRING(seen.session, ours);
	CHECK_STRING(seen.source, "host:/dir");
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_CLAIMED);
	CHECK_INT(mark_says(&seen, &(struct file_version){.content_id = "", .is_piped = true}),
		SAYS_CLAIMED);

	struct open_upload upload = upload_named("up"), other_upload = upload_named("other");
	CHECK_INT(mark_record_upload(&a, &claim, &upload, &problem), OUTCOME_OK);
	CHECK(!upload.id);
	CHECK_STRING(claim.upload.id, "up");
	/* Under another session it is refused, and stays the caller's. */
	CHECK_INT(mark_record_upload(&b, &claim, &other_upload, &problem), OUTCOME_REFUSED);
	CHECK_STRING(other_upload.id, "other");
	CHECK_STRING(claim.upload.id, "up");
	open_upload_clear(&other_upload);
	mark_clear(&seen);
	seen = present(&a);
	CHECK_STRING(seen.upload.id, "up");
	CHECK_STRING(seen.upload.encryption, "bWQ1");
	CHECK_STRING(seen.upload.content_id, "c0ffee");

	/* Taken over: the upload id stays, the first owner is fenced. */
	CHECK_INT(mark_claim(&b, &seen, &second, &image, &problem), OUTCOME_OK);
	CHECK(!second.before.upload.id);
	CHECK_STRING(second.upload.id, "up");
	CHECK(second.upload.is_open);
	CHECK_INT((int64_t)second.upload.part_bytes, 8);
	CHECK_INT(second.upload.checksum, CHECKSUM_SHA256);
	CHECK_INT((int64_t)second.upload.size, 5);
	CHECK_INT(second.upload.mtime_ns, 7);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_REFUSED);
	mark_clear(&seen);
	CHECK_INT(mark_fail(&a, &claim, "late", KEEP_UPLOAD, &problem),
		OUTCOME_OK); /* and changes nothing */
	seen = present(&a);
	CHECK_INT(seen.state, MARK_CLAIMED);
	CHECK_STRING(seen.session, theirs);
	mark_clear(&seen);

	version.etag_is_md5 = true;
	version.part_bytes = 8;
	strcpy(version.parts_sum, "sha256:AAAA-2");
	CHECK_INT(mark_done(&b, &second, &version, b.source, &seen, &problem), OUTCOME_OK);
	seen = present(&b);
	CHECK(seen.done.etag_is_md5 && seen.done.part_bytes == 8);
	CHECK_STRING(seen.done.parts_sum, "sha256:AAAA-2");
	/* A later version says nothing of the kind. */
	struct claim third;
	CHECK_INT(mark_claim(&b, &seen, &third, &image, &problem), OUTCOME_OK);
	version.etag_is_md5 = false;
	version.part_bytes = 0;
	version.parts_sum[0] = '\0';
	CHECK_INT(mark_done(&b, &third, &version, b.source, &seen, &problem), OUTCOME_OK);
	claim_clear(&third);
	seen = present(&b);
	CHECK(!seen.done.etag_is_md5 && !seen.done.part_bytes);
	CHECK_STRING(seen.done.parts_sum, "");
	mark_clear(&seen);
	/* The same version done by whomever is fine; another is not. */
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	struct version other = version;
	other.size = 6;
	CHECK_INT(mark_done(&a, &claim, &other, a.source, &seen, &problem), OUTCOME_REFUSED);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_DONE);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 8, ""}), SAYS_COMPARE);
	CHECK_INT(mark_says(&seen, &(struct file_version){6, 7, ""}), SAYS_CHANGED);
	CHECK_INT(mark_says(&seen, &(struct file_version){.content_id = "", .is_piped = true}),
		SAYS_DONE);
	CHECK(!seen.upload.id);
	CHECK_INT(mark_refresh(&a, &seen, 8, &problem), OUTCOME_OK);
	CHECK_INT(mark_refresh(&a, &seen, 9, &problem), OUTCOME_REFUSED);
	claim_clear(&claim);
	claim_clear(&second);
	mark_clear(&seen);
}

/* A file that was rewritten with its size and time put back: only the content tells, until it is
 * what is done. */
static void test_shared_mtime(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	a.key = "shared";
	struct claim claim = {0};
	struct mark seen = {0};
	struct problem problem;
	const struct version plain = {
		.size = 5, .mtime_ns = 7, .sum = "crc32c:AAAAAA==", .etag = "e"};
	struct version shared = plain;
	shared.mtime_is_shared = true;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &shared, a.source, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &plain, a.source, &seen, &problem), OUTCOME_REFUSED);
	mark_clear(&seen);
	seen = present(&a);
	CHECK(seen.done.mtime_is_shared);
	CHECK_INT(seen.done.mtime_ns, 7);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_COMPARE);
	CHECK_INT(mark_says(&seen, &(struct file_version){6, 7, ""}), SAYS_CHANGED);
	CHECK_INT(mark_refresh(&a, &seen, 7, &problem), OUTCOME_OK);
	mark_clear(&seen);
	seen = present(&a);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_DONE);

	/* A version that is done later does not keep it. */
	claim_clear(&claim);
	struct mark image = {0};
	CHECK_INT(mark_claim(&a, &seen, &claim, &image, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &shared, a.source, &image, &problem), OUTCOME_OK);
	claim_clear(&claim);
	seen = present(&a);
	CHECK_INT(mark_claim(&a, &seen, &claim, &image, &problem), OUTCOME_OK);
	CHECK(claim.before.done.mtime_is_shared);
	CHECK_INT(mark_done(&a, &claim, &plain, a.source, &image, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_DONE);
	claim_clear(&claim);
	mark_clear(&seen);
}

static void check_sources(const struct mark_ref *ref, const char *of_version, const char *of_mark)
{
	struct mark mark = present(ref);
	CHECK_STRING(mark.source, of_version);
	CHECK_STRING(mark_source(&mark), of_mark);
	mark_clear(&mark);
}

/* An object belongs to the source of the first claim that may have uploaded it, and the version
 * that is done to the source that it is marked with, whoever claims the mark and fails later. */
static void test_sources(struct store_conn *conn)
{
	struct mark_ref first = ref_of(conn, ours), second = ref_of(conn, theirs);
	struct claim claim = {0};
	struct mark seen = {0}, refused = {0};
	struct problem problem;
	first.key = second.key = "sources";
	first.source = "first:/a";
	second.source = "second:/b";
	CHECK_INT(mark_claim(&first, &seen, &claim, &refused, &problem), OUTCOME_OK);
	claim_clear(&claim);
	check_sources(&first, "first:/a", "first:/a");
	for (unsigned kills = 0; kills < 2; kills++) {
		seen = present(&second);
		CHECK_INT(mark_claim(&second, &seen, &claim, &refused, &problem), OUTCOME_OK);
		CHECK_STRING(claim.before.source, "first:/a");
		check_sources(&second, "first:/a", "second:/b");
		if (!kills)
			claim_clear(&claim);
	}
	CHECK_INT(mark_fail(&second, &claim, "a reason", KEEP_UPLOAD, &problem), OUTCOME_OK);
	claim_clear(&claim);
	check_sources(&second, "first:/a", "second:/b");
	/* The object proves to be of the first source, or is replaced by one of the second. */
	for (unsigned is_sent = 0; is_sent < 2; is_sent++) {
		const char *source = is_sent ? "second:/b" : "first:/a";
		seen = present(&second);
		CHECK_INT(mark_claim(&second, &seen, &claim, &refused, &problem), OUTCOME_OK);
		CHECK_INT(
			mark_done(&second, &claim, &version, source, &seen, &problem), OUTCOME_OK);
		claim_clear(&claim);
		check_sources(&second, source, source);
	}
	/* A claim that is given back leaves no trace. */
	seen = present(&first);
	CHECK_INT(mark_claim(&first, &seen, &claim, &refused, &problem), OUTCOME_OK);
	check_sources(&first, "second:/b", "first:/a");
	CHECK_INT(mark_give_back(&first, &claim, &problem), OUTCOME_OK);
	claim_clear(&claim);
	seen = present(&first);
	CHECK(!seen.claim_source);
	CHECK_STRING(mark_source(&seen), "second:/b");
	mark_clear(&seen);
}

/* A done version has its own suffix, whatever the claim was for and whatever is claimed later. */
static void test_suffix(struct store_conn *conn)
{
	struct mark_ref ref = ref_of(conn, ours);
	struct claim claim = {0};
	struct mark seen = {0}, refused = {0};
	struct problem problem;
	static const char *const suffixes[][2] = {{"", ".zst"}, {".zst", ""}, {".gz", ".zst"},
		{".zst", ".zst"}, {"", ""}, {"", ".gz"}};
	ref.key = "suffix";
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		struct version later = version;
		const char *before = i ? suffixes[i - 1][1] : "";
		ref.suffix = suffixes[i][0];
		CHECK_INT(mark_claim(&ref, &seen, &claim, &refused, &problem), OUTCOME_OK);
		mark_clear(&seen);
		seen = present(&ref);
		CHECK_STRING(seen.done.suffix, before);
		CHECK_STRING(seen.claim_suffix, suffixes[i][0]);
		CHECK_STRING(mark_suffix(&seen), suffixes[i][0]);
		mark_clear(&seen);
		snprintf(later.suffix, sizeof later.suffix, "%s", suffixes[i][1]);
		CHECK_INT(mark_done(&ref, &claim, &later, ref.source, &seen, &problem), OUTCOME_OK);
		claim_clear(&claim);
		seen = present(&ref);
		CHECK_STRING(seen.done.suffix, suffixes[i][1]);
		CHECK_STRING(seen.claim_suffix, "");
		CHECK_STRING(mark_suffix(&seen), suffixes[i][1]);
	}
	mark_clear(&seen);
}

/* The sum of a version there and back, and what is none. */
static void test_sums(void)
{
	const struct sums sums = {.kinds = DIGEST_OF(CHECKSUM_CRC32) | DIGEST_SHA256 | DIGEST_MD5};
	static const char *const bad[] = {
		"", "crc32c", "crc16:AAA=", ":AAAAAA==", "0123456789abcdef"};
	char sum[SUM_MAX + 1];
	mark_sum_of(&sums, CHECKSUM_SHA256, sum);
	CHECK_STRING(sum, "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	struct s3_sum told = mark_sum_parse(sum);
	CHECK_INT(told.kind, CHECKSUM_SHA256);
	CHECK_STRING(told.text, sum + 7);
	char of_parts[PARTS_SUM_MAX + 1];
	const struct sums parts[] = {sums, sums};
	mark_parts_sum_of(parts, 2, CHECKSUM_SHA256, of_parts);
	/* head -c 64 /dev/zero | openssl sha256 -binary | base64 */
	CHECK_STRING(of_parts, "sha256:9aX9QtFqIDAnmO9u0wmXm0MAPSMg2fDo6pgxqSdZ+0s=-2");
	told = mark_sum_parse(of_parts);
	CHECK_STRING(told.text, of_parts + 7);
	mark_parts_sum_of(parts, 2, CHECKSUM_CRC32, of_parts);
	CHECK_STRING(of_parts, "");
	mark_parts_sum_of(parts, 2, CHECKSUM_MD5, of_parts);
	CHECK_STRING(of_parts, "");
	mark_parts_sum_of(parts, 2, CHECKSUM_SHA1, of_parts);
	CHECK_STRING(of_parts, "");
	mark_sum_of(&sums, CHECKSUM_CRC64NVME, sum);
	CHECK_STRING(sum, "crc32:AAAAAA==");
	mark_sum_of(&(struct sums){0}, CHECKSUM_CRC32C, sum);
	CHECK_STRING(sum, "");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_STRING(mark_sum_parse(bad[i]).text, "");
}

/* Rows from before there was a choice, and of algorithms that are none of ours. */
static void test_checksum_of_uploads(void)
{
	struct mark mark;
	struct item item = {0};
	CHECK_INT(item_set_string(&item, "state", "claimed"), 0);
	CHECK_INT(item_set_string(&item, "upload", "up"), 0);
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.upload.checksum, CHECKSUM_CRC32C);
	mark_clear(&mark);
	CHECK_INT(item_set_string(&item, "upload_sum", "sha512"), 0);
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.upload.checksum, CHECKSUMS);
	CHECK_INT(mark.state, MARK_CLAIMED);
	mark_clear(&mark);
	item_clear(&item);
}

/* Became done after it was seen claimed: session and claim are the same, the state is not. */
static void test_take_needs_the_state(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	a.key = b.key = "state";
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, image = {0};
	struct problem problem;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	seen = present(&b);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &image, &problem), OUTCOME_OK);
	CHECK_INT(mark_claim(&b, &seen, &second, &image, &problem), OUTCOME_REFUSED);
	CHECK_INT(image.state, MARK_DONE);
	claim_clear(&claim);
	mark_clear(&seen);
	mark_clear(&image);
}

/* A session may hold a mark again under another claim: what was still under way for the first claim
 * changes nothing then. */
static void test_earlier_claim_of_the_same_session(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	a.key = "again";
	struct claim first = {0}, second = {0};
	struct mark seen = {0}, image = {0};
	struct problem problem;
	struct open_upload late = upload_named("late");
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &first, &seen, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(mark_claim(&a, &seen, &second, &image, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &first, &version, a.source, &image, &problem), OUTCOME_REFUSED);
	mark_clear(&image);
	CHECK_INT(mark_record_upload(&a, &first, &late, &problem), OUTCOME_REFUSED);
	CHECK_INT(mark_fail(&a, &first, "late", KEEP_UPLOAD, &problem),
		OUTCOME_OK); /* and changes nothing */
	seen = present(&a);
	CHECK_INT(seen.state, MARK_CLAIMED);
	CHECK_STRING(seen.claim, second.id);
	CHECK(!seen.upload.id && !seen.error && !seen.has_done);
	mark_clear(&seen);
	CHECK_INT(mark_done(&a, &second, &version, a.source, &image, &problem), OUTCOME_OK);
	open_upload_clear(&late);
	claim_clear(&first);
	claim_clear(&second);
	mark_clear(&image);
}

static void test_failed_is_free(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	a.key = b.key = "failed";
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, image = {0};
	struct problem problem;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_fail(&a, &claim, "no luck", KEEP_UPLOAD, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(mark_says(&seen, &(struct file_version){1, 1, ""}), SAYS_FREE);
	CHECK_STRING(seen.error, "no luck");
	CHECK_INT(mark_claim(&b, &seen, &second, &image, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK(!seen.error);
	CHECK_INT(seen.tries, 2);
	claim_clear(&claim);
	claim_clear(&second);
	mark_clear(&seen);
}

/* A row of a later layout is held, never stale. */
static void test_unreadable(void)
{
	struct item item = {0};
	struct mark mark;
	item_set_string(&item, "state", "resting");
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark_says(&mark, &(struct file_version){1, 1, ""}), SAYS_CLAIMED);
	item_set_string(&item, "state", "done"); /* without a version */
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_UNREADABLE);
	item_set_number(&item, "size", 5); /* and without a time */
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_UNREADABLE);
	CHECK(!mark.has_done);
	item_set_string(&item, "size", "5"); /* of another type */
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_UNREADABLE);
	item_clear(&item);
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_ABSENT);
	item_set_number(&item, "mtime", 5); /* a row that says of no state */
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_UNREADABLE);
	item_set_string(&item, "state", "claimed");
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_CLAIMED);
	item_set_string(&item, "upload", ""); /* an upload without an id */
	CHECK_INT(mark_from_item(&item, &mark), 0);
	CHECK_INT(mark.state, MARK_UNREADABLE);
	mark_clear(&mark);
	item_clear(&item);
}

/* A row with our claim is ours only if it has our session, too: somebody has changed it. */
static void test_a_claim_of_another_session(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	const struct change session = {"session", VALUE_STRING, theirs, 0};
	const struct item_write write = {.changes = &session, .n_changes = 1};
	struct open_upload upload = upload_named("up"), again = upload_named("up");
	struct claim claim = {0};
	struct mark seen = {0};
	struct problem problem;
	char partition[PARTITION_MAX];
	a.key = "of another session";
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_record_upload(&a, &claim, &upload, &problem), OUTCOME_OK);
	struct item unused = {0};
	conn->store->ops->write(
		conn, mark_key(&space, a.key, partition), &write, &no_limits, &unused, &problem);
	item_clear(&unused);
	CHECK_INT(mark_record_upload(&a, &claim, &again, &problem), OUTCOME_REFUSED);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_REFUSED);
	open_upload_clear(&again);
	mark_clear(&seen);
	claim_clear(&claim);
}

/* A claim and a failure may be told to keep the time of the last change. */
static void test_time_of_the_last_change(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	struct claim claim = {0};
	struct mark seen = {0};
	struct problem problem;
	a.key = "of some time";
	a.at_s = 77;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	mark_clear(&seen);
	seen = present(&a);
	CHECK_INT(seen.at_s, 77);
	mark_clear(&seen);
	a.at_s = 0;
	CHECK_INT(mark_fail(&a, &claim, "e", KEEP_UPLOAD, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK(seen.at_s > 77);
	mark_clear(&seen);
	claim_clear(&claim);
}

/* Stable for ever: these numbers are in the tables of users. FNV-1a 64 by an independent
 * computation. */
/* Whatever its length. */
static void test_packed(void)
{
	char error[1200] = "";
	for (size_t n = 0; n + 1 < sizeof error; n++) {
		struct item item = {0};
		item_set_string(&item, "state", "failed");
		item_set_string(&item, "error", error);
		item_set_string(&item, "claim_suffix", ".gz");
		item_set_number(&item, "at", 7);
		struct packed_mark *packed = mark_pack_item("a/b", &item);
		item_clear(&item);
		if (!CHECK(packed != NULL))
			return;
		const struct mark again = mark_unpack(packed);
		CHECK_STRING(packed->key, "a/b");
		CHECK_STRING(packed->object_key, "a/b.gz");
		CHECK_INT(again.state, MARK_FAILED);
		CHECK_STRING(again.error, error);
		CHECK_INT(again.at_s, 7);
		free(packed);
		error[n] = 'x';
	}
}

/* Returns the mark of the first n bytes of a packed item. */
static struct packed_mark *pack_bytes(const char *bytes, size_t n)
{
	char *exact = malloc(n + 1); /* so that a sanitizer sees reads beyond them */
	if (n)
		memcpy(exact, bytes, n);
	exact = realloc(exact, n ? n : 1);
	struct packed_mark *packed = mark_pack(
		&(struct found_item){.key = {"p", "a/b"}, .packed = exact, .packed_bytes = n});
	free(exact);
	return packed;
}

/* The mark of a row of SQLite is that of its item. */
static void test_packed_rows(void)
{
	struct item item = {0};
	struct text row = TEXT(2000);
	item_set_string(&item, "state", "failed");
	item_set_string(&item, "session", "0123456789abcdef0123456789abcdef");
	item_set_string(&item, "claim", "fedcba9876543210fedcba9876543210");
	item_set_string(&item, "source", "host:/srv/\xc3\xa4");
	item_set_string(&item, "claim_source", "abad1deaabad1dea"); /* packed as hex digits */
	item_set_string(&item, "claim_suffix", ".gz");
	item_set_number(&item, "tries", 3);
	item_set(&item, "at", VALUE_NUMBER, "007", 3); /* no canonical integer */
	item_set_number(&item, "size", INT64_MAX);
	item_set_number(&item, "mtime", -1);
	item_set_number(&item, "md5", 1);
	item_set_string(&item, "upload", "deadbeefdeadbeef");
	item_set_string(&item, "upload_sum", "sha256");
	item_set_string(&item, "of a later version", "x");
	CHECK_INT(item_pack(&item, &row), 0);
	struct packed_mark *of_item = mark_pack_item("a/b", &item);
	struct packed_mark *of_row = pack_bytes(row.data, row.len);
	if (CHECK_INT(of_row->size.bytes, of_item->size.bytes))
		CHECK(memcmp(of_row->row, of_item->row, of_item->size.bytes) == 0);
	CHECK_STRING(of_row->object_key, "a/b.gz");
	const struct mark mark = mark_unpack(of_row);
	CHECK_INT(mark.state, MARK_FAILED);
	CHECK_STRING(mark.claim_source, "abad1deaabad1dea");
	CHECK_STRING(mark.upload.id, "deadbeefdeadbeef");
	CHECK_INT(mark.at_s, 7);
	CHECK_INT(mark.done.size, INT64_MAX);
	CHECK_INT(mark.done.mtime_ns, -1);
	free(of_item);
	free(of_row);
	for (size_t n = 0; n < row.len; n++) { /* one that was cut off */
		struct packed_mark *cut = pack_bytes(row.data, n);
		CHECK_INT(mark_unpack(cut).state, MARK_UNREADABLE);
		free(cut);
	}
	text_clear(&row);
	/* A text with a NUL is none of ours. */
	item_set(&item, "source", VALUE_STRING, "h\0x", 3);
	struct packed_mark *with_nul = mark_pack_item("a/b", &item);
	CHECK_INT(mark_unpack(with_nul).state, MARK_UNREADABLE);
	free(with_nul);
	item_clear(&item);
}

static void test_shards(void)
{
	CHECK_INT(mark_shard("", 16), 0xcbf29ce484222325ULL % 16);
	CHECK_INT(mark_shard("a", 16), 0xaf63dc4c8601ec8cULL % 16);
	CHECK_INT(mark_shard("foobar", 16), 0x85944171f73967e8ULL % 16);
	CHECK_INT(mark_shard("foobar", 7), 0x85944171f73967e8ULL % 7);
	char partition[PARTITION_MAX];
	mark_partition(&space, 3, partition);
	CHECK_STRING(partition, "aws/b#3");
	/* The marks of a bucket that was begun anew are others. */
	struct mark_space anew = space;
	anew.generation = 2;
	mark_partition(&anew, 3, partition);
	CHECK_STRING(partition, "aws/b~2#3");
	const struct item_key key = mark_key(&anew, "foobar", partition);
	char expected[PARTITION_MAX];
	mark_partition(&anew, mark_shard("foobar", 16), expected);
	CHECK_STRING(key.pk, expected);
	CHECK_STRING(key.sk, "foobar");
}

/* A rotated log is known by its content, whatever it is compressed with. */
static void test_content(struct store_conn *conn)
{
	struct mark_ref ref = ref_of(conn, ours), later = ref_of(conn, theirs);
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, image = {0};
	struct problem problem;
	struct version done = version;
	ref.suffix = ".gz";
	ref.key = later.key = "content";
	CHECK_INT(mark_claim(&ref, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	seen = present(&ref);
	CHECK_STRING(seen.claim_suffix, ".gz");
	CHECK_INT(mark_claim(&later, &seen, &second, &image, &problem), OUTCOME_OK);
	CHECK_STRING(second.before.claim_suffix, ".gz");
	seen = present(&ref);
	CHECK_STRING(seen.claim_suffix, "");
	struct open_upload upload = upload_named("u");
	strcpy(upload.suffix, ".xz");
	CHECK_INT(mark_record_upload(&later, &second, &upload, &problem), OUTCOME_OK);
	mark_clear(&seen);
	seen = present(&ref);
	CHECK_STRING(seen.upload.suffix, ".xz");
	strcpy(done.content_id, "c1");
	strcpy(done.suffix, ".zst"); /* another object was found to have it */
	mark_clear(&seen);
	CHECK_INT(mark_done(&later, &second, &done, later.source, &seen, &problem), OUTCOME_OK);
	seen = present(&ref);
	CHECK_STRING(seen.claim_suffix, "");
	CHECK_STRING(seen.done.suffix, ".zst");
	CHECK_STRING(seen.done.content_id, "c1");
	CHECK_STRING(seen.upload.suffix, "");
	CHECK_INT(mark_says(&seen, &(struct file_version){999, 999, "c1"}), SAYS_DONE);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, "c2"}), SAYS_CHANGED);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_DONE);
	mark_clear(&seen);
	claim_clear(&claim);
	claim_clear(&second);
}

/* Each of what it was seen with decides. */
static void forget_as_others_see_it(const struct mark_ref *ref, const struct mark *old)
{
	static char upload[] = "another upload";
	struct problem problem;
	struct mark other = *old;
	snprintf(other.session, sizeof other.session, "%s", theirs);
	CHECK_INT(mark_forget(ref, &other, &problem), OUTCOME_REFUSED);
	other = *old;
	snprintf(other.claim, sizeof other.claim, "%s", theirs);
	CHECK_INT(mark_forget(ref, &other, &problem), OUTCOME_REFUSED);
	other = *old;
	other.upload.id = upload;
	CHECK_INT(mark_forget(ref, &other, &problem), OUTCOME_REFUSED);
	other = *old;
	other.at_s++;
	CHECK_INT(mark_forget(ref, &other, &problem), OUTCOME_REFUSED);
}

/* Only as it was seen. Where writes may come late, a row stays for a while that they are refused
 * by; elsewhere nothing is left. */
static void test_forget(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	a.key = b.key = "forget";
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, old, image = {0};
	struct problem problem;
	const bool for_good = conn->store->ops->removes_for_good;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	old = present(&a);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &image, &problem), OUTCOME_OK);
	CHECK_INT(mark_forget(&b, &old, &problem), OUTCOME_REFUSED);
	mark_clear(&old);
	old = present(&a);
	CHECK_INT(mark_note_newer(&a, &old, 6, 8, &problem), OUTCOME_OK);
	CHECK_INT(mark_forget(&b, &old, &problem), OUTCOME_REFUSED);
	mark_clear(&old);
	old = present(&a);
	forget_as_others_see_it(&b, &old);
	echo_time_s +=
		MARK_FORGOTTEN_KEEP_S + 10; /* it was done long ago, and is kept all the same */
	CHECK_INT(mark_forget(&b, &old, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(seen.state, for_good ? MARK_ABSENT : MARK_FORGOTTEN);
	CHECK_INT(seen.has_done, false);
	CHECK_INT(mark_says(&seen, &(struct file_version){5, 7, ""}), SAYS_FREE);
	/* The late duplicates of the claim and of what followed it. */
	if (!for_good) {
		CHECK_INT(mark_done(&a, &claim, &version, a.source, &image, &problem),
			OUTCOME_REFUSED);
		mark_clear(&image);
		CHECK_INT(mark_claim(&b, &(struct mark){0}, &second, &image, &problem),
			OUTCOME_REFUSED);
		CHECK_INT(image.state, MARK_FORGOTTEN);
		/* Before it is old enough it is written anew, and stays. */
		echo_time_s += MARK_FORGOTTEN_KEEP_S - 1;
		CHECK_INT(mark_forget(&b, &image, &problem), OUTCOME_OK);
		mark_clear(&image);
		image = present(&a);
		CHECK_INT(image.state, MARK_FORGOTTEN);
		/* Another row by the time it is old enough stays; this one goes for good. */
		echo_time_s += MARK_FORGOTTEN_KEEP_S + 1;
		CHECK_INT(mark_forget(&b, &image, &problem), OUTCOME_OK);
		mark_clear(&image);
		image = present(&a);
		CHECK_INT(image.state, MARK_ABSENT);
	}
	mark_clear(&old);
	mark_clear(&seen);
	claim_clear(&claim);
	claim_clear(&second);
}

static bool has_attribute(struct store_conn *conn, const struct mark_ref *ref, const char *name)
{
	char partition[PARTITION_MAX];
	struct item item = {0};
	struct problem problem;
	mark_partition(&space, mark_shard(ref->key, space.settings.shards), partition);
	CHECK_INT(conn->store->ops->get(conn, (struct item_key){partition, ref->key},
			  READ_CONSISTENT, &ref->limits, &item, &problem),
		OUTCOME_OK);
	const bool has = item_find(&item, name);
	item_clear(&item);
	return has;
}

/* A forgotten mark that is taken must not expire. */
static void test_forgotten_is_free(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	a.key = b.key = "forgotten";
	struct claim claim = {0}, second = {0};
	struct mark seen = {0}, old, image = {0};
	struct problem problem;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	old = present(&a);
	CHECK_INT(mark_forget(&b, &old, &problem), OUTCOME_OK);
	seen = present(&a);
	if (seen.state == MARK_FORGOTTEN) {
		CHECK(has_attribute(conn, &a, "expires"));
		CHECK_INT(mark_claim(&b, &seen, &second, &image, &problem), OUTCOME_OK);
		CHECK(!has_attribute(conn, &a, "expires"));
	}
	mark_clear(&old);
	mark_clear(&seen);
	claim_clear(&claim);
	claim_clear(&second);
}

/* A claim whose upload was aborted ends without it, and only under its fence. */
static void test_release(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	a.key = b.key = "release";
	struct claim claim = {0};
	struct mark seen = {0};
	struct problem problem;
	CHECK_INT(mark_claim(&a, &(struct mark){0}, &claim, &seen, &problem), OUTCOME_OK);
	struct open_upload upload = upload_named("u");
	CHECK_INT(mark_record_upload(&a, &claim, &upload, &problem), OUTCOME_OK);
	CHECK_INT(mark_fail(&b, &claim, "aborted", DROP_UPLOAD, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(seen.state, MARK_CLAIMED);
	mark_clear(&seen);
	CHECK_INT(mark_fail(&a, &claim, "aborted", DROP_UPLOAD, &problem), OUTCOME_OK);
	seen = present(&a);
	CHECK_INT(seen.state, MARK_FAILED);
	CHECK(!seen.upload.id);
	CHECK_STRING(seen.error, "aborted");
	mark_clear(&seen);
	claim_clear(&claim);
}

/* The mark of a key that this session has claimed. */
static struct claim claim_of(const struct mark_ref *ref)
{
	struct mark seen = present(ref), image = {0};
	struct claim claim = {0};
	struct problem problem;
	CHECK_INT(mark_claim(ref, &seen, &claim, &image, &problem), OUTCOME_OK);
	mark_clear(&seen);
	return claim;
}

/* A claim that is given back leaves the mark as it was, and no mark of another claim changes. */
static void test_give_back(struct store_conn *conn)
{
	for (unsigned k = 0; k < 8; k++) {
		const bool was_done = k & 1, has_upload = k & 2, has_suffix = k & 4;
		char key[20];
		struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
		struct mark seen = {0}, refused = {0};
		struct claim claim = {0};
		struct problem problem;
		snprintf(key, sizeof key, "give-back-%u", k);
		a.key = b.key = key;
		a.at_s = 500;
		CHECK_INT(mark_claim(&a, &seen, &claim, &refused, &problem), OUTCOME_OK);
		if (was_done)
			CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem),
				OUTCOME_OK);
		else
			CHECK_INT(mark_fail(&a, &claim, "a reason", KEEP_UPLOAD, &problem),
				OUTCOME_OK);
		claim_clear(&claim);
		struct mark before = present(&a);
		b.at_s = before.at_s + 700;
		b.suffix = has_suffix ? ".gz" : "";
		seen = present(&b);
		CHECK_INT(mark_claim(&b, &seen, &claim, &refused, &problem), OUTCOME_OK);
		struct open_upload upload = upload_named("u");
		if (has_upload)
			CHECK_INT(mark_record_upload(&b, &claim, &upload, &problem), OUTCOME_OK);
		open_upload_clear(&upload);
		/* Another claim than the present one gives nothing back. */
		CHECK_INT(mark_give_back(&a, &claim, &problem), OUTCOME_OK);
		seen = present(&b);
		CHECK_INT(seen.state, MARK_CLAIMED);
		CHECK_STRING(seen.session, theirs);
		mark_clear(&seen);
		CHECK_INT(mark_give_back(&b, &claim, &problem), OUTCOME_OK);
		seen = present(&b);
		bool good = CHECK_INT(seen.state, was_done ? MARK_DONE : MARK_FAILED);
		good &= CHECK_INT(seen.at_s, before.at_s);
		good &= CHECK_STRING(seen.claim_suffix, "");
		good &= CHECK(!seen.upload.id && !seen.claim_source);
		good &= CHECK_STRING(mark_source(&seen), "host:/dir");
		good &= CHECK_STRING(seen.done.sum, before.done.sum);
		if (!good)
			fprintf(stderr, "\tcase %u\n", k);
		mark_clear(&seen);
		mark_clear(&before);
		claim_clear(&claim);
	}
}

/* A newer version is not noted in a mark that has changed since it was read. */
static void test_newer_of_a_changed_mark(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	struct mark seen = {0}, refused = {0}, now;
	struct claim claim = {0};
	struct problem problem;
	a.key = b.key = "changed-since";
	CHECK_INT(mark_claim(&a, &seen, &claim, &refused, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	claim_clear(&claim);
	struct mark done = present(&a);
	now = present(&b);
	CHECK_INT(mark_claim(&b, &now, &claim, &refused, &problem), OUTCOME_OK);
	CHECK_INT(mark_note_newer(&a, &done, 6, 8, &problem), OUTCOME_REFUSED);
	now = present(&b);
	CHECK(now.state == MARK_CLAIMED && !now.has_newer);
	mark_clear(&now);
	claim_clear(&claim);
	mark_clear(&done);
}

static void check_upload(const struct mark_ref *ref, const char *id)
{
	struct mark mark = present(ref);
	CHECK_STRING(mark.upload.id ? mark.upload.id : "", id);
	mark_clear(&mark);
}

/* The upload in a mark is removed only with the whole upload, and recorded only after the one
 * before. */
static void test_upload_of_a_mark(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	struct problem problem;
	a.key = b.key = "upload";
	struct claim claim = claim_of(&a), taken = {0};
	struct open_upload first = upload_named("first"), second = upload_named("second"),
			   late = upload_named("late");
	/* It was recorded after another uploader had read the mark: that one reads it again. */
	struct mark before = present(&a), seen = {0};
	CHECK_INT(mark_record_upload(&a, &claim, &first, &problem), OUTCOME_OK);
	CHECK_INT(mark_claim(&b, &before, &taken, &seen, &problem), OUTCOME_REFUSED);
	CHECK_STRING(seen.upload.id, "first");
	mark_clear(&before);
	mark_clear(&seen);
	/* A request from before the first one changes nothing. */
	struct claim earlier = {0};
	memcpy(earlier.id, claim.id, sizeof earlier.id);
	CHECK_INT(mark_record_upload(&a, &earlier, &late, &problem), OUTCOME_REFUSED);
	check_upload(&a, "first");
	CHECK_INT(mark_record_upload(&a, &claim, &second, &problem), OUTCOME_OK);
	check_upload(&a, "second");
	/* A file that fails goes on with it later, unless it was aborted. */
	CHECK_INT(mark_fail(&a, &claim, "why", KEEP_UPLOAD, &problem), OUTCOME_OK);
	check_upload(&a, "second");
	claim_clear(&claim);
	claim = claim_of(&a);
	CHECK_STRING(claim.upload.id, "second");
	CHECK_INT(mark_fail(&a, &claim, "why", DROP_UPLOAD, &problem), OUTCOME_OK);
	check_upload(&a, "");
	claim_clear(&claim);
	open_upload_clear(&late);
	/* A file that is done has none, also if it was not taken over. */
	a.key = "done";
	claim = claim_of(&a);
	first = upload_named("first");
	CHECK_INT(mark_record_upload(&a, &claim, &first, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	check_upload(&a, "");
	claim_clear(&claim);
}

/* The note of a newer version goes once that is done, or the file is again what it was. */
static void test_newer_goes(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	struct problem problem;
	struct mark seen;
	a.key = "newer";
	struct claim claim = claim_of(&a);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	claim_clear(&claim);
	for (unsigned i = 0; i < 2; i++) {
		struct mark mark = present(&a);
		CHECK_INT(mark_note_newer(&a, &mark, 9, 9, &problem), OUTCOME_OK);
		mark_clear(&mark);
		mark = present(&a);
		CHECK(mark.has_newer && mark.newer_size == 9 && mark.newer_mtime_ns == 9);
		if (i == 0) {
			CHECK_INT(mark_refresh(&a, &mark, 7, &problem), OUTCOME_OK);
		} else {
			claim = claim_of(&a);
			CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem),
				OUTCOME_OK);
			claim_clear(&claim);
		}
		mark_clear(&mark);
		mark = present(&a);
		CHECK(mark.state == MARK_DONE && !mark.has_newer);
		mark_clear(&mark);
	}
}

/* A mark is refreshed at the time of that, from which the age of its file counts. One that is given
 * back has the time that it had before. */
static void test_time_of_refresh(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours);
	struct problem problem;
	struct mark seen;
	a.key = "refreshed";
	struct claim claim = claim_of(&a);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	claim_clear(&claim);
	claim = claim_of(&a);
	claim.before.at_s = 5;
	CHECK_INT(mark_give_back(&a, &claim, &problem), OUTCOME_OK);
	claim_clear(&claim);
	seen = present(&a);
	CHECK_INT(seen.at_s, 5);
	CHECK_INT(mark_refresh(&a, &seen, 9, &problem), OUTCOME_OK);
	mark_clear(&seen);
	seen = present(&a);
	CHECK(seen.at_s > 5);
	CHECK_INT(seen.done.mtime_ns, 9);
	mark_clear(&seen);
}

/* Done by another uploader is done only if that one has sent the same content. */
static void test_other_content_of_one_time(struct store_conn *conn)
{
	struct mark_ref a = ref_of(conn, ours), b = ref_of(conn, theirs);
	struct problem problem;
	struct mark seen;
	struct version other = version, later = version;
	strcpy(other.sum, "crc32c:BBBBBB==");
	later.mtime_ns++;
	a.key = b.key = "other";
	struct claim claim = claim_of(&a), taken = claim_of(&b);
	CHECK_INT(mark_done(&b, &taken, &version, b.source, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_done(&a, &claim, &other, a.source, &seen, &problem), OUTCOME_REFUSED);
	mark_clear(&seen);
	CHECK_INT(mark_done(&a, &claim, &later, a.source, &seen, &problem), OUTCOME_REFUSED);
	mark_clear(&seen);
	CHECK_INT(mark_done(&a, &claim, &version, a.source, &seen, &problem), OUTCOME_OK);
	/* Nor does another's version count as the time that was written anew. */
	struct mark before = present(&a);
	claim_clear(&claim);
	claim_clear(&taken);
	taken = claim_of(&b);
	other.mtime_ns = 8;
	CHECK_INT(mark_done(&b, &taken, &other, b.source, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_refresh(&a, &before, 8, &problem), OUTCOME_REFUSED);
	claim_clear(&taken);
	mark_clear(&before);
}

/* Every mark and every version of a file, against the rule in words. */
static void test_says(void)
{
	static const char *const contents[] = {"", "c1", "c2"};
	const unsigned all = MARK_UNREADABLE + 1;
	for (unsigned i = 0; i < all * 3 * 3 * 32; i++) {
		const unsigned flags = i / all / 9;
		struct mark mark = {.state = (enum mark_state)(i % all)};
		const bool same_size = flags & 1, same_time = flags & 2, is_piped = flags & 4;
		const char *content = contents[i / all % 3], *its = contents[i / all / 3 % 3];
		mark.has_done = flags & 8;
		mark.done.size = 5;
		mark.done.mtime_ns = 7;
		mark.done.mtime_is_shared = flags & 16;
		strcpy(mark.done.content_id, its);
		enum mark_says want = SAYS_COMPARE;
		switch (mark.state) {
		case MARK_ABSENT: /* nobody has it */
		case MARK_FAILED:
		case MARK_FORGOTTEN:
			want = SAYS_FREE;
			break;
		case MARK_CLAIMED: /* somebody has it, or may have it */
		case MARK_UNREADABLE:
			want = SAYS_CLAIMED;
			break;
		case MARK_DONE: /* the key, the content, or size and time tell a version */
			if (is_piped)
				want = SAYS_DONE;
			else if (*content && *its)
				want = strcmp(content, its) == 0 ? SAYS_DONE : SAYS_CHANGED;
			else if (!same_size)
				want = SAYS_CHANGED;
			else if (same_time && !mark.done.mtime_is_shared)
				want = SAYS_DONE;
			break;
		}
		const struct file_version asked = {
			same_size ? 5 : 6, same_time ? 7 : 8, content, is_piped};
		if (!CHECK_INT(mark_says(&mark, &asked), want))
			fprintf(stderr, "\tstate %u, flags %u, content '%s' and '%s'\n", i % all,
				flags, content, its);
	}
}

/* The output of a command is done only if no other command has made it. */
static void test_producer(void)
{
	struct mark mark = {.state = MARK_DONE, .has_done = true};
	struct file_version piped = {.content_id = "", .is_piped = true, .producer_id = "one"};
	CHECK_INT(mark_says(&mark, &piped), SAYS_DONE);
	strcpy(mark.done.producer_id, "one");
	CHECK_INT(mark_says(&mark, &piped), SAYS_DONE);
	piped.producer_id = "other";
	CHECK_INT(mark_says(&mark, &piped), SAYS_CHANGED);
	piped.producer_id = NULL;
	CHECK_INT(mark_says(&mark, &piped), SAYS_DONE);
}

static void on_store(bool echo)
{
	struct store *store;
	struct store_conn *conn;
	struct problem problem = {0};
	if (!CHECK(!store_sqlite_open(":memory:", STORE_WRITTEN, &store, &problem))) {
		fprintf(stderr, "%s\n", problem.text);
		return;
	}
	CHECK_INT(store_conn_new(store, &conn), 0);
	struct echo_conn echoing = {{&echo_store}, conn};
	struct store_conn *used = echo ? &echoing.conn : conn;
	test_life(used);
	test_content(used);
	test_take_needs_the_state(used);
	test_earlier_claim_of_the_same_session(used);
	test_failed_is_free(used);
	test_shared_mtime(used);
	test_sources(used);
	test_suffix(used);
	test_forget(used);
	test_forgotten_is_free(used);
	test_release(used);
	test_give_back(used);
	test_newer_of_a_changed_mark(used);
	test_upload_of_a_mark(used);
	test_newer_goes(used);
	test_time_of_refresh(used);
	test_other_content_of_one_time(used);
	test_a_claim_of_another_session(used);
	test_time_of_the_last_change(used);
	store_conn_free(conn);
	store_close(store);
}

int main(void)
{
	test_says();
	test_producer();
	test_unreadable();
	test_packed();
	test_packed_rows();
	test_shards();
	test_sums();
	test_checksum_of_uploads();
	on_store(false);
	on_store(true);
	return check_result();
}
