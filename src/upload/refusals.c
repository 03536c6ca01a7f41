#include "upload/refusals.h"
#include "base/clock.h"
#include "base/thread.h"
#include "upload/worker.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEVERAL_AT_END 2  /* different files, when all were tried */
#define SEVERAL        10 /* before that */
#define SLICE_NS       (100 * NS_PER_MS)

#define SUSPECTS_MAX_BYTES 500

struct refused {
	struct refused *next;
	struct file *file;
	struct problem problem;
};

void refusals_init(struct refusals *refusals)
{
	pthread_mutex_init(&refusals->locked.mutex, NULL);
	thread_cond_init(&refusals->locked.changed);
}

static void refused_free(struct refused *refused)
{
	file_free(refused->file);
	free(refused);
}

void refusals_clear(struct refusals *refusals)
{
	for (struct refused *next, *each = refusals->locked.refused; each; each = next) {
		next = each->next;
		refused_free(each);
	}
	pthread_cond_destroy(&refusals->locked.changed);
	pthread_mutex_destroy(&refusals->locked.mutex);
}

static void change_working(struct refusals *refusals, int by)
{
	pthread_mutex_lock(&refusals->locked.mutex);
	refusals->locked.n_working += (unsigned)by;
	pthread_cond_broadcast(&refusals->locked.changed);
	pthread_mutex_unlock(&refusals->locked.mutex);
}

void refusals_job_begins(struct refusals *refusals)
{
	change_working(refusals, 1);
}

void refusals_job_ended(struct refusals *refusals)
{
	change_working(refusals, -1);
}

void refusals_stored(struct refusals *refusals)
{
	if (atomic_exchange(&refusals->has_stored, true))
		return;
	pthread_mutex_lock(&refusals->locked.mutex);
	refusals->locked.has_stored = true;
	pthread_cond_broadcast(&refusals->locked.changed);
	pthread_mutex_unlock(&refusals->locked.mutex);
}

/* Which setting a code is about; its name as on the command line. */
static const struct {
	const char *code, *setting;
} settings[] = {
	{"InvalidStorageClass", "storage-class"},
	{"InvalidEncryptionAlgorithmError", "sse"},
	{"InvalidTag", "tag"},
	{"AccessControlListNotSupported", "acl"},
	{"ObjectLockConfigurationNotFoundError", "object-lock-mode"},
	{"KMS.", "sse-kms-key-id"},
};

/* What a server may mean that does not say which of them it refuses. */
static const char *const suspects[] = {"storage-class", "sse", "sse-kms-key-id", "acl", "grant",
	"tag", "metadata", "website-redirect", "object-lock-mode", "object-lock-legal-hold"};

static void name_suspects(const struct file *file, struct problem *problem)
{
	struct text names = TEXT(SUSPECTS_MAX_BYTES);
	unsigned n = 0;
	for (size_t i = 0; i < sizeof suspects / sizeof *suspects; i++) {
		const char *value = s3_headers_value(file->target.headers, suspects[i]);
		if (value)
			text_addf(&names, "%s--%s%s%s", n++ ? ", " : "", suspects[i],
				*value ? " " : "", value);
	}
	if (n && !names.error)
		problem_prefix(problem, "the reason may be %s%s", n > 1 ? "one of " : "",
			text_string(&names));
	text_clear(&names);
}

static bool is_vague(const struct problem *problem)
{
	return !strcmp(problem->code, "InvalidArgument") ||
	       !strcmp(problem->code, "InvalidRequest") || !strcmp(problem->code, "NotImplemented");
}

bool refusal_may_be_of_setting(const struct file *file, const struct problem *problem)
{
	bool has_one = false;
	for (size_t i = 0; i < sizeof suspects / sizeof *suspects; i++)
		has_one |= s3_headers_value(file->target.headers, suspects[i]) != NULL;
	return has_one && is_vague(problem);
}

static void name_setting(const struct file *file, struct problem *problem)
{
	if (is_vague(problem)) {
		name_suspects(file, problem);
		return;
	}
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *code = settings[i].code, *name = settings[i].setting;
		const size_t n = strlen(code);
		if (strncmp(problem->code, code, code[n - 1] == '.' ? n : n + 1))
			continue;
		const char *value = s3_headers_value(file->target.headers, name);
		if (value)
			problem_prefix(problem, "--%s%s%s", name, *value ? " " : "", value);
	}
}

