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

#define AHEAD_MAX_S         (15 * 60) /* so long before the expiry AWS's SDKs begin to renew */
#define RETRY_MAX_MS        30000
#define LOOK_NS             (2 * NS_PER_S) /* between two looks at the files */
#define PATIENCE_DEFAULT_MS (5 * 60 * 1000)
#define GUESS_NS            (60 * NS_PER_S) /* between two loads after refusals of unclear cause */

/* Functions that need the mutex end in _locked. */

static bool same_keys(const struct credentials *a, const struct credentials *b)
{
	const char *token_a = a->session_token ? a->session_token : "";
	const char *token_b = b->session_token ? b->session_token : "";
	return strcmp(a->access_key, b->access_key) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(token_a, token_b) == 0;
}

/* Notes what the profile's files look like now, to see later whether they were written. */
static void stamp_files(const struct credentials_chain *chain, struct stamp ret[static 2])
{
	const struct credentials_options *options = &chain->loader.options;
	const char *const paths[] = {options->config_path, options->credentials_path};
	struct stat st;
	for (int i = 0; i < 2; i++) {
		if (!paths[i] || stat(paths[i], &st) < 0)
			st = (struct stat){0};
		ret[i] = (struct stamp){
			.mtime_ns = st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec,
			.size = st.st_size,
			.inode = st.st_ino};
	}
}

static bool files_changed(const struct credentials_chain *chain)
{
	struct stamp now[2];
	stamp_files(chain, now);
	return memcmp(now, chain->stamps, sizeof now) != 0; /* a stamp has no holes */
}

/* Whether the credentials in force can be used: they are loaded, not refused, and not expired. */
static bool usable_locked(const struct credentials_chain *chain)
{
	const struct credentials *current = &chain->locked.current;
	return chain->locked.loaded && !chain->locked.is_refused &&
	       (!current->expires_s || clock_wall_s() < current->expires_s);
}

/* Returns the clock_boot_ns() at which to renew: AHEAD_MAX_S before the expiry, or when two thirds
 * of the time until then have passed, if that is later. So credentials with a short life are not
 * loaded over and over. */
static uint64_t renewal_ns(int64_t expires_s)
{
	if (!expires_s)
		return UINT64_MAX;
	int64_t left_s = expires_s - clock_wall_s();
	int64_t ahead_s = left_s / 3 < AHEAD_MAX_S ? left_s / 3 : AHEAD_MAX_S;
	int64_t in_s = left_s - ahead_s > 1 ? left_s - ahead_s : 1;
	return clock_boot_ns() + (uint64_t)in_s * NS_PER_S;
}

/* Returns the clock_boot_ns() at which to load again after a failure. That is 0.5 to 1 s after the
 * first failure. Each further failure doubles this time, up to RETRY_MAX_MS. */
static uint64_t retry_ns(const struct credentials_chain *chain)
{
	unsigned doublings = chain->locked.failures < 6 ? chain->locked.failures : 6;
	uint64_t most_ms = 500U << doublings;
	most_ms = most_ms < RETRY_MAX_MS ? most_ms : RETRY_MAX_MS;
	return clock_boot_ns() + (most_ms / 2 + random_below(most_ms / 2)) * NS_PER_MS;
}

/* Notes that the credentials in force cannot be used: a server refuses them, and a load has found
 * no others. */
static void note_refusal_locked(struct credentials_chain *chain)
{
	chain->locked.is_refused = true;
	chain->locked.failures++;
	chain->locked.next_ns = retry_ns(chain);
}

/* Notes that a load has failed. The credentials in force stay as they are. */
static void note_failure_locked(struct credentials_chain *chain)
{
	chain->locked.failures++;
	/* Before the first credentials there is no automatic retry: only credentials_get() asks
	 * again. */
	chain->locked.next_ns = chain->locked.loaded ? retry_ns(chain) : UINT64_MAX;
	if (!usable_locked(chain) || chain->locked.said_late)
		return;
	char until[21];
	clock_format_iso(chain->locked.current.expires_s, until);
	log_warning("the credentials cannot be renewed: %s; those in use are good %s%s, trying on",
		chain->locked.problem.text, chain->locked.current.expires_s ? "until " : "for now",
		chain->locked.current.expires_s ? until : "");
	chain->locked.said_late = true;
}

