/* The removal of a file, cut, refused or disturbed at each of its system calls. What it calls of
 * the C library is defined here, does what a test wants at the Nth call, and passes it on. */
#include "scan/removal.h"
#include "tree.h"
#include <ftw.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/syscall.h>

#define PROVEN    "what was proven"
#define FOREIGN   "somebody else's"
#define CALLS_MAX 60

static unsigned calls, chosen;         /* since arm(), and at which of them it happens; 0: never */
static unsigned leased_at, removed_at; /* which calls took the lease and removed the file */
static int fails_with;                 /* errno of that call; 0: it is passed on */
static void (*happens)(void);          /* before it; NULL: nothing */
static bool has_leases = true;
static bool counts_no_links; /* of folders, as some file systems in user space do */
static bool is_mounted_over; /* a file of the same number, of another file system */
static unsigned renames;     /* since refuse_rename() */
static unsigned refused;     /* which of them fails; 0: none */
static int refused_with;     /* with this errno */

static void arm(unsigned call, int error, void (*what)(void))
{
	calls = 0;
	chosen = call;
	fails_with = error;
	happens = what;
}

/* Whether this call is to fail. What happens there makes calls of its own, which do not count. */
static bool fails(void)
{
	static bool busy;
	if (busy || ++calls != chosen)
		return false;
	busy = true;
	if (happens)
		happens();
	busy = false;
	errno = fails_with;
	return fails_with != 0;
}

#define PASS_ON(...) (fails() ? -1 : (int)syscall(__VA_ARGS__))

int mkdirat(int fd, const char *name, mode_t mode)
{
	return PASS_ON(SYS_mkdirat, fd, name, mode);
}

