/* Gives callers the credentials in force, and keeps them valid: a thread, the keeper, loads new
 * credentials before the present ones expire. */
#include "aws/credentials/credentials.h"
#include "aws/call.h"
#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AHEAD_MAX_S         (15 * 60) /* the time before the expiry at which AWS's SDKs begin to renew */
#define RETRY_MAX_MS        30000
#define CHECK_NS            (2 * NS_PER_S) /* the time between two checks of the files */
#define PATIENCE_DEFAULT_MS (5 * 60 * 1000)
#define UNSURE_PAUSE_NS                                                                            \
	(60 * NS_PER_S) /* the time between two loads after refusals of unclear cause */

/* The names of functions whose callers hold the mutex end in _locked. */

static bool same_keys(const struct credentials *a, const struct credentials *b)
{
	const char *token_a = a->session_token ? a->session_token : "";
	const char *token_b = b->session_token ? b->session_token : "";
	return strcmp(a->access_key, b->access_key) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(token_a, token_b) == 0;
}

/* Notes the stamps of the profile's files, by which a later write is noticed. */
static void stamp_files(const struct credentials_chain *chain, struct stamp ret[static 2])
{
	const struct credentials_options *options = &chain->loader.options;
	const char *const paths[] = {options->config_path, options->credentials_path};
	struct stat st;
	for (int i = 0; i < 2; i++) {
		/* A file that is missing has a stamp of zeros. */
		if (!paths[i] || stat(paths[i], &st) < 0)
			st = (struct stat){0};
		ret[i] = (struct stamp){.mtime_ns = clock_to_ns(st.st_mtim),
			.size = st.st_size,
			.inode = st.st_ino};
	}
}

/* Whether the credentials in force can be used: they are loaded, not refused, and not expired. */
static bool is_usable_locked(const struct credentials_chain *chain)
{
	const struct credentials *current = &chain->locked.current;
	return chain->locked.loaded && !chain->locked.is_refused &&
	       (!current->expires_s || clock_wall_s() < current->expires_s);
}

/* Returns the clock_boot_ns() at which to renew: AHEAD_MAX_S before the expiry, or a third of the
 * time until the expiry before it, if that is less. So credentials that live for only a few minutes
 * are not loaded over and over. The time is at least 1 s from now. */
static uint64_t next_renewal_ns(int64_t expires_s)
{
	if (!expires_s) /* credentials that never expire */
		return UINT64_MAX;
	const int64_t left_s = expires_s - clock_wall_s();
	const int64_t ahead_s = left_s / 3 < AHEAD_MAX_S ? left_s / 3 : AHEAD_MAX_S;
	const int64_t in_s = left_s - ahead_s > 1 ? left_s - ahead_s : 1;
	return clock_boot_ns() + (uint64_t)in_s * NS_PER_S;
}

/* Returns the clock_boot_ns() at which to load again after a failure. That is 0.5 to 1 s after the
 * first failure. Each further failure doubles this time, up to RETRY_MAX_MS. */
static uint64_t next_retry_ns_locked(const struct credentials_chain *chain)
{
	/* Six doublings already exceed RETRY_MAX_MS. */
	unsigned doublings = chain->locked.failures < 6 ? chain->locked.failures : 6;
	uint64_t max_ms = 500U << doublings;
	max_ms = max_ms < RETRY_MAX_MS ? max_ms : RETRY_MAX_MS;
	return clock_boot_ns() + (max_ms / 2 + random_below(max_ms / 2)) * NS_PER_MS;
}

/* Notes that the credentials in force cannot be used, since a server refuses them and a load has
 * found no others. Notes when to load again. */
static void note_refusal_locked(struct credentials_chain *chain)
{
	chain->locked.is_refused = true;
	chain->locked.failures++;
	chain->locked.next_ns = next_retry_ns_locked(chain);
}

/* Warns once that the credentials in force, which can still be used, cannot be renewed. */
static void warn_late_locked(struct credentials_chain *chain)
{
	if (chain->locked.has_warned_late)
		return;
	const int64_t expires_s = chain->locked.current.expires_s;
	char until[21];
	clock_format_iso(expires_s, until);
	log_warning("the credentials cannot be renewed: %s; those in use are good %s%s, trying on",
		chain->locked.problem.text, expires_s ? "until " : "for now",
		expires_s ? until : "");
	chain->locked.has_warned_late = true;
}

