#include "marks/lease.h"
#include "base/clock.h"
#include "base/log.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lease {
	struct lease_options options;
	struct store_conn *conn;
	pthread_t thread;
	bool started;
	_Atomic uint64_t ends_ns;
	atomic_bool lost, stopping;
	char version[ID_CHARS + 1]; /* the thread's, once it runs */
	char pending[ID_CHARS +
		     1]; /* sent and not yet answered clearly: it may be in the row, or come late */
	uint64_t pending_sent_ns;
	char loss[256]; /* written once, before lost is set */
	struct {
		pthread_mutex_t mutex;
		pthread_cond_t changed; /* renewed, lost, or stopping */
	} locked;
};

int lease_new(const struct lease_options *options, struct lease **ret)
{
	struct lease *lease = calloc(1, sizeof *lease);
	if (!lease)
		return -ENOMEM;
	lease->options = *options;
	int error = store_conn_new(options->store, &lease->conn);
	if (error) {
		free(lease);
		return error;
	}
	pthread_mutex_init(&lease->locked.mutex, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lease->locked.changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret = lease;
	return 0;
}

uint64_t lease_ends_ns(const struct lease *lease)
{
	return atomic_load(&lease->ends_ns);
}

bool lease_is_lost(const struct lease *lease)
{
	return atomic_load(&lease->lost);
}

const char *lease_loss(const struct lease *lease)
{
	return lease_is_lost(lease) ? lease->loss : "";
}

static void wake(struct lease *lease)
{
	pthread_mutex_lock(&lease->locked.mutex);
	pthread_cond_broadcast(&lease->locked.changed);
	pthread_mutex_unlock(&lease->locked.mutex);
}

/* Waits for a change, at most `ms`. */
static void wait_ms(struct lease *lease, uint64_t ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t ns = (uint64_t)until.tv_nsec + ms * NS_PER_MS;
	until.tv_sec += (time_t)(ns / NS_PER_S);
	until.tv_nsec = (long)(ns % NS_PER_S);
	pthread_mutex_lock(&lease->locked.mutex);
	if (!atomic_load(&lease->stopping))
		pthread_cond_timedwait(&lease->locked.changed, &lease->locked.mutex, &until);
	pthread_mutex_unlock(&lease->locked.mutex);
}

static void renewed(struct lease *lease, const char *version, uint64_t sent_ns)
{
	memcpy(lease->version, version, sizeof lease->version);
	*lease->pending = 0;
	atomic_store(&lease->ends_ns, sent_ns + lease->options.lease_ns);
	wake(lease);
}

static void lose(struct lease *lease, const char *why)
{
	snprintf(lease->loss, sizeof lease->loss, "%s", why);
	atomic_store(&lease->lost, true);
	wake(lease);
}

static bool is_open(const struct item *row)
{
	const char *state = item_string(row, "state");
	return state && !strcmp(state, "open");
}

/* The row as it is refuses our version: it is ours all the same if it holds one that we sent. */
static void look_at(struct lease *lease, const struct item *row)
{
	const char *version = item_string(row, "version");
	if (item_is_empty(row))
		lose(lease, "the row of this session was deleted");
	else if (!is_open(row))
		lose(lease, "another uploader ended this session: its lease had run out");
	else if (version && *lease->pending && !strcmp(version, lease->pending))
		renewed(lease, lease->pending, lease->pending_sent_ns);
	else if (!version || strcmp(version, lease->version))
		lose(lease,
			"the row of this session holds a version that is not ours: a copy of this "
			"process (a cloned machine?) renews it");
}

static bool is_over(void *arg)
{
	return atomic_load(&((struct lease *)arg)->stopping);
}

/* One heartbeat; true if the row was surely renewed by it. An unclear answer leaves `pending`: the
 * next call first asks what became of it, by sending the identical change again. */
static bool beat(struct lease *lease)
{
	const uint64_t sent_ns = clock_boot_ns();
	if (!*lease->pending) {
		random_id(lease->pending);
		lease->pending_sent_ns = sent_ns;
	}
	char expires[24];
	snprintf(expires, sizeof expires, "%lld",
		(long long)(store_time_s(lease->options.store) + LEASE_KEEP_S));
	const struct change changes[] = {
		{"version", VALUE_STRING, lease->pending}, {"expires", VALUE_NUMBER, expires}};
	const struct condition ours[] = {
		{"version", CONDITION_EQUALS, VALUE_STRING, lease->version},
		{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	const struct call_limits limits = {
		.deadline_ns = clock_boot_ns() + lease->options.lease_ns / 2,
		.abandon = is_over,
		.abandon_arg = lease,
		.attempts = 2,
	};
	struct item row = {0};
	struct problem problem = {0};
	enum outcome o = lease->conn->store->ops->update(lease->conn,
		(struct item_key){lease->options.pk, "-"}, changes, 2, ours, 2, &limits, &row,
		&problem);
	if (o == OUTCOME_OK) /* the old version was still there when this very call was applied */
		renewed(lease, lease->pending, sent_ns);
	else if (o == OUTCOME_REFUSED)
		look_at(lease, &row);
	else if (!atomic_load(&lease->stopping))
		log_info("heartbeat: %s", problem.text);
	item_clear(&row);
	return !*lease->pending;
}

static void *run(void *arg)
{
	struct lease *lease = arg;
	const uint64_t period = lease->options.heartbeat_ns;
	uint64_t next = clock_boot_ns() + period;
	while (!atomic_load(&lease->stopping) && !atomic_load(&lease->lost)) {
		uint64_t now = clock_boot_ns();
		/* In slices: the wait's clock stops while the host is suspended, the lease does
		 * not. */
		if (now < next) {
			uint64_t left_ms = (next - now) / NS_PER_MS + 1;
			wait_ms(lease, left_ms < 200 ? left_ms : 200);
			continue;
		}
		if (beat(lease))
			next = lease_ends_ns(lease) - lease->options.lease_ns + period;
		else
			next = clock_boot_ns() + period / 4;
	}
	return NULL;
}

int lease_start(struct lease *lease, const char *version, uint64_t sent_ns)
{
	snprintf(lease->version, sizeof lease->version, "%s", version);
	atomic_store(&lease->ends_ns, sent_ns + lease->options.lease_ns);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&lease->thread, NULL, run, lease);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	lease->started = !error;
	return -error;
}

bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg)
{
	while (clock_boot_ns() + need_ns > lease_ends_ns(lease)) {
		if (lease_is_lost(lease) || (abandon && abandon(arg)))
			return false;
		wait_ms(lease, 100);
	}
	return !lease_is_lost(lease);
}

void lease_stop(struct lease *lease)
{
	atomic_store(&lease->stopping, true);
	wake(lease);
	if (lease->started)
		pthread_join(lease->thread, NULL);
	store_conn_free(lease->conn);
	pthread_cond_destroy(&lease->locked.changed);
	pthread_mutex_destroy(&lease->locked.mutex);
	free(lease);
}
