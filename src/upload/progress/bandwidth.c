/* The limit of bandwidth. src/cli/options/values.c reads the times and rates of --bwlimit, and
 * bandwidth_rate_at() returns the present rate. Workers wait here before bytes leave, in order of
 * arrival. There are three layers: the arithmetic of one number, the file with such a number that
 * the processes of a host share, and the queue of this run's threads. If the file cannot be used,
 * this run still keeps the limit, but does not share it. */
#include "upload/progress/bandwidth.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/time_zone.h"
#include "base/wait_until.h"
#include "store/state_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

/* The time between two checks whether the limit was lifted. */
#define LIFTED_CHECK_NS (50 * NS_PER_MS)
/* The time until the next try, if another process holds the file. */
#define BUSY_NS   (1 * NS_PER_MS)
#define BUSY_MAX  100U /* if the file is held at this many consecutive tries, its holder hangs */
#define CHUNK_MIN (2U << 10)
#define CHUNK_MAX (256U << 10)

/* A thread that waits to send. It is on the stack of that thread. */
struct waiter {
	struct waiter *next;
	uv_cond_t called;
};

struct bandwidth {
	const struct s3once_rate *rates;
	size_t n_rates;
	struct time_zone *zone;
	char *shared_path; /* NULL: the limit is that of this run alone */
	uint64_t shift_ns; /* offset of our boot clock from the host's, which is in the file */
	atomic_bool is_lifted;
	struct {
		uv_mutex_t mutex;
		struct waiter *first, **end; /* in order of arrival */
		uint64_t since_ns;           /* time since which there has always been a waiter */
		uint64_t waited_ns;          /* time with a waiter before since_ns */
		uint64_t free_ns;            /* as of token_bucket_take(), for this run alone */
		unsigned n_busy; /* number of consecutive tries at which another process held the
				    file */
		bool reported_unshared;
	} locked;
};

uint64_t token_bucket_take(uint64_t *free_ns, uint64_t now_ns, uint64_t bytes, uint64_t rate)
{
	/* Only the burst of the unused time counts. */
	const uint64_t earliest_ns =
		now_ns > TOKEN_BUCKET_BURST_NS ? now_ns - TOKEN_BUCKET_BURST_NS : 0;
	const bool is_ahead = *free_ns > now_ns;
	const bool is_too_far_ahead = is_ahead && *free_ns - now_ns > TOKEN_BUCKET_AHEAD_NS;
	if (is_ahead && !is_too_far_ahead)
		return *free_ns - now_ns;
	/* A time that is too far ahead does not count. */
	const bool is_usable = !is_too_far_ahead && *free_ns >= earliest_ns;
	const uint64_t from_ns = is_usable ? *free_ns : earliest_ns;
	*free_ns = from_ns + bytes * NS_PER_S / rate;
	return 0;
}

uint64_t token_bucket_chunk(uint64_t rate)
{
	const uint64_t chunk = rate / 50;
	return chunk < CHUNK_MIN ? CHUNK_MIN : chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
}

/* Returns the reason why a file is not a regular file of this user alone, or NULL. */
static const char *foreign_file_fault(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	return st->st_nlink > 1 ? "it is a hard link" : NULL;
}

/* Opens the shared file, or makes it. Returns -1 with the reason in *ret_fault if it is not a
 * regular file of this user alone. O_NONBLOCK is needed since a FIFO or a device under the name
 * might make us wait. */
static int open_shared(const char *path, const char **ret_fault)
{
	struct stat st = {0};
	const int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0 || fstat(fd, &st))
		*ret_fault = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	else
		*ret_fault = foreign_file_fault(&st);
	/* The umask may have removed bits of the mode, and then the next run could not open the
	 * file. */
	const bool has_other_mode = (st.st_mode & 07777) != 0600;
	if (!*ret_fault && has_other_mode && fchmod(fd, 0600))
		*ret_fault = strerror(errno);
	if (*ret_fault && fd >= 0)
		close(fd);
	return *ret_fault ? -1 : fd;
}

int bandwidth_new(
	const struct s3once_options *options, struct bandwidth **ret, struct problem *ret_problem)
{
	struct bandwidth *bandwidth = calloc(1, sizeof *bandwidth);
	if (!bandwidth)
		return -ENOMEM;
	bandwidth->rates = options->rates;
	bandwidth->n_rates = options->n_rates;
	uv_mutex_init(&bandwidth->locked.mutex);
	bandwidth->locked.end = &bandwidth->locked.first;
	const int error = options->time_zone ? time_zone_open(options->time_zone, &bandwidth->zone,
						       ret_problem)
					     : 0;
	if (error) {
		problem_prefix(ret_problem, "--time-zone");
		bandwidth_free(bandwidth);
		return error == -ENOMEM ? error : -EINVAL;
	}
	*ret = bandwidth;
	return 0;
}

