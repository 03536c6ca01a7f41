#include "store/store_sqlite_ticket.h"
#include "base/clock.h"
#include "base/thread.h"

#define LOOK_NS (100 * NS_PER_MS) /* how often a waiting caller looks at its limits */

int ticket_init(struct ticket *ticket)
{
	const int error = -pthread_mutex_init(&ticket->mutex, NULL);
	if (!error)
		thread_cond_init(&ticket->answered);
	return error;
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
		thread_cond_wait(&ticket->answered, &ticket->mutex, wait_ns);
	bool done = ticket->locked.done;
	pthread_mutex_unlock(&ticket->mutex);
	return done;
}
