/* The events and the counters of a run, each in one table that JSON, metrics and the lines for
 * people are made of. include/s3once/push.h has their meaning, and docs/json.md their form. Pure
 * but for the time, which each event of JSON carries. */
#pragma once
#include "cli/json.h"
#include "cli/push/push_options.h"

enum event_traits {
	/* The members of an event that JSON has. */
	HAS_PATH = 1,
	HAS_KEY = 2,
	HAS_BYTES = 4,
	HAS_TEXT = 8,
	HAS_REPLY = 16, /* code and request_id */
	HAS_COUNTS = 32,
	HAS_RUN = 64,     /* version, bucket, prefix, and what marks there are */
	HAS_OBJECT = 128, /* version_id, etag and checksum */
	HAS_WAIT = 4096,  /* reason and modified */
	/* The line for people. */
	IS_ERROR = 256, /* on stderr, even when quiet */
	SHOWS_SIZE = 512,
	SHOWS_NO_KEY = 1024,
	/* The event is about a file that is left out, and comes only with report_skipped. */
	IS_LEFT_OUT = 2048,
};

struct event_shape {
	const char *name;   /* in JSON */
	const char *words;  /* the words before the path, for people; NULL: it is about no file */
	unsigned traits;    /* of enum event_traits */
	unsigned verbosity; /* its line is printed from this many -v on */
	const char *words_of_move; /* in place of `words` with --move-to; NULL: `words` fit */
};
/* Indexed by the type of the event; SUMMARY is not among them. */
#define EVENT_SHAPES S3ONCE_EVENT_SUMMARY
extern const struct event_shape event_shapes[EVENT_SHAPES];

enum counter_kind {
	COUNTS_SOMETHING, /* none of the following */
	/* Results of files that were found: */
	COUNTS_IN_S3,     /* they are known to be in S3 */
	COUNTS_NOT_THERE, /* they should be in S3, and are not, or not proven to be */
	COUNTS_LEFT_OUT,  /* they are not to be in S3, or not yet */
};
/* A member of struct s3once_counts that is a uint64_t. */
struct counter {
	/* In JSON, and also in the metrics if it counts files by their result. NULL ends the list.
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

/* Advice about files that wait for this reason for long, or "". Static. */
const char *wait_advice(enum s3once_wait why);

/* Whether the run has read nothing of its pipe, since an earlier night's run has uploaded an object
 * with this key. A run that is tried again, or that runs on several hosts, comes sooner. */
bool counts_repeat_a_night(const struct s3once_counts *counts);

/* The reason for which there were not more requests at once, in words for people. */
const char *limit_sentence(enum s3once_limited_by limit);

/* Whether the event is about a file that another uploader holds, and for which the run waits. */
bool event_is_waited_for(const struct push_options *options, const struct s3once_event *event);

/* Returns the object of an event of a run with these options. NULL for SUMMARY, which
 * json_summary() is for. */
json_t *json_of_event(const struct push_options *options, const struct s3once_event *event);
/* Returns the summary, which is the last object of a run that has ended. If `push` is NULL, the run
 * never began, and there are no counts. */
json_t *json_summary(
	const struct push_options *options, const struct s3once_push *push, int exit_code);
