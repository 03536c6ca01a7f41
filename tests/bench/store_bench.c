/* How fast an SQLite mark store is: store_bench PATH [CONNECTIONS [SECONDS]]. Each connection
 * claims the keys of a window in order (put if absent) and marks each done (update if the claim is
 * ours), as push does.
 * Then all of it is read back by queries. */
#include "base/clock.h"
#include "base/random.h"
#include "store/store.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct store *store;
static uint64_t stop_ns;
static atomic_ulong done_count, failures;

static struct item claim_item(const char *claim)
{
	struct item item = {0};

	item_set_string(&item, "state", "claimed");
	item_set_string(&item, "session", "0123456789abcdef0123456789abcdef");
	item_set_string(&item, "claim", claim);
	item_set_string(&item, "source", "host.example.org:/var/log/application");
	item_set_number(&item, "tries", 1);
	item_set_number(&item, "at", 1795000000);
	return item;
}

static bool claim_and_done(struct store_conn *conn, struct item_key key, const char *claim)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	const struct condition ours[] = {
		{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"},
		{"session", CONDITION_EQUALS, VALUE_STRING, "0123456789abcdef0123456789abcdef"},
		{"claim", CONDITION_EQUALS, VALUE_STRING, claim},
	};
	const struct change changes[] = {
		{"state", VALUE_STRING, "done"},
		{"size", VALUE_NUMBER, "123456"},
		{"mtime", VALUE_NUMBER, "1795000000123456789"},
		{"etag", VALUE_STRING, "0123456789abcdef0123456789abcdef"},
		{"sum", VALUE_STRING, "crc32c:AAAAAA=="},
		{"upload", VALUE_STRING, NULL},
	};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 30 * NS_PER_S};
	struct item item = claim_item(claim), present = {0};
	struct problem problem = {0};

	enum outcome o = conn->store->ops->write(conn, key,
		&(struct item_write){.item = &item, .conditions = &absent, .n_conditions = 1},
		&limits, &present, &problem);
	if (o == OUTCOME_OK)
		o = conn->store->ops->write(conn, key,
			&(struct item_write){.changes = changes,
				.n_changes = 6,
				.conditions = ours,
				.n_conditions = 3},
			&limits, &present, &problem);
	if (o != OUTCOME_OK)
		fprintf(stderr, "%s: %s\n", outcome_name(o), problem.text);
	item_clear(&item);
	item_clear(&present);
	return o == OUTCOME_OK;
}

static void *work(void *arg)
{
	struct store_conn *conn;
	char claim[ID_CHARS + 1], window[ID_CHARS + 1], sk[128];
	unsigned i = 0;

	if (store_conn_new(store, &conn) < 0)
		return NULL;
	random_id(window);
	while (clock_boot_ns() < stop_ns) {
		random_id(claim);
		snprintf(
			sk, sizeof sk, "logs/2026/11/21/%.8s/application-%06u.log.gz", window, i++);
		if (!claim_and_done(conn, (struct item_key){"aws/bucket#0", sk}, claim)) {
			atomic_fetch_add(&failures, 1);
			break;
		}
		atomic_fetch_add(&done_count, 1);
	}
	store_conn_free(conn);
	return NULL;
}

struct reading {
	unsigned long count;
	char last[128];
};

static int count_item(void *arg, const struct found_item *found)
{
	struct reading *reading = arg;

	reading->count++;
	snprintf(reading->last, sizeof reading->last, "%s", found->key.sk);
	return 0;
}

static void read_all(void)
{
	struct reading reading = {0};
	struct store_range range = {.pk = "aws/bucket#0", .from = reading.last, .after = true};
	const struct call_limits limits = {0};
	struct store_conn *conn;
	bool more = true;
	uint64_t begun_ns = clock_boot_ns();

	if (store_conn_new(store, &conn) < 0)
		return;
	while (more && store->ops->query(conn, &range, &limits, count_item, &reading, &more,
			       NULL) == OUTCOME_OK)
		;
	double s = (double)(clock_boot_ns() - begun_ns) / NS_PER_S;
	printf("query: %lu marks, %.0f/s\n", reading.count, (double)reading.count / s);
	store_conn_free(conn);
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
	uint64_t seconds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
	pthread_t *threads = calloc(n ? n : 1, sizeof *threads);
	struct problem problem = {0};

	if (argc < 2 || !threads ||
		store_sqlite_open(argv[1], STORE_WRITTEN, &store, &problem) < 0) {
		fprintf(stderr, "store_bench PATH [CONNECTIONS [SECONDS]]: %s\n", problem.text);
		return 2;
	}
	uint64_t begun_ns = clock_boot_ns();
	stop_ns = begun_ns + seconds * NS_PER_S;
	for (size_t i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	double s = (double)(clock_boot_ns() - begun_ns) / NS_PER_S;
	printf("%zu connections: %.0f claim + done/s\n", n, (double)atomic_load(&done_count) / s);
	read_all();
	store_close(store);
	free(threads);
	return atomic_load(&failures) != 0;
}