/* The caller holds the mutex. Whether the others are through, and none could store anything. */
static bool is_set_up(const struct refusals *refusals)
{
	return !refusals->locked.has_stored && refusals->locked.n_refused >= SEVERAL &&
	       refusals->locked.n_waiting >= refusals->locked.n_working;
}

/* Until the others that are under way have ended, or one of them has stored something. True: none
 * has. */
static bool wait_for_others(struct run *run)
{
	struct refusals *refusals = &run->refusals;
	refusals->locked.n_waiting++;
	pthread_cond_broadcast(&refusals->locked.changed);
	while (!is_set_up(refusals) && !refusals->locked.has_stored && !run_is_over(run) &&
		!atomic_load(&run->stop)) {
		thread_cond_wait(&refusals->locked.changed, &refusals->locked.mutex, SLICE_NS);
	}
	const bool is_over = is_set_up(refusals);
	refusals->locked.n_waiting--;
	return is_over;
}

static void fail_run(struct run *run, unsigned n_refused, const struct problem *problem)
{
	struct problem said = *problem;
	problem_prefix(&said, "all of the %u files that were tried are refused", n_refused);
	run_fail(run, &said);
}

/* Keeps the file; false if there is no need to, since something was stored. *ret_n: if the run is
 * to end, how many files were refused, else 0. */
static bool keep(struct run *run, struct refused *refused, unsigned *ret_n)
{
	struct refusals *refusals = &run->refusals;
	pthread_mutex_lock(&refusals->locked.mutex);
	const bool keeps = !refusals->locked.has_stored;
	if (keeps) {
		refused->next = refusals->locked.refused;
		refusals->locked.refused = refused;
		refusals->locked.n_refused++;
		atomic_store(&refusals->has_some, true);
		if (refusals->locked.n_refused >= SEVERAL && wait_for_others(run))
			*ret_n = refusals->locked.n_refused;
	}
	pthread_mutex_unlock(&refusals->locked.mutex);
	return keeps;
}

enum step file_refused(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem said = *problem;
	struct refused *refused = NULL;
	unsigned n_refused = 0;
	name_setting(file, &said);
	if (!atomic_load(&worker->run->refusals.has_stored))
		refused = malloc(sizeof *refused);
	if (!refused)
		return file_fail(worker, file, &said);
	if (file->fd >= 0) /* many may be kept */
		close(file->fd);
	file->fd = -1;
	*refused = (struct refused){.file = file, .problem = said};
	if (!keep(worker->run, refused, &n_refused)) {
		free(refused);
		return file_fail(worker, file, &said);
	}
	if (n_refused)
		fail_run(worker->run, n_refused, &said);
	return STEP_ASIDE;
}

/* Takes the list if its files are to be judged now. */
static struct refused *take(
	struct refusals *refusals, bool at_end, bool *ret_has_stored, unsigned *ret_n)
{
	struct refused *all = NULL;
	pthread_mutex_lock(&refusals->locked.mutex);
	*ret_has_stored = refusals->locked.has_stored;
	*ret_n = refusals->locked.n_refused;
	if (*ret_has_stored || (at_end && !refusals->locked.n_working)) {
		all = refusals->locked.refused;
		refusals->locked.refused = NULL;
		refusals->locked.n_refused = 0;
		atomic_store(&refusals->has_some, false);
	}
	pthread_mutex_unlock(&refusals->locked.mutex);
	return all;
}

void refusals_settle(struct worker *worker, bool at_end)
{
	struct run *run = worker->run;
	struct refusals *refusals = &run->refusals;
	bool has_stored;
	unsigned n;
	if (!atomic_load(&refusals->has_some) || (!at_end && !atomic_load(&refusals->has_stored)))
		return;
	struct refused *all = take(refusals, at_end, &has_stored, &n);
	if (all && !has_stored && n >= SEVERAL_AT_END)
		fail_run(run, n, &all->problem);
	for (struct refused *next; all; all = next) {
		next = all->next;
		if (!run_is_over(run))
			file_fail(worker, all->file, &all->problem);
		refused_free(all);
	}
}
