#include "cli/options/listen_address.h"
#include "base/quote.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_MAX 64

/* "1" to "65535", without sign or blanks; 0: it is no port. */
static uint16_t port_of(const char *text)
{
	const size_t n = strlen(text);
	const unsigned long port =
		n <= 5 && strspn(text, "0123456789") == n ? strtoul(text, NULL, 10) : 0;
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* What stands before the port; "" if the port stands alone. 0 or -EINVAL. */
static int split_address(
	const char *value, char ret_address[static ADDRESS_MAX], const char **ret_port)
{
	const char *colon = strrchr(value, ':');
	*ret_address = 0;
	*ret_port = colon ? colon + 1 : value;
	if (!colon)
		return 0;
	const bool has_brackets = *value == '[' && colon > value + 1 && colon[-1] == ']';
	const char *begin = has_brackets ? value + 1 : value;
	const char *end = has_brackets ? colon - 1 : colon;
	if (end == begin || end - begin >= ADDRESS_MAX)
		return -EINVAL;
	snprintf(ret_address, ADDRESS_MAX, "%.*s", (int)(end - begin), begin);
	return has_brackets == (strchr(ret_address, ':') != NULL) ? 0 : -EINVAL;
}

static bool fill_address(const char *address, uint16_t port, struct listen_address *ret)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const bool is_v4 = inet_pton(AF_INET, *address ? address : "127.0.0.1", &v4.sin_addr) == 1;
	if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1)
		return false;
	*ret = (struct listen_address){.length = is_v4 ? sizeof v4 : sizeof v6};
	memcpy(&ret->address, is_v4 ? (const void *)&v4 : &v6, ret->length);
	return true;
}

int listen_address_parse(const char *value, struct listen_address *ret, struct problem *ret_problem)
{
	char address[ADDRESS_MAX];
	const char *text;
	const int error = split_address(value, address, &text);
	const uint16_t port = port_of(text);
	if (!error && port && fill_address(address, port, ret))
		return 0;
	problem_set(ret_problem,
		"--metrics-listen: '%s' is not a port from 1 to 65535, nor an address and a port, such "
		"as 127.0.0.1:14469 or [::1]:14469",
		quote(value).text);
	return -EINVAL;
}
