/* Loading credentials, each time that credentials.c needs them. The providers are tried in AWS's
 * order. One of them is the profile, which can be configured in several ways. At the end are
 * requests to STS, the run of a program, and the chain of credentials.c. */
#pragma once
#include "aws/credentials/credentials.h"
#include "aws/settings_lookup.h"
#include "base/text.h"
#include "http/http.h"
#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <uv.h>

/* The state that the providers share. One thread at a time uses it, except for the atomic
 * fields. */
struct credentials_providers {
	struct credentials_options options; /* borrowed strings; its profile is never NULL */
	struct http_shared *shared;         /* the first request makes this and `http` */
	struct http *http;
	bool has_provider; /* a provider has yielded credentials; later loads use only this one */
	int provider;      /* the index of this provider */
	atomic_bool is_fixed; /* this provider can never yield other credentials in this process */
	atomic_bool stopped;  /* ends the load that is under way */
};

/* A provider. Returns 0 and fills *ret, or -ENODATA if it is not configured, so that the next one
 * is tried, or another -errno. *ret_problem, which is not NULL, gets a sentence unless 0 is
 * returned. With -ENODATA it may be empty. */
typedef int credentials_load(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem);
/* AWS_CONTAINER_CREDENTIALS_*: the agent of ECS, of EKS Pod Identity, and their like. */
credentials_load credentials_container;
/* The role of the EC2 instance, from its metadata service. */
credentials_load credentials_imds;

/* Fills *ret with copies of the keys that a provider has found. session_token may be NULL. Returns
 * 0, -ENOMEM, or -EINVAL with a sentence that names `where` the malformed credentials are from. */
int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem);

/* Parses JSON with credentials, as programs, containers and instances return it. Returns the
 * object, or NULL if the text is no JSON object. Free it with json_free_secret(), which overwrites
 * its strings. */
json_t *json_load_secret(const struct text *text);
void json_free_secret(json_t *object);
/* Returns the string member of this name, or NULL if it is missing or empty. Borrowed. */
const char *json_word(const json_t *object, const char *name);

/* The forms of JSON: of programs, of containers and instances, and of SSO, whose replies have the
 * credentials in an inner object. */
enum credentials_form { FORM_PROGRAM, FORM_AGENT, FORM_SSO };
/* Reads credentials from a JSON object. The expiry may be missing. Returns 0, -EBADMSG with a
 * sentence, or -EINVAL or -ENOMEM as credentials_set(). */
int credentials_from_json(const json_t *object, enum credentials_form form, struct credentials *ret,
	struct problem *ret_problem);
/* Reads credentials from the JSON of a reply, with the same errors. A status other than 200 is
 * -EBADMSG, too. The expiry is corrected by the offset of the server's clock from ours. */
int credentials_from_reply(const struct http_reply *reply, enum credentials_form form,
	struct credentials *ret, struct problem *ret_problem);

/* Sends a provider's small request with a few attempts. The caller leaves the deadline, `abandon`
 * and the size limit to this function. timeout_ms is for each attempt.
 *
 * Returns 0 if there is a reply of any status. It is the last one if all attempts were answered
 * with 429, 5xx, or STS's throttling. Otherwise returns the -errno of http_perform(), where a
 * timeout is -ETIMEDOUT, with a sentence. Clear *ret in any case. */
int credentials_http(struct credentials_providers *loader, struct http_request request,
	uint64_t timeout_ms, unsigned attempts, struct http_reply *ret,
	struct problem *ret_problem);
/* Returns the number of seconds by which the server's clock is ahead of ours, according to the
 * reply's Date. 0 if the clocks differ by less than CLOCK_IS_OFF_S, or the reply has no Date. */
int64_t credentials_clock_offset_s(const struct http_reply *reply);

/* Adds a file's content, which is a token, to ret, without the white space at its end. ret->max
 * limits its size. Returns 0, or -errno with a sentence, but never -ENODATA. An empty file is -EIO.
 * Wipe ret in any case. */
