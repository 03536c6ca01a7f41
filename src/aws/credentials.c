#include "aws/credentials.h"
#include "aws/credentials_provider.h"
#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AWS's order. */
static const struct {
	int (*make)(const struct credentials_options *options, struct credentials_provider *ret);
	bool is_environment;
} makers[] = {
	{credentials_env_new, true},
	{credentials_profile_new, false},
};
#define PROVIDERS_MAX (sizeof(makers) / sizeof(*makers))

struct credentials_chain {
	struct credentials_provider providers[PROVIDERS_MAX];
	size_t n_providers;
	atomic_uint generation; /* written under the mutex */
	pthread_mutex_t mutex;
	struct {
		struct credentials current;
		bool loaded;
	} locked;
};

void credentials_wipe(struct credentials *c)
{
	if (c->session_token)
		OPENSSL_cleanse(c->session_token, strlen(c->session_token));
	free(c->session_token);
	OPENSSL_cleanse(c, sizeof(*c));
}

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}

int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem)
{
	struct credentials set = {0};
	if (!*access_key || strlen(access_key) >= sizeof(set.access_key) ||
		strlen(secret) >= sizeof(set.secret) || !is_printable(access_key) ||
		(session_token && !is_printable(session_token))) {
		problem_set(ret_problem, "the credentials of the %s are malformed", where);
		return -EINVAL;
	}
	strcpy(set.access_key, access_key);
	strcpy(set.secret, secret);
	if (session_token && !(set.session_token = strdup(session_token))) {
		credentials_wipe(&set);
		return -ENOMEM;
	}
	*ret = set;
	return 0;
}

static int copy(const struct credentials *from, struct credentials *ret)
{
	struct credentials made = *from;
	if (made.session_token && !(made.session_token = strdup(made.session_token))) {
		credentials_wipe(&made);
		return -ENOMEM;
	}
	*ret = made;
	return 0;
}

static bool same(const struct credentials *a, const struct credentials *b)
{
	const char *token_a = a->session_token ? a->session_token : "";
	const char *token_b = b->session_token ? b->session_token : "";
	return strcmp(a->access_key, b->access_key) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(token_a, token_b) == 0;
}

int credentials_chain_new(const struct credentials_options *options, struct credentials_chain **ret)
{
	struct credentials_chain *chain = calloc(1, sizeof(*chain));
	if (!chain)
		return -ENOMEM;
	pthread_mutex_init(&chain->mutex, NULL);
	for (size_t i = 0; i < PROVIDERS_MAX; i++) {
		if (makers[i].is_environment && options->profile_is_explicit)
			continue;
		if (makers[i].make(options, &chain->providers[chain->n_providers]) < 0) {
			credentials_chain_free(chain);
			return -ENOMEM;
		}
		chain->n_providers++;
	}
	*ret = chain;
	return 0;
}

void credentials_chain_free(struct credentials_chain *chain)
{
	if (!chain)
		return;
	for (size_t i = 0; i < chain->n_providers; i++)
		chain->providers[i].free(chain->providers[i].self);
	credentials_wipe(&chain->locked.current);
	pthread_mutex_destroy(&chain->mutex);
	free(chain);
}

/* The first provider that has any; the sentence of none says where all of them looked. */
static int load(
	struct credentials_chain *chain, struct credentials *ret, struct problem *ret_problem)
{
	struct text looked = TEXT(1024);
	int error = -ENODATA;
	for (size_t i = 0; i < chain->n_providers && error == -ENODATA; i++) {
		const struct credentials_provider *provider = &chain->providers[i];
		struct problem problem = {0};
		error = provider->load(provider->self, ret, &problem);
		if (error == -ENODATA)
			text_addf(&looked, "%s%s", i ? "; " : "", problem.text);
		else if (error < 0 && ret_problem)
			*ret_problem = problem;
	}
	if (error == -ENODATA)
		problem_set(ret_problem, "no credentials: %s", text_string(&looked));
	else if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	text_clear(&looked);
	return error;
}

static bool is_expired(const struct credentials *c)
{
	return c->expires_s && clock_wall_ns() / (int64_t)NS_PER_S >= c->expires_s;
}

static int refresh_locked(struct credentials_chain *chain, struct problem *ret_problem)
{
	struct credentials fresh = {0};
	int error = load(chain, &fresh, ret_problem);
	if (error < 0)
		return error;
	if (!chain->locked.loaded || !same(&fresh, &chain->locked.current))
		atomic_fetch_add(&chain->generation, 1);
	credentials_wipe(&chain->locked.current);
	chain->locked.current = fresh;
	chain->locked.loaded = true;
	return 0;
}

int credentials_get(struct credentials_chain *chain, struct credentials *ret,
	unsigned *ret_generation, struct problem *ret_problem)
{
	pthread_mutex_lock(&chain->mutex);
	int error = 0;
	if (!chain->locked.loaded || is_expired(&chain->locked.current))
		error = refresh_locked(chain, ret_problem);
	if (error == 0) {
		error = copy(&chain->locked.current, ret);
		*ret_generation = atomic_load(&chain->generation);
	}
	pthread_mutex_unlock(&chain->mutex);
	return error;
}

unsigned credentials_generation(const struct credentials_chain *chain)
{
	return atomic_load(&chain->generation);
}

bool credentials_refused(struct credentials_chain *chain, unsigned generation)
{
	pthread_mutex_lock(&chain->mutex);
	bool others_exist = atomic_load(&chain->generation) != generation;
	if (!others_exist && refresh_locked(chain, NULL) < 0) {
		/* The next get loads again and has the sentence. */
		chain->locked.loaded = false;
		others_exist = true;
	}
	others_exist = others_exist || atomic_load(&chain->generation) != generation;
	pthread_mutex_unlock(&chain->mutex);
	return others_exist;
}
