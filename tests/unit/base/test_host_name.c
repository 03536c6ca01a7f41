/* The names of this host, by what the kernel and the resolver say. A name that every host has is
 * none of its own, and two hosts with it would have the same keys. */
#include "../check.h"
#include "base/host_name.h"
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <uv.h>

static const char *kernel_says, *resolver_says; /* NULL: an error */

/* In place of libuv's. */
int uv_os_gethostname(char *buffer, size_t *size)
{
	if (!kernel_says)
		return UV_EINVAL;
	snprintf(buffer, *size, "%s", kernel_says);
	return 0;
}

/* In place of libc's. The result is freed by the function below. */
int getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	CHECK_STRING(node, kernel_says);
	CHECK(!service && (hints->ai_flags & AI_CANONNAME));
	if (!resolver_says)
		return EAI_NONAME;
	*ret = calloc(1, sizeof **ret);
	if (!*ret)
		abort();
	(*ret)->ai_canonname = strdup(resolver_says);
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list->ai_canonname);
	free(list);
}

static const struct {
	const char *kernel, *resolver;
	const char *name_short, *name_full; /* NULL: there is none */
	const char *why_short, *why_full;   /* in the sentence */
} rows[] = {
	{"web1", "web1.example.org", "web1", "web1.example.org"},
	{"web1.example.org", NULL, "web1", "web1.example.org"},
	{"web1", "web1", "web1", NULL, .why_full = "web1"},
	{"web1", NULL, "web1", NULL, .why_full = "web1"},
	{"localhosts", "localhosts.example.org", "localhosts", "localhosts.example.org"},
	{"localhost", "localhost", NULL, NULL, "but \"localhost\"", "but \"localhost\""},
	{"localhost", "localhost.localdomain", NULL, NULL, "but \"localhost\"",
		"but \"localhost.localdomain\""},
	{"localhost.localdomain", NULL, NULL, NULL, "but \"localhost.localdomain\"",
		"but \"localhost.localdomain\""},
	{"web1", "localhost.localdomain", "web1", NULL,
		.why_full = "but \"localhost.localdomain\""},
	{"", NULL, NULL, NULL, "has no name", "has no name"},
	{"(none)", NULL, NULL, NULL, "has no name", "has no name"},
	{".example.org", NULL, NULL, NULL, "has no name", "has no name"},
	{NULL, NULL, NULL, NULL, "has no name", "has no name"},
};

static bool check_name(int (*name)(char *, struct problem *), const char *want, const char *why)
{
	char got[HOST_NAME_BYTES];
	struct problem problem = {0};
	const int error = name(got, &problem);
	return want ? CHECK_INT(error, 0) && CHECK_STRING(got, want)
		    : CHECK(error < 0) && CHECK(strstr(problem.text, why) != NULL);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		kernel_says = rows[i].kernel;
		resolver_says = rows[i].resolver;
		bool good = check_name(host_name_short, rows[i].name_short, rows[i].why_short);
		good &= check_name(host_name_full, rows[i].name_full, rows[i].why_full);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	return check_result();
}
