#include "store/store_sqlite_ticket.h"
#include "base/clock.h"
#include <time.h>

#define LOOK_NS (100 * NS_PER_MS) /* how often a waiting caller looks at its limits */

static int cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int r = pthread_condattr_init(&attributes);

	if (r)
		return -r;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	r = pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
	return -r;
}

static void cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / NS_PER_S);
	until.tv_nsec = (long)(ns % NS_PER_S);
	pthread_cond_timedwait(cond, mutex, &until);
}

int ticket_init(struct ticket *ticket)
{
	int r = cond_init(&ticket->answered);

	if (!r && (r = -pthread_mutex_init(&ticket->mutex, NULL)))
		pthread_cond_destroy(&ticket->answered);
	return r;
}

void ticket_clear(struct ticket *ticket)
{
	pthread_cond_destroy(&ticket->answered);
	pthread_mutex_destroy(&ticket->mutex);
}

void ticket_reset(struct ticket *ticket)
{
	pthread_mutex_lock(&ticket->mutex);
	ticket->locked.done = false;
	pthread_mutex_unlock(&ticket->mutex);
}

void ticket_answer(struct ticket *ticket)
{
	pthread_mutex_lock(&ticket->mutex);
	ticket->locked.done = true;
	pthread_cond_signal(&ticket->answered);
	pthread_mutex_unlock(&ticket->mutex);
}

bool ticket_wait(struct ticket *ticket, const struct call_limits *limits)
{
	uint64_t wait_ns = LOOK_NS, now_ns = limits->deadline_ns ? clock_boot_ns() : 0;

	if (limits->deadline_ns > now_ns && limits->deadline_ns - now_ns < wait_ns)
		wait_ns = limits->deadline_ns - now_ns;
	pthread_mutex_lock(&ticket->mutex);
	if (!ticket->locked.done)
		cond_wait_ns(&ticket->answered, &ticket->mutex, wait_ns);
	bool done = ticket->locked.done;
	pthread_mutex_unlock(&ticket->mutex);
	return done;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
