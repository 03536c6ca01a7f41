/* What each process knows of uploads in parts: no part whose bytes ListParts has shown to it is
 * sent again, and a file that fails for good is given up in time. */
#pragma once
#include "world_s3.h"

void parts_end(void);
/* The answer to ListParts has this part. It counts once parts_heard() says that it has come. */
void parts_listed(void *arg, const struct wire_request *request, const struct s3_part_shown *shown);
void parts_heard(const struct wire_request *request);
/* A part arrives at the server. */
void parts_stored(void *arg, const struct wire_request *request, const struct s3_part_shown *part);
/* A request for a part was sent, whatever becomes of it. */
void parts_sent(const struct wire_request *request);
