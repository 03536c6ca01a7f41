/* The simulated S3 of world_s3.h behind HTTP, for tests that need an S3 at once and nothing that
 * has to be installed: serve PORT ACCESS-KEY. It serves on 127.0.0.1 until a signal ends it.
 * Buckets are made by CreateBucket, and everything is in memory. Any signature of the access key
 * is taken, since what s3once signs is tested elsewhere. One thread, on libuv's own loop:
 * nothing here is simulated but S3. */
#include "base/clock.h"
#include "world_s3.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#define HEAD_MAX_BYTES (64U << 10)
#define BODY_MAX_BYTES (1U << 30)

struct bucket {
	struct bucket *next;
	char name[64];
	int64_t made_s;
	struct world_s3 *s3;
};

/* A connection. `at` bytes of the request are there; it has head_bytes and body_bytes. */
struct client {
	uv_tcp_t tcp;
	char *bytes;
	size_t at, cap;
	size_t head_bytes, body_bytes; /* head_bytes 0: the head is not whole yet */
	bool was_told_to_go_on;
};

struct answer {
	uv_write_t write;
	char *bytes;
};

static struct bucket *buckets;
static char credential[160]; /* as the Authorization header has it */

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static int64_t wall_s(void)
{
	return clock_wall_ns() / (int64_t)NS_PER_S;
}

/* --- Buckets, which world_s3.h has one of. */

static void refuse(struct wire_reply *ret, int status, const char *code)
{
	ret->status = status;
	wire_reply_header(ret, "content-type", "application/xml");
	wire_reply_header(ret, "x-amz-request-id", "SIM");
	text_addf(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s "
		"(simulated)</Message><RequestId>SIM</RequestId></Error>",
		code, code);
}

static void make_bucket(const char *name, struct wire_reply *ret)
{
	const struct s3_habits habits = {.keeps_checksums = true, .etag_is_md5 = true};
	struct bucket *bucket = must(calloc(1, sizeof *bucket));
	snprintf(bucket->name, sizeof bucket->name, "%s", name);
	bucket->made_s = wall_s();
	bucket->s3 =
		world_s3_new((uint64_t)uv_hrtime(), name, &habits, &(const struct s3_witness){0});
	bucket->next = buckets;
	buckets = bucket;
	ret->status = 200;
}

static void remove_bucket(struct bucket **at, struct wire_reply *ret)
{
	struct bucket *bucket = *at;
	if (world_s3_at(bucket->s3, 0)) {
		refuse(ret, 409, "BucketNotEmpty");
		return;
	}
	*at = bucket->next;
	world_s3_free(bucket->s3);
	free(bucket);
	ret->status = 204;
}

static void list_buckets(struct wire_reply *ret)
{
	char iso[21];
	text_add(&ret->body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListAllMyBucketsResult>"
			     "<Owner><ID>sim</ID></Owner><Buckets>");
	for (const struct bucket *bucket = buckets; bucket; bucket = bucket->next) {
		clock_format_iso(bucket->made_s, iso);
		text_addf(&ret->body,
			"<Bucket><Name>%s</Name><CreationDate>%s</CreationDate></Bucket>",
			bucket->name, iso);
	}
	text_add(&ret->body, "</Buckets></ListAllMyBucketsResult>");
	ret->status = 200;
}

/* DeleteObjects. Keys of tests have nothing that XML would have to encode. */
static void delete_objects(
	struct bucket *bucket, const struct wire_request *request, struct wire_reply *ret)
{
	char *xml = must(strndup((const char *)request->body, request->body_bytes));
	const char *at = xml;
	while ((at = strstr(at, "<Key>"))) {
		const size_t n = strcspn(at += 5, "<");
		char *key = must(strndup(at, n));
		world_s3_delete(bucket->s3, key);
		free(key);
	}
	free(xml);
	text_add(&ret->body, "<DeleteResult></DeleteResult>");
	ret->status = 200;
}

static void answer(const struct wire_request *request, struct wire_reply *ret)
{
	const char *path = request->path + 1, *method = request->method;
	const char *who = wire_header(request, "authorization");
	const size_t n = strcspn(path, "/");
	struct bucket **at = &buckets;
	while (*at && (strlen((*at)->name) != n || strncmp((*at)->name, path, n) != 0))
		at = &(*at)->next;
	const bool is_about_bucket = n && (!path[n] || !path[n + 1]);
	char *deletes = wire_parameter(request, "delete");
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), path);
	if (!who || !strstr(who, credential))
		refuse(ret, 403, who ? "InvalidAccessKeyId" : "AccessDenied");
	else if (!n)
		list_buckets(ret);
	else if (!*at && is_about_bucket && strcmp(method, "PUT") == 0)
		make_bucket(name, ret);
	else if (!*at)
		refuse(ret, 404, "NoSuchBucket");
	else if (is_about_bucket && strcmp(method, "PUT") == 0)
		refuse(ret, 409, "BucketAlreadyOwnedByYou");
	else if (is_about_bucket && strcmp(method, "DELETE") == 0)
		remove_bucket(at, ret);
	else if (is_about_bucket && deletes)
		delete_objects(*at, request, ret);
	else
		world_s3_answer((*at)->s3, request, wall_s(), ret);
	free(deletes);
}

/* --- HTTP. */

static void on_written(uv_write_t *write, int status)
{
	struct answer *answer = write->data;
	(void)status;
	free(answer->bytes);
	free(answer);
}

/* Takes the bytes. */
static void send_bytes(struct client *client, char *bytes, size_t n)
{
	struct answer *answer = must(calloc(1, sizeof *answer));
	const uv_buf_t buf = uv_buf_init(bytes, (unsigned)n);
	answer->bytes = bytes;
	answer->write.data = answer;
	if (uv_write(&answer->write, (uv_stream_t *)&client->tcp, &buf, 1, on_written))
		on_written(&answer->write, 0);
}

