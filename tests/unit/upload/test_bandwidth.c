/* The limit of bandwidth of a run: which rate holds when, who waits, and what ends the waiting. */
#include "../check.h"
#include "base/clock.h"
#include "base/log.h"
#include "upload/progress/bandwidth.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ULL << 20)

static struct bandwidth *limit_of(const struct s3once_rate *rates, size_t n, const char *zone)
{
	struct bandwidth *bandwidth;
	struct problem problem;
	const struct s3once_options options = {.rates = rates, .n_rates = n, .time_zone = zone};
	CHECK_INT(bandwidth_new(&options, &bandwidth, &problem), 0);
	return bandwidth;
}

static void test_rates_by_time_of_day(void)
{
	const struct s3once_rate rates[] = {{8 * 60, 2 * MIB}, {19 * 60, 0}};
	struct bandwidth *utc = limit_of(rates, 2, NULL);
	struct bandwidth *berlin = limit_of(rates, 2, "Europe/Berlin");
	const int64_t day = 20000 * 86400LL;       /* 2024-10-04, summer time */
	CHECK_INT(bandwidth_rate_at(utc, day), 0); /* yesterday's last one */
	CHECK_INT(bandwidth_rate_at(utc, day + 8 * 3600 - 1), 0);
	CHECK_INT(bandwidth_rate_at(utc, day + 8 * 3600), 2 * MIB);
	CHECK_INT(bandwidth_rate_at(utc, day + 19 * 3600 - 1), 2 * MIB);
	CHECK_INT(bandwidth_rate_at(utc, day + 19 * 3600), 0);
	CHECK_INT(bandwidth_rate_at(berlin, day + 6 * 3600 - 1), 0);
	CHECK_INT(bandwidth_rate_at(berlin, day + 6 * 3600), 2 * MIB);
	bandwidth_free(utc);
	bandwidth_free(berlin);
}

static void test_a_zone_that_is_none(void)
{
	const struct s3once_rate rates[] = {{8 * 60, 2 * MIB}, {19 * 60, 0}};
	struct bandwidth *bandwidth = NULL;
	struct problem problem = {0};
	const struct s3once_options options = {
		.rates = rates, .n_rates = 2, .time_zone = "Mars/Olympus"};
	CHECK_INT(bandwidth_new(&options, &bandwidth, &problem), -EINVAL);
	CHECK(strstr(problem.text, "--time-zone: ") == problem.text);
}

static bool never(void *arg)
{
	return false;
}

static bool at_once(void *arg)
{
	return true;
}

static const struct bandwidth_user patient = {never, NULL}, hasty = {at_once, NULL};

static void test_pieces_are_taken_in_turn(void)
{
	const struct s3once_rate rate = {0, MIB};
	struct bandwidth *bandwidth = limit_of(&rate, 1, NULL);
	CHECK_INT(bandwidth_take(NULL, 12345, &patient), 12345);
	CHECK_INT(bandwidth_take(bandwidth, 100, &patient), 100);
	CHECK_INT(bandwidth_take(bandwidth, MIB, &patient), MIB / 50);
	CHECK(bandwidth_take_all(bandwidth, 100000, &patient));
	bandwidth_free(bandwidth);
}

/* A hundred that wait for a line that is never free are all let go when they ask to be, and when it
 * is lifted. */
struct crowd {
	struct bandwidth *bandwidth;
	atomic_uint waiting, got;
	atomic_bool may_go;
};

static bool may_go(void *arg)
{
	struct crowd *crowd = arg;
	return atomic_load(&crowd->may_go);
}

static void *wait_in_line(void *arg)
{
	struct crowd *crowd = arg;
	const struct bandwidth_user user = {may_go, crowd};
	atomic_fetch_add(&crowd->waiting, 1);
	if (bandwidth_take_all(crowd->bandwidth, 10 * MIB, &user))
		atomic_fetch_add(&crowd->got, 1);
	return NULL;
}

