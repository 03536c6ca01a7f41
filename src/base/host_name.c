/* Finds out the names of this host, as `hostname -s` and `hostname -f` print them. They are {host}
 * and {fqdn} in keys. gc and the metrics use the short one. */
#include "base/host_name.h"
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

/* Sets ret to the kernel's host name. Returns 0, or -ENOENT with a sentence. */
static int get_host_name(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	size_t n = HOST_NAME_BYTES;
	/* The kernel calls a host without a name "(none)". A name that begins with a dot has no
	 * short name. */
	if (uv_os_gethostname(ret, &n) || !*ret || *ret == '.' || *ret == '(')
		return problem_error(
			ret_problem, -ENOENT, "this host has no name: set one with hostnamectl");
	return 0;
}

/* Refuses "localhost", which is a name of every host. Returns 0, or -ENOENT with a sentence. */
static int refuse_localhost(const char *name, struct problem *ret_problem)
{
	if (strcmp(name, "localhost") != 0 && strncmp(name, "localhost.", 10) != 0)
		return 0;
	return problem_error(ret_problem, -ENOENT,
		"this host has no name of its own but \"%s\": set one with hostnamectl",
		quote(name).text);
}

int host_name_short(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	if (get_host_name(ret, ret_problem) || refuse_localhost(ret, ret_problem))
		return -ENOENT;
	ret[strcspn(ret, ".")] = '\0';
	return 0;
}

/* Replaces the name by the resolver's canonical name of this host, if that fits. Returns 0 or an
 * error of getaddrinfo(3). */
static int resolve(char name[static HOST_NAME_BYTES])
{
	const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found = NULL;
	const int gai_error = getaddrinfo(name, NULL, &hints, &found);
	if (gai_error)
		return gai_error;
	if (found->ai_canonname && strlen(found->ai_canonname) < HOST_NAME_BYTES)
		strcpy(name, found->ai_canonname);
	freeaddrinfo(found);
	return 0;
}

int host_name_full(char ret[static HOST_NAME_BYTES], struct problem *ret_problem)
{
	char name[HOST_NAME_BYTES];
	const int error = get_host_name(name, ret_problem);
	if (error)
		return error;
	strcpy(ret, name);
	const bool has_domain = strchr(name, '.') != NULL;
	const int gai_error = has_domain ? 0 : resolve(ret);
	if (!gai_error && refuse_localhost(ret, ret_problem))
		return -ENOENT;
	if (!gai_error && strchr(ret, '.'))
		return 0;
	return problem_error(ret_problem, -EHOSTUNREACH,
		"the full name of this host (%s) is not known%s%s; name it in /etc/hosts, as "
		"hostname -f would show it",
		quote(name).text, gai_error ? ": " : "", gai_error ? gai_strerror(gai_error) : "");
}