int flock(int fd, int how)
{
	return PASS_ON(SYS_flock, fd, how);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (++renames == refused) {
		errno = refused_with;
		return -1;
	}
	return PASS_ON(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

static void refuse_rename(unsigned rename, int error)
{
	renames = 0;
	refused = rename;
	refused_with = error;
}

int unlinkat(int fd, const char *name, int flags)
{
	if (strcmp(name, "f") == 0)
		removed_at = calls + 1;
	return PASS_ON(SYS_unlinkat, fd, name, flags);
}

int openat(int fd, const char *name, int flags, ...)
{
	return PASS_ON(SYS_openat, fd, name, flags, 0);
}

int fcntl(int fd, int command, ...)
{
	va_list more;
	va_start(more, command);
	const long value = va_arg(more, long);
	va_end(more);
	if (command == F_SETLEASE && value == F_RDLCK && !has_leases) {
		errno = EACCES;
		return -1;
	}
	if (command == F_SETLEASE && value == F_RDLCK)
		leased_at = calls + 1;
	return PASS_ON(SYS_fcntl, fd, command, value);
}

int fstat(int fd, struct stat *ret)
{
	const int failed = PASS_ON(SYS_fstat, fd, ret);
	if (!failed && counts_no_links && S_ISDIR(ret->st_mode))
		ret->st_nlink = 1;
	return failed;
}

int fstatat(int fd, const char *name, struct stat *ret, int flags)
{
	const int failed = PASS_ON(SYS_newfstatat, fd, name, ret, flags);
	if (!failed && is_mounted_over)
		ret->st_dev++;
	return failed;
}

static bool has(const char *path, const char *content)
{
	char got[64] = "";
	int fd = open(path, O_RDONLY | O_NOFOLLOW);
	const ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
	close(fd);
	return n == (ssize_t)strlen(content) && strcmp(got, content) == 0;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static struct removal begin(void)
{
	make_file("t/f", PROVEN);
	struct removal removal = {.name = "f",
		.path = "t/f",
		.directory_fd = open("t", O_RDONLY | O_DIRECTORY),
		.fd = open("t/f", O_RDONLY),
		.owner = geteuid(),
		.target_fd = -1,
		.target = ""};
	tree_need(removal.directory_fd >= 0 && removal.fd >= 0, "t/f");
	/* So old that whatever writes to it shows, however coarse the clock is. */
	tree_need(futimens(removal.fd, (struct timespec[2]){{1000000000, 0}, {1000000000, 0}}) == 0,
		"futimens");
	tree_need(file_state_of(removal.fd, &removal.state) == 0, "t/f");
	return removal;
}

static struct removal begin_move(void)
{
	struct removal removal = begin();
	tree_need(mkdir("moved", 0755) == 0 || errno == EEXIST, "moved");
	removal.target_fd = open("moved", O_RDONLY | O_DIRECTORY);
	removal.target = "d/f";
	tree_need(removal.target_fd >= 0, "moved");
	return removal;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_tree(const char *path)
{
	tree_need(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT, path);
}

/* Removes all that a case has made. */
static void end(struct removal *removal)
{
	close(removal->directory_fd);
	close(removal->fd);
	if (removal->target_fd >= 0)
		close(removal->target_fd);
	remove_tree("t");
	remove_tree("moved");
	remove_tree("kept");
	remove_tree("held");
}

static void recover(int directory_fd)
{
	struct problem problem = {0};
	CHECK_INT(removal_recover(directory_fd, &problem), 0);
	CHECK_STRING(problem.text, "");
	CHECK(!exists("t/" REMOVAL_FOLDER));
}

static void test_removes_and_moves(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	CHECK_INT(removal_check(&removal, &problem), REMOVAL_DONE);
	CHECK(has("t/f", PROVEN) && !exists("t/" REMOVAL_FOLDER));
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_DONE);
	CHECK(!exists("t/f") && !exists("t/" REMOVAL_FOLDER));
	end(&removal);

	removal = begin_move();
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_DONE);
	CHECK(!exists("t/f") && has("moved/d/f", PROVEN));
	make_file("t/f", PROVEN); /* and does not replace what it moved before */
	struct removal second = begin_move();
	refuse_rename(0, 0);
	CHECK_INT(removal_run(&second, &problem), REMOVAL_FAILED);
	CHECK(has("t/f", PROVEN) && has("moved/d/f", PROVEN));
	CHECK_STRING(problem.text,
		"it is not moved, since there is another file at d/f below --move-to");
	CHECK_INT(renames, 0); /* s3once watch would take its return for a new file */
	end(&second);
	end(&removal);
}

static void die(void)
{
	_exit(77);
}

/* Ends the process before call N. False: it has fewer calls. */
static bool killed_at(const struct removal *removal, unsigned n)
{
	int status;
	fflush(NULL);
	const pid_t pid = fork();
	tree_need(pid >= 0, "fork");
	if (!pid) {
		struct problem problem;
		arm(n, 0, die);
		removal_run(removal, &problem);
		_exit(0);
	}
	tree_need(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
	return WEXITSTATUS(status) == 77;
}

/* Whatever was killed: the file is there, or it is where it was to go, and nothing of ours stays.
 */
static void test_killed(struct removal (*make)(void))
{
	bool more = true;
	unsigned n_gone = 0, n_back = 0;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = make();
		more = killed_at(&removal, n);
		n_back += exists("t/" REMOVAL_FOLDER "/f");
		recover(removal.directory_fd);
		const bool is_moved = has("moved/d/f", PROVEN);
		const bool is_gone = !exists("t/f");
		n_gone += is_gone;
		CHECK(is_gone || has("t/f", PROVEN));
		CHECK(!is_moved || is_gone);
		CHECK(!is_gone || is_moved || removal.target_fd < 0);
		end(&removal);
	}
	CHECK(!more && n_gone && n_back);
}

/* A recovery that is killed itself leaves it to the next one. */
static void test_recovery_killed(void)
{
	bool more = true;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = begin();
		int status;
		tree_need(mkdir("t/" REMOVAL_FOLDER, 0700) == 0, "mkdir");
		tree_need(rename("t/f", "t/" REMOVAL_FOLDER "/f") == 0, "rename");
		fflush(NULL);
		const pid_t pid = fork();
		if (!pid) {
			struct problem problem;
			arm(n, 0, die);
			removal_recover(removal.directory_fd, &problem);
			_exit(0);
		}
		tree_need(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
		more = WEXITSTATUS(status) == 77;
		recover(removal.directory_fd);
		CHECK(has("t/f", PROVEN));
		end(&removal);
	}
	CHECK(!more);
}

static void test_call_fails(struct removal (*make)(void), int error)
{
	bool more = true;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = make();
		struct problem problem = {0};
		arm(n, error, NULL);
		const enum removal_end ended = removal_run(&removal, &problem);
		more = calls >= n;
		arm(0, 0, NULL);
		if (ended == REMOVAL_DONE)
			CHECK(!exists("t/f") &&
				(removal.target_fd < 0 || has("moved/d/f", PROVEN)));
		else
			CHECK(*problem.text &&
				(has("t/f", PROVEN) || has("t/" REMOVAL_FOLDER "/f", PROVEN)));
		recover(removal.directory_fd);
		CHECK(ended == REMOVAL_DONE || has("t/f", PROVEN));
		end(&removal);
	}
	CHECK(!more);
}

/* --- what others do meanwhile */

static void grow(void)
{
	int fd = open("t/f", O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0644);
	CHECK(fd < 0 || write(fd, FOREIGN, strlen(FOREIGN)) > 0);
	close(fd);
}

static void rewrite_same_size(void)
{
	int fd = open("t/f", O_WRONLY | O_CREAT | O_NONBLOCK, 0644);
	CHECK(fd < 0 || write(fd, FOREIGN, strlen(FOREIGN)) > 0);
	close(fd);
}

static void replace(void)
{
	make_file("t/new", FOREIGN);
	tree_need(rename("t/new", "t/f") == 0, "rename");
}

static void replace_by_link(void)
{
	make_file("kept", FOREIGN);
	unlink("t/f");
	tree_need(symlink("../kept", "t/f") == 0, "symlink");
}

static void replace_by_directory(void)
{
	unlink("t/f");
	make_file("t/f/inner", FOREIGN);
}

static void rename_away(void)
{
	rename("t/f", "t/f.1");
}

static void add_name(void)
{
	const int failed = link("t/f", "t/second");
	(void)failed; /* the file may be gone already */
}

static void replace_folder(void)
{
	rename("t/" REMOVAL_FOLDER, "held");
	make_file("t/" REMOVAL_FOLDER "/f", FOREIGN);
}

/* The place of the proven content, perhaps with additions; or the end of a file whose removing
 * system call succeeded. */
static bool anywhere(const char *content)
{
	static const char aside[] = "t/" REMOVAL_FOLDER "/f";
	const char *const places[] = {"t/f", "t/f.1", "t/second", aside, "held/f"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (has(places[i], content))
			return true;
	return false;
}

static void remove_folder(void)
{
	rmdir("t/" REMOVAL_FOLDER);
}

/* Another worker is done there just now. What matters is that the file is under its name still. */
static void test_folder_is_removed(bool links_are_counted)
{
	bool more = true;
	counts_no_links = !links_are_counted;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = begin();
		struct problem problem = {0};
		arm(n, 0, remove_folder);
		CHECK_INT(removal_run(&removal, &problem), REMOVAL_DONE);
		more = calls >= n;
		arm(0, 0, NULL);
		CHECK(!exists("t/f") && !exists("t/" REMOVAL_FOLDER));
		end(&removal);
	}
	CHECK(!more);
	counts_no_links = false;
}

struct disturbance {
	void (*happens)(void);
	const char *foreign; /* what must be there afterwards wherever it could be done */
};

/* Before call N something happens: what was written by others stays, and the file is removed only
 * as what was proven. */
static void test_disturbed(const struct disturbance *d, bool leases)
{
	bool more = true;
	has_leases = leases;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = begin();
		struct problem problem = {0};
		arm(n, 0, d->happens);
		const enum removal_end ended = removal_run(&removal, &problem);
		more = calls >= n;
		arm(0, 0, NULL);
		if (ended != REMOVAL_DONE)
			CHECK(anywhere(PROVEN) || anywhere(PROVEN FOREIGN) || anywhere(FOREIGN) ||
				exists("kept") || exists("t/f/inner"));
		/* Appended to the proven file, or a file of its own by then. */
		if (more && d->happens == grow && !leases)
			CHECK(anywhere(PROVEN FOREIGN) || anywhere(FOREIGN));
		if (more && d->happens == rewrite_same_size && !leases)
			CHECK(anywhere(FOREIGN));
		if (more && d->foreign)
			CHECK(has(d->foreign, FOREIGN));
		if (d->happens == add_name)
			CHECK(exists("t/second") ? ended == REMOVAL_KEPT && has("t/f", PROVEN)
						 : ended == REMOVAL_DONE);
		end(&removal);
	}
	CHECK(!more);
	has_leases = true;
}