static void check_crowd(bool lifts)
{
	enum { CROWD = 50 };
	const struct s3once_rate rate = {0, S3ONCE_RATE_MIN};
	struct crowd crowd = {.bandwidth = limit_of(&rate, 1, NULL)};
	pthread_t threads[CROWD];
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, wait_in_line, &crowd), 0);
	while (atomic_load(&crowd.waiting) < CROWD || !bandwidth_waited_ns(crowd.bandwidth))
		usleep(1000);
	if (lifts)
		bandwidth_toggle(crowd.bandwidth);
	else
		atomic_store(&crowd.may_go, true);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	CHECK_INT(atomic_load(&crowd.got), lifts ? CROWD : 0);
	CHECK(bandwidth_is_lifted(crowd.bandwidth) == lifts);
	bandwidth_free(crowd.bandwidth);
}

static void test_the_waiting_ends(void)
{
	check_crowd(true);
	check_crowd(false);
	const struct s3once_rate rate = {0, S3ONCE_RATE_MIN};
	struct bandwidth *bandwidth = limit_of(&rate, 1, NULL);
	while (bandwidth_take(bandwidth, MIB, &hasty))
		;
	bandwidth_toggle(bandwidth);
	CHECK_INT(bandwidth_take(bandwidth, MIB, &hasty), MIB);
	bandwidth_toggle(bandwidth);
	CHECK_INT(bandwidth_take(bandwidth, MIB, &hasty), 0);
	bandwidth_free(bandwidth);
}

/* --- the line that is shared */

struct shared {
	char folder[64], file[96], other[96]; /* other: of somebody else */
	struct bandwidth *one;
	unsigned n_warnings;
	char warning[1000];
};

static void on_log(void *arg, enum log_level level, const char *line)
{
	struct shared *shared = arg;
	shared->n_warnings++;
	snprintf(shared->warning, sizeof shared->warning, "%s", line);
}

static const struct s3once_rate mib = {0, MIB};

static struct bandwidth *sharing(void)
{
	struct bandwidth *bandwidth = limit_of(&mib, 1, NULL);
	bandwidth_share(bandwidth);
	return bandwidth;
}

static void set_up(struct shared *shared)
{
	*shared = (struct shared){.folder = "/tmp/bandwidth.XXXXXX"};
	CHECK(mkdtemp(shared->folder) != NULL);
	snprintf(shared->file, sizeof shared->file, "%s/bandwidth", shared->folder);
	snprintf(shared->other, sizeof shared->other, "%s/other", shared->folder);
	setenv("STATE_DIRECTORY", shared->folder, 1);
	log_set_sink(on_log, shared);
	shared->one = sharing();
}

static void tear_down(struct shared *shared)
{
	bandwidth_free(shared->one);
	log_set_sink(NULL, NULL);
	unlink(shared->other);
	CHECK_INT(remove(shared->file) | rmdir(shared->folder), 0);
}

static void write_to(const char *path, const void *bytes, size_t n)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_INT(write(fd, bytes, n), n);
	close(fd);
}

static uint64_t number_in(const char *path)
{
	uint64_t number = 0;
	const int fd = open(path, O_RDONLY);
	CHECK_INT(read(fd, &number, sizeof number), sizeof number);
	close(fd);
	return number;
}

/* So much is taken in a moment that it is seen if there is no limit. */
static void check_that_it_limits(struct bandwidth *bandwidth)
{
	const uint64_t begun_ns = clock_boot_ns();
	uint64_t bytes = 0, ns;
	do {
		bytes += bandwidth_take(bandwidth, 100 * MIB, &hasty);
		ns = clock_boot_ns() - begun_ns;
	} while (ns < 20 * NS_PER_MS);
	const uint64_t most = MIB * (ns + TOKEN_BUCKET_BURST_NS) / NS_PER_S + MIB / 50;
	CHECK(bytes <= most);
	CHECK(bandwidth_take_all(bandwidth, MIB / 50, &patient));
}

