/* The marks, opened for the commands that look at a store or set it up. */
#pragma once
#include "cli/options/access.h"
#include "marks/mark.h"
#include "store/store.h"

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
/* 0, or -errno with a sentence. An SQLite file is made if it is missing. */
int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem);
/* Makes *spec the name of the marks of the systemd units, if it is NULL or "local", this is root,
 * and the units keep marks on this host. Root is told so, and where its own marks are. The name is
 * static. */
void marks_of_units_choose(const char **spec);
/* The marks of the units, whose state DynamicUser= keeps for a user of their own. */
#define UNITS_FOLDER   "/var/lib/s3once"
#define MARKS_OF_UNITS UNITS_FOLDER "/marks.db"
/* Whether the units keep marks on this host, in another file than this. */
bool marks_of_units_are_there(const char *own);
/* Whether this user has marks in the file where they are if none are named. */
bool marks_own_are_there(void);
void marks_close(struct open_marks *marks);
