/* Descriptions of failures, for the person who has to fix them: a sentence that names the file, the
 * key or the host that it is about. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* A problem owns no memory, so that it can be copied and kept. Its texts are already escaped for a
 * terminal. */
struct problem {
	char code[64];       /* the cloud's own error code ("AccessDenied"), or "" */
	char request_id[96]; /* the reply's request id, or "" */
	int status;          /* HTTP status, or 0 */
	uint64_t failing_ms; /* the time for which the service has answered with errors of its own,
				or 0 */
	char text[1000]; /* a sentence without full stop: the event and, where known, the remedy;
			    room for the paths of every source of credentials */
};

/* Sentences about limits of the host, each with the remedy. */
#define PROBLEM_NO_DESCRIPTORS                                                                     \
	"out of memory or descriptors: lower --concurrency, or raise ulimit -n and -v"
#define PROBLEM_NO_THREAD                                                                           \
	"cannot start a thread: raise ulimit -u and -v, or the container's limit of processes and " \
	"memory"

#define PROBLEM_SENTENCE_MAX 1200 /* bytes that problem_format needs at most */

/* Sets the sentence of *p, printf style, and empties its other fields. A sentence that is too long
 * is cut between two characters. p may be NULL. Returns `error`, so that a caller can end with it
 * in one statement. */
int problem_error(struct problem *p, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise, without a value. */
#define problem_set(p, ...) ((void)problem_error(p, 0, __VA_ARGS__))
/* Returns a problem with this sentence. PROBLEM() is a pointer to one, as an argument of a single
 * call: run_fail(run, PROBLEM("out of memory")). */
struct problem problem_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define PROBLEM(...) ((const struct problem[]){problem_of(__VA_ARGS__)})
/* Puts "words: " before the present sentence. */
void problem_prefix(struct problem *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes "sentence (Code, request id X)" into ret, as far as these are known. ret is always
 * terminated. */
void problem_format(const struct problem *p, char *ret, size_t size);

/* A name or other text from outside, as part of a sentence. It is escaped, so that it never
 * controls a terminal, and cut, so that it leaves room for the rest. */
struct quoted {
	char text[256];
};

/* Returns s as text_add_escaped() writes it, cut and ended by "..." if it is too long. The result
 * is a value, for use within a call: problem_set(p, "cannot read %s", quote(path).text). */
struct quoted quote(const char *s);
/* Likewise for n bytes. */
struct quoted quote_bytes(const char *s, size_t n);
/* Quotes a URL that a user wrote, with *** in place of a user and password, and of a query. */
struct quoted quote_url(const char *url);
