/* The tables of a run's events and counters, from which JSON, metrics and the lines for people are
 * generated. include/s3once/push.h explains them, and docs/json.md their form. Pure, except for the
 * time in each event of JSON. */
#pragma once
#include "cli/json.h"
#include "cli/push/push_options.h"

enum event_traits {
	/* The members of the event in JSON. */
	HAS_PATH = 1,
	HAS_KEY = 2,
	HAS_BYTES = 4,
	HAS_TEXT = 8,
	HAS_REPLY = 16, /* code and request_id */
	HAS_COUNTS = 32,
	HAS_RUN = 64,     /* version, bucket, prefix, and place of the marks */
	HAS_OBJECT = 128, /* version_id, etag and checksum */
	HAS_WAIT = 4096,  /* reason and modified */
	/* The line for people. */
	IS_ERROR = 256, /* printed to stderr, even with --quiet */
	SHOWS_SIZE = 512,
	SHOWS_NO_KEY = 1024,
	/* The file is excluded or skipped, and the event is reported only with report_skipped. */
	IS_LEFT_OUT = 2048,
};

struct event_shape {
	const char *name;  /* in JSON */
	const char *words; /* the words before the path, for people; NULL: it is not about a file */
	unsigned traits;   /* set of enum event_traits */
	unsigned verbosity;        /* the least number of -v that prints its line */
	const char *words_of_move; /* in place of `words` with --move-to; NULL: `words` fit */
};
/* Indexed by the type of the event; SUMMARY is not among them. */
#define EVENT_SHAPES S3ONCE_EVENT_SUMMARY
extern const struct event_shape event_shapes[EVENT_SHAPES];

enum counter_kind {
	COUNTS_SOMETHING, /* none of the following */
	/* Results of files that were found: */
	COUNTS_IN_S3,     /* in S3 */
	COUNTS_NOT_THERE, /* not in S3, or not proven to be, although they should be */
	COUNTS_LEFT_OUT,  /* not to be uploaded, or not yet */
};
/* A member of struct s3once_counts that is a uint64_t. */
struct counter {
	/* Its name in JSON, and in the metrics if it counts files by result. NULL ends the list.
	 */
	const char *name;
	size_t offset;
	enum counter_kind kind;
	const char *words;         /* in the summary for people; NULL: it is not listed there */
	const char *words_of_move; /* in place of `words` with --move-to; NULL: `words` fit */
};
extern const struct counter run_counters[];
uint64_t counter_value(const struct counter *counter, const struct s3once_counts *counts);
/* The sum of all counters of this kind. */
uint64_t counters_sum(const struct s3once_counts *counts, enum counter_kind kind);

/* Advice about files that have waited long for this reason, or "". Static. */
const char *wait_advice(enum s3once_wait why);

/* Whether the run has read nothing of its pipe, since an earlier night's run has uploaded an object
 * with this key. A retry, or a run of the same job on another host, comes sooner. */
bool counts_repeat_a_night(const struct s3once_counts *counts);

/* Describes for people the limit of concurrent requests. */
const char *limit_sentence(enum s3once_limited_by limit);

/* Whether the event is about a file for which the run waits, since another uploader holds it. */
bool event_is_waited_for(const struct push_options *options, const struct s3once_event *event);

/* Returns the JSON object of an event. NULL for SUMMARY: use json_summary(). */
json_t *json_of_event(const struct push_options *options, const struct s3once_event *event);
/* Returns the summary, the last object of an ended run. If `push` is NULL, the run never began, and
 * there are no counts. */
json_t *json_summary(
	const struct push_options *options, const struct s3once_push *push, int exit_code);
