/* Opens a client of locks: its settings, its store, its threads for heartbeats, and the state
 * shared by all of its locks. lock.c closes it. */
#include "lock/lock_client.h"
#include "base/clock.h"
#include "base/reserved.h"
#include "base/text.h"
#include "lease/process.h"
#include "store/store.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER_MAX   200
#define INIT_MAX_MS (5ULL * 60 * 1000)

/* fill_names(), fill_times() and fill_modes() apply the options. Each returns NULL, or a sentence
 * about an invalid option. */
static const char *fill_names(struct s3once_locks *locks, const struct s3once_locks_options *o)
{
	const struct dialect *dialect = locks->dialect;
	const char *pk = o->key_name ? o->key_name : dialect->pk_name;
	const char *sk = o->sort_name ? o->sort_name : dialect->sk_name;
	if (!*pk || strlen(pk) > 255 || (sk && (!*sk || strlen(sk) > 255)))
		return "a key attribute's name has 1 to 255 bytes";
	if (locks->is_file_or_bucket) { /* its keys always have these names */
		pk = "pk";
		sk = "sk";
	}
	snprintf(locks->pk_name, sizeof locks->pk_name, "%s", pk);
	snprintf(locks->sk_name, sizeof locks->sk_name, "%s", sk ? sk : "");
	locks->table = (struct table){.name = locks->table_name,
		.pk_name = locks->pk_name,
		.sk_name = sk ? locks->sk_name : NULL,
		.sk_is_number = dialect->sk_is_slot};
	return NULL;
}

static const char *fill_times(struct s3once_locks *locks, const struct s3once_locks_options *o)
{
	const uint64_t lease = o->lease_ms ? o->lease_ms : 20000;
	const uint64_t heartbeat = o->heartbeat_ms ? o->heartbeat_ms : lease / 4;
	const uint64_t suspect = o->suspect_ms ? o->suspect_ms : (lease - heartbeat) / 2;
	if (lease < 1000 || lease > LOCK_DAY_MS)
		return "a lease is at least 1s and at most a day";
	if (heartbeat > lease / 2)
		return "a heartbeat comes at least twice in a lease";
	/* With `manual`, the user decides when a heartbeat comes. */
	if (suspect > lease || (!o->manual && suspect + heartbeat >= lease))
		return "a lease would be suspect before its first heartbeat";
	locks->lease_ns = lease * NS_PER_MS;
	locks->heartbeat_ns = o->manual ? 0 : heartbeat * NS_PER_MS;
	locks->suspect_ns = suspect * NS_PER_MS;
	locks->poll_ms = o->poll_ms ? clock_span_ms(o->poll_ms) : 1000;
	return NULL;
}

static const char *fill_modes(struct s3once_locks *locks, const struct s3once_locks_options *o)
{
	locks->by_mark = o->release_by ? o->release_by == S3ONCE_LOCK_BY_MARK
				       : locks->is_file_or_bucket || o->dialect == S3ONCE_LOCK_GO;
	locks->tokens = o->tokens ? o->tokens : S3ONCE_LOCK_TOKENS_COUNTER;
	if (locks->is_s3 && !locks->by_mark)
		return "locks in S3 are released by mark only: not every server deletes an object "
		       "on a condition";
	if (locks->by_mark && !locks->dialect->released)
		return "this dialect releases by delete only";
	if (locks->tokens == S3ONCE_LOCK_TOKENS_ROW && !locks->by_mark)
		return "tokens in the row need rows that stay: release by mark";
	if ((unsigned)o->tokens > S3ONCE_LOCK_TOKENS_NONE ||
		(unsigned)o->release_by > S3ONCE_LOCK_BY_MARK)
		return "there is no such way to release, or to make tokens";
	return NULL;
}

static bool is_table_name(const char *name)
{
	return *name && strlen(name) <= 255;
}

static bool is_path(const char *path)
{
	return *path != '\0';
}

static bool is_bucket(const char *name)
{
	return *name && *name != '/' && utf8_valid(name, strlen(name)) &&
	       strlen(STORE_S3_BEGIN) + strlen(name) < LOCK_PLACE_MAX;
}

static bool is_nothing(const char *rest)
{
	return !*rest;
}