/* Loads credentials, and puts them in force or notes why there are none. The mutex is free
 * meanwhile, since a load may take long. */
static void load_locked(struct credentials_chain *chain)
{
	struct credentials fresh = {0}, *current = &chain->locked.current;
	struct problem problem = {0};
	chain->locked.wanted = false;
	chain->locked.begun++;
	uv_mutex_unlock(&chain->mutex);
	stamp_files(chain, chain->stamps);
	int error = credentials_providers_load(&chain->loader, &fresh, &problem);
	uv_mutex_lock(&chain->mutex);
	chain->locked.error = error;
	chain->locked.problem = problem;
	if (error) {
		note_failure_locked(chain);
	} else {
		const bool same = chain->locked.loaded && same_keys(&fresh, current);
		if (!same)
			atomic_fetch_add(&chain->generation, 1);
		/* If the server has refused the keys, only other keys end that. */
		chain->locked.is_refused = chain->locked.is_refused && same;
		credentials_wipe(current);
		*current = fresh;
		chain->locked.loaded = true;
	}
	/* If the load has brought only the keys that a server has refused, the refusal stands. */
	if (!error && chain->locked.is_refused) {
		note_refusal_locked(chain);
	} else if (!error) {
		if (chain->locked.said_paused)
			log_info("there are valid credentials again: going on");
		chain->locked.failures = 0;
		chain->locked.said_late = chain->locked.said_paused = false;
		chain->locked.paused_ns = 0;
		chain->locked.next_ns = renewal_ns(current->expires_s);
	}
	chain->locked.ended = chain->locked.begun;
	chain->locked.ended_ns = clock_boot_ns();
	uv_cond_broadcast(&chain->changed);
}

/* The keeper's thread. Loads credentials when that is asked for or due, or when the profile's files
 * have changed. */
static void keep_credentials(void *arg)
{
	struct credentials_chain *chain = arg;
	uv_mutex_lock(&chain->mutex);
	while (!chain->locked.stopping) {
		uint64_t now_ns = clock_boot_ns();
		bool is_due = chain->locked.wanted || now_ns >= chain->locked.next_ns ||
			      (chain->locked.loaded && files_changed(chain));
		if (is_due) {
			load_locked(chain);
			continue;
		}
		const uint64_t look_ns = now_ns + LOOK_NS, next_ns = chain->locked.next_ns;
		wait_until(chain->locked.wanted || chain->locked.stopping, .told = &chain->changed,
			.mutex = &chain->mutex,
			.deadline_ns = next_ns < look_ns ? next_ns : look_ns);
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
	chain->locked.next_ns = UINT64_MAX;
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
	return wait_until((int)(chain->locked.ended - number) >= 0, .told = &chain->changed,
		       .mutex = &chain->mutex, .deadline_ns = limits->deadline_ns,
		       .abandon = limits->abandon, .arg = limits->abandon_arg) == WAIT_MET;
}

/* Asks the keeper for a new load, which begins after this call. Returns its number. */
static unsigned want_load_locked(struct credentials_chain *chain)
{
	chain->locked.wanted = true;
	uv_cond_broadcast(&chain->changed);
	return chain->locked.begun + 1;
}

/* Whether the pause, which is the time without usable credentials, has used up the patience. That
 * is never so before a load has failed, or has brought only keys that a server had refused. After
 * that, the first call warns of the pause. */
static bool is_patience_over_locked(struct credentials_chain *chain)
{
	if (!chain->locked.failures)
		return false;
	if (!chain->locked.said_paused)
		log_warning(
			"paused: the credentials are no longer valid and cannot be renewed: %s; "
			"waiting up to %llu s for others",
			chain->locked.error
				? chain->locked.problem.text
				: "the server refuses them, and there are no others yet",
			(unsigned long long)(chain->patience_ns / NS_PER_S));
	chain->locked.said_paused = true;
	return clock_boot_ns() - chain->locked.paused_ns >= chain->patience_ns;
}

/* Waits until the credentials are usable, or the patience or the limits have ended. Returns 0;
 * -ECANCELED if the limits have ended; otherwise the -errno of the load, or -EKEYEXPIRED. */
static int await_usable_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	if (!chain->locked.paused_ns)
		chain->locked.paused_ns = clock_boot_ns();
	if (!chain->locked.wanted && chain->locked.begun == chain->locked.ended &&
		!chain->locked.failures)
		want_load_locked(chain);
	const enum waited waited =
		wait_until(usable_locked(chain) || is_patience_over_locked(chain),
			.told = &chain->changed, .mutex = &chain->mutex,
			.deadline_ns = limits->deadline_ns ? limits->deadline_ns : UINT64_MAX,
			.abandon = limits->abandon, .arg = limits->abandon_arg);
	if (waited != WAIT_MET)
		return problem_error(
			ret_problem, -ECANCELED, "it was given up before there were credentials");
	if (usable_locked(chain))
		return 0;
	*ret_problem = chain->locked.problem;
	if (!chain->locked.error)
		problem_set(ret_problem, "the server refuses the credentials");
	problem_prefix(ret_problem, "no valid credentials for %llu s",
		(unsigned long long)(chain->patience_ns / NS_PER_S));
	return chain->locked.error ? chain->locked.error : -EKEYEXPIRED;
}

