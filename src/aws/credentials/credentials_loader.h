/* One load of credentials: the providers in AWS's order, of which a profile is one that has
 * several ways. */
#pragma once
#include "aws/config.h"
#include "aws/credentials/credentials_provider.h"
#include "base/text.h"
#include <stdatomic.h>
#include <stdint.h>

/* The ways in which a profile yields credentials; those that need more than a few lines have a file
 * each.
 *
 * A profile that is being loaded. */
struct profile_source {
	struct credentials_loader *loader;
	struct profile profile;
	const struct profile_source *parent; /* that names it as its source_profile, or NULL */
};

/* -ENODATA without a sentence: the profile does not say this way. Else as credentials_load. */
typedef int profile_way(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem);
/* web_identity_token_file and role_arn, or the environment's: STS AssumeRoleWithWebIdentity. */
profile_way credentials_web_identity;
/* sso_account_id, sso_role_name and sso_session, or the older keys: IAM Identity Center. */
profile_way credentials_sso;
/* credential_process. */
profile_way credentials_process;

/* One load: the providers in AWS's order. */
void credentials_loader_clear(struct credentials_loader *loader);

/* Loads credentials from the first provider that has any. *provider is -1 at first. It becomes the
 * number of that provider, and later loads ask only that one. Returns 0; -ENODATA with a sentence
 * that says where it has looked; -ESTALE for credentials that have already expired; or another
 * -errno with a sentence. */
int credentials_loader_load(struct credentials_loader *loader, int *provider,
	struct credentials *ret, struct problem *ret_problem);
/* Whether this provider can never yield others in this process. */
bool credentials_provider_is_fixed(int provider);

/* AWS Security Token Service: temporary credentials of a role. Source: AWS STS API Reference. */
struct sts_parameter {
	const char *name, *value; /* value NULL: left out */
};

struct sts_request {
	const char *action; /* AssumeRole, AssumeRoleWithWebIdentity */
	const struct sts_parameter *parameters;
	size_t n_parameters;
	const struct credentials *signed_by; /* NULL: it needs no signature */
};

/* Asks the loader's STS endpoint. 0; else -errno with a sentence, which keeps the service's code
 * and request id. */
int sts_assume(struct credentials_loader *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem);
/* The name of the session where none is given: "s3once-" and the time. */
void sts_session_name(char ret[static 32]);

/* The token that `aws sso login` leaves in ~/.aws/sso/cache. Source: "IAM Identity Center
 * credential provider" of the AWS SDKs and Tools Reference Guide, IAM Identity Center OIDC API
 * Reference. */
struct sso_session {
	const char *name; /* of the sso-session; NULL: legacy, the token goes by the start URL */
	const char *start_url, *region;
};

/* A command line cut into words as a POSIX shell would, without anything else a shell does: no
 * variables, no globs, no comments. Source: Python's shlex.split, which botocore uses.
 *
 * Cuts a line into words. *ret is a NULL-terminated vector with its strings in one block, which the
 * caller frees. 0, -ENOMEM, or -EINVAL with *ret_why where the line cannot be cut. */
int shell_words(const char *line, char ***ret, const char **ret_why);

/* Runs a program and takes its output. */
struct process_output {
	struct text out, err; /* both owned, capped by their max: set by the caller */
	int status;           /* of waitpid(2) */
};

/* Runs argv[0], which is found in PATH, until it ends. It has this process's environment, and
 * nothing on standard input. Processes that it leaves behind are not waited for. It starts with no
 * signal blocked, with SIGPIPE and SIGXFSZ not ignored, and with a soft limit of at most 1,024
 * descriptors, which it may raise.
 *
 * It is killed after the deadline, by clock_boot_ns() (-ETIMEDOUT), when *stopped becomes true
 * (-ECANCELED), and when it writes more than the cap of `out` (-EMSGSIZE). What exceeds the cap of
 * `err` is dropped. Any other -errno means that it could not be run. Clear both texts in any case.
 */
int process_output(char *const *argv, uint64_t deadline_ns, const atomic_bool *stopped,
	struct process_output *ret);
