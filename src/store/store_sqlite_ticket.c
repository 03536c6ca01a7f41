#include "store/store_sqlite_ticket.h"
#include "base/clock.h"

#define LOOK_NS (100 * NS_PER_MS) /* how often a waiting caller looks at its limits */

int ticket_init(struct ticket *ticket)
{
	return thread_sem_init(&ticket->answered);
}

void ticket_clear(struct ticket *ticket)
{
	thread_sem_destroy(&ticket->answered);
}

void ticket_answer(struct ticket *ticket)
{
	thread_sem_post(&ticket->answered);
}

bool ticket_wait(struct ticket *ticket, const struct call_limits *limits)
{
	uint64_t wait_ns = LOOK_NS, now_ns = limits->deadline_ns ? clock_boot_ns() : 0;

	if (limits->deadline_ns > now_ns && limits->deadline_ns - now_ns < wait_ns)
		wait_ns = limits->deadline_ns - now_ns;
	return thread_sem_wait(&ticket->answered, wait_ns);
}
