/* A worker takes tasks from the queue and brings each file from its claim to its mark, blocking, on
 * connections of its own. The steps of docs/protocol.md ("One file") are one function each, and
 * worker.c calls them in a straight line. */
#pragma once
#include "upload/file/file.h"

struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader; /* its buffer has a small file's whole body, too; owned */
	bool is_warm;         /* it has had a task, so that its connections are there */
	uint64_t read_ns;     /* for how long the task has opened and read its file, so far */
};

/* Steps 2 and 3: judges the mark, and claims it or takes it over. Returns NEXT if it is claimed. */
enum step claim_file(struct worker *worker, struct file *file);
/* Step 2 for a file whose mark says that this version is done, by size and mtime or by the id of
 * the content. Returns SETTLED if that is believed; a newer version that the mark notes is then
 * forgotten. Returns NEXT if the object is to be looked at. If the content is to be compared and
 * differs, it returns as changed_file(). */
enum step done_file(struct worker *worker, struct file *file);
/* Step 2 for a file whose mark says that a version of the same size is done, but whose mtime
 * differs or does not tell. The content decides. Returns SETTLED if it is the same, else as
 * changed_file().
 */
enum step touched_file(struct worker *worker, struct file *file);
/* Step 2 for a file whose mark says that other content is done. The user has chosen what happens
 * then. Returns NEXT if the object is to be replaced. */
enum step changed_file(struct worker *worker, struct file *file);

/* How a file would be sent: with which encoding (NULL: as it is), and in which parts; and the
 * digests to compute of them. */
struct sending {
	const struct encoding *encoding;
	const struct plan *plan;
	unsigned kinds;
};
/* The sums of what each part of a file is sent as. The caller frees them. NEXT, or why not. */
enum step file_sum_parts(
	struct worker *worker, struct file *file, const struct sending *how, struct sums **ret);
/* Reads the file for what is told of the object, and says whether it has the file's content. NEXT
 * sets *ret. AGAIN if the file changed meanwhile. */
enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* The same for the content itself, whatever encoding it is sent with. */
enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* Step 4: asks what S3 holds under the key. Returns NEXT if the file can be sent, since S3 holds
 * nothing, or exactly the version to be replaced. Content that is the file's own is adopted.
 * Returns AGAIN if what was sent is damaged, or was an earlier version. */
enum step look_at_object(struct worker *worker, struct file *file);
/* The same without reading the file. Returns AGAIN if S3 holds anything else than what is to be
 * replaced, so that look_at_object() comes first. */
enum step look_once_more(struct worker *worker, struct file *file);
/* Step 4 for a file that is known by its content: asks whether that is stored under the same key
 * with another suffix of compression. Such an object is adopted. Returns NEXT if there is none. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* Such a file is done with this object, which was judged to have its content. Returns SETTLED, or
 * why not. */
enum step adopt_by_content(struct worker *worker, struct file *file, const char *suffix,
	const struct s3_object *object);
/* The object under this key says that it has the content, and nothing shows that it has. */
enum step fail_unproven(struct worker *worker, struct file *file, const char *key);
/* As look_at_object(), before much is sent and only to save that. Returns NEXT also if we may not
 * look, but the server is known to refuse what we must not replace. */
enum step look_ahead(struct worker *worker, struct file *file);
/* As look_at_object(), after this condition was refused. If S3 holds nothing in the way now, it
 * returns AGAIN and not NEXT. */
enum step look_after_refusal(
	struct worker *worker, struct file *file, const struct s3_condition *condition);

/* Step 5 for a small file: one PutObject, from the check of the file to the done mark. A large file
 * goes the way of multipart.h. */
enum step send_whole(struct worker *worker, struct file *file);
/* Step 6 if the reply did not prove the upload: a HEAD shows the object, which proves it, or is
 * judged as in step 4. Returns SETTLED, or why not. */
enum step file_prove_by_head(struct worker *worker, struct file *file);

/* Removes or moves a file that is in S3, as the options say, if it is due, proven once more and
 * kept by no rule. Reports what became of it. */
void remove_file(struct worker *worker, struct file *file);

/* Makes a worker with connections of its own. Returns 0 or -errno. */
int worker_new(struct run *run, struct worker **ret);
/* The body of a worker's thread. It returns when the queue has no more tasks for this worker. */
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);
/* A block of files that others may have taken meanwhile: reads their marks anew and puts back into
 * the queue what is left to do. Frees the block. */
void block_check(struct worker *worker, struct block *block);
