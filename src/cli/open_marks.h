/* Opening the marks, for the commands that read a store or set it up. */
#pragma once
#include "cli/options/access.h"
#include "marks/mark.h"
#include "store/state_folder.h"
#include "store/store.h"

/* The settings and the HTTP state by which a command that is not push reaches S3 and DynamoDB. */
struct services {
	struct aws_settings *aws;
	struct http_shared *http;
};
/* Resolves the settings and sets HTTP up. Returns 0, or -errno with a sentence. Call
 * services_close() in any case. */
int services_open(const struct access *access, struct services *ret, struct problem *ret_problem);
void services_close(struct services *services);

/* An open store. Close it in any case, before its services. */
struct open_marks {
	struct store *store;
	struct store_conn *conn;
};
/* Opens the marks. A missing SQLite file is created. Returns 0, or -errno with a sentence. */
int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem);
/* Sets *spec to the marks of the systemd units if it is NULL or "local", the user is root, and the
 * units keep marks on this host. If root has marks of its own as well, a warning names both places.
 * The new *spec is static. */
void marks_of_units_choose(const char **spec);
/* The folder of the systemd units' state, and their marks. With DynamicUser= the folder belongs to
 * a user of its own. */
#define UNITS_FOLDER   "/var/lib/s3once"
#define MARKS_OF_UNITS UNITS_FOLDER "/" STATE_MARKS
/* Whether the systemd units keep marks on this host, in another file than `own`. Only root can look
 * into their folder; for other users it is enough that the folder exists. */
bool marks_of_units_are_there(const char *own);
/* Whether this user has marks on this host, in the file that is used if no marks are named. */
bool marks_own_are_there(void);
/* Whether the file of the marks does not exist; then the sentence says so. */
bool marks_are_missing(const struct marks_place *place, struct problem *ret_problem);
/* Sets the sentence for a file without marks: it does not exist, or has only locks so far. */
void marks_describe_missing(const struct marks_place *place, struct problem *ret_problem);
void marks_close(struct open_marks *marks);
