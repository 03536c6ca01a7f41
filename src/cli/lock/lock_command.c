/* What the commands of `s3once lock` have in common: the client they open, their exit codes, what
 * they print. */
#include "cli/lock/lock_command.h"
#include "base/log.h"
#include "base/problem.h"
#include "cli/commands.h"
#include "cli/json.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *lock_place(const struct lock_options *options)
{
	const char *place = options->place ? options->place : getenv("S3ONCE_LOCKS");
	return place && *place ? place : NULL;
}

int lock_open(const struct lock_options *options, int manual, struct s3once_locks **ret)
{
	struct s3once_lock_error error;
	const struct s3once_locks_options client = {
		.place = lock_place(options),
		.dialect = (enum s3once_lock_dialect)options->dialect,
		.key_name = options->key_name,
		.sort_name = options->sort_name,
		.owner = options->owner,
		.lease_ms = options->lease_ms,
		.manual = manual,
		.release_by = (enum s3once_lock_release_by)options->release_by,
		.tokens = (enum s3once_lock_tokens)options->tokens,
		.observations = "",
		.dynamodb_endpoint_url = options->access.dynamodb_endpoint_url,
		.region = options->access.region,
		.profile = options->access.profile,
		.ca_bundle = options->access.ca_bundle,
		.request_timeout_ms = options->access.request_timeout_ms,
	};
	int r = s3once_locks_open(&client, ret, &error);
	if (!r && client.dialect == S3ONCE_LOCK_DLM)
		log_warning(
			"dlm locks end by the wall clock: a host whose clock is ahead takes them "
			"early, one whose clock is behind waits too long");
	return lock_exit(options, r, &error);
}

struct s3once_lock_request lock_request(const struct lock_options *options, const char *key)
{
	return (struct s3once_lock_request){
		.key = key,
		.sort_key = options->sort_key,
		.wait_ms = options->wait_ms,
		.slots = options->slots,
	};
}

static int exit_code(int r)
{
	switch (r) {
	case 0:
		return S3ONCE_EXIT_OK;
	case -EINVAL:
		return S3ONCE_EXIT_USAGE;
	case -EBUSY:
	case -EAGAIN:
		return S3ONCE_EXIT_HELD;
	case -ESTALE:
		return S3ONCE_EXIT_FENCED;
	default:
		return S3ONCE_EXIT_SETUP;
	}
}

static void print_failure(int code, const struct s3once_lock_error *error)
{
	json_t *object = json_event("failed");
	json_object_set_new(object, "exit", json_integer(code));
	json_set_bytes(object, "text", error->text);
	json_set_bytes(object, "code", error->code);
	json_set_bytes(object, "request_id", error->request_id);
	json_set_bytes(object, "holder", error->holder);
	lock_print(object);
}

int lock_exit(const struct lock_options *options, int r, const struct s3once_lock_error *error)
{
	const int code = exit_code(r);
	if (!r)
		return code;
	char sentence[PROBLEM_SENTENCE_MAX];
	snprintf(sentence, sizeof sentence, "%s%s%s%s%s%s", error->text, *error->code ? " (" : "",
		error->code, *error->code && *error->request_id ? ", request id " : "",
		*error->code ? error->request_id : "", *error->code ? ")" : "");
	log_error("lock: %s", sentence);
	if (options->json && code != S3ONCE_EXIT_USAGE)
		print_failure(code, error);
	return code;
}

void lock_print(json_t *object)
{
	char *line = json_line(object);
	if (line)
		printf("%s\n", line);
	else
		log_error("lock: what was to be printed is lost: out of memory");
	fflush(stdout); /* it is read while the command runs */
	free(line);
}
