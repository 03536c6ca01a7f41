/* Which files an embedded store is made in, opened, and refused. */
#include "base/clock.h"
#include "sqlite_scratch.h"
#include "store/sqlite_file.h"
#include <errno.h>
#include <sqlite3.h>
#include <sys/wait.h>

static mode_t mode_of(const char *path)
{
	struct stat st = {0};

	CHECK(stat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void check_refused(const char *path, const char *word)
{
	struct opened opened;

	if (!CHECK(open_at(path, &opened) < 0))
		close_it(&opened);
	if (!CHECK(strstr(opened.problem.text, path)) || !CHECK(strstr(opened.problem.text, word)))
		fprintf(stderr, "\t%s: %s\n", word, opened.problem.text);
}

static void modes(void)
{
	static const mode_t masks[] = {0, 022, 077, 0777};

	for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
		char path[300], wal[320];
		struct opened opened;

		snprintf(path, sizeof path, "%s/mask%zu/below", scratch, i);
		setenv("STATE_DIRECTORY", path, 1);
		snprintf(path, sizeof path, "%s/mask%zu/below/marks.db", scratch, i);
		mode_t before = umask(masks[i]);
		if (CHECK_INT(open_at(path, &opened), 0)) {
			CHECK_INT(put_one(&opened, "p", "k"), OUTCOME_OK);
			CHECK_INT(mode_of(path), 0600);
			snprintf(wal, sizeof wal, "%s-wal", path);
			CHECK_INT(mode_of(wal), 0600);
			snprintf(wal, sizeof wal, "%s-shm", path);
			CHECK_INT(mode_of(wal), 0600);
			close_it(&opened);
		}
		umask(before);
		*strrchr(path, '/') = '\0';
		CHECK_INT(mode_of(path), 0700);
		*strrchr(path, '/') = '\0';
		CHECK_INT(mode_of(path), 0700);
	}
	unsetenv("STATE_DIRECTORY");
}

/* A mistyped one would begin with empty marks. */
static void no_other_folder_is_made(void)
{
	check_refused("mistyped/marks.db", "make the folder first");
	CHECK(access("mistyped", F_OK) < 0);
}

static void existing_folder_is_kept(void)
{
	struct opened opened;

	CHECK(mkdir("kept", 0755) == 0);
	if (CHECK_INT(open_at("kept/marks.db", &opened), 0))
		close_it(&opened);
	CHECK_INT(mode_of("kept"), 0755);
	CHECK(chmod("kept/marks.db", 0640) == 0);
	if (CHECK_INT(open_at("kept/marks.db", &opened), 0))
		close_it(&opened);
	CHECK_INT(mode_of("kept/marks.db"), 0640);
}

static void unsafe_files(void)
{
	struct opened opened;

	CHECK_INT(open_at("real.db", &opened), 0);
	close_it(&opened);
	CHECK(symlink("real.db", "link.db") == 0 && symlink("nothing", "dangling.db") == 0);
	check_refused("link.db", "symbolic link");
	check_refused("dangling.db", "symbolic link");
	CHECK(access("nothing", F_OK) < 0);
	CHECK(mkfifo("fifo.db", 0600) == 0 && mkdir("folder.db", 0700) == 0);
	check_refused("fifo.db", "not a regular file");
	check_refused("folder.db", "not a regular file");
	check_refused("folder.db/", "names a folder");
	check_refused("real.db/x.db", "folder");
	CHECK(chmod("real.db", 0620) == 0);
	check_refused("real.db", "chmod go-w");
	CHECK(chmod("real.db", 0602) == 0);
	check_refused("real.db", "chmod go-w");
	CHECK(chmod("real.db", 0600) == 0);
}

static void unsafe_folders(void)
{
	CHECK(mkdir("open", 0700) == 0 && chmod("open", 01777) == 0);
	check_refused("open/marks.db", "others can write");
	CHECK(chmod("open", 0770) == 0);
	check_refused("open/marks.db", "others can write");
	CHECK(access("open/marks.db", F_OK) < 0);
	if (geteuid() != 0)
		return;
	CHECK(chmod("open", 0700) == 0 && chown("open", 12345, 12345) == 0);
	check_refused("open/marks.db", "another user");
	CHECK(close(open("foreign.db", O_CREAT | O_RDWR, 0600)) == 0);
	CHECK(chown("foreign.db", 12345, 12345) == 0);
	check_refused("foreign.db", "another user");
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;

	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	CHECK(chmod(path, 0600) == 0);
}

static void strangers(void)
{
	struct opened opened;
	int fd = open("text.db", O_CREAT | O_WRONLY, 0600);

	for (int i = 0; i < 1000; i++)
		CHECK(write(fd, "not a database\n", 15) == 15);
	close(fd);
	check_refused("text.db", "not an SQLite file");
	execute("other.db", "PRAGMA application_id = 252006674; CREATE TABLE t(x)");
	check_refused("other.db", "another program");
	execute("plain.db", "CREATE TABLE items(x)");
	check_refused("plain.db", "another program");
	CHECK_INT(open_at("newer.db", &opened), 0);
	close_it(&opened);
	execute("newer.db", "PRAGMA user_version = 99");
	check_refused("newer.db", "layout 99");
	execute("blank.db", "VACUUM");
	if (CHECK_INT(open_at("blank.db", &opened), 0))
		close_it(&opened);
}

static void damaged(void)
{
	static char junk[4096];
	struct opened opened;
	char key[32];

	CHECK_INT(open_at("damaged.db", &opened), 0);
	for (int i = 0; i < 500; i++) {
		snprintf(key, sizeof key, "a rather long key %08d", i);
		CHECK_INT(put_one(&opened, "p", key), OUTCOME_OK);
	}
	close_it(&opened);
	int fd = open("damaged.db", O_WRONLY);
	memset(junk, 0x5a, sizeof junk);
	for (off_t page = 1; page < 8; page++)
		CHECK(pwrite(fd, junk, sizeof junk, page * 4096) == sizeof junk);
	close(fd);
	if (!CHECK_INT(open_at("damaged.db", &opened), 0))
		return;
	CHECK_INT(get_one(&opened, "p", key), OUTCOME_SETUP);
	CHECK(strstr(opened.problem.text, "damaged.db") &&
		strstr(opened.problem.text, "is damaged"));
	CHECK_INT(put_one(&opened, "p", key), OUTCOME_SETUP);
	close_it(&opened);
}

/* In a process without root's power to write what is read-only. */
static void as_plain_user(void (*test)(void))
{
	int status = 1;
	pid_t child = fork();

	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(1);
		scratch_make();
		test();
		scratch_remove();
		_exit(check_result());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
}

static void read_only(void)
{
	struct opened opened;

	CHECK_INT(open_at("marks.db", &opened), 0);
	close_it(&opened);
	CHECK(chmod("marks.db", 0400) == 0);
	check_refused("marks.db", "cannot be written");
	CHECK(mkdir("closed", 0500) == 0);
	check_refused("closed/marks.db", "Permission denied");
}

static void edited_row(void)
{
	struct opened opened;

	CHECK_INT(open_at("edited.db", &opened), 0);
	CHECK_INT(put_one(&opened, "p", "k"), OUTCOME_OK);
	close_it(&opened);
	execute("edited.db", "UPDATE items SET doc = 'x' WHERE pk = 'p'");
	CHECK_INT(open_at("edited.db", &opened), 0);
	CHECK_INT(get_one(&opened, "p", "k"), OUTCOME_SETUP);
	CHECK(strstr(opened.problem.text, "is damaged"));
	CHECK_INT(put_one(&opened, "p", "k"), OUTCOME_SETUP);
	CHECK_INT(put_one(&opened, "p", "other"), OUTCOME_OK);
	close_it(&opened);
}

/* If one write of a transaction fails, none of it remains, and the next one begins as usual. */
static void failed_transaction(void)
{
	struct item item = {0};
	struct opened opened;

	CHECK_INT(open_at("failed.db", &opened), 0);
	const struct store_ops *ops = opened.store->ops;
	execute("failed.db", "CREATE TRIGGER refuse BEFORE INSERT ON items WHEN new.sk = 'bad'"
			     " BEGIN SELECT RAISE(FAIL, 'refused'); END");
	CHECK_INT(item_set_string(&item, "name", "good"), 0);
	const struct item_write put = {.item = &item};
	for (unsigned i = 0; i < 2; i++) { /* the first or the second write fails */
		const struct item_key first = {"p", i ? "good" : "bad"};
		ops->begin_write(opened.conn, first, &put, NULL);
		CHECK(put_one(&opened, "p", i ? "bad" : "good") != OUTCOME_OK);
		CHECK(ops->end_write(opened.conn, NULL, &opened.problem) != OUTCOME_OK);
		CHECK_INT(get_one(&opened, "p", "good"), OUTCOME_ABSENT);
	}
	CHECK_INT(put_one(&opened, "p", "other"), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "p", "other"), OUTCOME_OK);
	item_clear(&item);
	close_it(&opened);
}