/* Notes that a load has failed, and when to load again. The credentials in force stay as they
 * are. */
static void note_failure_locked(struct credentials_chain *chain)
{
	chain->locked.failures++;
	/* Before the first credentials there is no automatic retry: only credentials_get() asks
	 * again. */
	chain->locked.next_ns = chain->locked.loaded ? next_retry_ns_locked(chain) : UINT64_MAX;
	/* Once the credentials cannot be used, poll_patience_is_over_locked() warns instead. */
	if (is_usable_locked(chain))
		warn_late_locked(chain);
}

/* Puts loaded credentials in force, and takes over their memory. If they are the keys that a server
 * has refused, they stay refused. */
static void put_in_force_locked(struct credentials_chain *chain, const struct credentials *fresh)
{
	struct credentials *current = &chain->locked.current;
	const bool is_same = chain->locked.loaded && same_keys(fresh, current);
	credentials_wipe(current);
	*current = *fresh;
	chain->locked.loaded = true;
	if (is_same && chain->locked.is_refused) {
		note_refusal_locked(chain);
		return;
	}
	if (!is_same)
		atomic_fetch_add(&chain->generation, 1);
	if (chain->locked.has_warned_paused)
		log_info("there are valid credentials again: going on");
	chain->locked.is_refused = chain->locked.has_warned_late = chain->locked.has_warned_paused =
		false;
	chain->locked.failures = 0;
	chain->locked.paused_ns = 0;
	chain->locked.next_ns = next_renewal_ns(current->expires_s);
}

/* Loads credentials, and puts them in force or notes why there are none. Releases the mutex while
 * the providers work, since that may take long. Only the keeper calls it, so `loader` and `stamps`
 * need no mutex. */
static void load_locked(struct credentials_chain *chain)
{
	struct credentials fresh = {0};
	struct problem problem = {0};
	chain->locked.wanted = false;
	chain->locked.begun++;
	uv_mutex_unlock(&chain->mutex);
	/* The stamps come first, so that a file that is written during the load is read again. */
	stamp_files(chain, chain->stamps);
	int error = credentials_providers_load(&chain->loader, &fresh, &problem);
	uv_mutex_lock(&chain->mutex);
	chain->locked.error = error;
	chain->locked.problem = problem;
	if (error)
		note_failure_locked(chain);
	else
		put_in_force_locked(chain, &fresh);
	chain->locked.ended = chain->locked.begun;
	chain->locked.ended_ns = clock_boot_ns();
	uv_cond_broadcast(&chain->changed);
}

/* The keeper's thread. Loads credentials on request. Once there are credentials, also loads when
 * new ones are due, or when the profile's files have changed. */
static void keep_credentials(void *arg)
{
	struct credentials_chain *chain = arg;
	struct stamp now[2];
	uv_mutex_lock(&chain->mutex);
	while (!chain->locked.stopping) {
		uint64_t now_ns = clock_boot_ns();
		stamp_files(chain, now); /* a stamp has no padding, so memcmp() compares them */
		const bool has_new_files = memcmp(now, chain->stamps, sizeof now) != 0;
		if (chain->locked.wanted || now_ns >= chain->locked.next_ns ||
			(chain->locked.loaded && has_new_files)) {
			load_locked(chain);
			continue;
		}
		/* Sleeps until the next load or the next check of the files is due. */
		const uint64_t check_ns = now_ns + CHECK_NS, next_ns = chain->locked.next_ns;
		wait_until(chain->locked.wanted || chain->locked.stopping, .cond = &chain->changed,
			.mutex = &chain->mutex,
			.deadline_ns = next_ns < check_ns ? next_ns : check_ns);
	}
	uv_mutex_unlock(&chain->mutex);
}

int credentials_chain_new(const struct credentials_options *options, struct credentials_chain **ret)
{
	struct credentials_chain *chain = calloc(1, sizeof *chain);
	if (!chain)
		return -ENOMEM;
	chain->loader.options = *options;
	uint64_t patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_DEFAULT_MS;
	chain->patience_ns = patience_ms * NS_PER_MS;
	chain->locked.next_ns = UINT64_MAX; /* the first load has to be requested */
	uv_cond_init(&chain->changed);
	uv_mutex_init(&chain->mutex);
	*ret = chain;
	return 0;
}

