#include "base/clock.h"
#include "scan/open.h"
#include "tree.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const char *const t_source[] = {"t"};

typedef int opener(int directory_fd, const char *relative, int flags);

static void make_opened_tree(void)
{
	tree_begin();
	make_file("secret", "secret");
	make_file("out/f", "secret");
	make_file("t/a", "inside");
	make_file("t/d/e/f", "inside");
	make_file("t/..foo/f", "inside");
	make_link("a", "t/link");
	make_link("../secret", "t/link.out");
	make_link("/etc/passwd", "t/link.absolute");
	make_link("d", "t/dlink");
	make_link("../out", "t/dlink.out");
	tree_need(mkfifo("t/pipe", 0600) == 0, "mkfifo");
}

static void check_opener(opener *open_it)
{
	static const struct {
		const char *path;
		int want; /* 0 or -errno */
	} rows[] = {
		{"a", 0},
		{"d/e/f", 0},
		{"d//e/./f", 0},
		{"..foo/f", 0},
		{"d", 0},
		{".", 0},
		{"pipe", 0}, /* without waiting for a writer */
		{"missing", -ENOENT},
		{"", -ENOENT},
		{"d/missing/f", -ENOENT},
		{"a/f", -ENOTDIR},
		{"link", -ELOOP},
		{"link.out", -ELOOP},
		{"link.absolute", -ELOOP},
		{"dlink/e/f", -ELOOP},
		{"dlink.out/f", -ELOOP},
		{"/etc/passwd", -EXDEV},
		{"..", -EXDEV},
		{"../secret", -EXDEV},
		{"d/../a", -EXDEV},
		{"d/..", -EXDEV},
	};
	int directory = open("t", O_PATH | O_DIRECTORY);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int fd = open_it(directory, rows[i].path, O_RDONLY | O_NONBLOCK);
		if (!CHECK_INT(fd < 0 ? fd : 0, rows[i].want))
			fprintf(stderr, "\t%s\n", rows[i].path);
		if (fd >= 0) {
			CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
			close(fd);
		}
	}
	CHECK_INT(open_it(directory, "a", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	CHECK_INT(open_it(directory, "dlink", O_RDONLY | O_DIRECTORY), -ELOOP);
	char too_long[PATH_MAX + 10];
	memset(too_long, 'x', sizeof too_long);
	too_long[sizeof too_long - 1] = '\0';
	CHECK_INT(open_it(directory, too_long, O_RDONLY), -ENAMETOOLONG);
	close(directory);
}

/* Makes openat2 fail as an old kernel, or an old sandbox, would. */
static void forbid_openat2(unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	tree_need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	tree_need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
	CHECK_INT(syscall(SYS_openat2, 0, NULL, NULL, 0), -1);
	CHECK_INT(errno, error);
}

static void check_without_openat2(void)
{
	forbid_openat2(ENOSYS);
	check_opener(open_beneath);
	struct scan_options options = one_source(t_source);
	scan_yields(&options,
		"file ..foo/f\nfile a\nfile d/e/f\nlink dlink\nlink dlink.out\nlink link\n"
		"link link.absolute\nlink link.out\n"
		"special pipe\n");
}

static void check_with_openat2_refused(void)
{
	forbid_openat2(EPERM);
	check_opener(open_beneath);
}

static void test_openers(void)
{
	make_opened_tree();
	check_opener(open_beneath);
	check_opener(open_beneath_by_components);
	in_child(check_without_openat2);
	in_child(check_with_openat2_refused);
	tree_end();
}

static void test_scan_open_file(void)
{
	static const struct {
		const char *path;
		int want, want_followed;
	} rows[] = {
		{"a", 0, 0},
		{"d/e/f", 0, 0},
		{"d", -EINVAL, -EINVAL},
		{"pipe", -EINVAL, -EINVAL},
		{"missing", -ENOENT, -ENOENT},
		{"link", -ELOOP, 0},
		{"link.out", -ELOOP, 0},
		{"dlink/e/f", -ELOOP, 0},
		{"dlink.out/f", -ELOOP, 0},
		{"../secret", -EXDEV, 0},
	};
	make_opened_tree();
	for (int follow = 0; follow < 2; follow++) {
		struct scan_options options = one_source(t_source);
		struct scan *scan;
		struct problem problem;
		options.follow = follow;
		CHECK_INT(scan_open(&options, &scan, &problem), 0);
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			struct file_state state = {0}, again;
			int fd = scan_open_file(scan, 0, rows[i].path, &state);
			int want = follow ? rows[i].want_followed : rows[i].want;
			if (!CHECK_INT(fd < 0 ? fd : 0, want))
				fprintf(stderr, "\t%s\n", rows[i].path);
			if (fd < 0)
				continue;
			CHECK_INT(state.size, 6);
			CHECK_INT(file_state_of(fd, &again), 0);
			CHECK(file_state_equal(&state, &again));
			close(fd);
		}
		scan_close(scan);
	}
	CHECK_INT(file_state_of(-1, &(struct file_state){0}), -EBADF);
	tree_end();
}

