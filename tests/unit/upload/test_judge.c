/* What an object is to a file: every fate, and what is next to it. */
#include "../check.h"
#include "s3/s3_request.h"
#include "upload/body/judge.h"

#define CONTENT "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
#define MD5     "5d41402abc4b2a76b9719d911017c592" /* of "hello" */

enum whose { NOBODY, OURS, A_COPY, UNNAMED_CLAIM, OLD_CLAIM, OTHER_TABLE };
enum sums_are { NO_SUMS, AS_STORED, NOT_AS_STORED };

struct row {
	enum judgement judgement;
	enum proof proof;
	enum whose whose;
	enum sums_are sums;
	const char *content;     /* of the file */
	const char *its_content; /* as the object says */
	const char *suffix, *its_suffix;
	bool in_parts, is_opaque, own_claim, was_done, replaces;
};

static const struct row rows[] = {
	{JUDGED_THE_FILE, PROOF_YES, NOBODY},
	{JUDGED_THE_FILE, PROOF_YES, OTHER_TABLE, NOT_AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, NOBODY},
	{JUDGED_FOREIGN, PROOF_MISSING, NOBODY},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, NOT_AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, OTHER_TABLE, AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, UNNAMED_CLAIM, AS_STORED},
	{JUDGED_EARLIER, PROOF_NO, OLD_CLAIM, AS_STORED},
	/* The object alone shows whether it was damaged. */
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, .own_claim = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED},
	{JUDGED_DAMAGED, PROOF_NO, OLD_CLAIM, NOT_AS_STORED},
	{JUDGED_DAMAGED, PROOF_MISSING, OURS, NOT_AS_STORED},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, .was_done = true},
	{JUDGED_EARLIER, PROOF_NO, OURS, NOT_AS_STORED, .is_opaque = true},
	{JUDGED_FOREIGN, PROOF_MISSING, OURS, NOT_AS_STORED, .is_opaque = true},
	/* In parts, or of an earlier version. */
	{JUDGED_EARLIER, PROOF_NO, OURS, NO_SUMS, .in_parts = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NO_SUMS, .in_parts = true, .own_claim = true},
	{JUDGED_EARLIER, PROOF_NO, OURS, NO_SUMS},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NO_SUMS, .own_claim = true},
	/* What was done before. */
	{JUDGED_EARLIER, PROOF_NO, NOBODY, .was_done = true},
	{JUDGED_EARLIER, PROOF_MISSING, NOBODY, .was_done = true},
	{JUDGED_REPLACED, PROOF_NO, OURS, NOT_AS_STORED, .replaces = true},
	{JUDGED_REPLACED, PROOF_NO, NOBODY, .was_done = true, .replaces = true},
	{JUDGED_THE_FILE, PROOF_YES, OURS, AS_STORED, .replaces = true},
	/* Another file's object of the same key. */
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, .its_suffix = ".zst"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, NOT_AS_STORED, .suffix = ".zst"},
	/* Logs that are known by their content. */
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, CONTENT, CONTENT},
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, CONTENT, CONTENT, "", ".gz"},
	{JUDGED_THE_CONTENT, PROOF_NO, OTHER_TABLE, AS_STORED, CONTENT, CONTENT},
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT, .in_parts = true},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT, .in_parts = true,
		.is_opaque = true},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT, .is_opaque = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT, "", ".gz"},
	{JUDGED_FOREIGN, PROOF_NO, OTHER_TABLE, NOT_AS_STORED, CONTENT, CONTENT},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, CONTENT, "another"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, CONTENT, "another", "", ".gz"},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, .its_content = CONTENT},
};

static struct s3_object object_of(const struct row *row)
{
	struct s3_object object = {.size = 5, .etag_is_opaque = row->is_opaque};
	struct s3_meta *meta = &object.meta;
	snprintf(object.etag, sizeof object.etag, MD5 "%s", row->in_parts ? "-2" : "");
	meta->mtime_ns = 7;
	meta->part_bytes = row->in_parts ? 3 : 0;
	snprintf(meta->table, sizeof meta->table, "%s",
		row->whose == NOBODY        ? ""
		: row->whose == OTHER_TABLE ? "theirs"
					    : "ours");
	snprintf(meta->claim, sizeof meta->claim, "%s",
		row->own_claim            ? "now"
		: row->whose == OLD_CLAIM ? "before"
		: row->whose == NOBODY    ? ""
					  : "another");
	meta->written_for = row->whose == OURS || row->whose == OTHER_TABLE ? S3_WRITTEN_FOR_THIS
			    : row->whose == A_COPY                          ? S3_WRITTEN_FOR_ANOTHER
						   : S3_WRITTEN_FOR_UNKNOWN;
	snprintf(meta->suffix, sizeof meta->suffix, "%s", row->its_suffix ? row->its_suffix : "");
	snprintf(meta->content, sizeof meta->content, "%s",
		row->its_content ? row->its_content : "");
	s3_parse_sums(row->sums == NO_SUMS     ? ""
		      : row->sums == AS_STORED ? "md5:XUFAKrxLKna5cZ2REBfFkg=="
					       : "md5:AAAAAAAAAAAAAAAAAAAAAA==",
		&meta->sums);
	return object;
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		const struct s3_object object = object_of(row);
		const struct file_state file = {.size = 5, .mtime_ns = 7};
		struct claim claim = {
			.id = "now", .before = {.claim = "before", .has_done = row->was_done}};
		claim.before.done.size = 5;
		snprintf(claim.before.done.etag, sizeof claim.before.done.etag, "%s", object.etag);
		const struct judged judged = {.object = &object,
			.proof = row->proof,
			.file = &file,
			.content = row->content ? row->content : "",
			.suffix = row->suffix ? row->suffix : "",
			.table = "ours",
			.claim = &claim,
			.replaces = row->replaces ? object.etag : ""};
		if (judge(&judged) != row->judgement)
			fprintf(stderr, "row %zu\n", i);
		CHECK_INT(judge(&judged), row->judgement);
	}
	return check_result();
}
