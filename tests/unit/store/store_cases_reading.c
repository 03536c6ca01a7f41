#include "base/clock.h"
#include "base/random.h"
#include "store/item_pack.h"
#include "store_cases.h"
#include <stdlib.h>

#define SEEN_MAX 3000

/* The items that a visitor received, in order. */
struct seen {
	const struct scene *scene;
	char *keys[SEEN_MAX];
	size_t n;
};

static int see(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct seen *seen = arg;

	CHECK_STRING(pk, seen->scene->pk);
	CHECK_STRING(item_string(item, "name"), sk);
	if (!CHECK(seen->n < SEEN_MAX))
		return -1;
	seen->keys[seen->n++] = strdup(sk);
	return 0;
}

static void forget(struct seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		free(seen->keys[i]);
	seen->n = 0;
}

static void put_named(struct scene *scene, const char *sk)
{
	struct item item = item_of("name", sk), present = {0};

	CHECK_OUTCOME(put_if(scene, sk, &item, NULL, 0, &present), OUTCOME_OK);
	item_clear(&item);
}

static enum outcome query(
	struct scene *scene, const struct store_range *range, struct seen *seen, bool *ret_more)
{
	struct problem problem = {0};
	struct store_range own = *range;

	own.pk = scene->pk;
	own.consistent = true;
	seen->scene = scene;
	struct item_visitor visitor = {see, seen};
	return scene->store->ops->query(
		scene->conn, &own, &no_limits, visit_unpacked, &visitor, ret_more, &problem);
}

static char long_key[901];

static const char *hard_keys[] = {"-", " ", "a b", "it's", "say \"x\"", "back\\slash", "tab\tnew\n",
	"\x01\x7f", "100%25", "..", "../up", "*[]?;#&=+~", "e\xcc\x81", "\xc3\xa9",
	"\xf0\x9f\x97\x84", "pk", "#n0", ":v0", long_key};

static void hard_names(struct scene *scene)
{
	struct seen seen = {0};
	bool more = true;

	memset(long_key, 'k', sizeof long_key - 1);
	for (size_t i = 0; i < sizeof hard_keys / sizeof *hard_keys; i++)
		put_named(scene, hard_keys[i]);
	for (size_t i = 0; i < sizeof hard_keys / sizeof *hard_keys; i++) {
		struct item got = {0};
		CHECK_OUTCOME(get_item(scene, hard_keys[i], &got), OUTCOME_OK);
		CHECK_STRING(item_string(&got, "sk"), hard_keys[i]);
		CHECK_STRING(item_string(&got, "name"), hard_keys[i]);
		item_clear(&got);
	}
	CHECK_OUTCOME(query(scene, &(struct store_range){0}, &seen, &more), OUTCOME_OK);
	CHECK_INT(seen.n, sizeof hard_keys / sizeof *hard_keys);
	CHECK(!more);
	forget(&seen);
}

/* In the order of their bytes. */
static const char *const ordered[] = {"A", "a", "a-b", "a.txt", "a/b", "a0", "ab", "e",
	"e\xcc\x81"
	"a",
	"z", "\xc3\xa9",
	"\xc3\xa9"
	"a",
	"\xef\xbf\xbd", "\xf0\x90\x80\x80"};
#define ORDERED (sizeof ordered / sizeof *ordered)

static void put_ordered(struct scene *scene)
{
	for (size_t i = 0; i < ORDERED; i++)
		put_named(scene, ordered[i * 5 % ORDERED]);
}

static void order_of_bytes(struct scene *scene)
{
	struct seen seen = {0};
	bool more = true;

	put_ordered(scene);
	CHECK_OUTCOME(query(scene, &(struct store_range){0}, &seen, &more), OUTCOME_OK);
	CHECK_INT(seen.n, ORDERED);
	for (size_t i = 0; i < seen.n && i < ORDERED; i++)
		CHECK_STRING(seen.keys[i], ordered[i]);
	CHECK(!more);
	forget(&seen);
}

static const struct {
	struct store_range range;
	const char *want; /* joined by spaces */
	bool more;
} ranges[] = {
	{{.from = "a", .to = "a/b"}, "a a-b a.txt a/b", false},
	{{.from = "a", .after = true, .to = "a/b"}, "a-b a.txt a/b", false},
	{{.from = "a", .to = "a/b", .max_items = 2}, "a a-b", true},
	{{.from = "a-b", .after = true, .to = "a/b", .max_items = 1}, "a.txt", true},
	{{.from = "a-c", .after = true, .to = "z", .max_items = 1}, "a.txt", true},
	{{.from = "a.a", .to = "a/a"}, "a.txt", false},
	{{.from = "a.a", .after = true, .to = "a/a"}, "a.txt", false},
	{{.to = "a"}, "A a", false},
	{{.from = "\xef\xbf\xbf"}, "\xf0\x90\x80\x80", false},
	{{.from = "\xf0\x90\x80\x80", .after = true}, "", false},
	{{.from = "b", .to = "c"}, "", false},
	{{.from = "a/b", .to = "a/b"}, "a/b", false},
	{{.max_items = 1}, "A", true},
};

static void every_range(struct scene *scene)
{
	put_ordered(scene);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		struct seen seen = {0};
		char joined[200] = "";
		bool more = true;

		CHECK_OUTCOME(query(scene, &ranges[i].range, &seen, &more), OUTCOME_OK);
		for (size_t k = 0; k < seen.n; k++) {
			strcat(joined, k ? " " : "");
			strcat(joined, seen.keys[k]);
		}
		/* A full page may say that there is more where there is not; never the reverse. */
		if (!CHECK_STRING(joined, ranges[i].want) || !CHECK(more || !ranges[i].more))
			fprintf(stderr, "\tin range %zu\n", i);
		forget(&seen);
	}
}