static void test_state_equal(void)
{
	const struct file_state a = {1, 2, 3, 4, 5};
	struct file_state others[] = {{0, 2, 3, 4, 5}, {1, 0, 3, 4, 5}, {1, 2, -3, 4, 5},
		{1, 2, 4, 4, 5}, {1, 2, 3, 0, 5}, {1, 2, 3, 4, 6}};
	const struct file_state without_ctime = {1, 2, 0, 4, 5}, without_ino = {1, 2, 3, 4, 0};
	CHECK(file_state_equal(&a, &a));
	CHECK(file_state_equal(&a, &without_ctime) && file_state_equal(&without_ctime, &a));
	CHECK(file_state_equal(&a, &without_ino) && file_state_equal(&without_ino, &a));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK(!file_state_equal(&a, &others[i]));
}

/* Exchanges t/d and a link to a directory outside, for as long as others try to open below it. */
struct race {
	struct scan *scan;
	ino_t inside_ino;
	uint64_t deadline_ns;
	atomic_bool over;
	atomic_uint opened, refused, unexpected, outside;
};

static void *swap_for_ever(void *arg)
{
	struct race *race = arg;
	while (!atomic_load(&race->over))
		syscall(SYS_renameat2, AT_FDCWD, "t/d", AT_FDCWD, "t/dlink.out", RENAME_EXCHANGE);
	return NULL;
}

/* ENOTDIR: the link was a directory again when the second way looked what it was. ESTALE: the name
 * led outside of the source by the time that the file was open. */
static atomic_uint *counter_for(struct race *race, int fd)
{
	if (fd >= 0)
		return &race->opened;
	return fd == -ELOOP || fd == -ENOTDIR || fd == -ESTALE ? &race->refused : &race->unexpected;
}

static void *open_often(void *arg)
{
	struct race *race = arg;
	while ((atomic_load(&race->opened) < 5000 || atomic_load(&race->refused) < 5000) &&
		clock_boot_ns() < race->deadline_ns) {
		struct file_state state;
		int fd = scan_open_file(race->scan, 0, "d/f", &state);
		if (fd >= 0 && state.ino != race->inside_ino)
			atomic_fetch_add(&race->outside, 1);
		atomic_fetch_add(counter_for(race, fd), 1);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void run_race(void)
{
	struct scan_options options = one_source(t_source);
	struct race race = {.deadline_ns = clock_boot_ns() + 20 * NS_PER_S};
	struct problem problem;
	struct stat st;
	pthread_t swapper, openers[2];
	make_opened_tree();
	make_file("t/d/f", "inside");
	tree_need(stat("t/d/f", &st) == 0, "t/d/f");
	race.inside_ino = st.st_ino;
	CHECK_INT(scan_open(&options, &race.scan, &problem), 0);
	tree_need(pthread_create(&swapper, NULL, swap_for_ever, &race) == 0, "thread");
	for (int i = 0; i < 2; i++)
		tree_need(pthread_create(&openers[i], NULL, open_often, &race) == 0, "thread");
	for (int i = 0; i < 2; i++)
		pthread_join(openers[i], NULL);
	atomic_store(&race.over, true);
	pthread_join(swapper, NULL);
	scan_close(race.scan);
	tree_end();
	CHECK_INT(race.outside, 0);
	CHECK_INT(race.unexpected, 0);
	CHECK(race.opened > 0 && race.refused > 0);
}

static void run_race_without_openat2(void)
{
	forbid_openat2(ENOSYS);
	run_race();
}

static bool times_show_changes(int fd)
{
	struct stat st;
	return CHECK_INT(fstat(fd, &st), 0) && file_times_show_changes(fd, clock_to_ns(st.st_ctim));
}

static void test_being_written(void)
{
	int writer = open("a", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
	    reader = open("a", O_RDONLY | O_CLOEXEC);
	CHECK(file_is_being_written(reader));
	CHECK(times_show_changes(reader)); /* its pages were written back: not on tmpfs */
	close(writer);
	CHECK(!file_is_being_written(reader));
	CHECK(times_show_changes(reader));
	writer = open("a", O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* no lease is left behind */
	CHECK(writer >= 0);
	close(writer);
	close(reader);
	unlink("a");
}

int main(void)
{
	test_openers();
	test_scan_open_file();
	test_state_equal();
	test_being_written();
	in_child(run_race);
	in_child(run_race_without_openat2);
	return check_result();
}