/* The forms of a place: how each begins, and whether what follows is right. */
enum form { IN_TABLE, IN_FILE, IN_BUCKET, IN_OWN_FILE, FORMS };
static const struct {
	const char *begin;
	bool (*is_right)(const char *rest);
} forms[FORMS] = {
	[IN_TABLE] = {"dynamodb:", is_table_name},
	[IN_FILE] = {"sqlite:", is_path},
	[IN_BUCKET] = {STORE_S3_BEGIN, is_bucket},
	[IN_OWN_FILE] = {"local", is_nothing},
};

/* Returns the form of the place that the options name, and sets *ret_rest to what follows its
 * beginning: a table, a path, or a bucket with a prefix. FORMS: it is no place. */
static enum form form_of_place(const struct s3once_locks_options *o, const char **ret_rest)
{
	const char *place = o->place ? o->place : forms[IN_OWN_FILE].begin;
	enum form form = 0;
	for (; form < FORMS; form++) {
		const size_t n = strlen(forms[form].begin);
		*ret_rest = place + n;
		if (strncmp(place, forms[form].begin, n) == 0 && forms[form].is_right(place + n))
			break;
	}
	return form;
}

/* Sets the members of *locks about the place. 0, or -EINVAL with a sentence. */
static int read_place(struct s3once_locks *locks, const struct s3once_locks_options *o,
	struct s3once_lock_error *ret)
{
	const char *rest, *fault = NULL;
	const enum form form = form_of_place(o, &rest);
	locks->is_file_or_bucket = form != IN_TABLE;
	locks->is_s3 = form == IN_BUCKET;
	if (form == FORMS)
		fault = "locks are in dynamodb:TABLE, s3://BUCKET/PREFIX, sqlite:PATH or local";
	else if (form == IN_FILE && strcmp(rest, STORE_SQLITE_NOWHERE) == 0)
		fault = "locks in memory exclude nobody: name a file";
	if (fault)
		return lock_error(ret, -EINVAL, "'%s': %s", quote(o->place).text, fault);
	if (form != IN_TABLE && o->dialect != S3ONCE_LOCK_JAVA)
		return lock_error(ret, -EINVAL,
			"%s: no dialect but java, since no other library keeps its locks there; "
			"those of a dialect are in dynamodb:TABLE",
			locks->is_s3 ? "locks in S3" : "locks in a file");
	if (form == IN_TABLE)
		snprintf(locks->table_name, sizeof locks->table_name, "%s", rest);
	if (form == IN_BUCKET)
		snprintf(locks->s3_place, sizeof locks->s3_place, "%s", o->place);
	return 0;
}

static bool is_owner(const char *name)
{
	return *name && strlen(name) <= OWNER_MAX && utf8_valid(name, strlen(name));
}

/* Makes the name by which others know this client: "web1 pid 4711 5f0c81aa". */
static void make_owner(struct s3once_locks *locks)
{
	struct process self;
	char id[ID_CHARS + 1];
	process_self(&self);
	random_id(id);
	snprintf(locks->owner, sizeof locks->owner, "%.120s pid %d %.8s", self.host, (int)self.pid,
		id);
}

/* Whether a file or folder that is missing may be made. */
static bool may_make(const struct s3once_locks_options *o)
{
	return !o->read_only && !o->must_exist;
}

/* Sets the members of *locks that depend on the options alone. 0, or -EINVAL with a sentence. */
static int read_options(struct s3once_locks *locks, const struct s3once_locks_options *o,
	struct s3once_lock_error *ret)
{
	if (reserved_is_set(o->reserved))
		return lock_error(ret, -EINVAL, RESERVED_IS_SET);
	locks->dialect = dialect_of(o->dialect);
	locks->may_acquire = may_make(o);
	locks->allows_replicas = o->allow_replicas != 0;
	if (!locks->dialect)
		return lock_error(ret, -EINVAL, "there is no dialect %d", (int)o->dialect);
	if (read_place(locks, o, ret))
		return -EINVAL;
	if (o->owner && !is_owner(o->owner))
		return lock_error(ret, -EINVAL, "an owner is UTF-8 of 1 to %d bytes", OWNER_MAX);
	const char *fault = fill_names(locks, o);
	if (!fault)
		fault = fill_times(locks, o);
	if (!fault)
		fault = fill_modes(locks, o);
	if (fault)
		return lock_error(ret, -EINVAL, "%s", fault);
	if (o->owner)
		snprintf(locks->owner, sizeof locks->owner, "%s", o->owner);
	else
		make_owner(locks);
	return 0;
}