static void reply(struct client *client, const char *method, const struct wire_reply *from)
{
	const bool is_head = strcmp(method, "HEAD") == 0;
	const uint64_t body = is_head ? from->content_length : from->body.len;
	struct text out = TEXT(BODY_MAX_BYTES);
	char date[CLOCK_HTTP_DATE_CHARS];
	clock_format_http_date(wall_s(), date);
	text_addf(&out, "HTTP/1.1 %d Simulated\r\nDate: %s\r\n", from->status, date);
	const char *at = text_string(&from->headers);
	for (size_t i = 0; i < from->n_headers; i++) {
		const char *value = at + strlen(at) + 1;
		text_addf(&out, "%s: %s\r\n", at, value);
		at = value + strlen(value) + 1;
	}
	if (from->status != 204)
		text_addf(&out, "Content-Length: %llu\r\n", (unsigned long long)body);
	text_add(&out, "\r\n");
	if (!is_head)
		text_add_bytes(&out, text_string(&from->body), from->body.len);
	if (out.error)
		abort();
	send_bytes(client, out.data, out.len);
}

/* The request at the front of the buffer, which is whole. */
static void serve(struct client *client)
{
	const char *lines[WIRE_HEADERS_MAX];
	size_t n = 0;
	char *head = must(strndup(client->bytes, client->head_bytes)), *rest = head, *line;
	char *request_line = must(strsep(&rest, "\n"));
	while (rest && (line = strsep(&rest, "\n")) && *line && *line != '\r') {
		line[strcspn(line, "\r")] = 0;
		if (n < WIRE_HEADERS_MAX)
			lines[n++] = line;
	}
	char *method = must(strsep(&request_line, " "));
	const char *target = request_line ? strsep(&request_line, " ") : NULL;
	unsigned char *body = must(malloc(client->body_bytes + 1));
	memcpy(body, client->bytes + client->head_bytes, client->body_bytes);
	struct text url = TEXT(HEAD_MAX_BYTES);
	text_addf(&url, "http://localhost%s", target ? target : "/");
	struct wire_request *request =
		wire_request_new(method, text_string(&url), lines, n, body, client->body_bytes);
	struct wire_reply ret;
	wire_reply_init(&ret);
	answer(request, &ret);
	reply(client, method, &ret);
	wire_reply_clear(&ret);
	wire_request_free(request);
	text_clear(&url);
	free(head);
}

/* Reads how long the request is, once its head is whole. False: it cannot be served. */
static bool measure(struct client *client)
{
	client->bytes[client->at] = 0;
	const char *end = strstr(client->bytes, "\r\n\r\n");
	if (client->head_bytes || !end)
		return client->head_bytes || client->at < HEAD_MAX_BYTES;
	client->head_bytes = (size_t)(end - client->bytes) + 4;
	const char *length = strcasestr(client->bytes, "\r\ncontent-length:");
	const char *expects = strcasestr(client->bytes, "\r\nexpect: 100-continue");
	client->body_bytes = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
	const char *chunked = strcasestr(client->bytes, "\r\ntransfer-encoding:");
	if (expects && expects < end && client->at < client->head_bytes + client->body_bytes)
		send_bytes(client, must(strdup("HTTP/1.1 100 Continue\r\n\r\n")), 25);
	return client->body_bytes < BODY_MAX_BYTES && !(chunked && chunked < end);
}

static void on_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;
	free(client->bytes);
	free(client);
}

static void give_room(uv_handle_t *handle, size_t usual, uv_buf_t *ret)
{
	struct client *client = handle->data;
	const size_t wanted = client->head_bytes + client->body_bytes;
	if (client->cap < client->at + usual + 1) {
		client->cap = client->at + usual + 1 > wanted ? client->at + usual + 1 : wanted + 1;
		client->bytes = must(realloc(client->bytes, client->cap));
	}
	*ret = uv_buf_init(client->bytes + client->at, (unsigned)(client->cap - client->at - 1));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *client = stream->data;
	(void)buf;
	bool goes_on = n >= 0;
	client->at += n > 0 ? (size_t)n : 0;
	while (goes_on && (goes_on = measure(client)) && client->head_bytes &&
		client->at >= client->head_bytes + client->body_bytes) {
		const size_t taken = client->head_bytes + client->body_bytes;
		serve(client);
		client->at -= taken;
		memmove(client->bytes, client->bytes + taken, client->at);
		client->head_bytes = client->body_bytes = 0;
	}
	if (!goes_on)
		uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct client *client = must(calloc(1, sizeof *client));
	client->tcp.data = client;
	uv_tcp_init(server->loop, &client->tcp);
	if (status || uv_accept(server, (uv_stream_t *)&client->tcp) ||
		uv_read_start((uv_stream_t *)&client->tcp, give_room, on_read))
		uv_close((uv_handle_t *)&client->tcp, on_closed);
	else
		uv_tcp_nodelay(&client->tcp, 1);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	uv_tcp_t server;
	struct sockaddr_in address;
	if (argc != 3) {
		fprintf(stderr, "usage: serve PORT ACCESS-KEY\n");
		return 2;
	}
	snprintf(credential, sizeof credential, "Credential=%s/", argv[2]);
	uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address);
	uv_tcp_init(loop, &server);
	int error = uv_tcp_bind(&server, (const struct sockaddr *)&address, 0);
	if (!error)
		error = uv_listen((uv_stream_t *)&server, 128, on_connection);
	if (error) {
		fprintf(stderr, "serve: bind: port %s: %s\n", argv[1], uv_strerror(error));
		return 1;
	}
	return uv_run(loop, UV_RUN_DEFAULT);
}
