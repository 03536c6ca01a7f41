/* Credentials: where they come from, and that there are always valid ones. A provider is one file,
 * credentials_NAME.c, behind credentials_loader.h. */
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
	const char *from;    /* what yielded them: "environment", "SSO", …; static */
};
void credentials_wipe(struct credentials *c); /* overwrites, frees the token, zeroes */
int credentials_copy(const struct credentials *c, struct credentials *ret); /* 0 or -ENOMEM */

/* The strings are borrowed until credentials_chain_free(). NULL where there is none. */
struct credentials_options {
	const char *profile;      /* the profile's name; never NULL */
	bool profile_is_explicit; /* given by option: then the environment's keys do not count */
	const char *credentials_path; /* ~/.aws/credentials unless AWS_SHARED_CREDENTIALS_FILE */
	const char *config_path;
	struct endpoint sts;                    /* where roles are assumed */
	char *sso_endpoint, *sso_oidc_endpoint; /* of SSO; NULL: AWS's own of the SSO region */
	struct endpoint_terms terms;            /* which of AWS's endpoints of SSO */
	const char *ca_bundle;                  /* for https, as http_options has it */
	uint64_t patience_ms; /* how long credentials_get waits for a renewal; 0: 5 minutes */
};

/* The chain in AWS's order. Thread-safe; one for the process. Its own thread, started by the first
 * get, loads: ahead of the expiry, when the profile's files change, and when a server refuses what
 * is in force. Who signs goes on with what is in force meanwhile. Only the provider that yielded
 * the first ones is asked for later ones: a run never changes whom it works for. */
struct credentials_chain;
int credentials_chain_new(
	const struct credentials_options *options, struct credentials_chain **ret);
void credentials_chain_free(struct credentials_chain *chain); /* ends a load that is under way */

/* The credentials in force, copied into *ret (wipe it). *ret_generation counts changes: a caller
 * keeps its copy until the generation moves or it expires. The first load is waited for, and if it
 * fails so does this. Later, while the only ones have expired or are refused, waits for a renewal,
 * says so once, and fails when that has taken patience_ms. Returns 0; -ECANCELED when the limits
 * (may be NULL) end the wait; else -errno of the load, each with a sentence. */
struct call_limits;
int credentials_get(struct credentials_chain *chain, const struct call_limits *limits,
	struct credentials *ret, unsigned *ret_generation, struct problem *ret_problem);
/* The present generation, lock-free. */
unsigned credentials_generation(const struct credentials_chain *chain);
/* A server took them. Lock-free. From now on a refusal means that they ran out. */
void credentials_accepted(struct credentials_chain *chain);
/* A server refused those of this generation: loads them again, waits for that within the limits,
 * and returns whether it is worth trying again after another get. If the server was not sure, only
 * those with a session token are loaded, and not within a minute of the last load. If the load
 * brings the same ones, that is so only if the server was sure (it said that they expired or are
 * not known) and had taken them before, and others can come (not from the environment): then that
 * get waits for them. */
bool credentials_refused(struct credentials_chain *chain, unsigned generation, bool is_sure,
	const struct call_limits *limits);
