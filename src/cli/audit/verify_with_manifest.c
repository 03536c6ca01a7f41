#include "cli/audit/verify_with_manifest.h"
#include "audit/verify_manifest.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/options/options.h"
#include <unistd.h>

/* Fetches the manifest, and checks that it is whole and signed by the right key. Adds its key. The
 * caller closes the descriptor. */
static enum outcome open_manifest(const struct verify_with_manifest *wanted,
	const struct manifest_setup *setup, struct text *key, int *ret_fd, bool *ret_is_wrong,
	struct problem *ret_problem)
{
	enum outcome o = manifest_find(&setup->place, wanted->manifest, key, ret_problem);
	const struct manifest_asked asked = {
		.place = &setup->place, .public_key = setup->public_key, .key = text_string(key)};
	*ret_is_wrong = o == OUTCOME_ABSENT;
	if (o == OUTCOME_OK)
		o = manifest_open(&asked, ret_fd, ret_is_wrong, ret_problem);
	return o;
}

/* What is wrong with the manifest is reported by the reading after this one. False with a sentence:
 * out of memory. */
static bool size_subset(struct verify_subset *subset, int fd, struct problem *ret_problem)
{
	struct manifest_reader *reader;
	struct manifest_entry entry;
	struct problem ignored;
	uint64_t total = 0;
	if (manifest_reader_new(fd, &reader, ret_problem) < 0)
		return false;
	while (manifest_reader_next(reader, &entry, &ignored) > 0)
		total += entry.size;
	manifest_reader_free(reader);
	verify_subset_share(subset, total);
	return true;
}

static enum outcome compare_entries(struct verify_with_manifest *wanted, int fd,
	struct verify_end *ret_end, bool *ret_is_wrong, struct problem *ret_problem)
{
	struct manifest_reader *reader;
	if (wanted->verify.subset.bytes && !size_subset(&wanted->verify.subset, fd, ret_problem))
		return OUTCOME_LOCAL;
	if (manifest_reader_new(fd, &reader, ret_problem) < 0)
		return OUTCOME_LOCAL;
	const enum outcome o = verify_manifest(&wanted->verify, wanted->where.url->bucket, reader,
		ret_end, ret_is_wrong, ret_problem);
	manifest_reader_free(reader);
	return o;
}

static int compare_opened(struct verify_with_manifest *wanted, struct manifest_setup *setup)
{
	struct problem problem = {0};
	struct verify_end end = {0};
	struct text key = TEXT(2048);
	bool is_wrong = false;
	int fd = -1;
	const struct verify_visitor *visitor = &wanted->verify.visitor;
	setup->place.limits.abandon = visitor->is_stopped;
	setup->place.limits.abandon_arg = visitor->arg;
	wanted->verify.s3 = setup->s3;
	wanted->verify.headers = setup->headers;
	enum outcome o = open_manifest(wanted, setup, &key, &fd, &is_wrong, &problem);
	if (o == OUTCOME_OK) {
		o = compare_entries(wanted, fd, &end, &is_wrong, &problem);
		close(fd);
		if (is_wrong)
			problem_prefix(&problem, "the manifest %s", quote(text_string(&key)).text);
	}
	text_clear(&key);
	if (o == OUTCOME_ABANDONED) /* stopped before the first object: nothing was compared */
		o = OUTCOME_OK;
	int code = is_wrong ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_SETUP;
	if (o == OUTCOME_OK)
		code = wanted->exit_code(&end);
	const struct problem *told = o == OUTCOME_OK ? NULL : &problem;
	verify_view_end(wanted->view, &(struct verify_told){&end, &wanted->verify, told, code});
	return told ? command_fail("verify", code, told) : code;
}

int verify_with_manifest(struct verify_with_manifest *wanted)
{
	struct manifest_setup setup;
	struct problem problem = {0};
	const int code = manifest_setup_open(&wanted->where, &setup, &problem)
				 ? compare_opened(wanted, &setup)
				 : command_fail("verify", S3ONCE_EXIT_SETUP, &problem);
	manifest_setup_close(&setup);
	return code;
}