/* Sets the folder for observations, and makes it if it is missing. NULL: observations are not kept.
 * "": the default folder. 0, or -ENAMETOOLONG. A folder that cannot be made is no error:
 * observations are lost then, and the next run only waits longer. */
static int make_observations_folder(struct s3once_locks *locks, const char *observations)
{
	if (!observations)
		return 0;
	char *path = locks->observations;
	const size_t size = sizeof locks->observations;
	if (!*observations) {
		if (state_path(STATE_LOCKS, FOLDER_MADE, path, size))
			*path = 0;
	} else if ((size_t)snprintf(path, size, "%s", observations) >= size) {
		return -ENAMETOOLONG;
	}
	if (*path && mkdir(path, 0700) && errno != EEXIST)
		*path = 0;
	atomic_store(&locks->loses_observations, !*path);
	if (*path)
		lock_observe_sweep(locks);
	return 0;
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* Opens the SQLite file with this path. NULL: the file of this user. If no file may be made and
 * that of this user is missing, it opens an empty one in memory. 0 or -errno. */
static int open_file(struct s3once_locks *locks, const char *named,
	const struct s3once_locks_options *o, struct problem *problem)
{
	char *path = named ? strdup(named) : NULL;
	int error = path ? 0 : named ? -ENOMEM : store_sqlite_default_path(&path);
	if (error)
		problem_set(problem,
			"no folder for locks: set HOME, XDG_STATE_HOME or STATE_DIRECTORY");
	const bool lacks_file = !error && !may_make(o) && is_missing(path);
	/* A file that is only read is not made: opening it fails with a sentence. */
	const bool only_reads = o->read_only || lacks_file;
	if (lacks_file && !named)
		error = store_sqlite_open(
			STORE_SQLITE_NOWHERE, STORE_WRITTEN, &locks->store, problem);
	else if (!error)
		error = store_sqlite_open(
			path, only_reads ? STORE_ONLY_READ : STORE_WRITTEN, &locks->store, problem);
	/* If realpath() fails, the removal or replacement of the file goes unnoticed. */
	char *real = error ? NULL : realpath(path, NULL);
	if (real)
		own_files_find(real, &locks->files); /* it takes over the string */
	free(path);
	return error;
}

/* Opens the SQLite file, the table or the bucket of the locks. 0 or -errno. */
static int open_store(
	struct s3once_locks *locks, const struct s3once_locks_options *o, struct problem *problem)
{
	const char *rest;
	const enum form form = form_of_place(o, &rest);
	if (form == IN_FILE || form == IN_OWN_FILE)
		return open_file(locks, form == IN_FILE ? rest : NULL, o, problem);
	const struct aws_options aws = {
		.profile = o->profile,
		.region = o->region,
		.dynamodb_endpoint_url = o->dynamodb_endpoint_url,
		.endpoint_url = o->endpoint_url,
		.ca_bundle = o->ca_bundle,
		.request_timeout_ms = o->request_timeout_ms ? clock_span_ms(o->request_timeout_ms)
							    : locks->lease_ns / NS_PER_MS / 4,
	};
	int error = aws_settings_resolve(&aws, &locks->aws, problem);
	if (!error) {
		const struct http_options http = {.ca_bundle = locks->aws->ca_bundle,
			.stall_timeout_ms = locks->aws->stall_timeout_ms};
		error = http_shared_new(&http, &locks->http);
	}
	if (error)
		return error;
	if (locks->is_s3)
		return store_s3_open(
			locks->aws, locks->http, locks->s3_place, &locks->store, problem);
	return store_dynamodb_open_table(
		locks->aws, locks->http, &locks->table, &locks->store, problem);
}

/* Frees the parts of a client that s3once_locks_open() has made so far, except for the events. */
static void destroy_locks(struct s3once_locks *locks)
{
	lease_keeper_free(locks->keeper);
	store_close(locks->store);
	http_shared_free(locks->http);
	aws_settings_free(locks->aws);
	own_files_clear(&locks->files);
	uv_cond_destroy(&locks->closing);
	uv_mutex_destroy(&locks->mutex);
	free(locks);
}

int s3once_locks_open(const struct s3once_locks_options *options, struct s3once_locks **ret_locks,
	struct s3once_lock_error *ret)
{
	struct problem problem = {0};
	struct s3once_locks *locks = calloc(1, sizeof *locks);
	if (!locks)
		return lock_error(ret, -ENOMEM, "out of memory");
	uv_mutex_init(&locks->mutex);
	uv_cond_init(&locks->closing);
	int error = read_options(locks, options, ret);
	if (error) {
		destroy_locks(locks);
		return error;
	}
	error = aws_global_init();
	if (!error)
		error = open_store(locks, options, &problem);
	/* A table or a bucket may hold locks. A file that is missing, and may not be made, holds
	 * none, and then no folder for observations is needed. */
	const bool may_have_locks = !locks->is_file_or_bucket || locks->is_s3 || locks->files.path;
	if (!error && (may_have_locks || may_make(options)))
		error = make_observations_folder(locks, options->observations);
	if (!error)
		error = lease_keeper_new(locks->store, LOCK_BEATS, &locks->keeper);
	if (!error)
		error = lock_events_init(&locks->events, options->callback, options->callback_arg);
	if (error) {
		if (!problem.text[0])
			problem_set(&problem, "the locks cannot be opened: %s", strerror(-error));
		error = lock_error_of(locks, ret, error == -ENOMEM ? -ENOMEM : -EIO, &problem);
		destroy_locks(locks);
		return error;
	}
	*ret_locks = locks;
	return 0;
}

void s3once_locks_free(struct s3once_locks *locks)
{
	if (!locks)
		return;
	lock_events_stop(&locks->events);
	const int keeps_rows = 1; /* no lock is released: only the heartbeats end */
	s3once_locks_close(locks, keeps_rows, 0, NULL);
	while (locks->locked.first)
		s3once_lock_free(locks->locked.first);
	lock_events_clear(&locks->events);
	destroy_locks(locks);
}

/* Tries out whether a bucket honours conditional writes. Other places surely do. 0, -ENOMEM or
 * -EIO. */
static int prepare_place(struct s3once_locks *locks, struct s3once_lock_error *ret)
{
	struct store_conn *conn;
	struct problem problem = {0};
	if (!locks->store->ops->prepare)
		return 0;
	if (store_conn_new(locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	const enum outcome o = locks->store->ops->prepare(conn, &no_limits, &problem);
	store_conn_free(conn);
	return o == OUTCOME_OK ? 0 : lock_error_of(locks, ret, -EIO, &problem);
}

int s3once_locks_init(struct s3once_locks *locks, const struct s3once_locks_table *table,
	int *ret_created, struct s3once_lock_error *ret)
{
	struct table_made made = {0};
	struct problem problem = {0};
	if (ret)
		*ret = (struct s3once_lock_error){0};
	*ret_created = 0;
	if (reserved_is_set(table->reserved))
		return lock_error(ret, -EINVAL, RESERVED_IS_SET);
	if (locks->is_file_or_bucket)
		return prepare_place(locks, ret);
	if (table->ttl_name && locks->dialect == dialect_of(S3ONCE_LOCK_GO))
		return lock_error(ret, -EINVAL,
			"no time to live in a go table: its client copies unknown attributes to new "
			"rows without refreshing them");
	const struct table_making making = {
		.table = locks->table,
		.terms = {.read_units = table->read_units,
			.write_units = table->write_units,
			.tags = table->tags},
		.what = "these locks",
		.ttl_name = table->ttl_name,
		.timeout_ms = table->timeout_ms ? clock_span_ms(table->timeout_ms) : INIT_MAX_MS,
	};
	if (table_make(locks->aws, locks->http, &making, &made, &problem) != OUTCOME_OK)
		return lock_error_of(locks, ret, -EIO, &problem);
	*ret_created = made.created;
	/* These are no failures, but the user learns of them. */
	if (made.shape.is_split)
		lock_error_split_table(locks, &made.shape, 0, ret);
	else if (table->ttl_name && !made.has_ttl)
		lock_error(ret, 0, "this server has no time to live");
	return 0;
}

const char *s3once_locks_requests(const struct s3once_locks *locks, size_t i, uint64_t *ret_count)
{
	unsigned long count = 0;
	const char *name = locks->store->ops->kind(locks->store, i, &count);
	*ret_count = count;
	return name;
}
