/* Serves the simulated S3 and DynamoDB of world_s3.h and world_dynamodb.h over HTTP, for tests that
 * want to start at once and to install nothing: serve PORT ACCESS-KEY [S3-MS DYNAMODB-MS]. It
 * serves on 127.0.0.1 until a signal ends it. The last two arguments delay each reply. Requests
 * with x-amz-target are for DynamoDB. CreateBucket and CreateTable work, and everything is in
 * memory. The reply to "Simulated.Bill" is the cost of DynamoDB's requests so far. Any signature
 * with the access key is accepted, since signatures are tested elsewhere. There is one thread, with
 * libuv's own loop: only the two services are simulated. */
#include "base/clock.h"
#include "base/json_text.h"
#include "world_dynamodb.h"
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

struct table {
	struct table *next;
	char name[256];
	struct world_dynamodb *db;
};

/* A connection. `at` bytes of its request have arrived, of head_bytes and body_bytes. */
struct client {
	uv_tcp_t tcp;
	char *bytes;
	size_t at, cap;
	size_t head_bytes, body_bytes; /* head_bytes is 0 until the whole head has arrived */
	unsigned holds; /* replies not sent yet, and one until the connection is closed */
	bool was_told_to_go_on;
};

struct answer {
	uv_write_t write;
	uv_timer_t late;
	struct client *client;
	char *bytes;
	size_t n;
};

#define OPERATIONS_MAX 32
/* The number of requests for each operation of DynamoDB. */
static struct {
	char name[32];
	uint64_t n;
} operations[OPERATIONS_MAX];

static uint64_t s3_ms, dynamodb_ms;
static struct bucket *buckets;
static struct table *tables;
static char credential[160]; /* as in the Authorization header */

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* --- Buckets. A world_s3 has a single one. */

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
	bucket->made_s = clock_wall_s();
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

/* Answers DeleteObjects. Keys of tests need no XML escapes. */
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

static void answer_s3(const struct wire_request *request, struct wire_reply *ret)
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
		world_s3_answer((*at)->s3, request, clock_wall_s(), ret);
	free(deletes);
}

/* --- Tables. A world_dynamodb has a single one. */

static void tell(struct wire_reply *ret, int status, json_t *json)
{
	char *body = must(json_dumps(json, JSON_COMPACT));
	json_decref(json);
	ret->status = status;
	wire_reply_header(ret, "content-type", "application/x-amz-json-1.0");
	text_add(&ret->body, body);
	free(body);
}

static void refuse_json(struct wire_reply *ret, const char *code, const char *message)
{
	tell(ret, 400,
		json_pack("{s:s+, s:s}", "__type", "com.amazonaws.dynamodb.v20120810#", code,
			"message", message));
}

static void list_tables(struct wire_reply *ret)
{
	json_t *names = json_array();
	for (const struct table *table = tables; table; table = table->next)
		json_array_append_new(names, json_string(table->name));
	tell(ret, 200, json_pack("{s:o}", "TableNames", names));
}

/* Whether the key is the string pk, or the strings pk and sk. Others are not simulated. */
static bool is_simulated(const json_t *body, size_t *ret_keys)
{
	static const char *const names[] = {"pk", "sk"};
	const json_t *keys = json_object_get(body, "KeySchema");
	const json_t *types = json_object_get(body, "AttributeDefinitions");
	const size_t n = *ret_keys = json_array_size(keys);
	bool ret = (n == 1 || n == 2) && json_array_size(types) == n;
	for (size_t i = 0; i < n && ret; i++)
		ret = strcmp(json_text(json_array_get(keys, i), "AttributeName"), names[i]) == 0;
	for (size_t i = 0; i < n && ret; i++)
		ret = strcmp(json_text(json_array_get(types, i), "AttributeType"), "S") == 0;
	return ret;
}