/* A program opens the file for writing, and waits for the lease. */
static void ask_the_lease_back(void)
{
	const char *const places[] = {"t/f", "t/" REMOVAL_FOLDER "/f"};
	for (size_t i = 0; i < 2; i++) {
		const int fd = open(places[i], O_WRONLY | O_NONBLOCK);
		CHECK(fd < 0);
		if (errno == EWOULDBLOCK)
			return;
	}
}

/* Bytes written through that descriptor would be gone with the file. So the file is kept, even if
 * the lease is broken just before the call that removes it. */
static void test_lease_is_asked_back(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	arm(0, 0, NULL);
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_DONE);
	end(&removal);
	const unsigned first = leased_at + 1, last = removed_at - 1;
	CHECK(leased_at && first <= last);
	for (unsigned n = first; n <= last; n++) {
		removal = begin();
		arm(n, 0, ask_the_lease_back);
		CHECK(removal_run(&removal, &problem) != REMOVAL_DONE);
		arm(0, 0, NULL);
		CHECK(has("t/f", PROVEN));
		end(&removal);
	}
}

/* --- the rules */

static void expect(struct removal *removal, enum removal_end want, const char *words, bool *rule)
{
	struct problem problem = {0};
	CHECK_INT(removal_check(removal, &problem), want);
	CHECK_INT(removal_run(removal, &problem), want);
	CHECK(strstr(problem.text, words) != NULL);
	CHECK(has("t/f", PROVEN) && !exists("t/" REMOVAL_FOLDER));
	CHECK_INT(fcntl(removal->fd, F_GETLEASE), F_UNLCK);
	if (!rule)
		return;
	*rule = true;
	CHECK_INT(removal_run(removal, &problem), REMOVAL_DONE);
	CHECK(!exists("t/f"));
}

