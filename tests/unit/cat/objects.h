/* A bucket of a few objects, which answers many requests at once: a thread that lists them, and
 * shows each by HEAD and GET. */
#pragma once
#include "../check.h"
#include "aws/settings.h"
#include "base/text.h"
#include "http/http.h"
#include "s3/s3.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/sha.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct object {
	const char *key, *content;
	size_t n; /* bytes of the content; 0: it is a text */
	const char
		*id; /* SHA-256 of what is compressed in the content; NULL: it is not compressed */
	const char *headers; /* of HEAD and GET, each with its line's end; may be NULL */
	/* Replies instead of those with the object: "404 Not Found" and so on. May be NULL. */
	const char *head_status, *get_status, *get_body;
	const char *etag, *get_etag; /* NULL: "e", and that of the HEAD */
};

struct objects {
	const struct object *list; /* NULL behind the last key */
	const char *list_status;   /* the reply to a listing instead of it; may be NULL */
	int listener, stop[2];
	unsigned heads, gets;
	pthread_t thread;
	char url[64];
	struct aws_settings settings;
	struct http_shared *http;
	struct s3 *s3;
	struct s3_conn *conn;
};

static inline size_t object_bytes(const struct object *object)
{
	return object->n ? object->n : strlen(object->content);
}

#define OBJECT_ID_CHARS 8

/* Returns the place of the id in a key: "0f3c9a61" in "a-20260101T000001Z-0f3c9a61.log". */
static inline char *object_id_in(const char *key)
{
	char *z = strstr(key, "Z-");
	return z ? z + 2 : NULL;
}

/* Adds the key under which the object is in the bucket: in place of the id that the test wrote, it
 * has that of the content. */
static inline void objects_add_key(struct text *t, const struct object *object)
{
	unsigned char sha256[SHA256_DIGEST_LENGTH];
	char hex[2 * sizeof sha256 + 1];
	const char *id = object_id_in(object->key);
	SHA256((const unsigned char *)object->content, object_bytes(object), sha256);
	hex_encode(sha256, sizeof sha256, hex);
	text_add_bytes(t, object->key, (size_t)(id - object->key));
	text_add_bytes(t, object->id ? object->id : hex, OBJECT_ID_CHARS);
	text_add(t, id + OBJECT_ID_CHARS);
}

struct listed_object {
	char key[80];
	size_t bytes;
};

static inline int listed_compare(const void *one, const void *other)
{
	const struct listed_object *a = one, *b = other;
	return strcmp(a->key, b->key);
}

