/* A file that is only read: nothing is made, and where SQLite's index of the log (-shm) cannot be
 * made, as on a full or read-only disk, the file is read without it. A symbolic link in the place
 * of the index, which SQLite does not follow, stands for such a disk. */
#include "sqlite_scratch.h"
#include <errno.h>

static int read_at(const char *path, struct opened *ret)
{
	*ret = (struct opened){0};
	int r = store_sqlite_open(path, STORE_ONLY_READ, &ret->store, &ret->problem);

	return r ? r : store_conn_new(ret->store, &ret->conn);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void copy(const char *from, const char *to)
{
	char bytes[1 << 16];
	const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);

	for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;)
		CHECK(write(out, bytes, (size_t)n) == n);
	close(in);
	close(out);
}

static void test_nothing_is_made(void)
{
	struct opened reader, writer;

	CHECK_INT(read_at("none.db", &reader), -ENOENT);
	CHECK(strstr(reader.problem.text, "none.db: No such file"));
	CHECK(!exists("none.db"));
	close(open("empty.db", O_WRONLY | O_CREAT, 0600));
	if (CHECK_INT(read_at("empty.db", &reader), 0))
		CHECK_INT(get_one(&reader, "p", "a"), OUTCOME_ABSENT);
	close_it(&reader);
	struct stat st;
	CHECK(stat("empty.db", &st) == 0 && st.st_size == 0);
	CHECK_INT(open_at("some.db", &writer), 0);
	CHECK_INT(put_one(&writer, "p", "a"), OUTCOME_OK);
	close_it(&writer);
	CHECK_INT(read_at("some.db", &reader), 0);
	CHECK_INT(get_one(&reader, "p", "a"), OUTCOME_OK);
	CHECK_INT(put_one(&reader, "p", "b"), OUTCOME_SETUP);
	close_it(&reader);
}

/* Without a log the file is read without locks, until another process writes to it. */
static void test_without_a_log(void)
{
	struct opened reader, later, writer;

	CHECK_INT(open_at("a#?%.db", &writer), 0); /* these have a meaning in the URI of SQLite */
	CHECK_INT(put_one(&writer, "p", "a"), OUTCOME_OK);
	close_it(&writer);
	CHECK_INT(symlink("none", "a#?%.db-shm"), 0);
	CHECK_INT(read_at("a#?%.db", &reader), 0);
	CHECK_INT(read_at("a#?%.db", &later), 0);
	CHECK_INT(get_one(&reader, "p", "a"), OUTCOME_OK);
	CHECK_INT(put_one(&reader, "p", "b"), OUTCOME_SETUP);
	CHECK_INT(open_at("a#?%.db", &writer), -EIO); /* it would need the index */
	CHECK_INT(unlink("a#?%.db-shm"), 0);
	CHECK_INT(open_at("a#?%.db", &writer), 0);
	CHECK_INT(put_one(&writer, "p", "b"), OUTCOME_OK);
	CHECK_INT(get_one(&reader, "p", "a"), OUTCOME_SETUP);
	CHECK(strstr(reader.problem.text, "another process has begun to write to it"));
	close_it(&writer); /* which writes the log back into the file, and removes it */
	CHECK_INT(get_one(&later, "p", "a"), OUTCOME_SETUP);
	close_it(&reader);
	close_it(&later);
}

/* With a log the index is in memory, and others are locked out. */
static void test_with_a_log(void)
{
	struct opened reader, writer;

	CHECK_INT(open_at("busy.db", &writer), 0);
	CHECK_INT(put_one(&writer, "p", "a"), OUTCOME_OK);
	copy("busy.db", "left.db"); /* as a process that was killed leaves them */
	copy("busy.db-wal", "left.db-wal");
	CHECK_INT(symlink("none", "left.db-shm"), 0);
	CHECK_INT(read_at("left.db", &reader), 0);
	CHECK_INT(get_one(&reader, "p", "a"), OUTCOME_OK);
	close_it(&reader);
	/* The index of a process that is at work is used as ever. */
	CHECK_INT(read_at("busy.db", &reader), 0);
	CHECK_INT(put_one(&writer, "p", "b"), OUTCOME_OK);
	CHECK_INT(get_one(&reader, "p", "b"), OUTCOME_OK);
	close_it(&reader);
	close_it(&writer);
}

int main(void)
{
	scratch_make();
	test_nothing_is_made();
	test_without_a_log();
	test_with_a_log();
	scratch_remove();
	return check_result();
}
