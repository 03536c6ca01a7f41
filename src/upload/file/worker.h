/* A worker takes tasks from the queue and brings each file from its claim to its mark, blocking, on
 * connections of its own. The steps of docs/protocol.md ("One file") are one function each, and
 * worker.c calls them in a straight line. */
#pragma once
#include "upload/body/proof.h"
#include "upload/file/file.h"

struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader; /* its buffer has a small file's whole body, too; owned */
	bool is_warm;         /* it has had a task, so that its connections are there */
	uint64_t read_ns;     /* for how long the task has opened and read its file, so far */
};

/* Steps 2 and 3: judges the mark, and claims it or takes it over. NEXT: it is claimed. */
enum step claim_file(struct worker *worker, struct file *file);
/* Step 2 of a file whose very version is done by its size and mtime, or by the id of its content.
 * SETTLED: that is believed, and that a newer version was noted is forgotten. NEXT: its object is
 * to be looked at. Where the content is to be compared, else as changed_file. */
enum step done_file(struct worker *worker, struct file *file);
/* Step 2 of one that is done with the same size, where the mtime is another or does not tell: the
 * content decides. SETTLED if it is the same, else as changed_file. */
enum step touched_file(struct worker *worker, struct file *file);
/* Step 2 of one that is done with other content: what to do is the user's choice. NEXT: the object
 * is to be replaced. */
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
/* The same of the content itself, for what is told of it, whatever encoding it is sent with. */
enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* Step 4: asks what S3 holds under the key. NEXT: nothing, or exactly the version to be replaced,
 * so that the file can be sent. Content that is the file's own is adopted. AGAIN where what was
 * sent is damaged, or was an earlier version. */
enum step look_at_object(struct worker *worker, struct file *file);
/* The same without reading the file: AGAIN, so that look_at_object() comes first, where there is
 * anything else than what is to be replaced. */
enum step look_once_more(struct worker *worker, struct file *file);
/* Step 4 of a file that is known by its content: asks whether that is stored under the same key
 * with another suffix of compression. Such an object is adopted. NEXT: there is none. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* The same as look_at_object before much is sent, only to save that. NEXT also where we may not
 * look, but the server is known to refuse what we must not replace. */
enum step look_ahead(struct worker *worker, struct file *file);
/* The same after this condition was refused. AGAIN, and not NEXT, if the way is free now. */
enum step look_after_refusal(
	struct worker *worker, struct file *file, const struct s3_condition *condition);

/* Step 5 for a small file: one PutObject, from the check of the file to the done mark. A large file
 * goes the way of multipart.h. */
enum step send_whole(struct worker *worker, struct file *file);
/* Step 6 where the reply did not prove the upload: the object as HEAD shows it does, or is judged
 * as in step 4. SETTLED, or why not. */
enum step file_prove_by_head(struct worker *worker, struct file *file);

/* Of a file that is in S3: removes or moves it as the options say, if it is due, proven once more
 * and kept by no rule, and tells what became of it. */
void remove_file(struct worker *worker, struct file *file);

/* The body of a worker's thread: until the queue has no more tasks. */
int worker_new(struct run *run, struct worker **ret);
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);
/* A block of files that others may have taken meanwhile: reads their marks anew and puts back into
 * the queue what is left to do. Frees the block. */
void block_check(struct worker *worker, struct block *block);