/* A write that was begun is performed once, by the operation after it. One whose limits are over is
 * not performed at all. */
static void begun_writes(void)
{
	static const struct item_write removal = {.removes = true};
	const struct item_key key = {"p", "begun"};
	const struct call_limits over = {.deadline_ns = 1};
	struct item item = {0};
	struct opened opened;

	CHECK_INT(open_at("begun.db", &opened), 0);
	const struct store_ops *ops = opened.store->ops;
	CHECK_INT(item_set_string(&item, "name", "begun"), 0);
	const struct item_write put = {.item = &item};
	ops->begin_write(opened.conn, key, &put, NULL);
	CHECK_INT(ops->end_write(opened.conn, NULL, &opened.problem), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "p", "begun"), OUTCOME_OK);
	CHECK_INT(ops->write(opened.conn, key, &removal, NULL, NULL, &opened.problem), OUTCOME_OK);
	for (unsigned i = 0; i < 2; i++) /* a read comes before the writes that wait with it */
		CHECK_INT(get_one(&opened, "p", "begun"), OUTCOME_ABSENT);
	ops->begin_write(opened.conn, key, &put, &over);
	CHECK_INT(ops->end_write(opened.conn, NULL, &opened.problem), OUTCOME_ABANDONED);
	CHECK_INT(put_one(&opened, "p", "other"), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "p", "begun"), OUTCOME_ABSENT);
	item_clear(&item);
	close_it(&opened);
}

