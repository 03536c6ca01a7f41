/* Why there is no reply, as an error number and as a sentence. */
#pragma once
#include "base/problem.h"
#include <curl/curl.h>
#include <stdbool.h>

struct http_failure {
	int error;             /* -errno if we ended it ourselves, else 0 */
	CURLcode code;         /* curl's verdict */
	const char *url;       /* of which only the host is told */
	const char *detail;    /* curl's own words, perhaps "" */
	const char *ca_bundle; /* in use, or NULL */
	int socket_error;      /* -errno why there was no socket or file of CAs, or 0 */
	long proxy_status;     /* the answer of a proxy to CONNECT, or 0 */
	bool was_sent;         /* some bytes of a request left, perhaps on an earlier connection */
	bool was_resolved;     /* the host's name was looked up, or nothing was tried */
	bool is_late;          /* the deadline has passed */
};

/* Returns the -errno of http_perform's contract and sets ret_problem to match. */
int http_explain(const struct http_failure *failure, struct problem *ret_problem);
