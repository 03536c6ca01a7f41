/* What the parts of aws_probe share. */
#pragma once
#include "s3/s3.h"
#include "store/dynamodb.h"
#include <jansson.h>

#define TERMS_MAX 8

struct probe {
	char **arguments; /* after COMMAND */
	int n_arguments;
	json_t *result;
	struct call_limits limits;
	struct problem problem;
	/* options */
	struct s3_condition condition;
	struct s3_meta meta;
	bool stream, wrong_digest, after, weak;
	unsigned most, stop_after, repeat;
	const char *from, *to;
	struct table table;
	struct condition conditions[TERMS_MAX];
	size_t n_conditions;
	struct change changes[TERMS_MAX];
	size_t n_changes;
};

/* Ends the probe with exit status 2: it was called wrongly. */
void probe_die(const char *what) __attribute__((noreturn));
/* The i-th word after COMMAND. */
const char *probe_argument(const struct probe *probe, int i);
/* Takes value into the result, or at the end of the result's list `name`. */
void probe_set(struct probe *probe, const char *name, json_t *value);
void probe_append(struct probe *probe, const char *name, json_t *value);
/* Whether --stop-after was reached by the result's list `name`. */
bool probe_wants_end(struct probe *probe, const char *name);
/* Prints and drops the result. */
void probe_print(struct probe *probe, enum outcome outcome, const struct service *service);

/* words are SERVICE, NAME and COMMAND. */
void probe_s3(struct probe *probe, const struct aws_settings *settings, struct http_shared *http,
	char **words);
void probe_dynamodb(struct probe *probe, const struct aws_settings *settings,
	struct http_shared *http, char **words);
