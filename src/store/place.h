/* Where marks are, as people name it: dynamodb:TABLE, sqlite:PATH or local. */
#pragma once
#include "store/store.h"

struct marks_place {
	bool is_dynamodb;
	const char *table; /* of dynamodb:TABLE; borrowed */
	char *path;        /* of sqlite:PATH and local; owned */
	bool only_read;    /* nothing is written; zeroed by the reading of the name */
};

/* Reads the name. 0, -EINVAL with a sentence, or -errno with one if there is no place for local
 * marks. */
int marks_place_parse(const char *spec, struct marks_place *ret, struct problem *ret_problem);
void marks_place_clear(struct marks_place *place);

/* Opens the store there; an SQLite file is made if need be. aws and http are borrowed until it is
 * closed. 0, or -errno with a sentence. */
int marks_place_open(const struct marks_place *place, const struct aws_settings *aws,
	struct http_shared *http, struct store **ret, struct problem *ret_problem);
