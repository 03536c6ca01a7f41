/* The variables of a job's systemd unit, for runs of the job outside of the unit, and for the
 * commands about it. A unit sets them by EnvironmentFile= and LoadCredential=. They are put into
 * the environment for a while, since the options of a run and the settings of AWS are read from
 * there. */
#include "base/log.h"
#include "base/must_have.h"
#include "cli/job/job.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A copy of the name of a variable, which the caller frees. */
static char *name_of(const struct job_variable *variable)
{
	return must_have(strndup(variable->text, strcspn(variable->text, "=")));
}

/* Returns the variable of this name, or a new one at the end of the list, which has room for it. */
static struct job_variable *find_or_add(struct job_variables *variables, const char *wanted)
{
	const size_t n = strlen(wanted);
	for (size_t i = 0; i < variables->n; i++) {
		const char *text = variables->list[i].text;
		if (strncmp(text, wanted, n) == 0 && text[n] == '=')
			return &variables->list[i];
	}
	return &variables->list[variables->n++];
}

/* Sets a variable of the list. If a name is set twice, the later value replaces the earlier one, as
 * in systemd. */
static void set_variable(struct job_variables *variables, const char *name, const char *value)
{
	struct job_variable *variable = find_or_add(variables, name);
	free(variable->text);
	if (asprintf(&variable->text, "%s=%s", name, value) < 0)
		must_have(NULL);
}

int job_variables_read(const char *name, struct job_variables *ret)
{
	char *path = job_path(name, ".env");
	char *credentials = job_path(name, ".credentials");
	struct job_file file = {0};
	struct problem problem = {0};
	/* A unit runs as a user that may read neither file, and has their values already. */
	const int error = access(path, R_OK) == 0 ? job_file_load(path, &file, &problem) : 0;
	if (error)
		log_error("%s: %s", quote(path).text, problem.text);
	ret->list = must_have(calloc(file.n + 1, sizeof *ret->list));
	/* A unit has these from LoadCredential=, and NAME.env may name other ones. */
	if (!error && access(credentials, R_OK) == 0)
		set_variable(ret, "AWS_SHARED_CREDENTIALS_FILE", credentials);
	for (size_t i = 0; i < file.n; i++) {
		const struct job_line *line = &file.lines[i];
		if (line->wrong)
			log_warning("%s:%u: %s", quote(path).text, line->number, line->wrong);
		else if (strcmp(line->name, "S3ONCE_OPTIONS") != 0)
			set_variable(ret, line->name, line->value);
		else if (!getenv("S3ONCE_OPTIONS")) /* the unit passes these options */
			log_warning("%s: S3ONCE_OPTIONS is for the systemd unit alone, and is "
				    "ignored here",
				quote(path).text);
	}
	job_file_clear(&file);
	free(path);
	free(credentials);
	return error ? -EINVAL : 0;
}

void job_variables_clear(struct job_variables *variables)
{
	for (size_t i = 0; i < variables->n; i++)
		free(variables->list[i].text);
	free(variables->list);
	*variables = (struct job_variables){0};
}

void job_set_variables(struct job *job)
{
	for (size_t i = 0; i < job->variables.n; i++) {
		struct job_variable *variable = &job->variables.list[i];
		char *name = name_of(variable);
		/* putenv() borrows the text, so that options may borrow it, too, until the job is
		 * closed. */
		if (!variable->is_set && !getenv(name))
			variable->is_set = putenv(variable->text) == 0;
		free(name);
	}
}

void job_unset_variables(struct job *job)
{
	for (size_t i = 0; i < job->variables.n; i++) {
		struct job_variable *variable = &job->variables.list[i];
		char *name = name_of(variable);
		if (variable->is_set)
			unsetenv(name);
		variable->is_set = false;
		free(name);
	}
}
