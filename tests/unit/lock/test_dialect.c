/* The rows of each dialect, byte for byte, and what is read out of those that are foreign, released
 * or damaged. */
#include "../check.h"
#include "lock/dialect.h"
#include "store/item_json.h"
#include <errno.h>
#include <jansson.h>

static const struct lock_write written = {
	.owner = "host1", .version = "v1", .lease_ms = 20000, .now_s = 1795220873};

static void check_json(const struct lock_changes *changes, const char *want)
{
	struct text text = TEXT(4096);
	struct item item = {0};
	CHECK_INT(item_apply(&item, changes->list, changes->n), 0);
	text_add_char(&text, '{');
	for (size_t i = 0; i < item.count; i++)
		item_add_attribute(&text, &item.attributes[i]);
	text_add_char(&text, '}');
	CHECK_STRING(text_string(&text), want);
	text_clear(&text);
	item_clear(&item);
}

static void test_written(void)
{
	static const struct {
		enum s3once_lock_dialect kind;
		const char *acquired, *renewed, *released;
	} rows[] = {
		{S3ONCE_LOCK_JAVA,
			"{\"ownerName\":{\"S\":\"host1\"},\"leaseDuration\":{\"S\":\"20000\"},"
			"\"recordVersionNumber\":{\"S\":\"v1\"}}",
			"{\"leaseDuration\":{\"S\":\"20000\"},\"recordVersionNumber\":{\"S\":\"v1\"}}",
			"{\"isReleased\":{\"S\":\"1\"},\"leaseDuration\":{\"S\":\"0\"}}"},
		{S3ONCE_LOCK_GO,
			"{\"ownerName\":{\"S\":\"host1\"},\"leaseDuration\":{\"S\":\"20s\"},"
			"\"recordVersionNumber\":{\"S\":\"v1\"}}",
			"{\"leaseDuration\":{\"S\":\"20s\"},\"recordVersionNumber\":{\"S\":\"v1\"}}",
			"{\"isReleased\":{\"S\":\"1\"},\"leaseDuration\":{\"S\":\"0\"}}"},
		{S3ONCE_LOCK_PYTHON,
			"{\"owner_name\":{\"S\":\"host1\"},\"lease_duration\":{\"N\":\"20\"},"
			"\"record_version_number\":{\"S\":\"v1\"},\"expiry_time\":{\"N\":\"1795224473\"}}",
			"{\"lease_duration\":{\"N\":\"20\"},\"record_version_number\":{\"S\":\"v1\"},"
			"\"expiry_time\":{\"N\":\"1795224473\"}}",
			NULL},
		{S3ONCE_LOCK_DLM,
			"{\"release_code\":{\"S\":\"v1\"},\"expires\":{\"N\":\"1795220893\"}}",
			"{\"release_code\":{\"S\":\"v1\"},\"expires\":{\"N\":\"1795220893\"}}",
			NULL},
	};
	struct lock_write beat = written;
	beat.owner = NULL;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct dialect *dialect = dialect_of(rows[i].kind);
		struct lock_changes changes;
		dialect_hold_changes(dialect, &written, &changes);
		check_json(&changes, rows[i].acquired);
		dialect_hold_changes(dialect, &beat, &changes);
		check_json(&changes, rows[i].renewed);
		CHECK_INT(dialect->released != NULL, rows[i].released != NULL);
		if (rows[i].released) {
			dialect_release_changes(dialect, &changes);
			check_json(&changes, rows[i].released);
		}
	}
}

