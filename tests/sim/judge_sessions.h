/* The sessions in DynamoDB: the process of each, its last heartbeat, and its end. */
#pragma once
#include "machines.h"
#include "wire.h"
#include <jansson.h>

void sessions_end(void);
/* Notes that a row changes. Reports a broken promise if the session of a running process is ended
 * before its lease has expired, or if a machine ends a session whose version it has not seen for a
 * whole lease. */
void sessions_item(
	const struct wire_request *request, const char *pk, const json_t *old, const json_t *now);
/* Notes that a reply with status 200 has arrived at the process that waits for it. */
void sessions_heard(const struct wire_request *request, const struct wire_reply *reply);
/* Returns the process of a session, or NULL. */
const struct machine_process *session_owner(const char *id);
/* Whether a session of this process had ended before that time. */
bool session_had_ended(const struct machine_process *process, uint64_t before_ns);
