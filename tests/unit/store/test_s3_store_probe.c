/* Whether a bucket honours conditions, found out at a bucket that may do so for one writer after
 * the other, but not for several at once. Two hosts that keep a lock there could hold it both. */
#include "../script_aws.h"
#include "store/race.h"
#include "store/s3_store.h"

#define OBJECTS_MAX 40
#define RECORD      "/b/of/store/conditions"

/* How a bucket answers. */
struct ways {
	const char *name;
	bool is_bare;              /* etags have no quotes in If-Match */
	bool races_new, races_old; /* If-None-Match, or If-Match: tests first, and then writes */
	const char *denied;        /* puts whose content, or whose path, begins with this */
	const char *refused;       /* likewise, with 412 */
	const char *lost;          /* likewise: the reply of the first one, which is applied */
	enum outcome outcome;
	const char *problem;
	unsigned rounds; /* of both races */
};

struct object {
	char path[200], body[600];
	unsigned version;
};

static struct bucket {
	const struct ways *ways;
	int listener;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t met; /* all writers of a race have come */
	unsigned racing;
	struct object objects[OBJECTS_MAX];
	size_t n;
	unsigned version, gets, puts, deletes, writers;
	bool has_lost;
} bucket;

static struct object *find(const char *path)
{
	for (size_t i = 0; i < bucket.n; i++)
		if (strcmp(bucket.objects[i].path, path) == 0)
			return &bucket.objects[i];
	return NULL;
}

static bool begins(const struct script_request *request, const char *path, const char *with)
{
	return with && (strncmp(request->body, with, strlen(with)) == 0 ||
			       strncmp(path, with, strlen(with)) == 0);
}

/* Whether the condition of a put holds now. */
static bool holds(const struct script_request *request, const char *path)
{
	char etag[40];
	const struct object *object = find(path);
	if (script_sent(request, "if-none-match") && object)
		return false;
	const char *match = script_sent(request, "if-match");
	if (!match)
		return true;
	snprintf(etag, sizeof etag, bucket.ways->is_bare ? "e%u" : "\"e%u\"",
		object ? object->version : 0);
	return object && strcmp(match, etag) == 0;
}

static void store(const struct script_request *request, const char *path)
{
	struct object *object = find(path);
	if (!object && CHECK(bucket.n < OBJECTS_MAX))
		object = &bucket.objects[bucket.n++];
	if (!object)
		return;
	snprintf(object->path, sizeof object->path, "%s", path);
	snprintf(object->body, sizeof object->body, "%s", request->body);
	object->version = ++bucket.version;
}

/* Waits until all writers of the race have come, so that none has written before another has
 * tested. */
static void await_writers(void)
{
	struct timespec deadline;
	const unsigned all = (bucket.racing++ / RACE_WRITERS + 1) * RACE_WRITERS;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 60;
	pthread_cond_broadcast(&bucket.met);
	while (bucket.racing < all &&
		CHECK_INT(pthread_cond_timedwait(&bucket.met, &bucket.mutex, &deadline), 0))
		continue;
}

/* Writes the reply to a put, or nothing if it is lost. */
static void put(const struct script_request *request, const char *path, char *reply, size_t size)
{
	const struct ways *ways = bucket.ways;
	const bool is_new = script_sent(request, "if-none-match") != NULL;
	const bool is_old = script_sent(request, "if-match") != NULL;
	bool is_met = holds(request, path) && !begins(request, path, ways->refused);
	bucket.puts++;
	const bool is_writer = strncmp(request->body, "writer ", 7) == 0;
	bucket.writers += is_writer;
	if (begins(request, path, ways->denied)) {
		snprintf(reply, size, SCRIPT_REPLY("403", "Server: fake\r\n", ""));
		return;
	}
	if (is_writer && ((is_new && ways->races_new) || (is_old && ways->races_old)))
		await_writers();
	if (is_met)
		store(request, path);
	if (is_met && !bucket.has_lost && begins(request, path, ways->lost)) {
		bucket.has_lost = true;
		return;
	}
	if (is_met)
		snprintf(reply, size, SCRIPT_REPLY("200", "Server: fake\r\nETag: \"e%u\"\r\n", ""),
			find(path)->version);
	else
		snprintf(reply, size,
			SCRIPT_REPLY("412", "Server: fake\r\n",
				"<Error><Code>PreconditionFailed</Code></Error>"));
}