/* A value that no row can hold is refused with a sentence, and its write changes nothing. */
static void item_that_no_row_can_hold(const struct item *item, const char *word)
{
	struct opened opened;
	struct item present = {0};
	const struct item_key key = {"p", "k"};
	const struct change changes[] = {{"name", VALUE_STRING, item->attributes->value, 0}};
	const struct item_write put = {.item = item};
	const struct item_write update = {.changes = changes, .n_changes = 1};

	CHECK_INT(open_at("unfit.db", &opened), 0);
	const struct store_ops *ops = opened.store->ops;
	put_one(&opened, key.pk, key.sk);
	CHECK_INT(ops->write(opened.conn, key, &put, NULL, NULL, &opened.problem), OUTCOME_INVALID);
	CHECK(strstr(opened.problem.text, word));
	opened.problem = (struct problem){0};
	CHECK_INT(ops->write(opened.conn, key, &update, NULL, NULL, &opened.problem),
		OUTCOME_INVALID);
	CHECK(strstr(opened.problem.text, word));
	CHECK_INT(ops->get(opened.conn, key, READ_CONSISTENT, NULL, &present, &opened.problem),
		OUTCOME_OK);
	CHECK_STRING(item_string(&present, "name"), "k");
	item_clear(&present);
	close_it(&opened);
}

static void unfit_items(void)
{
	struct item item = {0};
	char *large = calloc(1, 400001);

	CHECK(item_set_string(&item, "name", "\xff") == 0);
	item_that_no_row_can_hold(&item, "not UTF-8");
	memset(large, 'x', 400000);
	CHECK(item_set_string(&item, "name", large) == 0);
	item_that_no_row_can_hold(&item, "larger than 400 KB");
	item_clear(&item);
	free(large);
}

/* Puts a row that expires then; boot and state may be NULL. */
static void put_expiring(struct opened *opened, struct item_key key, int64_t expires_s,
	const char *boot, const char *state)
{
	struct item item = {0};

	item_set_number(&item, "expires", expires_s);
	if (boot)
		item_set_string(&item, "boot", boot);
	if (state)
		item_set_string(&item, "state", state);
	CHECK_INT(opened->store->ops->write(opened->conn, key, &(struct item_write){.item = &item},
			  NULL, NULL, &opened->problem),
		OUTCOME_OK);
	item_clear(&item);
}