int secret_file_read(const char *path, struct text *ret, struct problem *ret_problem);

/* A profile that is being loaded. */
struct profile_source {
	struct credentials_providers *loader;
	struct profile profile;
	/* the profile whose source_profile is this one; or NULL */
	const struct profile_source *parent;
};

/* A way in which a profile can be configured to yield credentials. Returns -ENODATA without a
 * sentence if the profile does not use it, otherwise the same as a credentials_load. */
typedef int profile_way(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem);
/* web_identity_token_file and role_arn, or the environment's: STS AssumeRoleWithWebIdentity. */
profile_way credentials_web_identity;
/* sso_account_id, sso_role_name and sso_session, or the older keys: IAM Identity Center. */
profile_way credentials_sso;
/* credential_process. */
profile_way credentials_process;

/* Loads credentials from the first provider that has any. Later loads use only that one. Returns 0;
 * -ENODATA with a sentence that lists the places searched; -ESTALE for credentials that have
 * already expired; or another -errno with a sentence. */
int credentials_providers_load(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem);

/* AWS Security Token Service: temporary credentials of a role. Source: AWS STS API Reference. */
struct sts_request {
	const char *role;         /* its ARN */
	const char *session_name; /* NULL: "s3once-" and the time */
	const char *external_id;  /* NULL: none, as for each member below */
	const char *duration_seconds;
	const char *web_identity_token;      /* if set, the request is not signed */
	const struct credentials *signed_by; /* otherwise they sign the request */
};

/* Sends the request to the loader's STS endpoint. Returns 0, or -errno with a problem that names
 * the role and has the service's code and request id. */
int sts_assume(struct credentials_providers *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem);

/* Cuts a command line into words as a POSIX shell does, but without variables, globs and comments.
 * Source: Python's shlex.split, which botocore uses.
 *
 * *ret is a NULL-terminated vector with its strings in one block, which the caller frees. Returns
 * 0, -ENOMEM, or -EINVAL with *ret_why if the line cannot be cut. */
int shell_words(const char *line, char ***ret, const char **ret_why);

/* The output of a program, and its exit status. */
struct process_output {
	struct text out, err; /* owned; the caller sets their max */
	int status;           /* as waitpid(2) returns it */
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

/* The stamp of a file, which changes when the file is written. This and the chain are for
 * credentials.c and a unit test. */
struct stamp {
	int64_t mtime_ns, size;
	uint64_t inode;
};

struct credentials_chain {
	uint64_t patience_ns;
	atomic_uint generation; /* written under the mutex */
	atomic_bool accepted;   /* a server has accepted credentials of this chain */
	uv_thread_t keeper;
	/* Only the keeper writes these two, also without the mutex. Other threads use only the
	 * atomic fields of `loader`, and set `stopped`. */
	struct credentials_providers loader;
	struct stamp stamps[2]; /* the stamps of the profile's files at the last load */
	uv_mutex_t mutex;
	uv_cond_t changed; /* signalled after a change in `locked` */
	struct {
		struct credentials current;
		bool loaded;     /* `current` has credentials */
		bool is_refused; /* a server refuses `current`, and a load found no others */
		bool keeper_runs, stopping;
		bool wanted;            /* a load is requested */
		unsigned begun, ended;  /* numbers of loads that have begun and ended, which differ
					   while a load is under way */
		uint64_t ended_ns;      /* clock_boot_ns() at the end of the last load */
		unsigned failures;      /* loads since the last good one: they have failed, or have
					   brought only keys that a server had refused */
		int error;              /* error of the last load */
		struct problem problem; /* the problem of the last load */
		uint64_t next_ns;       /* clock_boot_ns() of the next load, UINT64_MAX: none */
		uint64_t paused_ns;     /* time since which there are no usable credentials, or 0 */
		/* A warning was given that the renewal is late, or that requests are paused. */
		bool has_warned_late, has_warned_paused;
	} locked;
};