void bandwidth_free(struct bandwidth *bandwidth)
{
	if (!bandwidth)
		return;
	free(bandwidth->shared_path);
	uv_mutex_destroy(&bandwidth->locked.mutex);
	free(bandwidth->zone);
	free(bandwidth);
}

/* Warns once that this run has the limit to itself. The caller holds the mutex, or no other thread
 * uses the limit yet. */
static void warn_of_unshared(struct bandwidth *bandwidth, const struct problem *why)
{
	if (!bandwidth->locked.reported_unshared)
		log_warning("--bwlimit is not shared with other runs of this host, since %s",
			why->text);
	bandwidth->locked.reported_unshared = true;
}

void bandwidth_share(struct bandwidth *bandwidth)
{
	char path[4096] = "";
	int error = state_path(STATE_BANDWIDTH, FOLDER_MADE, path, sizeof path);
	bandwidth->shift_ns = (uint64_t)clock_boot_shift_ns();
	if (!error && !(bandwidth->shared_path = strdup(path)))
		error = -ENOMEM;
	if (error)
		warn_of_unshared(
			bandwidth, PROBLEM("its file cannot be used: %s%s%s", quote(path).text,
					   *path ? ": " : "", strerror(-error)));
}

uint64_t bandwidth_rate_at(const struct bandwidth *bandwidth, int64_t wall_s)
{
	const size_t n = bandwidth->n_rates;
	struct tm tm;
	/* If the local time is unknown, the last rate holds. */
	if (n == 1 || time_zone_local(bandwidth->zone, wall_s, &tm))
		return bandwidth->rates[n - 1].bytes_per_second;
	/* The latest rate that has begun holds. Before the first time of a day, that is the last
	 * rate of the day before. */
	const unsigned minute = (unsigned)(60 * tm.tm_hour + tm.tm_min);
	size_t i = n;
	while (i && bandwidth->rates[i - 1].minute > minute)
		i--;
	return bandwidth->rates[i ? i - 1 : n - 1].bytes_per_second;
}

/* Returns the limit that holds now, in bytes a second; 0: there is none. */
static uint64_t rate_now(const struct bandwidth *bandwidth)
{
	if (atomic_load(&bandwidth->is_lifted))
		return 0;
	return bandwidth_rate_at(bandwidth, clock_wall_s());
}

/* Takes bytes by the number in the shared file, which is locked. Returns the time to wait first, or
 * 0 if the bytes were taken or, with the reason in *ret_fault, if the file cannot be used. */
static uint64_t take_from_file(
	int fd, uint64_t now_ns, uint64_t bytes, uint64_t rate, const char **ret_fault)
{
	/* A file that is too short is new or was truncated. Then the line is free. */
	uint64_t free_ns = 0;
	if (pread(fd, &free_ns, sizeof free_ns, 0) < 0) {
		*ret_fault = strerror(errno);
		return 0;
	}
	const uint64_t wait_ns = token_bucket_take(&free_ns, now_ns, bytes, rate);
	if (wait_ns)
		return wait_ns;
	errno = ENOSPC; /* the reason if the write is too short, which sets no errno */
	if (pwrite(fd, &free_ns, sizeof free_ns, 0) != sizeof free_ns)
		*ret_fault = strerror(errno);
	return 0;
}

/* Takes bytes from the limit that the processes share. Returns the time to wait first, or 0 if the
 * bytes were taken or the file cannot be used. The caller holds the mutex.
 *
 * The file is opened again for each use and never mapped, so truncating, filling, removing or
 * replacing it cannot end this process or redirect it to another file. now_ns is by the host's boot
 * clock, which all processes share. */
static uint64_t take_shared_locked(
	struct bandwidth *bandwidth, uint64_t now_ns, uint64_t bytes, uint64_t rate)
{
	const char *path = bandwidth->shared_path, *fault = NULL;
	uint64_t wait_ns = 0;
	if (!path)
		return 0;
	const int fd = open_shared(path, &fault);
	const bool is_locked = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB);
	const bool is_busy = fd >= 0 && !is_locked && errno == EWOULDBLOCK;
	if (is_locked)
		wait_ns = take_from_file(fd, now_ns, bytes, rate, &fault);
	else if (fd >= 0 && !is_busy)
		fault = strerror(errno); /* the error of flock() */
	if (fd >= 0)
		close(fd); /* ends the lock */
	if (!is_busy) {
		bandwidth->locked.n_busy = 0;
		if (fault)
			warn_of_unshared(
				bandwidth, PROBLEM("its file cannot be used: %s: %s; remove it",
						   quote(path).text, fault));
		return wait_ns;
	}
	/* Each process holds the file for a moment only, so it is tried again soon. A process that
	 * holds it for long hangs, and then the limit is not shared. */
	if (bandwidth->locked.n_busy++ < BUSY_MAX)
		return BUSY_NS;
	warn_of_unshared(
		bandwidth, PROBLEM("another process holds the lock on its file for too long: %s",
				   quote(path).text));
	return 0;
}