static void old_sessions_are_swept(void)
{
	static const int64_t past_s = 1700000000, future_s = 99000000000;
	struct opened opened;
	char boot[37];

	clock_boot_id(boot);
	CHECK_INT(open_at("swept.db", &opened), 0);
	put_expiring(&opened, (struct item_key){"session#old", "-"}, past_s, NULL, NULL);
	put_expiring(&opened, (struct item_key){"session#live", "-"}, future_s, NULL, NULL);
	put_expiring(&opened, (struct item_key){"aws/bucket#0", "key"}, past_s, NULL, NULL);
	/* A clock that stepped must not end what runs on this very host. */
	put_expiring(&opened, (struct item_key){"session#now", "-"}, past_s, boot, "open");
	put_expiring(&opened, (struct item_key){"session#over", "-"}, past_s, boot, "ended");
	put_expiring(&opened, (struct item_key){"session#before", "-"}, past_s, "earlier", "open");
	CHECK_INT(put_one(&opened, "session#bare", "-"), OUTCOME_OK);
	CHECK_INT(put_one(&opened, "session#damaged", "-"), OUTCOME_OK);
	close_it(&opened);
	execute("swept.db", "UPDATE items SET doc = 'x' WHERE pk = 'session#damaged'");
	CHECK_INT(open_at("swept.db", &opened), 0);
	CHECK_INT(get_one(&opened, "session#old", "-"), OUTCOME_ABSENT);
	CHECK_INT(get_one(&opened, "session#over", "-"), OUTCOME_ABSENT);
	CHECK_INT(get_one(&opened, "session#before", "-"), OUTCOME_ABSENT);
	CHECK_INT(get_one(&opened, "session#now", "-"), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "session#live", "-"), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "session#bare", "-"), OUTCOME_OK);
	CHECK_INT(get_one(&opened, "session#damaged", "-"), OUTCOME_SETUP);
	CHECK_INT(get_one(&opened, "aws/bucket#0", "key"), OUTCOME_OK);
	close_it(&opened);
}

static void remote_file_systems(void)
{
	static const unsigned long remote[] = {0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997,
		0x00c36400, 0x0bd00bd0, 0x01161970};
	static const unsigned long local[] = {
		0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0x65735546, 0};

	for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
		CHECK(sqlite_path_is_remote(remote[i]));
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		CHECK(!sqlite_path_is_remote(local[i]));
}

/* "~" in front stands for the scratch folder; opening makes the answer's folder, 0700. */
static const char *in_scratch(const char *path, char ret[static 200])
{
	snprintf(ret, 200, "%s%s", *path == '~' ? scratch : "", path + (*path == '~'));
	return ret;
}

static void check_default(const char *state, const char *xdg, const char *home, const char *want)
{
	char values[4][200], *path = NULL;

	setenv("STATE_DIRECTORY", in_scratch(state, values[0]), 1);
	setenv("XDG_STATE_HOME", in_scratch(xdg, values[1]), 1);
	setenv("HOME", in_scratch(home, values[2]), 1);
	CHECK_INT(store_sqlite_default_path(&path), want ? 0 : -ENOENT);
	CHECK_STRING(path, want ? in_scratch(want, values[3]) : NULL);
	if (path) {
		struct store *store = NULL;
		struct problem problem;
		CHECK(access(path, F_OK) < 0);
		CHECK_INT(store_sqlite_open(path, STORE_WRITTEN, &store, &problem), 0);
		store_close(store);
		*strrchr(path, '/') = '\0';
		CHECK_INT(mode_of(path), 0700);
	}
	free(path);
}

static void default_path(void)
{
	mode_t before = umask(0277);

	check_default("~/lib/s3once", "~/xdg", "~/home", "~/lib/s3once/marks.db");
	check_default("~/lib/a:/var/lib/b", "~/xdg", "~/home", "~/lib/a/marks.db");
	check_default("", "~/xdg", "~/home", "~/xdg/s3once/marks.db");
	check_default("", "~/xdg:b", "~/home", "~/xdg:b/s3once/marks.db");
	check_default("", "", "~/home:b", "~/home:b/.local/state/s3once/marks.db");
	check_default("", "relative", "~/home", "~/home/.local/state/s3once/marks.db");
	check_default("", "", "~/other", "~/other/.local/state/s3once/marks.db");
	check_default("", "", "", NULL);
	check_default("", "", "relative", NULL);
	umask(before);
}

int main(void)
{
	as_plain_user(read_only);
	scratch_make();
	modes();
	no_other_folder_is_made();
	existing_folder_is_kept();
	unsafe_files();
	unsafe_folders();
	strangers();
	damaged();
	edited_row();
	failed_transaction();
	begun_writes();
	unfit_items();
	old_sessions_are_swept();
	remote_file_systems();
	default_path();
	scratch_remove();
	return check_result();
}
