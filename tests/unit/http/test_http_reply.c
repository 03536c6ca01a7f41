/* Which headers of a reply are kept, against a model that keeps them in an array: random lines, in
 * a struct that is used for one reply after the other. */
#include "../check.h"
#include "http/http.h"
#include <stdlib.h>

#define KEPT_BYTES (64U << 10)
#define MOST_LINES 400

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33) % n;
}

struct model {
	char names[HTTP_HEADERS_MAX][400], values[HTTP_HEADERS_MAX][5000];
	size_t n, bytes;
};

/* Makes a random line, and notes it in the model if it has to be kept. Returns its length. */
static size_t add_line(struct model *model, char *line)
{
	static const char *const ends[] = {"", "\r\n", "\n", " \r\n", "\t \r\n"};
	static const char *const blanks[] = {"", " ", "\t ", "  "};
	char name[400] = "", value[5000] = "";
	const unsigned kind = below(40);
	const unsigned name_bytes = kind == 0 ? 390 : 1 + below(3);
	const unsigned value_bytes = kind == 1 ? 4999 : kind < 6 ? 900 + below(900) : below(6);
	for (unsigned i = 0; i < name_bytes; i++)
		name[i] = "aZ-@[z"[below(6)];
	for (unsigned i = 0; i < value_bytes; i++) /* no blank at either end */
		value[i] = i && i + 1 < value_bytes ? "x: \tY"[below(5)] : "xY:"[below(3)];
	int n = snprintf(line, 6000, "%s%s%s%s%s", name, kind == 7 ? "" : ":", blanks[below(4)],
		kind == 7 ? "" : value, ends[below(5)]);
	if (kind == 8)
		line[below((unsigned)n)] = 0;
	const bool is_kept = kind != 7 && kind != 8 && model->n < HTTP_HEADERS_MAX &&
			     model->bytes + name_bytes + value_bytes + 2 <= KEPT_BYTES;
	if (is_kept) {
		for (char *c = name; *c; c++)
			*c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
		memcpy(model->names[model->n], name, sizeof name);
		memcpy(model->values[model->n++], value, sizeof value);
		model->bytes += name_bytes + value_bytes + 2;
	}
	return (size_t)n;
}

static const char *find(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->n; i++)
		if (strcmp(model->names[i], name) == 0)
			return model->values[i];
	return NULL;
}

static void test_round(struct http_reply *reply, struct model *model, unsigned lines)
{
	char line[6000];
	model->n = model->bytes = 0;
	http_reply_begin(reply, below(100));
	CHECK_INT(reply->n_headers, 0);
	CHECK_INT(reply->status, 0);
	CHECK(!reply->is_resent);
	CHECK_INT(reply->body.len, 0);
	for (unsigned i = 0; i < lines; i++) {
		const size_t n = add_line(model, line);
		/* In memory of exactly this size, so that ASan sees a byte too far. */
		char *copy = malloc(n);
		memcpy(copy, line, n);
		http_reply_add_header(reply, copy, n);
		free(copy);
	}
	CHECK_INT(reply->n_headers, model->n);
	CHECK_INT(reply->headers.len, model->bytes);
	for (size_t i = 0; i < model->n; i++)
		CHECK_STRING(
			http_reply_header(reply, model->names[i]), find(model, model->names[i]));
	CHECK_STRING(http_reply_header(reply, "none"), NULL);
	CHECK_STRING(http_reply_header(reply, "Z"), NULL);
	/* As the reply has it in the end. */
	reply->status = 200;
	reply->is_resent = true;
	text_add(&reply->body, "x");
}

/* The last line that fits, by one byte. */
static void test_full(void)
{
	static char line[KEPT_BYTES + 10];
	for (int more = 0; more < 2; more++) {
		struct http_reply reply = {0};
		http_reply_begin(&reply, 0);
		memset(line, 'v', sizeof line);
		memcpy(line, "k:", 2);
		http_reply_add_header(&reply, line, (size_t)((int)KEPT_BYTES - 1 + more));
		CHECK_INT(reply.n_headers, !more);
		CHECK_INT(reply.headers.len, more ? 0 : (int)KEPT_BYTES);
		http_reply_clear(&reply);
	}
}

int main(void)
{
	static struct model model;
	struct http_reply reply = {0};
	for (unsigned i = 0; i < 60; i++)
		test_round(&reply, &model, i % 3 ? below(30) : below(MOST_LINES));
	test_round(&reply, &model, MOST_LINES);
	http_reply_clear(&reply);
	CHECK_INT(reply.n_headers, 0);
	CHECK(!reply.body.data);
	CHECK(!reply.headers.data);
	test_full();
	return check_result();
}
