/* What is known of each session in DynamoDB: whose it is, when its heartbeat came last, and when it
 * was ended. */
#pragma once
#include "machines.h"
#include "wire.h"
#include <jansson.h>

void sessions_end(void);
/* A row changes. Breaks a promise if a session that lives is ended before its lease is over, or any
 * session by a machine that has not seen its version for a whole lease. */
void sessions_item(
	const struct wire_request *request, const char *pk, const json_t *old, const json_t *now);
/* A reply with status 200 has come to the process that waits for it. */
void sessions_heard(const struct wire_request *request, const struct wire_reply *reply);
/* Whose session it is, or NULL. */
const struct machine_process *session_owner(const char *id);
/* Whether a session of this process had ended before that time. */
bool session_had_ended(const struct machine_process *process, uint64_t before_ns);
