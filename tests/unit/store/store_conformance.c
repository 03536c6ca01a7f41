/* One table of cases for every store: store_conformance sqlite:PATH | dynamodb:TABLE |
 * batches:TABLE | s3://BUCKET/PREFIX [CASE]... Without arguments: SQLite in memory, then in a fresh
 * folder. The endpoints and keys of services come from the environment; the table is made if it is
 * not there. With batches other threads write all the time, so that what a case writes leaves
 * together with their writes.
 */
#include "aws/settings.h"
#include "base/random.h"
#include "http/http.h"
#include "marks/store_settings.h"
#include "sqlite_scratch.h"
#include "store_cases.h"
#include <pthread.h>
#include <stdatomic.h>

static struct problem last_problem;

struct item_key key_of(const struct scene *scene, const char *sk)
{
	return (struct item_key){scene->pk, sk};
}

enum outcome put_if(struct scene *scene, const char *sk, const struct item *item,
	const struct condition *conditions, size_t n, struct item *ret_present)
{
	return scene->store->ops->write(scene->conn, key_of(scene, sk),
		&(struct item_write){.item = item, .conditions = conditions, .n_conditions = n},
		&no_limits, ret_present, &last_problem);
}

enum outcome put_absent(
	struct scene *scene, const char *sk, const struct item *item, struct item *ret_present)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};

	return put_if(scene, sk, item, &absent, 1, ret_present);
}

enum outcome get_item(struct scene *scene, const char *sk, struct item *ret)
{
	return scene->store->ops->get(
		scene->conn, key_of(scene, sk), READ_CONSISTENT, &no_limits, ret, &last_problem);
}

struct item item_of(const char *name, const char *value)
{
	struct item item = {0};

	CHECK(item_set_string(&item, name, value) == 0);
	return item;
}

static bool is_key(const char *name)
{
	return strcmp(name, "pk") == 0 || strcmp(name, "sk") == 0;
}

static bool has_all(const struct item *item, const struct item *of)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct attribute *want = &of->attributes[i];
		const struct attribute *got = item_find(item, want->name);
		if (is_key(want->name))
			continue;
		if (!got || got->type != want->type || got->n != want->n ||
			memcmp(got->value, want->value, want->n))
			return false;
	}
	return true;
}

bool same_item(const struct item *a, const struct item *b)
{
	return has_all(a, b) && has_all(b, a);
}

bool check_outcome(enum outcome got, enum outcome want, const char *file, int line)
{
	if (check_strings(outcome_name(got), outcome_name(want), file, line, "outcome"))
		return true;
	fprintf(stderr, "\t%s\n", last_problem.text);
	return false;
}

static bool is_wanted(const char *name, char **wanted)
{
	if (!*wanted)
		return true;
	while (*wanted && strcmp(*wanted, name))
		wanted++;
	return *wanted;
}

static void run_cases(struct store *store, const struct store_case *cases, char **wanted)
{
	for (; cases->name; cases++) {
		struct scene scene = {.store = store};
		unsigned failed = check_failed;
		char id[ID_CHARS + 1];

		if (!is_wanted(cases->name, wanted))
			continue;
		random_id(id);
		snprintf(scene.pk, sizeof scene.pk, "case#%s", id);
		last_problem = (struct problem){0};
		if (!CHECK(store_conn_new(store, &scene.conn) == 0))
			return;
		cases->run(&scene);
		store_conn_free(scene.conn);
		printf("%s %s\n", failed == check_failed ? "ok" : "FAILED", cases->name);
	}
}

#define COMPANIONS 8

/* Threads that write items of their own for as long as the cases of conditions run. */
struct company {
	struct store *store;
	atomic_bool over;
	pthread_t threads[COMPANIONS];
	size_t n;
};

static void *write_all_the_time(void *arg)
{
	static const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	struct company *company = arg;
	struct item item = {0}, present = {0};
	struct store_conn *conn = NULL;
	struct problem problem;
	char id[ID_CHARS + 1];

	if (item_set_string(&item, "state", "company") == 0)
		(void)store_conn_new(company->store, &conn);
	while (conn && !atomic_load(&company->over)) {
		random_id(id);
		company->store->ops->write(conn, (struct item_key){"company", id},
			&(struct item_write){
				.item = &item, .conditions = &absent, .n_conditions = 1},
			&no_limits, &present, &problem);
		item_clear(&present);
	}
	store_conn_free(conn);
	item_clear(&item);
	return NULL;
}

static void run_in_company(struct store *store, const struct store_case *cases, char **wanted)
{
	struct company company = {.store = store};

	while (company.n < COMPANIONS &&
		!pthread_create(&company.threads[company.n], NULL, write_all_the_time, &company))
		company.n++;
	run_cases(store, cases, wanted);
	atomic_store(&company.over, true);
	while (company.n)
		pthread_join(company.threads[--company.n], NULL);
}

