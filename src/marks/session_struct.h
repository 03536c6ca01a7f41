/* The fields of a session. session.c keeps its own row, and session_others.c judges the rows of
 * other sessions. */
#pragma once
#include "lease/lease.h"
#include "lease/observer.h"
#include "lease/process.h"
#include "marks/session.h"
#include <uv.h>

#define SESSION_PK_MAX (sizeof "session#" + ID_CHARS)

struct session {
	struct session_options options;
	struct process self;
	char id[ID_CHARS + 1], pk[SESSION_PK_MAX];
	struct leases *leases;
	struct lease *lease;
	char observations[4096]; /* "" if not kept */
	struct {
		uv_mutex_t mutex;
		bool begun;
		struct observer observer;
		struct session_info infos[OBSERVATIONS_MAX]; /* of the observations, as last read */
	} locked;
};

/* The partition key of the row of the session with this id. */
void session_pk(const char *id, char ret[static SESSION_PK_MAX]);
/* Of a request in the session's name. */
struct call_limits session_limits(const struct session *session);
