/* Credentials: their sources, and keeping them valid during a run. Each provider has a file of its
 * own, credentials_NAME.c, and credentials_providers.h calls it. */
#pragma once
#include "aws/endpoint.h"
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

/* One set of credentials, owned by the holder of the struct, who wipes it after use. */
struct credentials {
	char access_key[132];
	char secret[132];
	char *session_token; /* NULL if none */
	int64_t expires_s;   /* wall clock, 0: never */
	const char *from;    /* the provider that has them: "environment", "SSO", …; static */
};
void credentials_wipe(struct credentials *c); /* overwrites, frees the token, zeroes */
int credentials_copy(const struct credentials *c, struct credentials *ret); /* 0 or -ENOMEM */

/* The sources of credentials, and the options for loading them. The strings are borrowed until
 * credentials_chain_free(). NULL: not set. */
struct credentials_options {
	const char *profile;          /* the profile's name; never NULL */
	bool profile_is_explicit;     /* an option names the profile: keys in the environment are
					 ignored */
	const char *credentials_path; /* ~/.aws/credentials unless AWS_SHARED_CREDENTIALS_FILE */
	const char *config_path;
	struct endpoint sts;                    /* the endpoint at which roles are assumed */
	char *sso_endpoint, *sso_oidc_endpoint; /* NULL: AWS's own in the SSO region */
	struct endpoint_terms terms;            /* terms for AWS's endpoints of SSO */
	const char *ca_bundle;                  /* for https, as in http_options */
	/* the longest wait of credentials_get() for a renewal; 0: 5 minutes */
	uint64_t patience_ms;
};

/* The chain of credential providers in AWS's order. One for the process. Thread-safe.
 *
 * Its own thread, which the first credentials_get() starts, loads credentials before they expire,
 * when the profile's files change, and when a server refuses those in force. Requests go on with
 * the credentials in force meanwhile. Later credentials come only from the provider of the first
 * ones, so that a run never changes its identity. */
struct credentials_chain;
int credentials_chain_new(
	const struct credentials_options *options, struct credentials_chain **ret);
void credentials_chain_free(struct credentials_chain *chain); /* Ends a load that is under way. */

/* Copies the credentials in force into *ret (wipe it). *ret_generation grows with each change of
 * the keys, but not if only their expiry changes. A caller keeps its copy until the generation
 * changes or the copy expires.
 *
 * Until a server has accepted credentials, the call waits for one load, and fails if the load
 * fails. Later, if the credentials have expired or are refused, the call warns once, waits for a
 * renewal, and fails after patience_ms. Returns 0; -ECANCELED if the limits (may be NULL) end the
 * wait; or the -errno of the load, each with a sentence. */
struct call_limits;
int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem);
/* The present generation, lock-free. */
unsigned credentials_generation(const struct credentials_chain *chain);
/* Notes that a server has accepted the credentials. From now on callers wait for others if these
 * expire or are refused. Lock-free. */
void credentials_accepted(struct credentials_chain *chain);
/* Notes that a server has refused the credentials of this generation. Loads credentials, waits for
 * the load within the limits, and returns whether another try is worth it. After true, the next
 * credentials_get() returns other credentials, or waits for them.
 *
 * is_sure means that according to the server's answer the credentials have expired or are unknown.
 * Otherwise the refusal may have another reason. Then credentials without a session token are not
 * loaded, nor are any within a minute of the last load, and the call returns false.
 *
 * Other credentials are worth another try. Without others, the call returns true only if is_sure is
 * set and others may come later: the load has failed, or a server had accepted the credentials and
 * they are not from the environment. */
bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits);