/* Answers one request, in a thread of its own. */
static void *serve(void *arg)
{
	struct script_server one = {.connection = (int)(intptr_t)arg, .listener = -1};
	struct script_request request = {0};
	char path[200] = "", reply[1000] = "";
	one.stop[0] = -1;
	if (script_read(&one, &request) == 1) {
		const char *at = strchr(request.head, ' ') + 1;
		snprintf(path, sizeof path, "%.*s", (int)strcspn(at, " ?"), at);
		pthread_mutex_lock(&bucket.mutex);
		struct object *object = find(path);
		if (*request.head == 'P') {
			put(&request, path, reply, sizeof reply);
		} else if (*request.head == 'D') {
			bucket.deletes++;
			if (object)
				*object = bucket.objects[--bucket.n];
			snprintf(reply, sizeof reply, SCRIPT_REPLY("204", "Server: fake\r\n", ""));
		} else {
			bucket.gets++;
			if (object)
				snprintf(reply, sizeof reply,
					SCRIPT_REPLY(
						"200", "Server: fake\r\nETag: \"e%u\"\r\n", "%s"),
					object->version, object->body);
			else
				snprintf(reply, sizeof reply,
					SCRIPT_REPLY("404", "Server: fake\r\n",
						"<Error><Code>NoSuchKey</Code></Error>"));
		}
		pthread_mutex_unlock(&bucket.mutex);
		send(one.connection, reply, strlen(reply), MSG_NOSIGNAL);
	}
	free(request.head);
	free(request.body);
	close(one.connection);
	return NULL;
}

static void *accept_all(void *arg)
{
	pthread_t threads[300];
	size_t n = 0;
	int fd;
	while (n < 300 && (fd = accept(bucket.listener, NULL, NULL)) >= 0)
		CHECK_INT(pthread_create(&threads[n++], NULL, serve, (void *)(intptr_t)fd), 0);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return NULL;
}

struct fixture {
	struct script_aws aws;
	struct store *store;
	struct store_conn *conn;
	char url[64];
};

/* Opens the locks of the bucket, as another process would. */
static bool open_locks(struct fixture *f)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	*f = (struct fixture){0};
	if (!script_aws_start(&f->aws, NULL, 0))
		return false;
	getsockname(bucket.listener, (struct sockaddr *)&address, &size);
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	f->aws.settings.s3_endpoint = f->url;
	return CHECK_INT(store_s3_open(&f->aws.settings, f->aws.http, "s3://b/of", &f->store,
				 &f->aws.problem),
		       0) &&
	       CHECK_INT(store_conn_new(f->store, &f->conn), 0);
}

static void close_locks(struct fixture *f)
{
	store_conn_free(f->conn);
	store_close(f->store);
	script_aws_end(&f->aws);
}