/* Waits until the load that is under way, or else one that this call asks for, has ended. Returns
 * its result, or -ECANCELED if the limits end the wait. */
static int await_first_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	unsigned number = chain->locked.begun > chain->locked.ended ? chain->locked.begun
								    : want_load_locked(chain);
	if (!await_load_locked(chain, number, limits))
		return problem_error(
			ret_problem, -ECANCELED, "it was given up before there were credentials");
	*ret_problem = chain->locked.problem;
	return chain->locked.error;
}

int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem)
{
	struct problem problem = {0};
	limits = limits ? limits : &no_limits;
	uv_mutex_lock(&chain->mutex);
	int error = chain->locked.keeper_runs
			    ? 0
			    : thread_start_patiently(&chain->keeper, keep_credentials, chain);
	chain->locked.keeper_runs = error == 0;
	/* Before a server has accepted any credentials, a load that fails shows a wrong setup. So
	 * await_first_locked() returns the first failure, while await_usable_locked() waits for
	 * later loads. */
	if (error)
		problem_set(&problem, PROBLEM_NO_THREAD);
	else if (!usable_locked(chain))
		error = chain->locked.loaded && atomic_load(&chain->accepted)
				? await_usable_locked(chain, limits, &problem)
				: await_first_locked(chain, limits, &problem);
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
	if (!atomic_load_explicit(&chain->accepted, memory_order_relaxed))
		atomic_store(&chain->accepted, true);
}

bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits)
{
	bool is_worth_it = true;
	limits = limits ? limits : &no_limits;
	uv_mutex_lock(&chain->mutex);
	/* If this is no news, another caller has noted the refusal, or there are other credentials
	 * by now. Then credentials_get() knows what to do, and the caller tries again. */
	const bool is_news =
		atomic_load(&chain->generation) == generation && !chain->locked.is_refused;
	/* A refusal that does not name expired credentials may have many other reasons, and may
	 * occur with each file. So it leads to a load only now and then. */
	const bool may_have_expired = chain->locked.current.session_token &&
				      clock_boot_ns() - chain->locked.ended_ns >= GUESS_NS;
	const bool can_load = is_news && chain->locked.keeper_runs;
	if (can_load && !is_sure && !may_have_expired) {
		is_worth_it = false;
	} else if (can_load && await_load_locked(chain, want_load_locked(chain), limits) &&
		   atomic_load(&chain->generation) == generation && !chain->locked.is_refused) {
		/* The load has failed, or has brought the same credentials. If the wait for it was
		 * given up, the next credentials_get() tells the result. */
		const bool others_may_come =
			chain->locked.error ||
			(atomic_load(&chain->accepted) && !chain->loader.is_fixed);
		is_worth_it = is_sure && others_may_come;
		if (is_worth_it)
			note_refusal_locked(chain);
	}
	uv_mutex_unlock(&chain->mutex);
	return is_worth_it;
}
