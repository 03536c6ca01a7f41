/* Prints a log from its objects in S3. docs/logs.md, "Reading logs back", explains the rules. */
#pragma once
#include "cat/read_ahead.h"

enum log_report { LOG_REPORT_NOTE, LOG_REPORT_ERROR };

struct log_cat {
	struct read_place place; /* borrowed, as all pointers are */
	const char *bucket;
	const struct log_name *name;
	/* Objects from the first one of from_s or later to the first one of to_s or later, in
	 * seconds since 1970. */
	int64_t from_s, to_s;
	int fd; /* descriptor to which lines are written */
	/* Called with a sentence about each object that is missing or not printed (ERROR), and with
	 * notes, in the order of the objects. */
	void (*report)(void *arg, enum log_report kind, const char *sentence);
	void *arg;
	/* Results: */
	uint64_t objects; /* the number of selected objects */
	uint64_t missing; /* the number of them with an error */
	int64_t last_s;   /* the time of the last object, selected or not; -1: there is none */
	bool is_closed;   /* the reader has gone away (EPIPE), which is OUTCOME_OK */
};

/* Prints the lines. An outcome other than OK has a sentence. */
enum outcome log_cat_print(struct log_cat *cat, struct problem *ret_problem);
/* Prints time, size and URL of each object instead. */
enum outcome log_cat_list(struct log_cat *cat, struct problem *ret_problem);
