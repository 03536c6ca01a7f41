#include "base/quote.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int lock_error(struct s3once_lock_error *ret, int r, const char *format, ...)
{
	if (!ret)
		return r;
	va_list ap;
	*ret = (struct s3once_lock_error){0};
	va_start(ap, format);
	vsnprintf(ret->text, sizeof ret->text, format, ap);
	va_end(ap);
	return r;
}

int lock_failed(struct s3once_lock_error *ret, int r, const struct problem *problem)
{
	const bool has_other_keys = strstr(problem->text, "does not match the schema");
	lock_error(ret, r, "%s%s", problem->text,
		has_other_keys ? ": the table's keys are not those of this dialect, or have other "
				 "names: say which it has"
			       : "");
	if (ret) {
		snprintf(ret->code, sizeof ret->code, "%s", problem->code);
		snprintf(ret->request_id, sizeof ret->request_id, "%s", problem->request_id);
	}
	return r;
}

int lock_held(struct s3once_lock_error *ret, int r, const struct lock_row *row)
{
	const char *owner = *row->owner ? row->owner : "someone who gives no name";
	lock_error(ret, r, "held by %s%s%s", quote(owner).text,
		row->state == ROW_UNREADABLE ? "; its row cannot be understood: " : "", row->why);
	if (ret)
		snprintf(ret->holder, sizeof ret->holder, "%s", owner);
	return r;
}

int lock_key_check(const struct s3once_locks *locks, const char *key, const char *sort,
	struct s3once_lock_error *ret)
{
	const bool has_sort = sort && *sort;
	if (!key || !*key || strlen(key) > LOCK_KEY_MAX)
		return lock_error(ret, -EINVAL, "a key has 1 to %d bytes", LOCK_KEY_MAX);
	if (has_sort && strlen(sort) > LOCK_KEY_MAX)
		return lock_error(ret, -EINVAL, "a sort key has at most %d bytes", LOCK_KEY_MAX);
	if (!utf8_valid(key, strlen(key)) || (has_sort && !utf8_valid(sort, strlen(sort))))
		return lock_error(ret, -EINVAL, "'%s': keys are UTF-8", quote(key).text);
	if (locks->is_sqlite && strchr(key, 1))
		return lock_error(
			ret, -EINVAL, "'%s': no byte 1 in the keys of a file", quote(key).text);
	if (!locks->is_sqlite &&
		strncmp(key, LOCK_COUNTER_PREFIX, strlen(LOCK_COUNTER_PREFIX)) == 0)
		return lock_error(ret, -EINVAL,
			"'%s': keys that begin with " LOCK_COUNTER_PREFIX
			" are those of token counters",
			quote(key).text);
	const bool takes_sort =
		locks->is_sqlite || (locks->table.sk_name && !locks->dialect->sk_is_slot);
	if (has_sort && !takes_sort)
		return lock_error(ret, -EINVAL, "the rows of this table have no sort key of locks");
	if (!has_sort && takes_sort && !locks->is_sqlite && (sort || !locks->dialect->sk_default))
		return lock_error(ret, -EINVAL, "a lock of this table needs a sort key");
	return 0;
}
