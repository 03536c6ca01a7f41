/* A chain after a refusal by a server: it loads other credentials if there may be some, pauses if
 * they may still come, and gives up otherwise. */
#include "../check.h"
#include "../store/sqlite_scratch.h"
#include "aws/call.h"
#include "aws/credentials/credentials.h"
#include "base/clock.h"
#include <errno.h>
#include <stdlib.h>

/* Keys of one length leave the file as it was by its looks, so that the chain does not notice them
 * by itself. */
static void write_all(const char *key, const char *secret, const char *token)
{
	static const struct timespec times[] = {{1000, 0}, {1000, 0}};
	FILE *file = fopen("keys", "w");
	if (!CHECK(file != NULL))
		return;
	fprintf(file, "[p]\naws_access_key_id=%s\naws_secret_access_key=%s\n", key, secret);
	if (*token)
		fprintf(file, "aws_session_token=%s\n", token);
	fclose(file);
	CHECK_INT(utimensat(AT_FDCWD, "keys", times, 0), 0);
}

static void write_keys(const char *key, const char *token)
{
	write_all(key, "s", token);
}

static struct credentials_chain *chain_of(uint64_t patience_ms)
{
	const struct credentials_options options = {.profile = "p",
		.credentials_path = "keys",
		.config_path = "config",
		.patience_ms = patience_ms};
	struct credentials_chain *chain = NULL;
	if (credentials_chain_new(&options, &chain))
		abort();
	return chain;
}

/* Gets the credentials, and checks whose they are. "" if there are none. */
static unsigned get(struct credentials_chain *chain, int error, const char *key)
{
	struct credentials got = {0};
	struct problem problem = {0};
	unsigned generation = 0;
	if (!CHECK_INT(credentials_get(chain, NULL, &got, &generation, &problem), error) ||
		!CHECK_STRING(got.access_key, key))
		fprintf(stderr, "\t%s\n", problem.text);
	credentials_wipe(&got);
	return generation;
}

/* The reaction to a refusal, by the known facts. */
static const struct {
	bool in_environment; /* the credentials are there, and not in a file */
	bool is_accepted;    /* a server has accepted them before */
	bool is_sure;        /* the reply has named them as the cause */
	bool has_token;
	const char *next; /* what is in the file by then; NULL: the same */
	bool is_worth_it;
	int error; /* of the next get */
	const char *key;
} refusals[] = {
	/* There are others. */
	{false, true, true, false, "other", true, 0, "other"},
	{false, false, true, false, "other", true, 0, "other"},
	/* There are none, and may be later, if these were good before. */
	{false, true, true, false, NULL, true, -EKEYEXPIRED, ""},
	{false, false, true, false, NULL, false, 0, "first"},
	/* A file without any may be written just now. */
	{false, true, true, false, "", true, -ENODATA, ""},
	/* The environment never changes. */
	{true, true, true, false, NULL, false, 0, "env"},
	/* A refusal without a reason may have another cause: keys that do not expire are good, and
	   others were loaded a moment ago. */
	{false, true, false, false, "other", false, 0, "first"},
	{false, true, false, true, "other", false, 0, "first"},
};

static void test_refusals(void)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const char *token = refusals[i].has_token ? "t" : "";
		unsetenv("AWS_ACCESS_KEY_ID");
		write_keys("first", token);
		if (refusals[i].in_environment)
			setenv("AWS_ACCESS_KEY_ID", "env", 1);
		struct credentials_chain *chain = chain_of(1);
		const unsigned generation =
			get(chain, 0, refusals[i].in_environment ? "env" : "first");
		if (refusals[i].is_accepted)
			credentials_accepted(chain);
		if (refusals[i].next)
			write_keys(refusals[i].next, token);
		bool ok = CHECK(credentials_refused(chain, generation, refusals[i].is_sure, NULL) ==
				refusals[i].is_worth_it);
		get(chain, refusals[i].error, refusals[i].key);
		if (!ok)
			fprintf(stderr, "\trefusal %zu\n", i);
		credentials_chain_free(chain);
	}
	unsetenv("AWS_ACCESS_KEY_ID");
}

/* Many calls are refused at once: the first one looks for others, and the rest have them. */
static void test_old_news(void)
{
	write_keys("first", "");
	struct credentials_chain *chain = chain_of(1);
	const unsigned first = get(chain, 0, "first");
	credentials_accepted(chain);
	write_keys("other", "");
	CHECK(credentials_refused(chain, first, true, NULL));
	const unsigned second = get(chain, 0, "other");
	CHECK(second != first && credentials_generation(chain) == second);
	CHECK(credentials_refused(chain, first, true, NULL));
	CHECK_INT(get(chain, 0, "other"), second);
	/* The same keys are no other generation, and are not asked for twice. */
	CHECK(credentials_refused(chain, second, true, NULL));
	CHECK(credentials_refused(chain, second, true, NULL));
	CHECK_INT(credentials_generation(chain), second);
	get(chain, -EKEYEXPIRED, "");
	credentials_chain_free(chain);
}

/* Keys are others if any part of them is. */
static void test_parts(void)
{
	static const struct {
		const char *key, *secret, *token;
	} parts[] = {{"other", "s", "t"}, {"first", "r", "t"}, {"first", "s", "u"}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		write_keys("first", "t");
		struct credentials_chain *chain = chain_of(1);
		const unsigned generation = get(chain, 0, "first");
		credentials_accepted(chain);
		write_all(parts[i].key, parts[i].secret, parts[i].token);
		CHECK(credentials_refused(chain, generation, true, NULL));
		CHECK(get(chain, 0, parts[i].key) != generation);
		credentials_chain_free(chain);
	}
}

static bool always(void *arg)
{
	return true;
}

/* A wait for credentials can be stopped. */
static void test_given_up(void)
{
	const struct call_limits over = {.abandon = always};
	struct credentials got;
	struct problem problem = {0};
	unsigned generation;
	write_keys("first", "");
	struct credentials_chain *chain = chain_of(60000);
	const unsigned first = get(chain, 0, "first");
	credentials_accepted(chain);
	CHECK(credentials_refused(chain, first, true, NULL));
	CHECK_INT(credentials_get(chain, &over, &got, &generation, &problem), -ECANCELED);
	/* A refusal that is given up leaves it to the next call to find out. */
	credentials_chain_free(chain);
}

/* Before any credentials are there, the first failure is the answer. */
static void test_none(void)
{
	write_keys("'first'", "");
	struct credentials_chain *chain = chain_of(60000);
	get(chain, -EINVAL, "");
	write_keys("second", "");
	get(chain, 0, "second");
	credentials_chain_free(chain);
}

int main(void)
{
	static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN",
		"AWS_SECURITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	scratch_make();
	test_refusals();
	test_old_news();
	test_parts();
	test_given_up();
	test_none();
	scratch_remove();
	return check_result();
}
