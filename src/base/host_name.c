/* The names of this host, as `hostname -s` and `hostname -f` print them. */
#include "base/host_name.h"
#include "base/quote.h"
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

static int get_host_name(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	size_t n = HOST_NAME_BYTES;
	if (uv_os_gethostname(ret, &n) || !*ret || *ret == '.' || *ret == '(') {
		problem_set(ret_problem, "this host has no name; set it, as with hostnamectl");
		return -ENOENT;
	}
	return 0;
}

static bool is_anybodys(const char *name)
{
	return strcmp(name, "localhost") == 0 || strncmp(name, "localhost.", 10) == 0;
}

static int refuse_localhost(const char *name, struct problem *ret_problem)
{
	problem_set(ret_problem,
		"this host has no name of its own but \"%s\"; set one, as with hostnamectl",
		quote(name).text);
	return -ENOENT;
}

int host_name_short(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	const int error = get_host_name(ret, ret_problem);
	if (error)
		return error;
	if (is_anybodys(ret))
		return refuse_localhost(ret, ret_problem);
	ret[strcspn(ret, ".")] = '\0';
	return 0;
}

/* 0, or an error of getaddrinfo(). ret stays without a name. */
static int ask_resolver(const char *name, char ret[static HOST_NAME_BYTES])
{
	const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found;
	const int error = getaddrinfo(name, NULL, &hints, &found);
	if (error)
		return error;
	const char *full = found->ai_canonname;
	if (full && strlen(full) < HOST_NAME_BYTES)
		strcpy(ret, full);
	freeaddrinfo(found);
	return 0;
}

int host_name_full(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	char name[HOST_NAME_BYTES];
	int error = get_host_name(name, ret_problem);
	if (error)
		return error;
	strcpy(ret, name);
	if (!strchr(name, '.'))
		error = ask_resolver(name, ret);
	if (!error && is_anybodys(ret))
		return refuse_localhost(ret, ret_problem);
	if (!error && strchr(ret, '.'))
		return 0;
	problem_set(ret_problem,
		"the full name of this host (%s) is not known%s%s; name it in /etc/hosts, as "
		"hostname -f would show it",
		quote(name).text, error ? ": " : "", error ? gai_strerror(error) : "");
	return -EHOSTUNREACH;
}