/* A lease in seconds is rounded up, and the row does not expire before it. */
static void test_leases_in_seconds(void)
{
	static const struct {
		uint64_t lease_ms;
		const char *renewed;
	} rows[] = {
		{1001, "{\"lease_duration\":{\"N\":\"2\"},\"record_version_number\":{\"S\":\"v1\"},"
		       "\"expiry_time\":{\"N\":\"1795224473\"}}"},
		{7200000,
			"{\"lease_duration\":{\"N\":\"7200\"},\"record_version_number\":{\"S\":\"v1\"},"
			"\"expiry_time\":{\"N\":\"1795228073\"}}"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct lock_write beat = {
			.version = "v1", .lease_ms = rows[i].lease_ms, .now_s = written.now_s};
		struct lock_changes changes;
		dialect_hold_changes(dialect_of(S3ONCE_LOCK_PYTHON), &beat, &changes);
		check_json(&changes, rows[i].renewed);
	}
}

static void test_data(void)
{
	struct lock_write write = written;
	struct lock_changes changes;
	write.data = "hello";
	write.data_bytes = 5;
	dialect_hold_changes(dialect_of(S3ONCE_LOCK_JAVA), &write, &changes);
	check_json(&changes,
		"{\"ownerName\":{\"S\":\"host1\"},\"leaseDuration\":{\"S\":\"20000\"},"
		"\"recordVersionNumber\":{\"S\":\"v1\"},\"data\":{\"B\":\"aGVsbG8=\"}}");
	CHECK(!dialect_of(S3ONCE_LOCK_PYTHON)->data && !dialect_of(S3ONCE_LOCK_DLM)->data);
}

#define JAVA(lease, more)                                                                          \
	"{\"key\":{\"S\":\"Moe\"},\"ownerName\":{\"S\":\"h\"},\"leaseDuration\":" lease            \
	",\"recordVersionNumber\":{\"S\":\"v\"}" more "}"
#define PYTHON(lease, version, expiry)                                                             \
	"{\"lock_key\":{\"S\":\"a\"},\"sort_key\":{\"S\":\"-\"},\"owner_name\":{\"S\":\"h\"},"     \
	"\"lease_duration\":" lease ",\"record_version_number\":" version expiry "}"
#define EXPIRY    ",\"expiry_time\":{\"N\":\"1795224516\"}"
#define DLM(rest) "{\"resource_id\":{\"S\":\"a\"},\"concurrency_id\":{\"N\":\"0\"}" rest "}"

/* dialect, row, state, lease in ms. Whatever is wrong with a row, it is held and never stale. */
static const struct {
	enum s3once_lock_dialect kind;
	const char *row;
	enum row_state state;
	uint64_t lease_ms;
} reads[] = {
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000\"}", ""), ROW_HELD, 20000},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20s\"}", ""), ROW_HELD, 20000},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000\"}", ",\"isReleased\":{\"S\":\"1\"}"), ROW_FREE, 0},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"what\"}", ",\"isReleased\":{\"S\":\"1\"}"), ROW_FREE, 0},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000\"}", ",\"isReleased\":{\"S\":\"0\"}"),
		ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000\"}", ",\"isReleased\":{\"N\":\"1\"}"),
		ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000\"}", ",\"isReleased\":{\"BOOL\":true}"),
		ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"N\":\"20000\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"-1\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"0\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"0x10\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"20000 \"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"S\":\"99999999999999999999999\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, JAVA("{\"NULL\":true}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, "{\"key\":{\"S\":\"Moe\"}}", ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA, "{\"key\":{\"S\":\"Moe\"},\"isReleased\":{\"S\":\"1\"}}", ROW_FREE},
	{S3ONCE_LOCK_JAVA,
		"{\"ownerName\":{\"S\":\"h\"},\"leaseDuration\":{\"S\":\"1\"},"
		"\"recordVersionNumber\":{\"S\":\"\"}}",
		ROW_UNREADABLE},
	{S3ONCE_LOCK_JAVA,
		"{\"leaseDuration\":{\"S\":\"1\"},\"recordVersionNumber\":{\"S\":\"v\"}}",
		ROW_UNREADABLE},
	{S3ONCE_LOCK_GO, JAVA("{\"S\":\"1m30s\"}", ""), ROW_HELD, 90000},
	{S3ONCE_LOCK_GO, JAVA("{\"S\":\"20000\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_GO, JAVA("{\"S\":\"20000\"}", ",\"isReleased\":{\"S\":\"1\"}"), ROW_FREE, 0},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"5\"}", "{\"S\":\"v\"}", EXPIRY), ROW_HELD, 5000},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"5\"}", "{\"S\":\"v\"}", ""), ROW_UNREADABLE},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"S\":\"5\"}", "{\"S\":\"v\"}", EXPIRY), ROW_UNREADABLE},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"5.5\"}", "{\"S\":\"v\"}", EXPIRY), ROW_HELD, 5500},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"0.0625\"}", "{\"S\":\"v\"}", EXPIRY), ROW_HELD, 63},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"-5\"}", "{\"S\":\"v\"}", EXPIRY), ROW_UNREADABLE},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"5E9\"}", "{\"S\":\"v\"}", EXPIRY), ROW_UNREADABLE},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"0\"}", "{\"S\":\"v\"}", EXPIRY), ROW_UNREADABLE},
	{S3ONCE_LOCK_PYTHON, PYTHON("{\"N\":\"5\"}", "{\"N\":\"1\"}", EXPIRY), ROW_UNREADABLE},
	{S3ONCE_LOCK_DLM, DLM(",\"release_code\":{\"S\":\"c\"},\"expires\":{\"N\":\"1795220883\"}"),
		ROW_HELD},
	{S3ONCE_LOCK_DLM, DLM(",\"release_code\":{\"S\":\"c\"}"), ROW_UNREADABLE},
	{S3ONCE_LOCK_DLM, DLM(",\"expires\":{\"N\":\"1795220883\"}"), ROW_UNREADABLE},
	{S3ONCE_LOCK_DLM, DLM(",\"release_code\":{\"S\":\"c\"},\"expires\":{\"S\":\"1\"}"),
		ROW_UNREADABLE},
};

