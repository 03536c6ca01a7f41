#include "aws/credentials/credentials_chain.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <string.h>
#include <sys/stat.h>

#define AHEAD_MAX_S  (15 * 60) /* as AWS's SDKs begin to renew */
#define RETRY_MAX_MS 30000
#define LOOK_NS      (2 * NS_PER_S) /* between two looks at the files */

static bool same_keys(const struct credentials *a, const struct credentials *b)
{
	const char *token_a = a->session_token ? a->session_token : "";
	const char *token_b = b->session_token ? b->session_token : "";
	return strcmp(a->access_key, b->access_key) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(token_a, token_b) == 0;
}

static int64_t wall_s(void)
{
	return clock_wall_ns() / (int64_t)NS_PER_S;
}

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	if (!path || stat(path, &st) < 0)
		return (struct stamp){0};
	return (struct stamp){
		st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec, st.st_size, st.st_ino};
}

static void stamp_files(const struct credentials_chain *chain, struct stamp ret[static 2])
{
	ret[0] = stamp_of(chain->loader.config_path);
	ret[1] = stamp_of(chain->loader.credentials_path);
}

static bool files_changed(const struct credentials_chain *chain)
{
	struct stamp now[2];
	stamp_files(chain, now);
	for (int i = 0; i < 2; i++)
		if (now[i].mtime_ns != chain->stamps[i].mtime_ns ||
			now[i].size != chain->stamps[i].size ||
			now[i].inode != chain->stamps[i].inode)
			return true;
	return false;
}

bool credentials_usable_locked(const struct credentials_chain *chain)
{
	const struct credentials *current = &chain->locked.current;
	return chain->locked.loaded && !chain->locked.is_refused &&
	       (!current->expires_s || wall_s() < current->expires_s);
}

/* Ahead of the expiry by a third of what is left, so that short-lived ones are not loaded without
 * end. */
static uint64_t renewal_ns(int64_t expires_s)
{
	if (!expires_s)
		return UINT64_MAX;
	int64_t left_s = expires_s - wall_s();
	int64_t ahead_s = left_s / 3 < AHEAD_MAX_S ? left_s / 3 : AHEAD_MAX_S;
	int64_t in_s = left_s - ahead_s > 1 ? left_s - ahead_s : 1;
	return clock_boot_ns() + (uint64_t)in_s * NS_PER_S;
}

static uint64_t retry_ns(const struct credentials_chain *chain)
{
	unsigned doublings = chain->locked.failures < 6 ? chain->locked.failures : 6;
	uint64_t most_ms = 500U << doublings;
	most_ms = most_ms < RETRY_MAX_MS ? most_ms : RETRY_MAX_MS;
	return clock_boot_ns() + (most_ms / 2 + random_below(most_ms / 2)) * NS_PER_MS;
}

void credentials_unusable_locked(struct credentials_chain *chain)
{
	chain->locked.is_refused = true;
	chain->locked.failures++;
	chain->locked.next_ns = retry_ns(chain);
}

static void take_locked(struct credentials_chain *chain, struct credentials *fresh)
{
	bool same = chain->locked.loaded && same_keys(fresh, &chain->locked.current);
	if (!same || fresh->expires_s != chain->locked.current.expires_s)
		atomic_fetch_add(&chain->generation, 1);
	chain->locked.is_refused = chain->locked.is_refused && same;
	credentials_wipe(&chain->locked.current);
	chain->locked.current = *fresh;
	chain->locked.loaded = true;
	if (chain->locked.is_refused) {
		credentials_unusable_locked(chain);
		return;
	}
	if (chain->locked.said_paused)
		log_info("there are valid credentials again: going on");
	chain->locked.failures = 0;
	chain->locked.said_late = chain->locked.said_paused = false;
	chain->locked.paused_ns = 0;
	chain->locked.next_ns = renewal_ns(fresh->expires_s);
}

static void fail_locked(struct credentials_chain *chain)
{
	chain->locked.failures++;
	/* Before there were any, only somebody who asks makes it look again. */
	chain->locked.next_ns = chain->locked.loaded ? retry_ns(chain) : UINT64_MAX;
	if (!credentials_usable_locked(chain) || chain->locked.said_late)
		return;
	char until[21];
	clock_format_iso(chain->locked.current.expires_s, until);
	log_warning("the credentials cannot be renewed: %s; those in use are good %s%s, trying on",
		chain->locked.problem.text, chain->locked.current.expires_s ? "until " : "for now",
		chain->locked.current.expires_s ? until : "");
	chain->locked.said_late = true;
}

static void load_locked(struct credentials_chain *chain)
{
	struct credentials fresh = {0};
	struct problem problem = {0};
	chain->locked.wanted = false;
	chain->locked.begun++;
	uv_mutex_unlock(&chain->mutex);
	stamp_files(chain, chain->stamps);
	int error = credentials_loader_load(&chain->loader, &chain->provider, &fresh, &problem);
	uv_mutex_lock(&chain->mutex);
	chain->locked.error = error;
	chain->locked.problem = problem;
	if (error)
		fail_locked(chain);
	else
		take_locked(chain, &fresh);
	chain->locked.ended = chain->locked.begun;
	chain->locked.ended_ns = clock_boot_ns();
	uv_cond_broadcast(&chain->changed);
}

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

int credentials_keeper_start_locked(struct credentials_chain *chain)
{
	if (chain->locked.keeper_runs)
		return 0;
	int error = thread_start_patiently(&chain->keeper, keep_credentials, chain);
	chain->locked.keeper_runs = error == 0;
	return error;
}