void credentials_chain_free(struct credentials_chain *chain)
{
	if (!chain)
		return;
	atomic_store(&chain->loader.stopped, true);
	uv_mutex_lock(&chain->mutex);
	chain->locked.stopping = true;
	uv_cond_broadcast(&chain->changed);
	uv_mutex_unlock(&chain->mutex);
	if (chain->locked.keeper_runs)
		uv_thread_join(&chain->keeper);
	http_free(chain->loader.http);
	http_shared_free(chain->loader.shared);
	credentials_wipe(&chain->locked.current);
	uv_cond_destroy(&chain->changed);
	uv_mutex_destroy(&chain->mutex);
	free(chain);
}

/* Waits until load number `number` has ended; false if the limits end the wait before. */
static bool await_load_locked(
	struct credentials_chain *chain, unsigned number, const struct call_limits *limits)
{
	/* The difference is right even after the numbers have wrapped around to 0. */
	return wait_until((int)(chain->locked.ended - number) >= 0, .cond = &chain->changed,
		       .mutex = &chain->mutex, .deadline_ns = limits->deadline_ns,
		       .abandon = limits->abandon, .arg = limits->abandon_arg) == WAIT_MET;
}

/* Requests a new load from the keeper, which begins after this call. Returns its number. A load
 * that is under way ends first. */
static unsigned want_load_locked(struct credentials_chain *chain)
{
	chain->locked.wanted = true;
	uv_cond_broadcast(&chain->changed);
	return chain->locked.begun + 1;
}

/* Warns once that calls wait since there are no usable credentials. */
static void warn_paused_locked(struct credentials_chain *chain)
{
	if (chain->locked.has_warned_paused)
		return;
	log_warning("paused: the credentials are no longer valid and cannot be renewed: %s; "
		    "waiting up to %llu s for others",
		chain->locked.error ? chain->locked.problem.text
				    : "the server refuses them, and there are no others yet",
		(unsigned long long)(chain->patience_ns / NS_PER_S));
	chain->locked.has_warned_paused = true;
}

/* Whether the pause, which is the time without usable credentials, has used up the patience. False
 * before a load has failed, or has brought only keys that a server had refused. After such a load,
 * the first call also warns of the pause. */
static bool poll_patience_is_over_locked(struct credentials_chain *chain)
{
	if (!chain->locked.failures)
		return false;
	warn_paused_locked(chain);
	return clock_boot_ns() - chain->locked.paused_ns >= chain->patience_ns;
}

/* Waits until the credentials are usable, or the patience or the limits have ended. Returns 0;
 * -ECANCELED if the limits have ended; otherwise the -errno of the load, or -EKEYEXPIRED. */
static int await_usable_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	if (!chain->locked.paused_ns)
		chain->locked.paused_ns = clock_boot_ns();
	/* After a failure the keeper loads by itself, at next_ns. */
	const bool is_under_way = chain->locked.begun != chain->locked.ended;
	if (!chain->locked.wanted && !is_under_way && !chain->locked.failures)
		want_load_locked(chain);
	/* Nothing signals the end of the patience. But with a deadline, even that of UINT64_MAX,
	 * wait_until() tests the condition every 200 ms. */
	const uint64_t deadline_ns = limits->deadline_ns ? limits->deadline_ns : UINT64_MAX;
	const enum waited waited =
		wait_until(is_usable_locked(chain) || poll_patience_is_over_locked(chain),
			.cond = &chain->changed, .mutex = &chain->mutex, .deadline_ns = deadline_ns,
			.abandon = limits->abandon, .arg = limits->abandon_arg);
	if (waited != WAIT_MET)
		return problem_error(
			ret_problem, -ECANCELED, "it was given up before there were credentials");
	if (is_usable_locked(chain))
		return 0;
	/* If the last load has succeeded, it has brought keys that a server had refused. */
	*ret_problem = chain->locked.problem;
	if (!chain->locked.error)
		problem_set(ret_problem, "the server refuses the credentials");
	problem_prefix(ret_problem, "no valid credentials for %llu s",
		(unsigned long long)(chain->patience_ns / NS_PER_S));
	return chain->locked.error ? chain->locked.error : -EKEYEXPIRED;
}

