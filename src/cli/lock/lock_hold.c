/* `s3once lock acquire`, `renew` and `release`: a lock held from one process to the next, without
 * heartbeats, by its handle. */
#include "base/log.h"
#include "cli/json.h"
#include "cli/lock/lock_command.h"
#include <errno.h>
#include <stdio.h>

#define HANDLE_MAX 3200

static void tell_held(const struct lock_options *options, struct s3once_lock *lock)
{
	char handle[HANDLE_MAX];
	s3once_lock_handle(lock, handle, sizeof handle);
	if (!options->json) {
		printf("%s\n", handle);
		return;
	}
	json_t *object = json_event("held");
	json_set_bytes(object, "key", s3once_lock_key(lock));
	json_set_bytes(object, "handle", handle);
	json_set_bytes(object, "owner", s3once_lock_owner(lock));
	json_set_number(object, "token", s3once_lock_token(lock));
	json_set_number(object, "slot", s3once_lock_slot(lock));
	json_set_number(object, "remaining_ms", s3once_lock_remaining_ms(lock));
	lock_print(object);
}

static int lock_acquire_once(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock *lock;
	struct s3once_lock_error error = {0};
	const struct s3once_lock_request request = lock_request(options, operands[0]);
	(void)n;
	if (!options->lease_ms) {
		log_error(
			"lock acquire: say with --lease how long it is to be held: nothing renews "
			"it but lock renew");
		return S3ONCE_EXIT_USAGE;
	}
	int code = lock_open(options, 1, &locks);
	if (!code)
		code = lock_exit(
			options, s3once_lock_acquire(locks, &request, &lock, &error), &error);
	if (!code)
		tell_held(options, lock);
	if (!code && (fflush(stdout) || ferror(stdout))) {
		log_error("lock acquire: the handle cannot be printed: the lock is released again");
		s3once_lock_release(lock, NULL);
		code = S3ONCE_EXIT_SETUP;
	}
	s3once_locks_free(locks);
	return code;
}

/* What renew and release have in common: the lock of a handle. */
static int resume_by_handle(const struct lock_options *options, const char *handle,
	struct s3once_locks **ret_locks, struct s3once_lock **ret)
{
	struct s3once_lock_error error = {0};
	int code = lock_open(options, 1, ret_locks);
	if (!code)
		code = lock_exit(
			options, s3once_lock_resume(*ret_locks, handle, ret, &error), &error);
	return code;
}

static int renew_once(const struct lock_options *options, struct s3once_lock *lock,
	struct s3once_lock_error *error)
{
	return options->for_ms ? s3once_lock_ensure(lock, options->for_ms, error)
			       : s3once_lock_heartbeat(lock, error);
}

static int lock_renew_once(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock *lock;
	struct s3once_lock_error error = {0};
	(void)n;
	int code = resume_by_handle(options, operands[0], &locks, &lock);
	int r = code ? 0 : renew_once(options, lock, &error);
	/* Another process may have renewed it at the same time: then it is still ours. */
	for (int i = 0; i < 3 && r == -ESTALE; i++) {
		if (s3once_lock_resume(locks, operands[0], &lock, &error))
			break;
		r = renew_once(options, lock, &error);
	}
	if (!code)
		code = lock_exit(options, r, &error);
	if (!code)
		tell_held(options, lock);
	s3once_locks_free(locks);
	return code;
}

static int lock_release_once(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock *lock;
	struct s3once_lock_error error = {0};
	(void)n;
	int code = resume_by_handle(options, operands[0], &locks, &lock);
	if (!code)
		code = lock_exit(options, s3once_lock_release(lock, &error), &error);
	if (!code && options->json) {
		json_t *object = json_event("released");
		json_set_bytes(object, "key", s3once_lock_key(lock));
		lock_print(object);
	}
	s3once_locks_free(locks);
	return code;
}

const struct lock_command lock_acquire_command = {
	.name = "acquire",
	.description = "acquire a lock and keep it after this command",
	.operands = "KEY",
	.about =
		"Waits for the lock and prints a handle, by which lock renew and lock release go on\n"
		"from any process or host. Nothing renews it meanwhile: --lease is how long it is held.\n",
	.examples =
		"  handle=$(s3once lock acquire --lease 10m deploy) && ./deploy.sh\n"
		"  s3once lock release \"$handle\"\n"
		"\n"
		"Exit codes: 0 held; 2 usage; 3 service; 4 held by another. More: man s3once-lock\n",
	.groups = {lock_wait_options, lock_key_options},
	.least = 1,
	.most = 1,
	.run = lock_acquire_once,
};

static const struct option renew_options[] = {
	{.name = "for",
		.type = OPTION_DURATION,
		.offset = offsetof(struct lock_options, for_ms),
		.argument = "DUR",
		.help = "at least this long from now; at most 21h [the lease it\nwas acquired with]",
		.least = 1,
		.most = 21 * 3600 * 1000},
	{NULL},
};

const struct lock_command lock_renew_command = {
	.name = "renew",
	.description = "hold a lock for longer, by its handle",
	.operands = "HANDLE",
	.about = "Renews the lease of a lock that lock acquire got. Prints the handle to use\n"
		 "from now on; the one before stays good, and renews with its own lease.\n",
	.examples =
		"  s3once lock renew \"$handle\"\n"
		"\n"
		"Exit codes: 0 renewed; 2 usage; 3 service; 5 lost, or released. More: man s3once-lock\n",
	.groups = {renew_options},
	.least = 1,
	.most = 1,
	.run = lock_renew_once,
};

static const struct option no_options[] = {{NULL}};

const struct lock_command lock_release_command = {
	.name = "release",
	.description = "release a lock, by its handle",
	.operands = "HANDLE",
	.about = "Releases a lock that lock acquire got.\n",
	.examples =
		"  s3once lock release \"$handle\"\n"
		"\n"
		"Exit codes: 0 released; 2 usage; 3 service; 5 it was lost, or released before.\n",
	.groups = {no_options},
	.least = 1,
	.most = 1,
	.run = lock_release_once,
};
