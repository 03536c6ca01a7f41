/* Checks at every step whether a promise is broken (docs/guarantees.md). It knows the content of
 * each file at every moment, the objects in S3, and the marks. */
#pragma once
#include "machines.h"
#include "s3once/push.h"
#include "world_dynamodb.h"
#include "world_s3.h"

void judge_begin(void);
void judge_end(void);
/* Notes that a file has new content, that of its node. The path is relative to push's source. */
void judge_content(const char *path, const struct node *node);

/* The same for the machine whose disk is a copy of another one. Its file and the other machine's
 * file have the same key, and either may be in S3. */
void judge_copied_content(const char *path, const struct node *node);

/* Notes a rotated log below this prefix. Until judge_log_gone(), some file has this content,
 * compressed or not. */
void judge_log(const char *prefix, unsigned log, const void *bytes, size_t n);
void judge_log_gone(const struct node *node);

/* The callbacks of the servers: world_dynamodb.h and world_s3.h. */
void judge_item(void *arg, const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now);
void judge_store(void *arg, const struct wire_request *request, const struct s3_stored *before,
	struct s3_stored *now);
void judge_remove_object(
	void *arg, const struct wire_request *request, const struct s3_stored *before);
void judge_refused_object(
	void *arg, const struct wire_request *request, const struct s3_stored *there);
void judge_shown_object(
	void *arg, const struct wire_request *request, const struct s3_stored *object);
/* Whether a HEAD has shown this process an object with this key. */
bool judge_was_shown(const struct machine_process *process, const char *key);
/* Notes that a batch of statements was refused as a whole. */
void judge_batch_refused(void);

/* Notes that a program has written all of this, in order, for a key of its own (pipes.c). The
 * object must have this content and no other. */
void judge_output(const char *key, const void *bytes, size_t n);
/* Notes that a process requests the output, for an object with this suffix. No object may have been
 * at the key since before the process began. */
void judge_produced(const char *key, const char *suffix, const struct machine_process *process);
/* Whether an object is at its key, or was until people deleted it. */
bool judge_has_output(const char *key);
/* Notes that a process that uploads the output ends with 0. */
void judge_piped(const char *key, const struct machine_process *process);

/* Notes that a run has reported the object of this key as stored and marked. */
void judge_told(const char *key);

/* Notes that the bucket was deleted and recreated. */
void judge_bucket_anew(void);

/* Call it before people delete this object. */
void judge_deleted(const struct s3_stored *object);

/* Notes that the mark of this key was forgotten, so a file that is done may have no mark. */
void judge_forgotten(const char *key);
/* The same for a command that forgets only marks whose objects are missing, and that began at this
 * time. */
void judge_forgotten_as_missing(const char *key, const char *suffix, uint64_t began_ns);
/* Notes that gc reports the abort of this upload, which the mark of this key named. */
void judge_aborted(const char *key, const char *upload);
/* Call it before the power of a machine fails. */
void judge_power_fails(const struct machine *machine);
/* Notes that earlier marks of a machine were restored. */
void judge_restored(void);
/* Whether an object may differ from its mark although no promise is broken. */
bool judge_may_differ(const char *key);

/* Whether the object of this key is missing since the bucket was recreated, and no file is left to
 * be sent again. */
bool judge_may_miss(const char *key);
/* Whether the object of this key had this etag at some moment since that time. */
bool judge_had_etag(const char *key, const char *etag, uint64_t since_ns);

/* Whether an object below this prefix has the content of this log. */
bool judge_is_in_s3(const char *prefix, const struct node *log);
/* Notes that a program has opened a file for writing, and keeps it open. */
void judge_opened(const struct node *node);
/* Call it before a process removes a file. */
void judge_removal(struct machine_process *process, struct node *node, const char *path);
/* The end of a run. */
struct run_end {
	uint64_t began_ns; /* world time at which the run began */
	int exit;
	bool keeps_earlier; /* it replaces no earlier version of a file */
};
void judge_exit(const struct machine_process *process, const struct run_end *end);
/* Call it once all is quiet and a last run of each machine has ended with 0: every file has to be
 * in S3, and every mark has to be right. */
void judge_rest(void);