static void test_rules(void)
{
	struct removal removal = begin();
	int writer = open("t/f", O_WRONLY);
	expect(&removal, REMOVAL_KEPT, "open for writing", &removal.takes_open);
	close(writer);
	end(&removal);

	removal = begin();
	tree_need(link("t/f", "kept") == 0, "link");
	file_state_of(removal.fd, &removal.state);
	expect(&removal, REMOVAL_NEVER, "hard links", &removal.takes_linked);
	CHECK(has("kept", PROVEN));
	end(&removal);

	if (geteuid() == 0) {
		removal = begin();
		tree_need(chown("t/f", 12345, (gid_t)-1) == 0, "chown");
		file_state_of(removal.fd, &removal.state);
		expect(&removal, REMOVAL_NEVER, "another user", &removal.takes_foreign);
		end(&removal);

		removal = begin(); /* of the owner of its folder */
		tree_need(chown("t/f", 12345, (gid_t)-1) == 0, "chown");
		tree_need(chown("t", 12345, (gid_t)-1) == 0, "chown");
		file_state_of(removal.fd, &removal.state);
		CHECK_INT(removal_check(&removal, &(struct problem){0}), REMOVAL_DONE);
		end(&removal);

		removal = begin(); /* of the owner of the SOURCE */
		tree_need(chown("t/f", 12345, (gid_t)-1) == 0, "chown");
		removal.owner = 12345;
		file_state_of(removal.fd, &removal.state);
		CHECK_INT(removal_check(&removal, &(struct problem){0}), REMOVAL_DONE);
		end(&removal);
	}

	removal = begin();
	removal.state.ctime_ns--;
	expect(&removal, REMOVAL_KEPT, "has changed", NULL);
	end(&removal);

	removal = begin();
	replace();
	struct problem problem = {0};
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_KEPT);
	CHECK(has("t/f", FOREIGN));
	end(&removal);
}

static void test_mounted_over(void)
{
	struct removal removal = begin();
	is_mounted_over = true;
	expect(&removal, REMOVAL_KEPT, "its name is gone, or is another file's by now", NULL);
	is_mounted_over = false;
	end(&removal);
}