static inline void objects_list(const struct objects *objects, struct text *reply)
{
	struct listed_object listed[400];
	size_t n = 0;
	if (objects->list_status) {
		text_addf(reply, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n", objects->list_status);
		return;
	}
	for (const struct object *object = objects->list; object->key; object++) {
		struct text key = TEXT(200);
		objects_add_key(&key, object);
		snprintf(listed[n].key, sizeof listed->key, "%s", text_string(&key));
		listed[n++].bytes = object_bytes(object);
		text_clear(&key);
	}
	qsort(listed, n, sizeof *listed, listed_compare);
	text_add(reply, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult>"
			"<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>");
	for (size_t i = 0; i < n; i++)
		text_addf(reply, "<Contents><Key>%s</Key><Size>%zu</Size></Contents>",
			listed[i].key, listed[i].bytes);
	text_add(reply, "</ListBucketResult>");
}

static inline void objects_show(
	const struct object *object, const char *head, bool is_head, struct text *reply)
{
	const char *status = is_head ? object->head_status : object->get_status;
	const char *known = object->etag ? object->etag : "e";
	const char *etag = is_head || !object->get_etag ? known : object->get_etag;
	const char *range = strcasestr(head, "\r\nrange: bytes=");
	const size_t n = object_bytes(object);
	unsigned long from = 0, to = n - 1;
	if (status) {
		text_addf(reply, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n%s", status,
			is_head || !object->get_body ? "" : object->get_body);
		return;
	}
	if (range)
		sscanf(range, "\r\n%*[^=]=%lu-%lu", &from, &to); // NOLINT(cert-err34-c)
	text_addf(reply,
		"HTTP/1.1 %s X\r\nConnection: close\r\nETag: \"%s\"\r\n%sContent-Length: %zu\r\n\r\n",
		range ? "206" : "200", etag, object->headers ? object->headers : "",
		range ? to - from + 1 : n);
	if (!is_head)
		text_add_bytes(reply, object->content + from, to - from + 1);
}

/* Whether this is the path of the object, before the query or the end of the path. */
static inline bool objects_is_path(const struct object *object, const char *path)
{
	struct text key = TEXT(200);
	text_add(&key, "/b/");
	objects_add_key(&key, object);
	const bool is_path = path && strncmp(path, text_string(&key), key.len) == 0 &&
			     strchr("? ", path[key.len]);
	text_clear(&key);
	return is_path;
}

/* Answers the request that was read. */
static inline void objects_answer(struct objects *objects, int fd, const char *head)
{
	struct text reply = TEXT(32 << 20);
	const bool is_head = strncmp(head, "HEAD ", 5) == 0;
	const char *path = strchr(head, '/');
	const struct object *object = objects->list;
	while (object->key && !objects_is_path(object, path))
		object++;
	if (object->key) {
		objects->heads += is_head;
		objects->gets += !is_head;
		objects_show(object, head, is_head, &reply);
	} else {
		objects_list(objects, &reply);
	}
	for (size_t at = 0; at < reply.len;) {
		const ssize_t n = send(fd, reply.data + at, reply.len - at, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	text_clear(&reply);
}

static inline void *objects_run(void *arg)
{
	struct objects *objects = arg;
	for (;;) {
		struct pollfd fds[] = {{.fd = objects->stop[0], .events = POLLIN},
			{.fd = objects->listener, .events = POLLIN}};
		char head[8192] = "";
		size_t n = 0;
		poll(fds, 2, -1);
		if (fds[0].revents)
			return NULL;
		const int fd = accept(objects->listener, NULL, NULL);
		while (n + 1 < sizeof head && !strstr(head, "\r\n\r\n")) {
			const ssize_t got = recv(fd, head + n, sizeof head - 1 - n, 0);
			if (got <= 0)
				break;
			n += (size_t)got;
			head[n] = '\0';
		}
		if (strstr(head, "\r\n\r\n"))
			objects_answer(objects, fd, head);
		close(fd);
	}
}

static inline bool objects_begin(struct objects *objects, const struct object *list)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	const struct credentials_options credentials = {.profile = "default"};
	const struct http_options http = {0};
	*objects = (struct objects){.list = list};
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	objects->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!CHECK(bind(objects->listener, (struct sockaddr *)&address, size) == 0 &&
		    listen(objects->listener, 64) == 0 &&
		    getsockname(objects->listener, (struct sockaddr *)&address, &size) == 0 &&
		    pipe(objects->stop) == 0))
		return false;
	snprintf(objects->url, sizeof objects->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	objects->settings = (struct aws_settings){.region = "us-east-1",
		.s3_endpoint = objects->url,
		.attempts = 1,
		.request_timeout_ms = 5000};
	return CHECK_INT(credentials_chain_new(&credentials, &objects->settings.credentials), 0) &&
	       CHECK_INT(http_shared_new(&http, &objects->http), 0) &&
	       CHECK_INT(s3_open(&objects->settings, objects->http, "b", &objects->s3, NULL), 0) &&
	       CHECK_INT(s3_conn_new(objects->s3, &objects->conn), 0) &&
	       CHECK_INT(pthread_create(&objects->thread, NULL, objects_run, objects), 0);
}

static inline void objects_end(struct objects *objects)
{
	CHECK_INT(write(objects->stop[1], "x", 1), 1);
	pthread_join(objects->thread, NULL);
	close(objects->stop[0]);
	close(objects->stop[1]);
	close(objects->listener);
	s3_conn_free(objects->conn);
	s3_close(objects->s3);
	http_shared_free(objects->http);
	credentials_chain_free(objects->settings.credentials);
}
