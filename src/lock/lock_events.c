/* The queue of the events of a client's locks. An application reads them when a file descriptor is
 * readable, or a thread of the queue calls the application's callback with them. */
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lock_event {
	struct lock_event *next;
	struct s3once_lock_event event; /* its strings point to the arrays below */
	char key[LOCK_KEY_MAX + 1], sort[LOCK_KEY_MAX + 1];
	char text[LEASE_TEXT_MAX], owner[LEASE_TEXT_MAX];
};

_Static_assert(
	(int)LEASE_OUTAGE == (int)S3ONCE_LOCK_OUTAGE && (int)LEASE_LOST == (int)S3ONCE_LOCK_LOST,
	"the events of leases are those of locks");

void lock_events_add(void *arg, enum lease_event event, const char *text, const char *owner)
{
	struct s3once_lock *lock = arg;
	struct lock_events *events = &lock->locks->events;
	struct lock_event *e = calloc(1, sizeof *e);
	if (!e) {
		log_error("lock %s: %s (and no memory to report it)", quote(lock->key).text, text);
		return;
	}
	e->event = (struct s3once_lock_event){.type = (enum s3once_lock_event_type)event,
		.key = e->key,
		.sort_key = e->sort,
		.text = e->text,
		.owner = e->owner};
	/* An outage is one of the store, so its event names no lock. */
	if (event != LEASE_OUTAGE) {
		e->event.lock = lock;
		memcpy(e->key, lock->key, sizeof e->key);
		memcpy(e->sort, lock->sort, sizeof e->sort);
	}
	snprintf(e->text, sizeof e->text, "%s", text);
	snprintf(e->owner, sizeof e->owner, "%s", owner);
	uv_mutex_lock(&events->mutex);
	if (events->locked.first)
		events->locked.last->next = e;
	else
		events->locked.first = e; /* and `last` had no meaning so far */
	events->locked.last = e;
	if (events->fd >= 0)
		eventfd_write(events->fd, 1);
	uv_cond_signal(&events->came);
	uv_mutex_unlock(&events->mutex);
}

/* Takes out the first event, which the caller frees, or returns NULL. The descriptor is readable as
 * long as events wait, so taking the last one reads it. */
static struct lock_event *pop_locked(struct lock_events *events)
{
	struct lock_event *e = events->locked.first;
	if (e)
		events->locked.first = e->next;
	eventfd_t n;
	if (events->fd >= 0 && e && !events->locked.first)
		eventfd_read(events->fd, &n);
	return e;
}

/* The thread that calls the callback with each event. */
static void deliver_events(void *arg)
{
	struct lock_events *events = arg;
	uv_mutex_lock(&events->mutex);
	for (;;) {
		wait_until(events->locked.first || events->locked.stopping, .cond = &events->came,
			.mutex = &events->mutex);
		if (events->locked.stopping)
			break;
		struct lock_event *e = pop_locked(events);
		uv_mutex_unlock(&events->mutex);
		events->callback(events->callback_arg, &e->event);
		free(e);
		uv_mutex_lock(&events->mutex);
	}
	uv_mutex_unlock(&events->mutex);
}

int lock_events_init(struct lock_events *events, s3once_lock_callback *callback, void *callback_arg)
{
	*events =
		(struct lock_events){.fd = -1, .callback = callback, .callback_arg = callback_arg};
	uv_mutex_init(&events->mutex);
	uv_cond_init(&events->came);
	if (!callback) {
		events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		return events->fd < 0 ? -errno : 0;
	}
	int error = thread_start(&events->thread, deliver_events, events);
	if (error)
		events->callback = NULL; /* no thread was started */
	return error;
}

void lock_events_stop(struct lock_events *events)
{
	uv_mutex_lock(&events->mutex);
	events->locked.stopping = true;
	uv_cond_signal(&events->came);
	uv_mutex_unlock(&events->mutex);
	if (events->callback)
		uv_thread_join(&events->thread);
	events->callback = NULL; /* the thread has ended */
}

void lock_events_clear(struct lock_events *events)
{
	for (struct lock_event *e;
		(e = pop_locked(events));) /* no lock needed: no other thread is left */
		free(e);
	if (events->fd >= 0)
		close(events->fd);
	uv_cond_destroy(&events->came);
	uv_mutex_destroy(&events->mutex);
}

void lock_events_forget(struct lock_events *events, const struct s3once_lock *lock)
{
	uv_mutex_lock(&events->mutex);
	for (struct lock_event *e = events->locked.first; e; e = e->next)
		if (e->event.lock == lock)
			e->event.lock = NULL;
	uv_mutex_unlock(&events->mutex);
}

int s3once_locks_event_fd(const struct s3once_locks *locks)
{
	return locks->events.fd;
}

int s3once_locks_next_event(struct s3once_locks *locks, s3once_lock_callback *callback, void *arg)
{
	uv_mutex_lock(&locks->events.mutex);
	struct lock_event *e = pop_locked(&locks->events);
	uv_mutex_unlock(&locks->events.mutex);
	if (!e)
		return 0;
	callback(arg, &e->event);
	free(e);
	return 1;
}