/* Requests of this kind so far. */
static unsigned long count_of(const struct store *store, const char *kind)
{
	unsigned long count = 0;
	const char *name;

	for (size_t i = 0; (name = store->ops->kind(store, i, &count)); i++)
		if (strcmp(name, kind) == 0)
			return count;
	return 0;
}

/* As push does it: found out, then used. */
static bool begin_batches(struct store *store)
{
	char how[STORE_BATCHES_MAX], pk[ID_CHARS + 1];
	struct store_conn *conn;

	if (!CHECK(store_conn_new(store, &conn) == 0))
		return false;
	random_id(pk);
	enum outcome outcome = store->ops->try_batches(conn, pk, &no_limits, how, &last_problem);
	store_conn_free(conn);
	if (!CHECK_OUTCOME(outcome, OUTCOME_OK))
		return false;
	printf("batches: %s\n", how);
	store->ops->use_batches(store, how);
	return true;
}

static int run_with_batches(struct store *store, char **wanted)
{
	if (!begin_batches(store))
		return check_result();
	run_in_company(store, condition_cases, wanted);
	run_cases(store, reading_cases, wanted);
	run_cases(store, thread_cases, wanted);
	printf("requests: %lu batches, %lu puts, %lu updates\n",
		count_of(store, "BatchExecuteStatement"), count_of(store, "PutItem"),
		count_of(store, "UpdateItem"));
	return check_result();
}

static int run(struct store *store, char **wanted)
{
	run_cases(store, condition_cases, wanted);
	run_cases(store, reading_cases, wanted);
	run_cases(store, thread_cases, wanted);
	return check_result();
}

static int run_sqlite(const char *path, char **wanted)
{
	struct store *store;
	struct problem problem = {0};

	if (store_sqlite_open(path, STORE_WRITTEN, &store, &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	int status = run(store, wanted);
	store_close(store);
	return status;
}

static int run_table(const struct aws_settings *settings, struct http_shared *http,
	const char *table, bool with_batches, char **wanted)
{
	const struct table_setup setup = {table, SHARDS_OF_TABLE, 60000};
	struct store_settings found;
	struct problem problem = {0};
	struct store *store;
	struct table_made made = {0};

	if (table_create(settings, http, &setup, &found, &made, &problem) ||
		store_dynamodb_open(settings, http, table, &store, &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	printf("table %s: created %d, ttl %d, id %s, shards %u\n", table, made.created,
		made.has_ttl, found.table_id, found.shards);
	int status = with_batches ? run_with_batches(store, wanted) : run(store, wanted);
	store_close(store);
	return status;
}

static int run_s3(const struct aws_settings *settings, struct http_shared *http, const char *place,
	char **wanted)
{
	struct problem problem = {0};
	struct store *store;

	if (store_s3_open(settings, http, place, &store, &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	int status = run(store, wanted);
	store_close(store);
	return status;
}

static int run_service(const char *place, char **wanted)
{
	struct aws_settings *settings = NULL;
	struct http_shared *http = NULL;
	struct problem problem = {0};
	int status = 1;

	if (http_global_init() < 0 ||
		aws_settings_resolve(&(struct aws_options){0}, &settings, &problem) < 0 ||
		http_shared_new(&(struct http_options){0}, &http) < 0)
		fprintf(stderr, "cannot begin: %s\n", problem.text);
	else if (strncmp(place, "s3://", 5) == 0)
		status = run_s3(settings, http, place, wanted);
	else
		status = run_table(settings, http, strchr(place, ':') + 1,
			strncmp(place, "batches:", 8) == 0, wanted);
	http_shared_free(http);
	aws_settings_free(settings);
	return status;
}

static int run_both_sqlite(char **wanted)
{
	scratch_make();
	int status = run_sqlite(":memory:", wanted) | run_sqlite("marks.db", wanted);
	scratch_remove();
	return status;
}

int main(int argc, char **argv)
{
	static char *all[] = {NULL};
	char **wanted = argc > 2 ? argv + 2 : all;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return run_both_sqlite(all);
	if (strncmp(argv[1], "sqlite:", 7) == 0)
		return run_sqlite(argv[1] + 7, wanted);
	if (strncmp(argv[1], "dynamodb:", 9) == 0 || strncmp(argv[1], "batches:", 8) == 0 ||
		strncmp(argv[1], "s3://", 5) == 0)
		return run_service(argv[1], wanted);
	fprintf(stderr, "usage: store_conformance [sqlite:PATH | dynamodb:TABLE | batches:TABLE | "
			"s3://BUCKET/PREFIX [CASE]...]\n");
	return 2;
}
