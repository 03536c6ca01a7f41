/* Looks on, and says at every step whether a promise is broken (docs/guarantees.md). It knows what
 * each file was at every moment, what is in S3 and what the marks say. */
#pragma once
#include "machines.h"
#include "s3once/push.h"
#include "world_dynamodb.h"
#include "world_s3.h"

void judge_begin(void);
void judge_end(void);
/* A file has another content now, which is that of its node. The path is that of push's source. */
void judge_content(const char *path, const struct node *node);

/* The same of a file of the machine that has a copy of another one's disk: the file is that under
 * the same key, and either may be in S3. */
void judge_copied_content(const char *path, const struct node *node);

/* A rotated log below this prefix: from now on it has this content under some name, whether
 * compressed or not, and with judge_log_gone() no more. */
void judge_log(const char *prefix, unsigned log, const void *bytes, size_t n);
void judge_log_gone(const struct node *node);

/* A witness each of the servers. */
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
/* Whether a HEAD has told this process of an object with this key. */
bool judge_was_shown(const struct machine_process *process, const char *key);
/* A batch of statements is refused as a whole. */
void judge_batch_refused(void);

/* A program has written all of this, in order, for a key of its own (pipes.c). The object has that
 * and nothing else. */
void judge_output(const char *key, const void *bytes, size_t n);
/* A process asks for the output, for an object with this suffix. Nothing may be under the key since
 * before it began. */
void judge_produced(const char *key, const char *suffix, const struct machine_process *process);
/* Whether an object is at its key, or was until people deleted it. */
bool judge_has_output(const char *key);
/* A process that uploads it ends with 0. */
void judge_piped(const char *key, const struct machine_process *process);

/* A run has told that the object of this key is there and marked. */
void judge_told(const char *key);

/* The bucket was deleted and made again. */
void judge_bucket_anew(void);

/* Somebody is about to delete this object. */
void judge_deleted(const struct s3_stored *object);

/* The mark of this key was forgotten, so that a mark may be missing of what is done. */
void judge_forgotten(const char *key);
/* The same by who forgets only marks whose objects are missing, and has begun at this time. */
void judge_forgotten_as_missing(const char *key, const char *suffix, uint64_t began_ns);
/* gc says that it has aborted this upload, which the mark of this key named. */
void judge_aborted(const char *key, const char *upload);
/* The power of a machine is about to fail. */
void judge_power_fails(const struct machine *machine);
/* The marks of a machine are those of an earlier time from now on. */
void judge_restored(void);
/* Whether an object may differ from its mark although no promise is broken. */
bool judge_may_differ(const char *key);

/* Whether there is no object since the bucket was made anew, and no file that could be sent again.
 */
bool judge_may_miss(const char *key);
/* Whether the object of this key had this etag then or later, until another one replaced it. */
bool judge_had_etag(const char *key, const char *etag, uint64_t since_ns);

/* Whether an object below this prefix has what this log contains. */
bool judge_is_in_s3(const char *prefix, const struct node *log);
/* A program opens a file to write to it, and has it open until it is closed. */
void judge_opened(const struct node *node);
/* A process is about to remove a file. */
void judge_removal(struct machine_process *process, struct node *node, const char *path);
/* How a run has ended that began at this world time. */
struct run_end {
	uint64_t began_ns;
	int exit;
	bool keeps_earlier; /* the version of a file that has changed since */
};
void judge_exit(const struct machine_process *process, const struct run_end *end);
/* All is quiet, and a last run has ended with 0 on each machine: everything is where it belongs. */
void judge_rest(void);