static void make_table(const char *name, const json_t *body, struct wire_reply *ret)
{
	size_t keys;
	if (!*name || !is_simulated(body, &keys)) {
		refuse_json(ret, "ValidationException", "Such a table is not simulated");
		return;
	}
	const struct dynamodb_habits habits = {.hash_only = keys == 1, .returns_old = true};
	struct table *table = must(calloc(1, sizeof *table));
	snprintf(table->name, sizeof table->name, "%s", name);
	table->db = world_dynamodb_new((uint64_t)uv_hrtime(), name, &habits, NULL, NULL);
	table->next = tables;
	tables = table;
	tell(ret, 200,
		json_pack("{s:{s:s, s:s, s:O, s:O}}", "TableDescription", "TableName", name,
			"TableStatus", "CREATING", "KeySchema", json_object_get(body, "KeySchema"),
			"AttributeDefinitions", json_object_get(body, "AttributeDefinitions")));
}

static void remove_table(struct table **at, struct wire_reply *ret)
{
	struct table *table = *at;
	*at = table->next;
	tell(ret, 200,
		json_pack("{s:{s:s, s:s}}", "TableDescription", "TableName", table->name,
			"TableStatus", "DELETING"));
	world_dynamodb_free(table->db);
	free(table);
}

static void count_operation(const char *name)
{
	size_t i = 0;
	while (i + 1 < OPERATIONS_MAX && operations[i].n && strcmp(operations[i].name, name) != 0)
		i++;
	snprintf(operations[i].name, sizeof operations[i].name, "%s", name);
	operations[i].n++;
}

static void tell_bill(struct wire_reply *ret)
{
	double reads = 0, writes = 0;
	json_t *requests = json_object();
	for (const struct table *table = tables; table; table = table->next) {
		const struct dynamodb_bill bill = world_dynamodb_bill(table->db);
		reads += (double)bill.half_reads / 2;
		writes += (double)bill.writes;
	}
	for (size_t i = 0; i < OPERATIONS_MAX && operations[i].n; i++)
		json_object_set_new(
			requests, operations[i].name, json_integer((json_int_t)operations[i].n));
	tell(ret, 200,
		json_pack("{s:o, s:f, s:f}", "requests", requests, "read_units", reads,
			"write_units", writes));
}

/* Returns the place of the table that a body names: as TableName, as the first of a batch of keys,
 * or in a statement. It contains NULL if there is no such table. */
static struct table **table_of(const json_t *body, const char *name)
{
	const json_t *of = json_object_get(body, "RequestItems");
	json_t *statements = json_object_get(body, "Statements"), *one;
	const char *batch = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)of));
	struct table **at = &tables;
	size_t i;
	for (; *at; at = &(*at)->next) {
		if (strcmp((*at)->name, batch ? batch : name) == 0)
			return at;
		json_array_foreach(statements, i,
			one) if (strstr(json_text(one, "Statement"), (*at)->name)) return at;
	}
	return at;
}

static void answer_dynamodb(
	const struct wire_request *request, const char *target, struct wire_reply *ret)
{
	json_t *body =
		json_loadb((const char *)request->body, request->body_bytes, JSON_ALLOW_NUL, NULL);
	const char *dot = strchr(target, '.'), *operation = dot ? dot + 1 : "";
	const char *who = wire_header(request, "authorization");
	const char *name = json_text(body, "TableName");
	count_operation(operation);
	struct table **at = table_of(body, name);
	if (!*at && json_array_size(json_object_get(body, "Statements")))
		at = &tables; /* any table reports that the statements name another one */
	if (!who || !strstr(who, credential))
		refuse_json(ret, "UnrecognizedClientException", "The access key is unknown");
	else if (strcmp(target, "Simulated.Bill") == 0)
		tell_bill(ret);
	else if (strcmp(operation, "ListTables") == 0)
		list_tables(ret);
	else if (!*at && strcmp(operation, "CreateTable") == 0)
		make_table(name, body, ret);
	else if (!*at)
		refuse_json(ret, "ResourceNotFoundException", "Requested resource not found");
	else if (strcmp(operation, "DeleteTable") == 0)
		remove_table(at, ret);
	else
		world_dynamodb_answer((*at)->db, request, clock_wall_s(), ret);
	json_decref(body);
}

