#include "aws/credentials/credentials.h"
#include "aws/call.h"
#include "aws/credentials/credentials_chain.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_DEFAULT_MS (5 * 60 * 1000)
#define GUESS_NS            (60 * NS_PER_S) /* between two loads because they may have expired */

static int copy_strings(const struct credentials *from, struct credentials *ret)
{
	struct credentials made = *from;
	if (made.session_token && !(made.session_token = strdup(made.session_token))) {
		credentials_wipe(&made);
		return -ENOMEM;
	}
	*ret = made;
	return 0;
}

int credentials_chain_new(const struct credentials_options *options, struct credentials_chain **ret)
{
	struct credentials_chain *chain = calloc(1, sizeof *chain);
	if (!chain || credentials_loader_init(&chain->loader, options) < 0) {
		free(chain);
		return -ENOMEM;
	}
	uint64_t patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_DEFAULT_MS;
	chain->patience_ns = patience_ms * NS_PER_MS;
	chain->provider = -1;
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
	credentials_loader_clear(&chain->loader);
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
		       .mutex = &chain->mutex, .deadline_ns = limits ? limits->deadline_ns : 0,
		       .abandon = limits ? limits->abandon : NULL,
		       .arg = limits ? limits->abandon_arg : NULL) == WAIT_MET;
}

/* Asks for a load that begins from now on; returns its number. */
static unsigned want_load_locked(struct credentials_chain *chain)
{
	chain->locked.wanted = true;
	uv_cond_broadcast(&chain->changed);
	return chain->locked.begun + 1;
}

static void say_paused_locked(struct credentials_chain *chain)
{
	if (chain->locked.said_paused)
		return;
	chain->locked.said_paused = true;
	log_warning("paused: the credentials are no longer valid and cannot be renewed: %s; "
		    "waiting up to %llu s for others",
		chain->locked.error ? chain->locked.problem.text
				    : "the server refuses them, and there are no others yet",
		(unsigned long long)(chain->patience_ns / NS_PER_S));
}

/* Says that it waits once a load has failed. */
static bool is_patience_over_locked(struct credentials_chain *chain)
{
	if (!chain->locked.failures)
		return false;
	say_paused_locked(chain);
	return clock_boot_ns() - chain->locked.paused_ns >= chain->patience_ns;
}

/* The pause: until there are usable ones, or the patience or the limits have ended. */
static int await_usable_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	if (!chain->locked.paused_ns)
		chain->locked.paused_ns = clock_boot_ns();
	if (!chain->locked.wanted && chain->locked.begun == chain->locked.ended &&
		!chain->locked.failures)
		want_load_locked(chain);
	const enum waited waited = wait_until(
		credentials_usable_locked(chain) || is_patience_over_locked(chain),
		.told = &chain->changed, .mutex = &chain->mutex,
		.deadline_ns = limits && limits->deadline_ns ? limits->deadline_ns : UINT64_MAX,
		.abandon = limits ? limits->abandon : NULL,
		.arg = limits ? limits->abandon_arg : NULL);
	if (waited != WAIT_MET) {
		problem_set(ret_problem, "it was given up before there were credentials");
		return -ECANCELED;
	}
	if (credentials_usable_locked(chain))
		return 0;
	*ret_problem = chain->locked.problem;
	if (!chain->locked.error)
		problem_set(ret_problem, "the server refuses the credentials");
	problem_prefix(ret_problem, "no valid credentials for %llu s",
		(unsigned long long)(chain->patience_ns / NS_PER_S));
	return chain->locked.error ? chain->locked.error : -EKEYEXPIRED;
}

/* Until the load that this call asks for has ended. */
static int await_first_locked(struct credentials_chain *chain, const struct call_limits *limits,
	struct problem *ret_problem)
{
	unsigned number = chain->locked.begun > chain->locked.ended ? chain->locked.begun
								    : want_load_locked(chain);
	if (!await_load_locked(chain, number, limits)) {
		problem_set(ret_problem, "it was given up before there were credentials");
		return -ECANCELED;
	}
	*ret_problem = chain->locked.problem;
	return chain->locked.error;
}

int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem)
{
	struct problem problem = {0};
	uv_mutex_lock(&chain->mutex);
	int error = credentials_keeper_start_locked(chain);
	if (error)
		problem_set(&problem, PROBLEM_NO_THREAD);
	else if (!credentials_usable_locked(chain))
		error = chain->locked.loaded && atomic_load(&chain->accepted)
				? await_usable_locked(chain, limits, &problem)
				: await_first_locked(chain, limits, &problem);
	if (error == 0) {
		error = copy_strings(&chain->locked.current, ret);
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

/* A refusal that does not name expired credentials may have many other reasons, and may occur with
 * each file. */
static bool may_have_expired_locked(const struct credentials_chain *chain)
{
	return chain->locked.current.session_token &&
	       clock_boot_ns() - chain->locked.ended_ns >= GUESS_NS;
}

static bool load_refused_locked(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits)
{
	if (!is_sure && !may_have_expired_locked(chain))
		return false;
	if (!await_load_locked(chain, want_load_locked(chain), limits))
		return true; /* whoever asks next is told that it was given up */
	if (atomic_load(&chain->generation) != generation || chain->locked.is_refused)
		return true;
	bool others_may_come =
		chain->locked.error ||
		(atomic_load(&chain->accepted) && !credentials_provider_is_fixed(chain->provider));
	bool is_over = is_sure && others_may_come;
	if (is_over)
		credentials_unusable_locked(chain);
	return is_over;
}

bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits)
{
	bool is_worth_it = true;
	uv_mutex_lock(&chain->mutex);
	bool is_news = atomic_load(&chain->generation) == generation && !chain->locked.is_refused;
	if (is_news && chain->locked.keeper_runs)
		is_worth_it = load_refused_locked(chain, generation, is_sure, limits);
	uv_mutex_unlock(&chain->mutex);
	return is_worth_it;
}