static void test_read(void)
{
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		struct item item = {0};
		json_t *json = json_loads(reads[i].row, 0, NULL);
		CHECK_INT(item_from_json(json, &item), 0);
		struct lock_row row = dialect_read(dialect_of(reads[i].kind), &item);
		bool ok = CHECK_INT(row.state, reads[i].state);
		ok &= CHECK_INT(row.lease_ms, reads[i].lease_ms);
		ok &= CHECK((row.state == ROW_UNREADABLE) == (*row.why != '\0'));
		if (!ok)
			fprintf(stderr, "\tof %s\n", reads[i].row);
		item_clear(&item);
		json_decref(json);
	}
}

static void test_durations(void)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} both[] = {{0, "0s"}, {1, "1ms"}, {500, "500ms"}, {1500, "1.5s"}, {1001, "1.001s"},
		{20000, "20s"}, {90000, "1m30s"}, {3600000, "1h0m0s"}, {5430500, "1h30m30.5s"}};
	static const struct {
		const char *text;
		int64_t ms; /* -1: none */
	} read[] = {{"0", 0}, {"+1s", 1000}, {"1h", 3600000}, {"1.5h", 5400000}, {"1ns", 1},
		{"1us", 1}, {"1500\xc2\xb5s", 2}, {"", -1}, {"20", -1}, {"-1s", -1}, {"s", -1},
		{".s", -1}, {"1 s", -1}, {"1d", -1}, {"1s ", -1}, {"1e3s", -1}, {"+", -1},
		{"99999999999999h", -1}};
	for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
		char text[40];
		uint64_t ms = 7;
		go_duration(both[i].ms, text);
		CHECK_STRING(text, both[i].text);
		CHECK_INT(go_duration_parse(text, &ms), 0);
		CHECK_INT(ms, both[i].ms);
	}
	for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
		uint64_t ms = 7;
		int error = go_duration_parse(read[i].text, &ms);
		bool ok = read[i].ms < 0 ? CHECK_INT(error, -EINVAL)
					 : CHECK_INT(error, 0) && CHECK_INT(ms, read[i].ms);
		if (!ok)
			fprintf(stderr, "\tof \"%s\"\n", read[i].text);
	}
}

int main(void)
{
	test_written();
	test_leases_in_seconds();
	test_data();
	test_read();
	test_durations();
	return check_result();
}
