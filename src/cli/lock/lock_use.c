/* The common part of the commands of `s3once lock`: the options about locks, the client that they
 * open by include/s3once/lock.h, their exit codes, and printing. The commands themselves are in
 * lock_command.c, and `lock run` is in lock_run.c. */
#include "cli/lock/lock_use.h"
#include <errno.h>
#include <stdlib.h>

static const char *const dialects[] = {"java", "go", "python", "dlm", NULL};
static const char *const releases[] = {"default", "delete", "mark", NULL};
static const char *const token_sources[] = {"default", "row", "counter", "none", NULL};

#define FIELD(name) offsetof(struct lock_use, name)

const struct option lock_place_options[] = {
	VALUE("locks", STRING, FIELD(client.place), "PLACE",
		"where the locks are: dynamodb:TABLE or s3://BUCKET/PREFIX for many hosts, sqlite:PATH, "
		"or local, a file of this user on this host [S3ONCE_LOCKS, or local with a "
		"warning]"),
	VALUE("dialect", CHOICE, FIELD(client.dialect), "NAME",
		"the format of the rows: java, go, python or dlm [java]", .choices = dialects),
	VALUE("key-name", STRING, FIELD(client.key_name), "NAME",
		"the table's partition key [of the dialect]"),
	VALUE("sort-name", STRING, FIELD(client.sort_name), "NAME",
		"the table's sort key [of the dialect]"),
	VALUE("release-by", CHOICE, FIELD(client.release_by), "WAY",
		"default, delete, or mark: the row stays [mark for go, files and S3, else delete]",
		.choices = releases),
	VALUE("tokens", CHOICE, FIELD(client.tokens), "FROM",
		"fencing tokens: default, row, counter or none; all users give the same [counter]",
		.choices = token_sources),
	{NULL},
};

const struct option lock_timeout_options[] = {
	VALUE("request-timeout", DURATION, FIELD(client.request_timeout_ms), "DUR",
		"end a request that is not answered DUR after its body was sent [a quarter of the "
		"lease]",
		.min = 1, .max = 24 * 3600 * 1000),
	{NULL},
};

const struct option lock_key_options[] = {
	VALUE("sort-key", STRING, FIELD(request.sort_key), "KEY",
		"the lock's sort key, where the table has one; the slot's number for dlm [none; python: -]"),
	{NULL},
};

const struct option lock_wait_options[] = {
	VALUE("wait", DURATION, FIELD(request.wait_ms), "DUR",
		"wait for the lock for up to DUR; 0: try once [forever]"),
	VALUE("lease", DURATION, FIELD(client.lease_ms), "DUR",
		"others may take over from a holder that is silent for DUR; 1s to 1d [20s]",
		.min = 1000, .max = 24 * 3600 * 1000),
	VALUE("slots", NUMBER, FIELD(request.slots), "N",
		"how many may hold it at once; all users give the\nsame [1]", .min = 1,
		.max = 1000),
	FLAG("allow-replicas", FIELD(client.allow_replicas),
		"also in a table whose replicas each grant locks of\ntheir own, if all holders use one "
		"Region"),
	VALUE("owner", STRING, FIELD(client.owner), "NAME",
		"the name of the holder for others [host, process id]"),
	{NULL},
};

int lock_open(struct lock_use *use)
{
	int r = s3once_locks_open(&use->client, &use->locks, &use->error);
	/* Without this message, two hosts could unknowingly both hold a lock of the same name. */
	if (!r && !use->client.place)
		log_warning(
			"locks are kept in a file of this user on this host, and exclude no other host: "
			"for several hosts give --locks dynamodb:TABLE or s3://BUCKET/PREFIX, and if this "
			"is meant, --locks local");
	if (!r && use->client.dialect == S3ONCE_LOCK_DLM)
		log_warning(
			"dlm locks end by the wall clock: a host whose clock is ahead takes them "
			"early, one whose clock is behind waits too long");
	return lock_report_result(use, r);
}

int lock_report_result(const struct lock_use *use, int r)
{
	const struct s3once_lock_error *error = &use->error;
	if (!r)
		return S3ONCE_EXIT_OK;
	/* -EAGAIN comes from lock break: the row is not the one that was meant. */
	const int code = r == -EINVAL                    ? S3ONCE_EXIT_USAGE
			 : (r == -EBUSY || r == -EAGAIN) ? S3ONCE_EXIT_HELD
			 : r == -ESTALE                  ? S3ONCE_EXIT_FENCED
							 : S3ONCE_EXIT_SETUP;
	/* "SENTENCE (CODE, request id ID)", as far as these are known. */
	log_error("lock: %s%s%s%s%s%s", error->text, *error->code ? " (" : "", error->code,
		(*error->code && *error->request_id) ? ", request id " : "",
		*error->code ? error->request_id : "", *error->code ? ")" : "");
	if (use->frame->json && code != S3ONCE_EXIT_USAGE)
		lock_print(use,
			json_set(json_event("failed"), NUMBER("exit", lock_exit_status(use, code)),
				BYTES("text", error->text), BYTES("code", error->code),
				BYTES("request_id", error->request_id),
				BYTES("holder", error->holder)));
	return code;
}

int lock_exit_status(const struct lock_use *use, int code)
{
	if (!use->is_run || code == S3ONCE_EXIT_OK || code >= S3ONCE_EXIT_STOPPED)
		return code;
	return code == S3ONCE_EXIT_FENCED ? LOCK_RUN_LOST
	       : code == S3ONCE_EXIT_HELD ? LOCK_RUN_HELD
					  : LOCK_RUN_FAILED;
}

void lock_print(const struct lock_use *use, json_t *object)
{
	char *line = json_line(object);
	if (line)
		output_result(&use->frame->output, line);
	else
		log_error("lock: what was to be printed is lost: out of memory");
	free(line);
}
