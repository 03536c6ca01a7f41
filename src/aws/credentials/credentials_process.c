/* credential_process: a program that prints credentials as JSON. Source: "Process credential
 * provider" of the AWS SDKs and Tools Reference Guide. */
#include "aws/credentials/credentials_json.h"
#include "aws/credentials/credentials_profile.h"
#include "aws/credentials/process_output.h"
#include "aws/credentials/shell_words.h"
#include "base/clock.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define OUTPUT_MAX_BYTES (64U << 10)
#define ERRORS_MAX_BYTES 1024
#define DEADLINE_S       60

static int read_json(const struct text *out, struct credentials *ret, struct problem *ret_problem)
{
	json_t *object = json_load_secret(text_string(out), out->len);
	int error = -EBADMSG;
	if (!object)
		problem_set(ret_problem, "it printed something else than a JSON object");
	else if (json_integer_value(json_object_get(object, "Version")) != 1)
		problem_set(ret_problem, "it printed a Version other than 1");
	else
		error = credentials_from_json(
			object, "SessionToken", "credential_process", ret, ret_problem);
	json_free_secret(object);
	return error;
}

static int read_output(
	const struct process_output *output, struct credentials *ret, struct problem *ret_problem)
{
	int status = output->status;
	const char *errors = text_string(&output->err);
	if (status == 0)
		return read_json(&output->out, ret, ret_problem);
	/* Its own words, without the newline at their end. */
	struct quoted said = quote_bytes(errors, strcspn(errors, "\n"));
	if (WIFSIGNALED(status))
		problem_set(ret_problem, "it was ended by signal %d", WTERMSIG(status));
	else
		problem_set(ret_problem, "it ended with status %d%s%s", WEXITSTATUS(status),
			said.text[0] ? " and said: " : "", said.text);
	return -ECHILD;
}

static void explain_process_error(int error, struct problem *ret_problem)
{
	if (error == -ETIMEDOUT)
		problem_set(ret_problem, "it did not end within %d s", DEADLINE_S);
	else if (error == -EMSGSIZE)
		problem_set(ret_problem, "it printed more than %u bytes", OUTPUT_MAX_BYTES);
	else if (error == -ECANCELED)
		problem_set(ret_problem, "it was stopped");
	else
		problem_set(ret_problem, "it cannot be run: %s", strerror(-error));
}

static int run_credential_process(char *const *argv, const atomic_bool *stopped,
	struct credentials *ret, struct problem *ret_problem)
{
	struct process_output output = {
		.out = TEXT(OUTPUT_MAX_BYTES), .err = TEXT(ERRORS_MAX_BYTES)};
	uint64_t deadline_ns = clock_boot_ns() + DEADLINE_S * NS_PER_S;
	int error = process_output(argv, deadline_ns, stopped, &output);
	if (error)
		explain_process_error(error, ret_problem);
	else
		error = read_output(&output, ret, ret_problem);
	if (error)
		problem_prefix(ret_problem, "credential_process %s", quote(argv[0]).text);
	text_wipe(&output.out);
	text_wipe(&output.err);
	/* Not found is this program's, and no reason to ask the next provider. */
	return error == -ENODATA ? -ENOENT : error;
}

int credentials_process(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *line = profile_get(&source->profile, "credential_process"), *why = NULL;
	char **argv;
	if (!line)
		return -ENODATA;
	int error = shell_words(line, &argv, &why);
	if (error == -EINVAL)
		problem_set(ret_problem, "credential_process of profile %s: %s",
			quote(source->profile.name).text, why);
	if (error)
		return error;
	if (argv[0])
		error = run_credential_process(argv, &source->loader->stopped, ret, ret_problem);
	else
		error = -ENODATA;
	free(argv);
	return error;
}
