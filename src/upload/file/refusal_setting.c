#include "upload/file/refusal_setting.h"
#include "base/text.h"
#include "upload/file/file.h"
#include <string.h>

#define SUSPECTS_MAX_BYTES 500

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
	return strcmp(problem->code, "InvalidArgument") == 0 ||
	       strcmp(problem->code, "InvalidRequest") == 0 ||
	       strcmp(problem->code, "NotImplemented") == 0;
}

bool refusal_may_be_of_setting(const struct file *file, const struct problem *problem)
{
	bool has_one = false;
	for (size_t i = 0; i < sizeof suspects / sizeof *suspects; i++)
		has_one |= s3_headers_value(file->target.headers, suspects[i]) != NULL;
	return has_one && is_vague(problem);
}

void refusal_name_setting(const struct file *file, struct problem *problem)
{
	if (is_vague(problem)) {
		name_suspects(file, problem);
		return;
	}
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *code = settings[i].code, *name = settings[i].setting;
		const size_t n = strlen(code);
		if (strncmp(problem->code, code, code[n - 1] == '.' ? n : n + 1) != 0)
			continue;
		const char *value = s3_headers_value(file->target.headers, name);
		if (value)
			problem_prefix(problem, "--%s%s%s", name, *value ? " " : "", value);
	}
}
