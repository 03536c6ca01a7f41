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
/* The marks that were chosen, or else those of this host. 0, or the exit code with a sentence. The
 * caller clears *ret in any case. */
int marks_place_chosen(const struct access *access, bool only_read, struct marks_place *ret,
	struct problem *ret_problem);
/* Makes *spec the name of the marks of the systemd units, if it is NULL or "local", this is root,
 * and the units keep marks on this host. Root is told so, and where its own marks are. The name is
 * static. */
void marks_of_units_choose(const char **spec);
/* Whether the SQLite file is there; if not, with a sentence. A command that only asks must not make
 * it, and opening it would. */
bool marks_are_there(const struct marks_place *place, struct problem *ret_problem);
/* Whether this user has marks in the file where they are if none are named. */
bool marks_own_are_there(void);
/* Reads the settings of a store. False with a sentence if it was not set up. `name` is that of
 * marks_place_name(). */
bool marks_load_settings(struct open_marks *marks, const char *name, struct store_settings *ret,
	struct problem *ret_problem);
/* Adds "dynamodb:TABLE" or "sqlite:PATH" as messages show it, escaped. */
void marks_place_name(const struct marks_place *place, struct text *ret);
void marks_close(struct open_marks *marks);