#define ALL (2 * RACE_ROUNDS)
static const struct ways rows[] = {
	{"it honours both", .outcome = OUTCOME_OK, .problem = "", .rounds = ALL},
	{"it wants bare etags", .is_bare = true, .outcome = OUTCOME_OK, .problem = "",
		.rounds = ALL},
	{"two new objects at once", .races_new = true, .outcome = OUTCOME_SETUP,
		.problem = "honours If-None-Match only when one writes after another (of 8 that",
		.rounds = 1},
	{"two replacements at once", .races_old = true, .outcome = OUTCOME_SETUP,
		.problem = "honours If-Match only when one writes after another (of 8 that",
		.rounds = RACE_ROUNDS + 1},
	{"two replacements at once, by bare etags", .is_bare = true, .races_old = true,
		.outcome = OUTCOME_SETUP,
		.problem = "honours If-Match only when one writes after another (of 8 that",
		.rounds = RACE_ROUNDS + 1},
	/* These say nothing about the bucket. */
	{"nobody wins", .refused = "writer ", .outcome = OUTCOME_TRANSIENT,
		.problem = "could not be tried out whether s3://b honours If-None-Match: try",
		.rounds = 1},
	{"a writer gets no answer", .denied = "writer 3", .outcome = OUTCOME_TRANSIENT,
		.problem = "could not be tried out whether s3://b honours If-None-Match: try",
		.rounds = 1},
	{"the winner does not know it", .lost = "writer ", .outcome = OUTCOME_TRANSIENT,
		.problem = "all were refused", .rounds = 1},
	{"a round of replacements cannot be prepared", .denied = "round 0",
		.outcome = OUTCOME_TRANSIENT,
		.problem = "could not be tried out whether s3://b honours If-Match: try",
		.rounds = RACE_ROUNDS},
	{"the result cannot be kept", .denied = RECORD, .outcome = OUTCOME_OK, .problem = "",
		.rounds = ALL},
};

static bool check_asked(unsigned gets, unsigned puts)
{
	pthread_mutex_lock(&bucket.mutex);
	bool ok = CHECK_INT(bucket.gets, gets);
	ok &= CHECK_INT(bucket.puts, puts);
	pthread_mutex_unlock(&bucket.mutex);
	return ok;
}

static void test_row(const struct ways *ways)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const bool is_kept = ways->outcome == OUTCOME_OK && !ways->denied;
	struct fixture f;
	bucket = (struct bucket){
		.ways = ways, .mutex = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER};
	bucket.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(bucket.listener, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_INT(listen(bucket.listener, 64), 0);
	CHECK_INT(pthread_create(&bucket.thread, NULL, accept_all, NULL), 0);
	if (!open_locks(&f))
		return;
	bool ok = CHECK_STRING(outcome_name(f.store->ops->prepare(f.conn, NULL, &f.aws.problem)),
		outcome_name(ways->outcome));
	ok &= CHECK(strstr(f.aws.problem.text, ways->problem) != NULL);
	ok &= CHECK_INT(((struct s3_store *)f.store)->is_proven, ways->outcome == OUTCOME_OK);
	pthread_mutex_lock(&bucket.mutex);
	const unsigned puts = bucket.puts;
	ok &= CHECK_INT(bucket.writers, ways->rounds * RACE_WRITERS + (ways->lost != NULL));
	/* Nothing but the record stays. */
	ok &= CHECK_INT(bucket.n, is_kept);
	const struct object *record = find(RECORD);
	ok &= CHECK_INT(record != NULL, is_kept);
	if (record) {
		ok &= CHECK(strstr(record->body, "\"server\":{\"S\":\"fake\"}") != NULL);
		ok &= CHECK(
			strstr(record->body, ways->is_bare ? "\"bare\"" : "\"quoted\"") != NULL);
	}
	pthread_mutex_unlock(&bucket.mutex);
	if (ways->outcome == OUTCOME_OK) /* what was found out holds */
		ok &= CHECK_INT(f.store->ops->prepare(f.conn, NULL, &f.aws.problem), OUTCOME_OK);
	ok &= check_asked(1, puts);
	close_locks(&f);
	if (is_kept && open_locks(&f)) { /* another process believes the record */
		ok &= CHECK_INT(f.store->ops->prepare(f.conn, NULL, &f.aws.problem), OUTCOME_OK);
		ok &= CHECK_INT(s3_supports(((struct s3_store *)f.store)->s3, S3_IF_MATCH_QUOTES),
			ways->is_bare ? S3_NO : S3_YES);
		ok &= check_asked(2, puts);
		close_locks(&f);
	}
	if (!ok)
		fprintf(stderr, "\t%s\n", ways->name);
	shutdown(bucket.listener, SHUT_RDWR);
	pthread_join(bucket.thread, NULL);
	close(bucket.listener);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(&rows[i]);
	return check_result();
}
