#include "../check.h"
#include "base/clock.h"
#include "scan/content/identity_cache.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DAY 86400

static int make(const char *name)
{
	return open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static struct file_identity identity_of(int fd)
{
	struct file_identity identity = {.n = 0};
	CHECK_INT(file_identity_of(fd, &identity), 0);
	return identity;
}

static bool same(const struct file_identity *a, const struct file_identity *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* overlayfs, for one, may have none. */
static bool has_handles(void)
{
	struct file_identity identity;
	int fd = make("a");
	bool has = file_identity_of(fd, &identity) == 0;
	close(fd);
	unlink("a");
	return has;
}

static void test_without_handles(void)
{
	struct file_identity none;
	int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
	CHECK_INT(file_identity_of(fd, &none), -ENOTSUP);
	close(fd);
}

/* On ext4 an inode is used again at once; its generation differs. */
static void test_identity(void)
{
	int fd = make("a"), other = make("other");
	const struct file_identity before = identity_of(fd), others = identity_of(other);
	CHECK(!same(&before, &others));
	CHECK_INT(rename("a", "b"), 0);
	const struct file_identity renamed = identity_of(fd);
	CHECK(same(&before, &renamed));
	close(fd);
	unlink("b");
	for (int i = 0; i < 100; i++) {
		fd = make("a");
		const struct file_identity again = identity_of(fd);
		CHECK(!same(&before, &again));
		close(fd);
		unlink("a");
	}
	close(other);
	unlink("other");
}

static struct identity_cache *open_at(int64_t day)
{
	struct identity_cache *cache = NULL;
	struct problem problem = {.text = ""};
	if (!CHECK_INT(identity_cache_open("cache.db", day * DAY, &cache, &problem), 0))
		fprintf(stderr, "\t%s\n", problem.text);
	return cache;
}

static bool finds(struct identity_cache *cache, struct identity_file file)
{
	char id[CONTENT_ID_CHARS + 1] = "";
	file.cache = cache;
	bool found = identity_file_find(&file, id);
	CHECK_STRING(id, found ? ID : "");
	return found;
}

static void keep(struct identity_cache *cache, struct identity_file file)
{
	file.cache = cache;
	identity_file_keep(&file, ID);
}

static void test_hits(void)
{
	struct file_identity identity = {.bytes = "abc", .n = 3}, longer = {.bytes = "abc", .n = 4};
	const struct identity_file version = {NULL, identity, 5, -7};
	struct identity_cache *cache = open_at(100);
	CHECK(!finds(cache, version));
	keep(cache, version);
	identity_cache_close(cache);
	cache = open_at(100);
	CHECK(finds(cache, version));
	CHECK(!finds(cache, (struct identity_file){NULL, identity, 6, -7}));
	CHECK(!finds(cache, (struct identity_file){NULL, identity, 5, -8}));
	CHECK(!finds(cache, (struct identity_file){NULL, longer, 5, -7}));
	/* another version of the file takes its place */
	const struct identity_file next = {NULL, identity, 6, 1};
	keep(cache, next);
	CHECK(finds(cache, next));
	CHECK(!finds(cache, version));
	identity_cache_close(cache);
	struct stat st;
	CHECK_INT(stat("cache.db", &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	unlink("cache.db");
}

/* A shorter version of a file that has grown is known, and no other one. */
static void test_earlier_version(void)
{
	struct identity_file file = {NULL, {.bytes = "abc", .n = 3}, 5, 1}, other = file;
	uint64_t size = 0;
	char id[CONTENT_ID_CHARS + 1] = "";
	CHECK(!identity_file_earlier(&file, &size, id)); /* without a cache */
	file.cache = other.cache = open_at(100);
	other.identity.bytes[0] = 'x';
	CHECK(!identity_file_earlier(&file, &size, id));
	identity_file_keep(&file, ID);
	static const struct {
		uint64_t size;
		bool is_known;
	} versions[] = {{4, false}, {5, false}, {6, true}};
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		file.size = other.size = versions[i].size;
		CHECK_INT(identity_file_earlier(&file, &size, id), versions[i].is_known);
		CHECK(!identity_file_earlier(&other, &size, id));
	}
	CHECK_INT(size, 5);
	CHECK_STRING(id, ID);
	identity_cache_close(file.cache);
	unlink("cache.db");
}

/* Other bytes are not mistaken for an id. */
static void test_damaged_row(void)
{
	const struct identity_file file = {NULL, {.bytes = "abc", .n = 3}, 5, 1};
	struct identity_cache *cache = open_at(100);
	sqlite3 *db;
	uint64_t size;
	char id[CONTENT_ID_CHARS + 1];
	keep(cache, file);
	CHECK_INT(sqlite3_open("cache.db", &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "UPDATE identities SET id = 'short'", NULL, NULL, NULL), 0);
	sqlite3_close(db);
	CHECK(!finds(cache, file));
	struct identity_file grown = file;
	grown.cache = cache;
	grown.size++;
	CHECK(!identity_file_earlier(&grown, &size, id));
	identity_cache_close(cache);
	unlink("cache.db");
}

/* A file that is written to within the same step of a coarse clock keeps its time. */
static void test_fresh_times_say_nothing(void)
{
	const int64_t now_ns = clock_wall_ns(), second = (int64_t)NS_PER_S;
	const int64_t fresh[] = {now_ns, now_ns - second, now_ns + 3600 * second};
	struct identity_cache *cache = open_at(100);
	struct identity_file file = {NULL, {.bytes = "abc", .n = 3}, 5, 0};
	for (size_t i = 0; i < sizeof fresh / sizeof *fresh; i++) {
		file.mtime_ns = fresh[i];
		keep(cache, file);
		CHECK(!finds(cache, file));
	}
	file.mtime_ns = now_ns - 3 * second;
	keep(cache, file);
	CHECK(finds(cache, file));
	identity_cache_close(cache);
	unlink("cache.db");
}

static void test_forgets(void)
{
	struct file_identity kept = {.bytes = "kept", .n = 4}, gone = {.bytes = "gone", .n = 4};
	const struct identity_file a = {NULL, kept, 1, 1}, b = {NULL, gone, 1, 1};
	struct identity_cache *cache = open_at(100);
	keep(cache, a);
	keep(cache, b);
	identity_cache_close(cache);
	cache = open_at(100 + IDENTITY_CACHE_DAYS);
	CHECK(finds(cache, a));
	identity_cache_close(cache);
	cache = open_at(101 + IDENTITY_CACHE_DAYS);
	CHECK(finds(cache, a));
	CHECK(!finds(cache, b));
	identity_cache_close(cache);
	unlink("cache.db");
}

static void test_unusable(void)
{
	struct identity_cache *cache;
	struct problem problem = {.text = ""};
	int fd = make("cache.db");
	CHECK_INT(write(fd, ID ID, 128), 128);
	close(fd);
	CHECK_INT(identity_cache_open("cache.db", 0, &cache, &problem), -EIO);
	CHECK(strstr(problem.text, "cache.db cannot be used: ") != NULL);
	unlink("cache.db");
	CHECK_INT(identity_cache_open("missing/cache.db", 0, &cache, &problem), -ENOENT);
	CHECK(strstr(problem.text, "cannot be opened: No such file") != NULL);
	CHECK_INT(symlink("elsewhere", "cache.db"), 0); /* a link that somebody has put there */
	CHECK_INT(identity_cache_open("cache.db", 0, &cache, &problem), -ELOOP);
	unlink("cache.db");
}

int main(void)
{
	char directory[] = "/var/tmp/identity-XXXXXX";
	if (!CHECK(mkdtemp(directory) && chdir(directory) == 0))
		return check_result();
	test_without_handles();
	if (has_handles())
		test_identity();
	test_hits();
	test_earlier_version();
	test_damaged_row();
	test_fresh_times_say_nothing();
	test_forgets();
	test_unusable();
	CHECK_INT(rmdir(directory), 0);
	return check_result();
}