/* Waits until the load that is under way, or else one that this call asks for, has ended. Returns
 * its result, or -ECANCELED if the limits end the wait. */
static int await_any_load_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	const bool is_under_way = chain->locked.begun > chain->locked.ended;
	const unsigned number = is_under_way ? chain->locked.begun : want_load_locked(chain);
	if (!await_load_locked(chain, number, limits))
		return problem_error(
			ret_problem, -ECANCELED, "it was given up before there were credentials");
	*ret_problem = chain->locked.problem;
	return chain->locked.error;
}

/* Starts the keeper if it does not run yet. Returns 0, or -errno with a sentence. */
static int start_keeper_locked(struct credentials_chain *chain, struct problem *ret_problem)
{
	if (chain->locked.keeper_runs)
		return 0;
	const int error = thread_start_patiently(&chain->keeper, keep_credentials, chain);
	if (error)
		problem_set(ret_problem, PROBLEM_NO_THREAD);
	chain->locked.keeper_runs = error == 0;
	return error;
}

int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem)
{
	struct problem problem = {0};
	limits = limits ? limits : &no_limits;
	uv_mutex_lock(&chain->mutex);
	int error = start_keeper_locked(chain, &problem);
	/* Before a server has accepted any credentials, a load that fails shows a wrong setup. So
	 * await_any_load_locked() returns the first failure, while await_usable_locked() waits for
	 * later loads. */
	const bool were_good = chain->locked.loaded && atomic_load(&chain->accepted);
	if (error == 0 && !is_usable_locked(chain))
		error = were_good ? await_usable_locked(chain, limits, &problem)
				  : await_any_load_locked(chain, limits, &problem);
	if (error == 0) {
		error = credentials_copy(&chain->locked.current, ret);
		*ret_generation = atomic_load(&chain->generation);
	}
	uv_mutex_unlock(&chain->mutex);
	if (error && ret_problem)
		*ret_problem = problem;
	return error;
}

unsigned credentials_generation(const struct credentials_chain *chain)
{
	return atomic_load(&chain->generation);
}

void credentials_accepted(struct credentials_chain *chain)
{
	/* Every successful request comes here, and a load is cheaper than a store. */
	if (!atomic_load_explicit(&chain->accepted, memory_order_relaxed))
		atomic_store(&chain->accepted, true);
}

/* Whether this generation is still in force, and no call has noted a refusal of it. */
static bool counts_as_good_locked(const struct credentials_chain *chain, unsigned generation)
{
	return atomic_load(&chain->generation) == generation && !chain->locked.is_refused;
}

/* Implements credentials_refused(), with the mutex held. */
static bool handle_refusal_locked(struct credentials_chain *chain, unsigned generation,
	bool is_sure, const struct call_limits *limits)
{
	/* Other credentials are in force, or this refusal is known: the next credentials_get()
	 * returns the others, or waits for some. It also starts the keeper, without which no load
	 * is possible. */
	if (!counts_as_good_locked(chain, generation) || !chain->locked.keeper_runs)
		return true;
	/* A refusal that does not name expired credentials may have many other reasons, and may
	 * occur with each file. So it causes a load only now and then, and only if the credentials
	 * have a session token, since others do not expire. */
	const bool can_expire = chain->locked.current.session_token != NULL;
	const bool was_loaded_lately = clock_boot_ns() - chain->locked.ended_ns < UNSURE_PAUSE_NS;
	if (!is_sure && (!can_expire || was_loaded_lately))
		return false;
	/* If the wait for the load is given up, the next credentials_get() returns the result. */
	if (!await_load_locked(chain, want_load_locked(chain), limits) ||
		!counts_as_good_locked(chain, generation))
		return true;
	/* The load has failed, or has yielded the same credentials. */
	const bool others_may_come =
		chain->locked.error || (atomic_load(&chain->accepted) && !chain->loader.is_fixed);
	if (!is_sure || !others_may_come)
		return false;
	note_refusal_locked(chain);
	return true;
}

bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits)
{
	uv_mutex_lock(&chain->mutex);
	const bool may_retry =
		handle_refusal_locked(chain, generation, is_sure, limits ? limits : &no_limits);
	uv_mutex_unlock(&chain->mutex);
	return may_retry;
}