/* Answers a request, and returns the delay of the reply in ms. */
static uint64_t answer(const struct wire_request *request, struct wire_reply *ret)
{
	const char *target = wire_header(request, "x-amz-target");
	if (target)
		answer_dynamodb(request, target, ret);
	else
		answer_s3(request, ret);
	return target ? dynamodb_ms : s3_ms;
}

/* --- HTTP. */

static void let_go(struct client *client)
{
	if (--client->holds)
		return;
	free(client->bytes);
	free(client);
}

static void on_answer_closed(uv_handle_t *handle)
{
	struct answer *answer = handle->data;
	let_go(answer->client);
	free(answer->bytes);
	free(answer);
}

static void on_written(uv_write_t *write, int status)
{
	struct answer *answer = write->data;
	(void)status;
	uv_close((uv_handle_t *)&answer->late, on_answer_closed);
}

static void on_time(uv_timer_t *timer)
{
	struct answer *answer = timer->data;
	const uv_buf_t buf = uv_buf_init(answer->bytes, (unsigned)answer->n);
	if (uv_is_closing((uv_handle_t *)&answer->client->tcp) ||
		uv_write(&answer->write, (uv_stream_t *)&answer->client->tcp, &buf, 1, on_written))
		on_written(&answer->write, 0);
}

/* Sends the bytes after this time in ms, and takes ownership of them. */
static void send_bytes(struct client *client, char *bytes, size_t n, uint64_t after_ms)
{
	struct answer *answer = must(calloc(1, sizeof *answer));
	*answer = (struct answer){.client = client, .bytes = bytes, .n = n};
	answer->write.data = answer->late.data = answer;
	client->holds++;
	uv_timer_init(client->tcp.loop, &answer->late);
	if (after_ms)
		uv_timer_start(&answer->late, on_time, after_ms, 0);
	else
		on_time(&answer->late);
}

static void reply(
	struct client *client, const char *method, const struct wire_reply *from, uint64_t after_ms)
{
	const bool is_head = strcmp(method, "HEAD") == 0;
	const uint64_t body = is_head ? from->content_length : from->body.len;
	struct text out = TEXT(BODY_MAX_BYTES);
	char date[CLOCK_HTTP_DATE_CHARS];
	clock_format_http_date(clock_wall_s(), date);
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
	send_bytes(client, out.data, out.len, after_ms);
}

/* Serves the complete request at the beginning of the buffer. */
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
	const uint64_t after_ms = answer(request, &ret);
	reply(client, method, &ret, after_ms);
	wire_reply_clear(&ret);
	wire_request_free(request);
	text_clear(&url);
	free(head);
}

/* Reads the length of the request once its head is complete. Returns false if it cannot be served.
 */
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
		send_bytes(client, must(strdup("HTTP/1.1 100 Continue\r\n\r\n")), 25, 0);
	return client->body_bytes < BODY_MAX_BYTES && !(chunked && chunked < end);
}

static void on_closed(uv_handle_t *handle)
{
	let_go(handle->data);
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
	client->holds = 1;
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
	if (argc != 3 && argc != 5) {
		fprintf(stderr, "usage: serve PORT ACCESS-KEY [S3-MS DYNAMODB-MS]\n");
		return 2;
	}
	if (argc == 5) {
		s3_ms = strtoul(argv[3], NULL, 10);
		dynamodb_ms = strtoul(argv[4], NULL, 10);
	}
	snprintf(credential, sizeof credential, "Credential=%s/", argv[2]);
	uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address);
	uv_tcp_init(loop, &server);
	int error = uv_tcp_bind(&server, (const struct sockaddr *)&address, 0);
	if (!error)
		error = uv_listen((uv_stream_t *)&server, 4096, on_connection);
	if (error) {
		fprintf(stderr, "serve: bind: port %s: %s\n", argv[1], uv_strerror(error));
		return 1;
	}
	return uv_run(loop, UV_RUN_DEFAULT);
}