static void test_folder_of_others(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	tree_need(mkdir("t/" REMOVAL_FOLDER, 0700) == 0, "mkdir");
	tree_need(chmod("t/" REMOVAL_FOLDER, 0777) == 0, "chmod");
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
	CHECK(has("t/f", PROVEN));
	end(&removal);

	if (geteuid() == 0) {
		removal = begin(); /* who owns it may replace what is in it */
		tree_need(mkdir("t/" REMOVAL_FOLDER, 0700) == 0, "mkdir");
		tree_need(chown("t/" REMOVAL_FOLDER, 12345, (gid_t)-1) == 0, "chown");
		CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
		CHECK(has("t/f", PROVEN));
		end(&removal);
	}

	removal = begin(); /* a link that would lead elsewhere */
	tree_need(mkdir("kept", 0700) == 0, "mkdir");
	make_link("../kept", "t/" REMOVAL_FOLDER);
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
	CHECK(has("t/f", PROVEN) && !exists("kept/f"));
	CHECK_INT(removal_recover(removal.directory_fd, &problem), 0);
	end(&removal);
}

static void test_recovery_waits_and_tells(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	make_file("t/" REMOVAL_FOLDER "/f", FOREIGN);
	make_file("t/" REMOVAL_FOLDER "/g", FOREIGN);
	int held = open("t/" REMOVAL_FOLDER, O_RDONLY | O_DIRECTORY);
	tree_need(flock(held, LOCK_SH) == 0, "flock");
	CHECK_INT(removal_recover(removal.directory_fd, &problem), 1);
	CHECK(has("t/" REMOVAL_FOLDER "/f", FOREIGN));
	close(held);
	CHECK_INT(removal_recover(removal.directory_fd, &problem), -EEXIST);
	CHECK(strstr(problem.text, "another file has its name") != NULL);
	CHECK(has("t/" REMOVAL_FOLDER "/f", FOREIGN) && has("t/f", PROVEN));
	CHECK(has("t/g", FOREIGN)); /* the error is that of the other one */
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
	CHECK(has("t/" REMOVAL_FOLDER "/f", FOREIGN) && has("t/f", PROVEN));
	end(&removal);

	removal = begin();
	tree_need(mkdir("t/" REMOVAL_FOLDER, 0700) == 0, "mkdir");
	tree_need(mkdir("t/" REMOVAL_FOLDER "/d", 0700) == 0, "mkdir");
	CHECK_INT(removal_recover(removal.directory_fd, &problem), -EINVAL);
	CHECK(strstr(problem.text, "holds d, which is not a file: remove it") != NULL);
	end(&removal);

	removal = begin();
	held = open("t", O_RDONLY | O_DIRECTORY);
	CHECK_INT(mkdir("t/" REMOVAL_FOLDER, 0700), 0);
	int locked = open("t/" REMOVAL_FOLDER, O_RDONLY | O_DIRECTORY);
	tree_need(flock(locked, LOCK_EX) == 0, "flock");
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_KEPT);
	CHECK(strstr(problem.text, "putting files back") != NULL && has("t/f", PROVEN));
	close(locked);
	close(held);
	end(&removal);
}

/* A read_only scan takes no lock, and names a file even while another process has one. */
static void test_read_only(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	make_file("t/" REMOVAL_FOLDER "/g", FOREIGN);
	const int held = open("t/" REMOVAL_FOLDER, O_RDONLY | O_DIRECTORY);
	tree_need(flock(held, LOCK_EX) == 0, "flock");
	CHECK_INT(removal_find_left(removal.directory_fd, &problem), -EROFS);
	CHECK(strstr(problem.text, "holds the file g, ") && strstr(problem.text, "run push once"));
	CHECK(has("t/" REMOVAL_FOLDER "/g", FOREIGN));
	close(held);
	end(&removal);
}

/* A file that cannot be put back, or a folder that cannot be opened, is a problem of the scan. */
static void test_recovery_is_refused(void)
{
	struct problem problem = {0};
	struct removal removal = begin();
	make_file("t/" REMOVAL_FOLDER "/g", FOREIGN);
	refuse_rename(1, EIO);
	CHECK_INT(removal_recover(removal.directory_fd, &problem), -EIO);
	CHECK(strstr(problem.text, "and it cannot be put back under its name: Input/output error"));
	refuse_rename(1, ENOENT); /* another process has done it meanwhile */
	CHECK_INT(removal_recover(removal.directory_fd, &problem), 0);
	refuse_rename(0, 0);
	arm(1, EIO, NULL);
	CHECK_INT(removal_recover(removal.directory_fd, &problem), -EIO);
	CHECK(strstr(problem.text, "cannot be opened and locked"));
	arm(0, 0, NULL);
	CHECK(has("t/" REMOVAL_FOLDER "/g", FOREIGN));
	end(&removal);
}