/* Takes from the limit the bytes that the first waiter, with n bytes, may send now. Returns their
 * number. If it is 0, *ret_wait_ns is the time to wait before the next call. Both the free_ns of
 * this run and the one in the shared file have to allow the bytes. So this run keeps its limit even
 * while the file cannot be used. The caller holds the mutex. */
static size_t take_allowed_locked(struct bandwidth *bandwidth, size_t n, uint64_t *ret_wait_ns)
{
	const uint64_t rate = rate_now(bandwidth);
	if (!rate)
		return n;
	const uint64_t chunk = token_bucket_chunk(rate);
	const size_t bytes = n < chunk ? n : (size_t)chunk;
	const uint64_t now_ns = clock_boot_ns() - bandwidth->shift_ns;
	uint64_t free_ns = bandwidth->locked.free_ns; /* kept only if both limits allow the bytes */
	uint64_t wait_ns = token_bucket_take(&free_ns, now_ns, bytes, rate);
	if (!wait_ns)
		wait_ns = take_shared_locked(bandwidth, now_ns, bytes, rate);
	if (!wait_ns)
		bandwidth->locked.free_ns = free_ns;
	*ret_wait_ns = wait_ns < LIFTED_CHECK_NS ? wait_ns : LIFTED_CHECK_NS;
	return wait_ns ? 0 : bytes;
}

/* Joins the queue of waiters at its end. The caller holds the mutex. */
static void join_queue_locked(struct bandwidth *bandwidth, struct waiter *self)
{
	if (!bandwidth->locked.first)
		bandwidth->locked.since_ns = clock_boot_ns();
	*bandwidth->locked.end = self;
	bandwidth->locked.end = &self->next;
}

/* Leaves the queue, and wakes the waiter that is the first one now. A thread whose wait was
 * abandoned may leave from the middle. The caller holds the mutex. */
static void leave_queue_locked(struct bandwidth *bandwidth, struct waiter *self)
{
	struct waiter **at = &bandwidth->locked.first;
	while (*at != self)
		at = &(*at)->next;
	*at = self->next;
	if (!self->next)
		bandwidth->locked.end = at;
	if (bandwidth->locked.first)
		uv_cond_signal(&bandwidth->locked.first->called);
	else
		bandwidth->locked.waited_ns += clock_boot_ns() - bandwidth->locked.since_ns;
}

size_t bandwidth_take(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user)
{
	struct waiter self = {0};
	uint64_t wait_ns = 0;
	size_t bytes = 0;
	if (!bandwidth || !rate_now(bandwidth))
		return n;
	uv_cond_init(&self.called);
	uv_mutex_lock(&bandwidth->locked.mutex);
	/* Waits until all earlier threads have left the queue. */
	join_queue_locked(bandwidth, &self);
	enum waited waited = wait_until(bandwidth->locked.first == &self, .cond = &self.called,
		.mutex = &bandwidth->locked.mutex, .abandon = user->abandon, .arg = user->arg);
	/* This thread is the first one, and tries until bytes may leave. The condition `false`
	 * makes it sleep until the deadline, unless the wait is abandoned. */
	while (waited != WAIT_ABANDONED && !(bytes = take_allowed_locked(bandwidth, n, &wait_ns)))
		waited = wait_until(false, .cond = &self.called, .mutex = &bandwidth->locked.mutex,
			.deadline_ns = clock_boot_ns() + wait_ns, .abandon = user->abandon,
			.arg = user->arg);
	leave_queue_locked(bandwidth, &self);
	uv_mutex_unlock(&bandwidth->locked.mutex);
	uv_cond_destroy(&self.called);
	return bytes;
}

bool bandwidth_take_all(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user)
{
	while (n) {
		const size_t taken = bandwidth_take(bandwidth, n, user);
		if (!taken)
			return false;
		n -= taken;
	}
	return true;
}

/* If another thread toggles meanwhile, is_lifted becomes that thread's value, and the loop
 * continues. */
void bandwidth_toggle(struct bandwidth *bandwidth)
{
	bool is_lifted = bandwidth_is_lifted(bandwidth);
	while (bandwidth &&
		!atomic_compare_exchange_weak(&bandwidth->is_lifted, &is_lifted, !is_lifted))
		;
}

bool bandwidth_is_lifted(const struct bandwidth *bandwidth)
{
	return bandwidth && atomic_load(&bandwidth->is_lifted);
}

uint64_t bandwidth_waited_ns(struct bandwidth *bandwidth)
{
	if (!bandwidth)
		return 0;
	uv_mutex_lock(&bandwidth->locked.mutex);
	uint64_t waited_ns = bandwidth->locked.waited_ns;
	if (bandwidth->locked.first)
		waited_ns += clock_boot_ns() - bandwidth->locked.since_ns;
	uv_mutex_unlock(&bandwidth->locked.mutex);
	return waited_ns;
}