static void own_partition(struct scene *scene)
{
	struct scene other = *scene;
	struct seen seen = {0};
	bool more = true;

	put_named(scene, "mine");
	strcat(other.pk, "0");
	CHECK_OUTCOME(query(&other, &(struct store_range){0}, &seen, &more), OUTCOME_OK);
	CHECK(seen.n == 0 && !more);
	put_named(&other, "other");
	CHECK_OUTCOME(query(scene, &(struct store_range){0}, &seen, &more), OUTCOME_OK);
	CHECK(seen.n == 1 && !more);
	CHECK_STRING(seen.keys[0], "mine");
	forget(&seen);
}

#define PAGED 700

static void put_large(struct scene *scene, size_t i)
{
	char sk[16], filler[4001];
	struct item item = {0}, present = {0};

	snprintf(sk, sizeof sk, "%05zu", i);
	memset(filler, 'x', sizeof filler - 1);
	filler[sizeof filler - 1] = '\0';
	CHECK(!item_set_string(&item, "name", sk) && !item_set_string(&item, "filler", filler));
	CHECK_OUTCOME(put_absent(scene, sk, &item, &present), OUTCOME_OK);
	item_clear(&item);
}

static void pages(struct scene *scene)
{
	struct seen *seen = calloc(1, sizeof *seen);
	struct store_range range = {0};
	unsigned count = 0;
	bool more = true;

	for (size_t i = 0; i < PAGED; i++)
		put_large(scene, i * 11 % PAGED);
	while (more && count++ < 100) {
		size_t before = seen->n;
		if (!CHECK_OUTCOME(query(scene, &range, seen, &more), OUTCOME_OK))
			break;
		CHECK(seen->n > before || !more);
		range.from = seen->n ? seen->keys[seen->n - 1] : NULL;
		range.after = true;
	}
	CHECK(!more && count >= 3); /* of 1 MB at most */
	CHECK_INT(seen->n, PAGED);
	for (size_t i = 0; i < seen->n; i++)
		CHECK_INT(atol(seen->keys[i]), i);
	forget(seen);
	free(seen);
}

#define MANY 250

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every third is missing; no order is promised. */
static void get_many(struct scene *scene)
{
	static char names[MANY][16];
	static struct item_key keys[MANY];
	struct seen seen = {.scene = scene};
	struct problem problem = {0};
	size_t want = 0;
	struct item_visitor visitor = {see, &seen};

	for (size_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "%04zu", i);
		keys[i] = key_of(scene, names[i]);
		if (i % 3)
			put_named(scene, names[i]);
	}
	CHECK_OUTCOME(scene->store->ops->get_many(scene->conn, keys, MANY, &no_limits,
			      visit_unpacked, &visitor, &problem),
		OUTCOME_OK);
	qsort(seen.keys, seen.n, sizeof *seen.keys, by_bytes);
	for (size_t i = 0; i < MANY; i++)
		if (i % 3 && want < seen.n)
			CHECK_STRING(seen.keys[want++], names[i]);
	CHECK_INT(seen.n, MANY - (MANY + 2) / 3);
	forget(&seen);
	CHECK_OUTCOME(scene->store->ops->get_many(
			      scene->conn, keys, 0, &no_limits, visit_unpacked, &visitor, &problem),
		OUTCOME_OK);
	CHECK_INT(seen.n, 0);
}

static int refuse(void *arg, const struct found_item *found)
{
	(*(unsigned *)arg)++;
	return -1;
}

static void visitor_ends(struct scene *scene)
{
	unsigned visited = 0;
	struct problem problem = {0};
	struct item_key keys[] = {key_of(scene, "a"), key_of(scene, "b")};
	const struct store_range range = {.pk = scene->pk, .consistent = true};
	bool more;

	put_named(scene, "a");
	put_named(scene, "b");
	CHECK_OUTCOME(scene->store->ops->query(
			      scene->conn, &range, &no_limits, refuse, &visited, &more, &problem),
		OUTCOME_LOCAL);
	CHECK_INT(visited, 1);
	CHECK(*problem.text);
	problem = (struct problem){0};
	CHECK_OUTCOME(scene->store->ops->get_many(
			      scene->conn, keys, 2, &no_limits, refuse, &visited, &problem),
		OUTCOME_LOCAL);
	CHECK_INT(visited, 2);
	CHECK(*problem.text);
}

static unsigned long counted(const struct store *store)
{
	unsigned long all = 0, one;

	for (size_t i = 0; store->ops->kind(store, i, &one); i++)
		all += one;
	return all;
}

static void counts_and_time(struct scene *scene)
{
	struct item got = {0};
	unsigned long before = counted(scene->store);
	int64_t ours = clock_wall_s();

	CHECK_OUTCOME(get_item(scene, "none", &got), OUTCOME_ABSENT);
	CHECK_INT(counted(scene->store), before + 1);
	CHECK(llabs(store_time_s(scene->store) - ours) < 60);
}

const struct store_case reading_cases[] = {
	{"hard_names", hard_names},
	{"order_of_bytes", order_of_bytes},
	{"every_range", every_range},
	{"own_partition", own_partition},
	{"pages", pages},
	{"get_many", get_many},
	{"visitor_ends", visitor_ends},
	{"counts_and_time", counts_and_time},
	{0},
};
