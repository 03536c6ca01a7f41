#include "denials.h"
#include "base/checksum.h"
#include "story.h"
#include "tasks.h"
#include "world.h"
#include <string.h>

#define NS_PER_S 1000000000ULL

enum denied { NO_KEYS, ALL_KEYS, SOME_KEYS };

static struct {
	enum denied denied;
	uint64_t salt; /* chooses the keys of SOME_KEYS */
} policy;

void denials_begin(void)
{
	policy.denied = NO_KEYS;
}

void denials_calm(void)
{
	policy.denied = NO_KEYS;
}

bool denials_refuse(const struct wire_request *request)
{
	const bool is_s3 = !wire_header(request, "x-amz-target");
	const bool writes = *request->method == 'P'; /* PUT, and POST of an upload in parts */
	if (!is_s3 || !writes || policy.denied == NO_KEYS)
		return false;
	return policy.denied == ALL_KEYS ||
	       (fnv_add(policy.salt, request->path, strlen(request->path)) >> 7) % 2;
}

void denials_impose(struct chance *chance)
{
	static const uint64_t lengths_s[] = {60, 1200, 7200};
	const uint64_t length_s = chance_between(chance, 5, lengths_s[chance_below(chance, 3)]);
	if (policy.denied != NO_KEYS)
		return;
	policy.denied = chance_hits(chance, 300) ? ALL_KEYS : SOME_KEYS;
	policy.salt = chance_next(chance);
	story_fault("a policy denies writes to %s for %llu s",
		policy.denied == ALL_KEYS ? "all keys" : "some keys", (unsigned long long)length_s);
	task_sleep_until(world_now_ns() + length_s * NS_PER_S);
	if (policy.denied != NO_KEYS)
		story("the policy is removed");
	policy.denied = NO_KEYS;
}
