/* Checks uploads in parts: no process resends a part whose bytes ListParts has shown to it, and a
 * file that always fails is given up in time. */
#pragma once
#include "world_s3.h"

void parts_end(void);
/* Notes a part in a reply to ListParts. It counts once the reply has arrived: parts_heard(). */
void parts_listed(void *arg, const struct wire_request *request, const struct s3_part_shown *shown);
void parts_heard(const struct wire_request *request);
/* Notes that a part has arrived at the server. */
void parts_stored(void *arg, const struct wire_request *request, const struct s3_part_shown *part);
/* Notes that a request with a part was sent, whether or not it arrives. */
void parts_sent(const struct wire_request *request);