/* The message about a file that the system refuses to remove. Afterwards the file has its name
 * again. */
static void test_refused(void)
{
	static const struct {
		bool moves;
		const char *path;
		unsigned rename; /* the one that is refused: into our folder, or from there */
		int error;
		const char *says;
	} rows[] = {
		{false, "t/f", 1, EINVAL, "cannot rename without replacing"},
		{false, "t/f", 1, ENOSYS, "cannot rename without replacing"},
		{false, "t/f", 1, EOPNOTSUPP, "cannot rename without replacing"},
		{false, "t/f", 1, EACCES, "may not rename it in its folder t (Permission denied)"},
		{false, "f", 1, EPERM, "in its folder . (Operation not permitted)"},
		{false, "/f", 1, EACCES, "in its folder / ("},
		{false, "/a/f", 1, EACCES, "in its folder /a ("},
		{false, "t/f", 1, EIO,
			"cannot be renamed before it is removed: Input/output error"},
		{false, "t/f", 1, EEXIST, "a file of its name is still in " REMOVAL_FOLDER},
		{true, "t/f", 2, EXDEV, "--move-to is on another file system or mount"},
		{true, "t/f", 2, EEXIST, "there is another file at d/f below --move-to"},
		{true, "t/f", 2, EACCES, "moved: Permission denied; give this user write"},
		{true, "t/f", 2, EIO, "it cannot be moved: Input/output error"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct removal removal = rows[i].moves ? begin_move() : begin();
		struct problem problem = {0};
		removal.path = rows[i].path;
		refuse_rename(rows[i].rename, rows[i].error);
		bool good = CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
		good &= CHECK(strstr(problem.text, rows[i].says) != NULL);
		good &= CHECK(rows[i].error != EIO || !strchr(problem.text, ';'));
		good &= CHECK(has("t/f", PROVEN) && !exists("t/" REMOVAL_FOLDER));
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, problem.text);
		refuse_rename(0, 0);
		end(&removal);
	}
	/* The removal itself is refused. */
	struct removal removal = begin();
	struct problem problem = {0};
	arm(0, 0, NULL);
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_DONE);
	end(&removal);
	removal = begin();
	arm(removed_at, EACCES, NULL);
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
	arm(0, 0, NULL);
	CHECK_STRING(problem.text, "it cannot be removed: Permission denied");
	CHECK(has("t/f", PROVEN));
	end(&removal);
	/* A target that would lie outside of --move-to. */
	removal = begin_move();
	removal.target = "../kept/f";
	CHECK_INT(removal_run(&removal, &problem), REMOVAL_FAILED);
	CHECK(has("t/f", PROVEN) && !exists("kept"));
	end(&removal);
}

/* A program writes to the file that was put aside, and another file takes its name. */
static void write_and_replace(void)
{
	const int fd = open("t/" REMOVAL_FOLDER "/f", O_WRONLY | O_APPEND);
	if (fd < 0)
		return;
	CHECK(write(fd, FOREIGN, strlen(FOREIGN)) > 0);
	close(fd);
	make_file("t/f", FOREIGN);
}

/* Neither of the two is lost, and the sentence names the place of the first. */
static void test_name_is_taken(void)
{
	unsigned n_kept = 0;
	bool more = true;
	has_leases = false;
	for (unsigned n = 1; more && n < CALLS_MAX; n++) {
		struct removal removal = begin();
		struct problem problem = {0};
		arm(n, 0, write_and_replace);
		const enum removal_end ended = removal_run(&removal, &problem);
		more = calls >= n;
		arm(0, 0, NULL);
		if (ended == REMOVAL_FAILED) {
			n_kept++;
			CHECK_STRING(problem.text,
				"it is now " REMOVAL_FOLDER "/f in its folder, since it could not "
				"be put back under its name: another file has taken that");
			CHECK(has("t/" REMOVAL_FOLDER "/f", PROVEN FOREIGN) && has("t/f", FOREIGN));
		}
		end(&removal);
	}
	CHECK(!more && n_kept);
	has_leases = true;
}

