/* `s3once gc` clears away what ended runs have left behind (docs/protocol.md). It takes files over
 * as an uploader does, with a session of its own. So it takes nothing from an uploader that may be
 * running. */
#pragma once
#include "audit/forget.h"
#include "marks/session.h"

struct collect_options {
	struct audit_place place; /* with its s3 */
	struct session *session;  /* reads_only if only_show */
	const char *source;       /* "host:gc", for the marks that are taken over */
	uint64_t keep_uploads_s; /* uploads whose marks were last changed so long ago are aborted */
	uint64_t keep_marks_s;   /* marks that were last changed so long ago go; UINT64_MAX: none */
	bool only_show;          /* nothing is changed */
	struct mark_teller teller;
};

/* Works through the marks below a prefix, and waits for silent sessions at the end, for a lease
 * each. OK also if some marks could not be dealt with; those were reported. */
enum outcome collect(
	const struct collect_options *options, const char *prefix, struct problem *ret_problem);
