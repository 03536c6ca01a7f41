/* A file on its way, for tests of the steps in src/upload/file: a real run over a folder of its
 * own, with real marks, whose S3 is a script. The run has begun, but has no threads of its own: a
 * test calls one step after the other. */
#pragma once
#include "../script_server.h"
#include "scan/scan.h"
#include "upload/feed.h"
#include "upload/file/file_open.h"
#include "upload/file/steps.h"
#include "upload/file/worker.h"
#include "upload/push_struct.h"
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STEPS_REPLY(status, headers, body)                                                         \
	"HTTP/1.1 " status " X\r\nx-amz-request-id: 1\r\n" headers "Connection: close\r\n\r\n" body

struct steps {
	char folder[64], tree[80], path[96], marks[96], database[96];
	struct script_server server;
	struct s3once_options options;
	const char *sources[1];
	struct s3once_push *push;
	struct run *run;
	struct worker *worker;
	struct file *file;
	size_t n_answers;       /* of S3, as the script has them so far */
	struct problem problem; /* of the last call */
	unsigned events[64];    /* how often each event was reported */
	char said[800];         /* the last sentence of an event */
};

static inline void steps_note(void *arg, const struct s3once_event *event)
{
	struct steps *steps = arg;
	steps->events[event->type]++;
	if (event->text && *event->text)
		snprintf(steps->said, sizeof steps->said, "%s", event->text);
}

/* Checks that the last sentence has this text in it. */
static inline bool steps_say(const struct steps *steps, const char *text)
{
	const bool good = CHECK(strstr(steps->said, text) != NULL);
	if (!good)
		fprintf(stderr, "\tgot  %s\n\twant %s\n", steps->said, text);
	return good;
}

/* Makes a folder with one file, "k". What the options say may be changed before steps_begin(). */
static inline bool steps_make(struct steps *steps, const void *content, size_t n)
{
	*steps = (struct steps){0};
	/* In memory if possible, since each write of a mark is synced. */
	snprintf(steps->folder, sizeof steps->folder, "%s/steps.XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!CHECK(mkdtemp(steps->folder) != NULL))
		return false;
	snprintf(steps->tree, sizeof steps->tree, "%s/tree", steps->folder);
	snprintf(steps->path, sizeof steps->path, "%s/k", steps->tree);
	snprintf(steps->database, sizeof steps->database, "%s/db", steps->folder);
	snprintf(steps->marks, sizeof steps->marks, "sqlite:%s/db", steps->folder);
	CHECK_INT(mkdir(steps->tree, 0700), 0);
	const int fd = open(steps->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, content, n), (int64_t)n);
	/* So old that nothing waits for it to rest. */
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_MAX_ATTEMPTS", "1", 1);
	setenv("XDG_STATE_HOME", steps->folder, 1);
	steps->sources[0] = steps->tree;
	steps->options = (struct s3once_options){.sources = steps->sources,
		.n_sources = 1,
		.bucket = "b",
		.region = "us-east-1",
		.concurrency = 2,
		.marks = steps->marks,
		.callback = steps_note,
		.callback_arg = steps};
	return true;
}

/* Begins the run. S3 answers by n steps, each used once. */
static inline bool steps_begin_run(struct steps *steps, const struct script_step *script, size_t n)
{
	char text[400];
	if (!script_start(&steps->server, script, n))
		return false;
	steps->n_answers = n;
	for (size_t i = n; i < SCRIPT_STEPS_MAX; i++) /* who has no answer is not waited for */
		steps->server.steps[i].close = true;
	steps->options.endpoint_url = steps->server.url;
	if (!CHECK_INT(s3once_push_new(&steps->options, &steps->push, text, sizeof text), 0))
		return false;
	struct run *run = steps->run = &steps->push->run;
	if (!CHECK(push_set_up(steps->push)))
		return false;
	CHECK_INT(session_begin(run->session, steps->push->conn, &steps->problem), OUTCOME_OK);
	run->locked.begun = run->locked.head_bucket_answered = true;
	atomic_store(&run->has_witness, true);
	queue_enter_phase(run->queue, QUEUE_FLOWS);
	return true;
}

/* Begins the run, and opens the file. */
static inline bool steps_begin(struct steps *steps, const struct script_step *script, size_t n)
{
	struct scan_entry entry;
	if (!steps_begin_run(steps, script, n))
		return false;
	struct run *run = steps->run;
	while (scan_next(run->files.scan, &entry, &steps->problem) > 0 && entry.kind != SCAN_FILE)
		;
	steps->worker = worker_new(run);
	struct candidate *candidate = feed_new_candidate(&entry);
	candidate->is_piped = run->options.read != NULL;
	steps->file = file_new(run, candidate);
	return CHECK(steps->worker && steps->file) &&
	       CHECK_INT(file_open(steps->worker, steps->file), STEP_NEXT);
}