/* One process takes bytes by changing the number in the file. */
static void check_that_it_shares(struct shared *shared, struct bandwidth *bandwidth)
{
	struct stat st;
	const uint64_t begun_ns = clock_boot_ns();
	CHECK(bandwidth_take_all(bandwidth, MIB / 50, &patient));
	const uint64_t free_ns = number_in(shared->file);
	CHECK(free_ns > begun_ns - TOKEN_BUCKET_BURST_NS && free_ns < clock_boot_ns() + NS_PER_S);
	CHECK_INT(stat(shared->file, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_INT(shared->n_warnings, 0);
}

/* Bytes taken by one process are gone for the other, although the other's own number says
 * otherwise. */
static void test_two_runs_share_a_file(void)
{
	struct shared shared;
	set_up(&shared);
	struct bandwidth *other = sharing();
	check_that_it_shares(&shared, shared.one);
	const uint64_t ahead_ns = clock_boot_ns() + NS_PER_S / 2;
	write_to(shared.file, &ahead_ns, sizeof ahead_ns);
	CHECK(bandwidth_take_all(other, 1, &patient));
	CHECK(clock_boot_ns() >= ahead_ns);
	bandwidth_free(other);
	tear_down(&shared);
}

/* While another run has the line, nothing is taken from this run's own number: it would send more
 * slowly than it may. */
static void test_unsent_bytes_are_not_taken(void)
{
	struct shared shared;
	set_up(&shared);
	const uint64_t ahead_ns = clock_boot_ns() + NS_PER_S * 9 / 10, free_ns = 0;
	write_to(shared.file, &ahead_ns, sizeof ahead_ns);
	for (int i = 0; i < 50; i++)
		CHECK_INT(bandwidth_take(shared.one, MIB, &hasty), 0);
	CHECK_INT(number_in(shared.file), ahead_ns);
	write_to(shared.file, &free_ns, sizeof free_ns);
	CHECK_INT(bandwidth_take(shared.one, MIB, &hasty), MIB / 50);
	tear_down(&shared);
}

static void nothing(struct shared *shared)
{
}

static void cut(struct shared *shared)
{
	CHECK_INT(truncate(shared->file, 0), 0);
}

static void cut_amid(struct shared *shared)
{
	CHECK_INT(truncate(shared->file, 3), 0);
}

static void fill(struct shared *shared)
{
	char garbage[10000];
	memset(garbage, 0xa5, sizeof garbage);
	write_to(shared->file, garbage, sizeof garbage);
}

static void open_to_all(struct shared *shared)
{
	CHECK_INT(chmod(shared->file, 0666), 0);
}

static void take_away(struct shared *shared)
{
	CHECK_INT(unlink(shared->file), 0);
}

static void make_folder(struct shared *shared)
{
	take_away(shared);
	CHECK_INT(mkdir(shared->file, 0700), 0);
}

static void make_fifo(struct shared *shared)
{
	take_away(shared);
	CHECK_INT(mkfifo(shared->file, 0600), 0);
}

static void make_link(struct shared *shared)
{
	take_away(shared);
	CHECK_INT(symlink(shared->other, shared->file), 0);
}

static void make_hard_link(struct shared *shared)
{
	take_away(shared);
	CHECK_INT(link(shared->other, shared->file), 0);
}

static void make_device(struct shared *shared)
{
	take_away(shared);
	CHECK_INT(symlink("/dev/full", shared->file), 0);
}

static void give_away(struct shared *shared)
{
	CHECK_INT(chown(shared->file, 1, 1), 0);
}

static void forbid(struct shared *shared)
{
	CHECK_INT(chmod(shared->file, 0), 0);
}

struct damage {
	void (*happens)(struct shared *shared);
	const char *words; /* NULL: the file is used again */
	bool for_root, for_others;
};

static const struct damage damages[] = {
	{nothing, NULL, true, true},
	{cut, NULL, true, true},
	{cut_amid, NULL, true, true},
	{fill, NULL, true, true},
	{open_to_all, NULL, true, true},
	{take_away, NULL, true, true},
	{make_folder, "Is a directory", true, true},
	{make_fifo, "it is not a regular file", true, true},
	{make_link, "it is a symbolic link", true, true},
	{make_device, "it is a symbolic link", true, true},
	{make_hard_link, "it is a hard link", true, true},
	{give_away, "it belongs to another user", true, false},
	{forbid, "Permission denied", false, true},
};

/* To the run that uses the file, and to one that begins then. */
static void check_damage(const struct damage *damage)
{
	struct shared shared;
	set_up(&shared);
	write_to(shared.other, "theirs", 6);
	CHECK(bandwidth_take_all(shared.one, MIB / 50, &patient));
	damage->happens(&shared);
	struct bandwidth *next = sharing();
	check_that_it_limits(shared.one);
	if (damage->words) {
		CHECK_INT(shared.n_warnings, 1);
		CHECK(strstr(shared.warning, damage->words) != NULL);
		CHECK(strstr(shared.warning, shared.file) != NULL);
		check_that_it_limits(next);
		CHECK_INT(shared.n_warnings, 2); /* each says it once */
	} else {
		check_that_it_shares(&shared, shared.one);
		check_that_it_shares(&shared, next);
	}
	char text[8] = "";
	const int fd = open(shared.other, O_RDONLY);
	CHECK_INT(read(fd, text, sizeof text), 6);
	close(fd);
	bandwidth_free(next);
	tear_down(&shared);
}

static void test_damage_to_the_file(void)
{
	const bool is_root = geteuid() == 0;
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
		if (is_root ? damages[i].for_root : damages[i].for_others)
			check_damage(&damages[i]);
}

/* Such a process may be stopped there for ever. */
static void test_a_process_that_keeps_the_file_locked(void)
{
	struct shared shared;
	set_up(&shared);
	CHECK(bandwidth_take_all(shared.one, 1, &patient));
	const int fd = open(shared.file, O_RDWR);
	CHECK_INT(flock(fd, LOCK_EX), 0);
	const uint64_t before = number_in(shared.file);
	check_that_it_limits(shared.one);
	CHECK_INT(shared.n_warnings, 1);
	CHECK(strstr(shared.warning, "another process holds the lock on its file for too long") !=
		NULL);
	CHECK_INT(number_in(shared.file), before);
	close(fd);
	shared.n_warnings = 0;
	check_that_it_shares(&shared, shared.one);
	tear_down(&shared);
}

/* Other runs that have the file for moments only do not add up to one that stands still. */
static void test_moments_do_not_add_up(void)
{
	struct shared shared;
	set_up(&shared);
	CHECK_INT(bandwidth_take(shared.one, 1, &patient), 1);
	const int fd = open(shared.file, O_RDWR);
	for (int round = 0; round < 3; round++) {
		CHECK_INT(flock(fd, LOCK_EX), 0);
		for (int i = 0; i < 60; i++)
			CHECK_INT(bandwidth_take(shared.one, 1, &hasty), 0);
		CHECK_INT(flock(fd, LOCK_UN), 0);
		CHECK_INT(bandwidth_take(shared.one, 1, &patient), 1);
	}
	CHECK_INT(shared.n_warnings, 0);
	close(fd);
	tear_down(&shared);
}

static void *take_much(void *arg)
{
	struct bandwidth *bandwidth = sharing();
	CHECK(bandwidth_take_all(bandwidth, MIB / 4, &patient));
	bandwidth_free(bandwidth);
	return NULL;
}

/* Nobody's bytes get lost where several use the file at the same moments: all of them took as long
 * as the bytes take. */
static void test_many_runs_lose_nothing(void)
{
	struct shared shared;
	pthread_t threads[8];
	set_up(&shared);
	const uint64_t begun_ns = clock_boot_ns();
	for (int i = 0; i < 8; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, take_much, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	CHECK(number_in(shared.file) >= begun_ns - TOKEN_BUCKET_BURST_NS + 2 * NS_PER_S);
	CHECK_INT(shared.n_warnings, 0);
	tear_down(&shared);
}

int main(void)
{
	test_rates_by_time_of_day();
	test_a_zone_that_is_none();
	test_pieces_are_taken_in_turn();
	test_the_waiting_ends();
	test_two_runs_share_a_file();
	test_unsent_bytes_are_not_taken();
	test_damage_to_the_file();
	test_a_process_that_keeps_the_file_locked();
	test_moments_do_not_add_up();
	test_many_runs_lose_nothing();
	return check_result();
}
