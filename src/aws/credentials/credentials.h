/* Credentials: where they come from, and how a run always has valid ones. Each provider has a file
 * of its own, credentials_NAME.c, and credentials_loader.h calls it. */
#pragma once
#include "aws/endpoint.h"
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

/* One set, owned by whoever holds the struct; wipe after use. */
struct credentials {
	char access_key[132];
	char secret[132];
	char *session_token; /* NULL if none */
	int64_t expires_s;   /* wall clock, 0: never */
	const char *from;    /* the provider that has them: "environment", "SSO", …; static */
};
void credentials_wipe(struct credentials *c); /* overwrites, frees the token, zeroes */
int credentials_copy(const struct credentials *c, struct credentials *ret); /* 0 or -ENOMEM */

/* What credentials are loaded by. The strings are borrowed until credentials_chain_free(). NULL:
 * not set. */
struct credentials_options {
	const char *profile;          /* the profile's name; never NULL */
	bool profile_is_explicit;     /* by an option: the keys in the environment are ignored */
	const char *credentials_path; /* ~/.aws/credentials unless AWS_SHARED_CREDENTIALS_FILE */
	const char *config_path;
	struct endpoint sts;                    /* where roles are assumed */
	char *sso_endpoint, *sso_oidc_endpoint; /* NULL: AWS's own in the SSO region */
	struct endpoint_terms terms;            /* which of AWS's endpoints of SSO */
	const char *ca_bundle;                  /* for https, as http_options has it */
	uint64_t patience_ms; /* how long credentials_get waits for a renewal; 0: 5 minutes */
};

/* The chain of credential providers in AWS's order. One for the process. Thread-safe.
 *
 * Its own thread, which the first credentials_get() starts, loads credentials before they expire,
 * when the profile's files change, and when a server refuses those in force. Requests go on with
 * the credentials in force meanwhile. Only the provider that had the first credentials is asked for
 * later ones, so that a run never changes its identity. */
struct credentials_chain;
int credentials_chain_new(
	const struct credentials_options *options, struct credentials_chain **ret);
void credentials_chain_free(struct credentials_chain *chain); /* ends a load that is under way */

/* Copies the credentials in force into *ret (wipe it). *ret_generation counts changes of the
 * keys, not of when they expire: a caller keeps its copy until the generation changes or the copy
 * expires.
 *
 * The call waits for the first load, and fails if that fails. Later, if the credentials have
 * expired or are refused, it waits for a renewal, says so once, and fails after patience_ms.
 * Returns 0; -ECANCELED if the limits (may be NULL) end the wait; or the -errno of the load, each
 * with a sentence. */
struct call_limits;
int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem);
/* The present generation, lock-free. */
unsigned credentials_generation(const struct credentials_chain *chain);
/* Notes that a server has accepted the credentials. From now on a refusal means that they have
 * expired. Lock-free. */
void credentials_accepted(struct credentials_chain *chain);
/* Notes that a server has refused the credentials of this generation. Loads them again, waits for
 * that within the limits, and returns whether it is worth getting credentials and trying again.
 *
 * is_sure: the server said that they have expired or are not known. If it did not, only credentials
 * with a session token are loaded, and not within a minute of the last load; false without a load.
 *
 * If the load fails, returns is_sure. The same holds if it brings the same credentials, a server
 * had accepted them, and others can come (not from the environment). Otherwise the same credentials
 * are not worth another try. After true, the next credentials_get() returns other credentials, or
 * waits for them. */
bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits);
