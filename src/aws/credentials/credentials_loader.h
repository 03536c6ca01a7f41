/* One load of credentials: the providers in AWS's order, of which a profile is one that has
 * several ways, and what they share. */
#pragma once
#include "aws/config.h"
#include "aws/credentials/credentials.h"
#include "base/text.h"
#include "http/http.h"
#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <uv.h>

/* What the providers share. Used by one thread at a time, but for what is atomic. */
struct credentials_loader {
	struct credentials_options options; /* borrowed strings; its profile is never NULL */
	struct http_shared *shared;         /* both made by the first request */
	struct http *http;
	bool has_provider;    /* one has yielded credentials: no other is asked any more */
	int provider;         /* its number */
	atomic_bool is_fixed; /* and it can never yield others in this process */
	atomic_bool stopped;  /* end the load that is under way: nobody wants it any more */
};

/* A provider. Returns 0 and fills *ret, or -ENODATA if it is not configured, so that the next one
 * is asked, or another -errno. *ret_problem, which is not NULL, gets a sentence unless 0 is
 * returned. With -ENODATA it may be empty. */
typedef int credentials_load(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem);
/* AWS_CONTAINER_CREDENTIALS_*: the agent of ECS, of EKS Pod Identity, and their like. */
credentials_load credentials_container;
/* The role of the EC2 instance, from its metadata service. */
credentials_load credentials_imds;

/* Every provider calls this with what it found. *ret gets copies. access_key and secret are
 * required, and session_token may be NULL. 0, -ENOMEM, or -EINVAL with a sentence that says what is
 * wrong with those of `where`. */
int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem);

/* Credentials as JSON, in the shape in which programs, containers and instances hand them out.
 *
 * The object that the text is, or NULL. Free it with json_free_secret, which overwrites its
 * strings. */
json_t *json_load_secret(const struct text *text);
void json_free_secret(json_t *object);
/* The string of this name; NULL if there is none or it is empty. Borrowed. */
const char *json_word(const json_t *object, const char *name);

/* Programs; containers and instances; SSO, whose replies have them in an object. */
enum credentials_form { FORM_PROGRAM, FORM_AGENT, FORM_SSO };
/* The time at which they expire may be missing. 0; -EBADMSG with a sentence; -EINVAL, -ENOMEM as
 * credentials_set. */
int credentials_from_json(const json_t *object, enum credentials_form form, struct credentials *ret,
	struct problem *ret_problem);
/* The same of a reply with whatever status. They expire by the clock of who answered. */
int credentials_from_reply(const struct http_reply *reply, enum credentials_form form,
	struct credentials *ret, struct problem *ret_problem);

/* Sends a request of a provider, which is small, and unsigned or signed by it, with a few tries.
 * What ends it is set here. timeout_ms is that of each attempt. 0: *ret is a reply of whatever
 * status, the last one if all attempts were answered with 429, 5xx or what STS has for them. Else
 * http_perform's -errno (a timeout is -ETIMEDOUT), with a sentence. Clear *ret in
 * any case. */
int credentials_http(struct credentials_loader *loader, struct http_request request,
	uint64_t timeout_ms, unsigned attempts, struct http_reply *ret,
	struct problem *ret_problem);
/* How far the clock of who answered is ahead of ours, by the reply's Date; 0: less than minutes, or
 * it has none. */
int64_t credentials_clock_offset_s(const struct http_reply *reply);

/* A token in a file.
 *
 * Adds the file's content to ret, which caps it, without the white space at its end. 0, or -errno
 * with a sentence, but never -ENODATA; an empty file is -EIO. Wipe ret in any case. */
int secret_file_read(const char *path, struct text *ret, struct problem *ret_problem);

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

/* Loads credentials from the first provider that has any. Later loads ask only that one. Returns 0;
 * -ENODATA with a sentence that says where it has looked; -ESTALE for credentials that have already
 * expired; or another -errno with a sentence. */
int credentials_loader_load(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem);

/* AWS Security Token Service: temporary credentials of a role. Source: AWS STS API Reference. */
struct sts_request {
	const char *role;         /* its ARN */
	const char *session_name; /* NULL: "s3once-" and the time */
	const char *external_id;  /* NULL: none, as for all that follow */
	const char *duration_seconds;
	const char *web_identity_token;      /* then it needs no signature */
	const struct credentials *signed_by; /* else who may assume the role */
};

/* Asks the loader's STS endpoint. 0; else -errno with a sentence that names the role, and keeps
 * the service's code and request id. */
int sts_assume(struct credentials_loader *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem);

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

/* The chain, as credentials.c and a unit test see it.
 *
 * What shows that a file was written. */
struct stamp {
	int64_t mtime_ns, size;
	uint64_t inode;
};

struct credentials_chain {
	uint64_t patience_ns;
	atomic_uint generation; /* written under the mutex */
	atomic_bool accepted;
	uv_thread_t keeper;
	/* The keeper's own, written while it loads. */
	struct credentials_loader loader;
	struct stamp stamps[2]; /* of the profile's files at the last load */
	uv_mutex_t mutex;
	uv_cond_t changed; /* anything that is locked */
	struct {
		struct credentials current;
		bool loaded;     /* current is there */
		bool is_refused; /* and no server takes it */
		bool keeper_runs, stopping;
		bool wanted;            /* a load, now */
		unsigned begun, ended;  /* loads */
		uint64_t ended_ns;      /* clock_boot_ns() when the last one had */
		unsigned failures;      /* of loads, since the last good one */
		int error;              /* of the last load */
		struct problem problem; /* and its sentence */
		uint64_t next_ns;       /* clock_boot_ns() of the next load, UINT64_MAX: none */
		uint64_t paused_ns;     /* since when there are none that can be used, or 0 */
		bool said_late, said_paused;
	} locked;
};
