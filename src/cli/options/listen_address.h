/* The value of --metrics-listen: where a server of this host listens. Pure. */
#pragma once
#include "base/problem.h"
#include <sys/socket.h>

struct listen_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* "PORT" on 127.0.0.1, "ADDRESS:PORT" or "[ADDRESS]:PORT" of IPv6. Names are not looked up. 0, or
 * -EINVAL with a sentence that begins with the option's name. */
int listen_address_parse(
	const char *value, struct listen_address *ret, struct problem *ret_problem);
