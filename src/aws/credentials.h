/* Credentials and where they come from. A provider is one file, credentials_NAME.c, behind one
 * small interface. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

/* One set, owned by whoever holds the struct; wipe after use. */
struct credentials {
	char access_key[132];
	char secret[132];
	char *session_token; /* NULL if none */
	int64_t expires_s;   /* wall clock, 0: never */
};
void credentials_wipe(struct credentials *c); /* overwrites, frees the token, zeroes */

/* A provider yields credentials or says it has none. */
struct credentials_provider {
	const char *name; /* "environment", "profile", … for messages */
	/* 0 and *ret filled; -ENODATA: not configured here, ask the next one; else -errno with
	 * ret_problem a sentence. */
	int (*load)(void *self, struct credentials *ret, struct problem *ret_problem);
	void (*free)(void *self);
	void *self;
};

struct credentials_options {
	const char *profile;      /* the profile's name; borrowed for the call */
	bool profile_is_explicit; /* given by option: then the environment's keys do not count */
	const char *credentials_path; /* ~/.aws/credentials unless AWS_SHARED_CREDENTIALS_FILE;
					 borrowed */
	const char *config_path;
};

/* The chain in AWS's order. Thread-safe; one for the process. */
struct credentials_chain;
int credentials_chain_new(
	const struct credentials_options *options, struct credentials_chain **ret);
void credentials_chain_free(struct credentials_chain *chain);

/* The credentials in force, copied into *ret (wipe it). Loads on first use, again after they
 * expired or were refused. *ret_generation counts loads: a caller keeps its copy until the
 * generation moves. Returns 0 or -errno with a sentence. */
int credentials_get(struct credentials_chain *chain, struct credentials *ret,
	unsigned *ret_generation, struct problem *ret_problem);
/* The present generation, lock-free. */
unsigned credentials_generation(const struct credentials_chain *chain);
/* A server refused those of this generation as expired or invalid: load them again before the next
 * use. Returns true if it is worth trying again (the next load may yield others), false if they
 * were already re-read once and came back the same. */
bool credentials_refused(struct credentials_chain *chain, unsigned generation);
