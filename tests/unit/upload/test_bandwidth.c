/* The limit of bandwidth of a run: which rate holds when, who waits, and what ends the waiting. */
#include "../check.h"
#include "base/clock.h"
#include "upload/progress/bandwidth.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ULL << 20)

static struct bandwidth *limit_of(const struct s3once_rate *rates, size_t n, const char *zone)
{
	struct bandwidth *bandwidth;
	struct problem problem;
	const struct bandwidth_options options = {rates, n, zone};
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
	const struct bandwidth_options options = {rates, 2, "Mars/Olympus"};
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
	const struct s3once_rate rate = {0, S3ONCE_RATE_LEAST};
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
	const struct s3once_rate rate = {0, S3ONCE_RATE_LEAST};
	struct bandwidth *bandwidth = limit_of(&rate, 1, NULL);
	while (bandwidth_take(bandwidth, MIB, &hasty))
		;
	bandwidth_toggle(bandwidth);
	CHECK_INT(bandwidth_take(bandwidth, MIB, &hasty), MIB);
	bandwidth_toggle(bandwidth);
	CHECK_INT(bandwidth_take(bandwidth, MIB, &hasty), 0);
	bandwidth_free(bandwidth);
}

/* What one has taken is gone for the other. */
static void test_two_runs_share_a_file(void)
{
	char folder[] = "/tmp/bandwidth.XXXXXX", file[64];
	CHECK(mkdtemp(folder) != NULL);
	setenv("STATE_DIRECTORY", folder, 1);
	const struct s3once_rate rate = {0, S3ONCE_RATE_LEAST};
	struct bandwidth *one = limit_of(&rate, 1, NULL), *other = limit_of(&rate, 1, NULL);
	bandwidth_share(one);
	bandwidth_share(other);
	while (bandwidth_take(one, MIB, &hasty))
		;
	CHECK_INT(bandwidth_take(other, MIB, &hasty), 0);
	bandwidth_free(one);
	bandwidth_free(other);
	struct stat st;
	snprintf(file, sizeof file, "%s/bandwidth", folder);
	CHECK_INT(stat(file, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_INT(unlink(file) | rmdir(folder), 0);
}

int main(void)
{
	test_rates_by_time_of_day();
	test_a_zone_that_is_none();
	test_pieces_are_taken_in_turn();
	test_the_waiting_ends();
	test_two_runs_share_a_file();
	return check_result();
}
