#include "../check.h"
#include "cli/options/values.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

static struct listen_address found;
static struct problem problem;

static void check_v4(const char *value, const char *address, unsigned port)
{
	char text[INET_ADDRSTRLEN] = "";
	CHECK_INT(listen_address_parse(value, &found, &problem), 0);
	const struct sockaddr_in *v4 = (const void *)&found.address;
	CHECK_INT(v4->sin_family, AF_INET);
	inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
	CHECK_STRING(text, address);
	CHECK_INT(ntohs(v4->sin_port), port);
}

static void check_v6(const char *value, const char *address, unsigned port)
{
	char text[INET6_ADDRSTRLEN] = "";
	CHECK_INT(listen_address_parse(value, &found, &problem), 0);
	const struct sockaddr_in6 *v6 = (const void *)&found.address;
	CHECK_INT(v6->sin6_family, AF_INET6);
	inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
	CHECK_STRING(text, address);
	CHECK_INT(ntohs(v6->sin6_port), port);
}

int main(void)
{
	static const char *const wrong[] = {"", ":", ":14469", "0", "65536", "99999999999", "-1",
		"+14469", " 14469", "14469 ", "localhost:14469", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:0", "127.0.0.256:14469", "::1:14469", "[::1]",
		"[::1]14469", "[]:14469", "[127.0.0.1]:14469", "[::1:14469",
		"http://127.0.0.1:14469",
		"[1111111111111111111111111111111111111111111111111111111111111111:]:14469"};
	check_v4("14469", "127.0.0.1", 14469);
	check_v4("127.0.0.1:65535", "127.0.0.1", 65535);
	check_v4("0.0.0.0:1", "0.0.0.0", 1);
	check_v6("[::1]:14469", "::1", 14469);
	check_v6("[::]:14469", "::", 14469);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK_INT(listen_address_parse(wrong[i], &found, &problem), -EINVAL);
	listen_address_parse("localhost:1", &found, &problem);
	CHECK_STRING(problem.text,
		"--metrics-listen: 'localhost:1' is not a port from 1 to 65535, nor an address and a "
		"port, such as 127.0.0.1:14469 or [::1]:14469");
	return check_result();
}
