#include "proxy.h"
#include "tasks.h"
#include <stdlib.h>
#include <string.h>

#define FRESH_NS  (24 * 3600 * 1000000000ULL)
#define BODY_MOST (64U << 10)

struct answer {
	char *method, *path, *query;
	struct wire_reply reply;
	uint64_t at_ns;
	struct answer *next;
};
static struct {
	bool is_there;
	struct answer *answers;
} proxy;

void proxy_begin(bool is_there)
{
	for (struct answer *next, *a = proxy.answers; a; a = next) {
		next = a->next;
		free(a->method);
		free(a->path);
		free(a->query);
		wire_reply_clear(&a->reply);
		free(a);
	}
	proxy.answers = NULL;
	proxy.is_there = is_there;
}

static bool may_keep(const struct wire_request *request)
{
	const bool reads =
		strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
	return proxy.is_there && reads && !wire_header(request, "x-amz-target");
}

static struct answer *find(const struct wire_request *request)
{
	struct answer *answer = proxy.answers;
	while (answer && (strcmp(answer->path, request->path) != 0 ||
				 strcmp(answer->method, request->method) != 0 ||
				 strcmp(answer->query, request->query) != 0))
		answer = answer->next;
	return answer;
}

static void copy(const struct wire_reply *from, struct wire_reply *to)
{
	wire_reply_clear(to);
	wire_reply_init(to);
	to->status = from->status;
	to->n_headers = from->n_headers;
	to->content_length = from->content_length;
	text_add_bytes(&to->headers, text_string(&from->headers), from->headers.len);
	text_add_bytes(&to->body, text_string(&from->body), from->body.len);
}

bool proxy_answers(const struct wire_request *request, struct wire_reply *ret)
{
	const char *control = wire_header(request, "cache-control");
	const struct answer *answer = may_keep(request) && !(control && strstr(control, "no-cache"))
					      ? find(request)
					      : NULL;
	if (!answer || world_now_ns() - answer->at_ns > FRESH_NS)
		return false;
	copy(&answer->reply, ret);
	return true;
}

void proxy_keeps(const struct wire_request *request, const struct wire_reply *reply)
{
	if (!may_keep(request) || reply->status != 200 || reply->body.len > BODY_MOST)
		return;
	struct answer *answer = find(request);
	if (!answer) {
		answer = calloc(1, sizeof *answer);
		if (!answer)
			abort();
		answer->method = strdup(request->method);
		answer->path = strdup(request->path);
		answer->query = strdup(request->query);
		wire_reply_init(&answer->reply);
		answer->next = proxy.answers;
		proxy.answers = answer;
	}
	copy(reply, &answer->reply);
	answer->at_ns = world_now_ns();
}