static const char *const tree[] = {"t"}, *const file[] = {"t/d/f"};

static void put_aside(const char *content)
{
	make_file("t/d/" REMOVAL_FOLDER "/f", content);
	tree_need(chmod("t/d/" REMOVAL_FOLDER, 0700) == 0, "chmod");
}

/* Whatever names the files: what a run that was cut had put aside is back, and is listed. */
static void test_scan_recovers(void)
{
	struct scan_options options = one_source(tree);
	put_aside(PROVEN);
	options.read_only = true;
	CHECK(scan_yields(&options,
		"problem d/" REMOVAL_FOLDER
		": holds the file f, which a run that was cut short was about to remove, and the next "
		"run puts it back, unless another run is working on it: run push once\n"));
	CHECK(has("t/d/" REMOVAL_FOLDER "/f", PROVEN));
	rename("t/d/" REMOVAL_FOLDER "/f", "t/d/f");
	CHECK(scan_yields(&options, "file d/f\n"));
	CHECK(exists("t/d/" REMOVAL_FOLDER));
	rename("t/d/f", "t/d/" REMOVAL_FOLDER "/f");
	options.read_only = false;
	CHECK(scan_yields(&options, "file d/f\n"));
	CHECK(has("t/d/f", PROVEN) && !exists("t/d/" REMOVAL_FOLDER));

	unlink("t/d/f");
	put_aside(PROVEN);
	options = one_source(file);
	CHECK(scan_yields(&options, "file f\n"));

	unlink("t/d/f");
	put_aside(PROVEN);
	make_file("list", "d/f\n");
	options = one_source(tree);
	options.files_from = "list";
	CHECK(scan_yields(&options, "file d/f\n"));

	/* A pass over some paths: over the file, and over another one of its folder. */
	for (int is_other = 0; is_other < 2; is_other++) {
		char path[2 * PATH_MAX];
		const char *const folders[] = {path};
		snprintf(path, sizeof path, "%s/t/d/%c", tree_path, is_other ? 'g' : 'f');
		unlink("t/d/f");
		put_aside(PROVEN);
		options = one_source(tree);
		options.folders = folders;
		options.n_folders = 1;
		CHECK(scan_yields(&options, is_other ? "" : "file d/f\n"));
		CHECK(has("t/d/f", PROVEN) && !exists("t/d/" REMOVAL_FOLDER));
	}

	put_aside(FOREIGN);
	options = one_source(tree);
	CHECK(scan_yields(&options,
		"problem d/" REMOVAL_FOLDER
		": holds the file f, which a run that was cut short was about to remove, and "
		"another file has its name by now: rename or remove one of the two\nfile d/f\n"));
	CHECK(has("t/d/" REMOVAL_FOLDER "/f", FOREIGN) && has("t/d/f", PROVEN));
	remove_tree("t");
	remove_tree("list");
}

int main(void)
{
	static const struct disturbance disturbances[] = {
		{grow, NULL},
		{rewrite_same_size, NULL},
		{replace, "t/f"},
		{replace_by_link, "kept"},
		{replace_by_directory, "t/f/inner"},
		{rename_away, NULL},
		{add_name, NULL},
		{replace_folder, "t/" REMOVAL_FOLDER "/f"},
	};
	tree_begin();
	const size_t descriptors = count_descriptors();
	test_removes_and_moves();
	test_killed(begin);
	test_killed(begin_move);
	test_recovery_killed();
	test_call_fails(begin, EIO);
	test_call_fails(begin_move, EIO);
	test_call_fails(begin, EACCES);
	for (size_t i = 0; i < sizeof disturbances / sizeof *disturbances; i++) {
		test_disturbed(&disturbances[i], true);
		test_disturbed(&disturbances[i], false);
	}
	test_lease_is_asked_back();
	test_rules();
	test_folder_is_removed(true);
	test_folder_is_removed(false);
	test_mounted_over();
	test_folder_of_others();
	test_recovery_waits_and_tells();
	test_read_only();
	test_recovery_is_refused();
	test_refused();
	test_name_is_taken();
	test_scan_recovers();
	CHECK_INT(count_descriptors(), descriptors);
	tree_end();
	return check_result();
}
