/* The cases of store_conformance: what every mark store has to do, whichever it is. */
#pragma once
#include "../check.h"
#include "store/store.h"

/* The environment of a case: an open store, a connection, and partitions of its own. */
struct scene {
	struct store *store;
	struct store_conn *conn;
	char pk[64]; /* fresh for each case */
};
struct store_case {
	const char *name;
	void (*run)(struct scene *scene);
};
/* Each ends with a row without name. */
extern const struct store_case condition_cases[], reading_cases[], thread_cases[];

struct item_key key_of(const struct scene *scene, const char *sk);

/* Short forms with zeroed results and no limits. A problem that is not expected is printed by
 * check_outcome. */
enum outcome put_if(struct scene *scene, const char *sk, const struct item *item,
	const struct condition *conditions, size_t n, struct item *ret_present);
enum outcome put_absent(
	struct scene *scene, const char *sk, const struct item *item, struct item *ret_present);
enum outcome get_item(struct scene *scene, const char *sk, struct item *ret);
/* An item of one string attribute; clear it. */
struct item item_of(const char *name, const char *value);

/* Whether two items have the same attributes, but for the keys. */
bool same_item(const struct item *a, const struct item *b);
bool check_outcome(enum outcome got, enum outcome want, const char *file, int line);
#define CHECK_OUTCOME(got, want) check_outcome((got), (want), __FILE__, __LINE__)
