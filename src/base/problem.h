/* What went wrong, for the person who has to fix it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Fixed sizes and no ownership, so that it can be copied and kept. Texts are already escaped for a
 * terminal. */
struct problem {
	char code[64];       /* the cloud's own error code ("AccessDenied"), or "" */
	char request_id[96]; /* of the reply, or "" */
	int status;          /* HTTP status, or 0 */
	uint64_t failing_ms; /* for how long the service answered with errors of its own, or 0 */
	char text[1000];     /* a sentence without full stop: what happened and, where known, the
				remedy; room for the paths of every source of credentials */
};

/* What the host refuses a process, with the remedy. */
#define PROBLEM_NO_DESCRIPTORS                                                                     \
	"out of memory or descriptors: lower --concurrency, or raise ulimit -n and -v"
#define PROBLEM_NO_THREAD                                                                           \
	"cannot start a thread: raise ulimit -u and -v, or the container's limit of processes and " \
	"memory"

#define PROBLEM_SENTENCE_MAX 1200 /* bytes that problem_format needs at most */

/* Sets the sentence, printf style, and empties the rest. What does not fit is cut at a character. p
 * may be NULL. Returns `error`, for a caller that ends with this error or with another value. */
int problem_error(struct problem *p, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for any other caller. */
#define problem_set(p, ...) ((void)problem_error(p, 0, __VA_ARGS__))
/* The same by value, for the one call that is told of it: run_fail(run, PROBLEM("out of memory")).
 */
struct problem problem_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define PROBLEM(...) ((const struct problem[]){problem_of(__VA_ARGS__)})
/* Puts "words: " before the sentence that is there. */
void problem_prefix(struct problem *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* "sentence (Code, request id X)" into ret; only what is known. Always terminated. */
void problem_format(const struct problem *p, char *ret, size_t size);
