/* The marks, opened for the commands that look at a store or set it up. */
#pragma once
#include "cli/access.h"
#include "marks/mark.h"
#include "store/place.h"

/* A way to the services of a command that is not push. */
struct services {
	struct aws_settings *aws;
	struct http_shared *http;
};
/* 0, or -errno with a sentence. Clear it in any case. */
int services_open(const struct access *access, struct services *ret, struct problem *ret_problem);
void services_close(struct services *services);

/* An open store. Close it in any case, before its services. */
struct open_marks {
	struct store *store;
	struct store_conn *conn;
};
/* 0, or -errno with a sentence. An SQLite file is made if need be. */
int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem);
/* Which marks were chosen, or those of this host. 0, or the exit code with a sentence. The caller
 * clears *ret in any case. */
int marks_place_chosen(const struct access *access, bool only_read, struct marks_place *ret,
	struct problem *ret_problem);
/* Opening an SQLite file makes it, and asking must not: false with a sentence if there is none. */
bool marks_are_there(const struct marks_place *place, struct problem *ret_problem);
/* The settings of a store that was set up; else false with a sentence. `name` as below. */
bool marks_load_settings(struct open_marks *marks, const char *name, struct store_settings *ret,
	struct problem *ret_problem);
/* "dynamodb:TABLE" or "sqlite:PATH", escaped, for messages. */
void marks_place_name(const struct marks_place *place, struct text *ret);
void marks_close(struct open_marks *marks);