/* Adds the next answer of S3, which then closes the connection. NULL: that is all it does. */
static inline void steps_answer(struct steps *steps, const char *reply)
{
	steps->server.steps[steps->n_answers++] = (struct script_step){reply, .close = true};
}

/* Calls meanwhile(arg) before the last answer that was added. */
static inline void steps_meanwhile(struct steps *steps, void (*meanwhile)(void *arg), void *arg)
{
	struct script_step *last = &steps->server.steps[steps->n_answers - 1];
	last->meanwhile = meanwhile;
	last->arg = arg;
}

/* Judges the mark and claims it, as a worker does: each time that it has to be judged once more,
 * the file is opened before. */
static inline enum step steps_claim(struct steps *steps)
{
	struct file *file = steps->file;
	enum step step = STEP_CLAIM;
	while (step == STEP_OPEN || step == STEP_CLAIM) {
		file->step = step;
		step = step == STEP_CLAIM ? claim_file(steps->worker, file)
					  : file_open(steps->worker, file);
		if (step == STEP_NEXT && file->step == STEP_OPEN)
			step = STEP_CLAIM;
	}
	return step;
}

static inline void steps_end(struct steps *steps)
{
	file_free(steps->file);
	worker_free(steps->worker);
	session_close(steps->run->session, steps->push->conn);
	steps->run->session = NULL;
	s3once_push_free(steps->push);
	script_clear(&steps->server);
	char all[100];
	snprintf(all, sizeof all, "rm -r %s", steps->folder);
	CHECK_INT(system(all), 0);
}

/* Stops S3, and checks which requests have come, as "METHOD TARGET" in lines. A read has "x-once"
 * in its target, which is left out. */
static inline bool steps_asked(struct steps *steps, const char *lines)
{
	char got[2000] = "";
	size_t at = 0;
	script_stop(&steps->server);
	for (size_t i = 0; i < steps->server.n_requests; i++) {
		const char *head = steps->server.requests[i].head;
		size_t n = strcspn(head, "\r");
		const char *once = strstr(head, "x-once=");
		if (once && once < head + n)
			n = (size_t)(once - 1 - head);
		else
			n -= strlen(" HTTP/1.1");
		at += (size_t)snprintf(got + at, sizeof got - at, "%.*s\n", (int)n, head);
	}
	return CHECK_STRING(got, lines);
}

/* Ends a row of a table, after which these requests have come. `good`: all else of it held. */
static inline void steps_end_row(struct steps *steps, bool good, const char *lines, size_t row)
{
	if (!steps_asked(steps, lines) || !good)
		fprintf(stderr, "\trow %zu\n", row);
	steps_end(steps);
}

/* script_step.meanwhile: somebody writes to the file, whose path is `arg`. */
static inline void steps_append(void *arg)
{
	const int fd = open(arg, O_WRONLY | O_APPEND | O_CLOEXEC);
	CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
}

/* The mark as the store has it now. */
static inline struct mark steps_mark(struct steps *steps)
{
	struct mark mark;
	struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	ref.limits = (struct call_limits){0}; /* the run may be over */
	CHECK_INT(mark_get(&ref, &mark, &steps->problem), OUTCOME_OK);
	return mark;
}

/* Begins the next turn of the file, which went back to the queue, without the pause before it. */
static inline void steps_next_turn(struct steps *steps)
{
	struct run *run = steps->run;
	CHECK(!steps->file->candidate);
	file_free(steps->file);
	steps->file = file_new(run, queue_pop_file(run->queue));
	steps->file->seen_mark = steps_mark(steps);
	CHECK_INT(file_open(steps->worker, steps->file), STEP_NEXT);
}

/* The header by which an object says that it was written for the key, with its line's end. */
static inline const char *steps_written_for(const char *key)
{
	static char header[100];
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char about[100], hex[2 * sizeof hash + 1];
	snprintf(about, sizeof about, "b/%s", key);
	SHA256((const unsigned char *)about, strlen(about), hash);
	hex_encode(hash, sizeof hash, hex);
	snprintf(header, sizeof header, "x-amz-meta-s3once-key: %.20s\r\n", hex);
	return header;
}
