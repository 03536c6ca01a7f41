/* Whether an object is found under the key that it was stored under. Some servers cut or decode
 * keys with characters that mean something in a URL, and answer as if nothing had happened. */
#include "base/quote.h"
#include "cli/doctor/doctor.h"
#include "marks/judge.h"
#include <stdio.h>
#include <string.h>

/* What a second key has behind the first one: characters that have to be encoded, and what a server
 * that decodes twice or splits the key makes of them. */
static const char *const ends[] = {
	"#a", "?a", "%23a", "+a", " a", "&a=b;c", ":@,!$'()*", "\xc3\xa9"};
#define ENDS (sizeof ends / sizeof *ends)

struct named {
	const char *key;
	char content[1400];
	struct sums sums;
};

/* Its content is its key. */
static enum outcome put(struct doctor_bucket *bucket, const char *key, struct named *ret,
	struct problem *ret_problem)
{
	struct s3_object object;
	ret->key = key;
	snprintf(ret->content, sizeof ret->content, "s3once doctor: %s\n", key);
	const struct doctor_probe probe = {.key = key,
		.content = ret->content,
		.is_new = true,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) | DIGEST_MD5};
	return doctor_put(bucket->conn, bucket, &probe, &ret->sums, &object, ret_problem);
}

static enum outcome look_for(struct doctor_bucket *bucket, const struct named *named,
	bool *ret_is_lost, struct problem *ret_problem)
{
	const struct s3_target target = {.key = named->key};
	struct s3_object seen = {0};
	const enum outcome o =
		s3_head_object(bucket->conn, &target, &bucket->doctor->limits, &seen, ret_problem);
	*ret_is_lost |= o == OUTCOME_ABSENT ||
			(o == OUTCOME_OK && proof_whole(&named->sums, &seen, true) == PROOF_NO);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

/* Two objects whose keys differ by this end are there, and neither took the place of the other. */
static enum outcome try_end(struct doctor_bucket *bucket, const char *end, bool *ret_is_lost,
	struct problem *ret_problem)
{
	struct named plain, unusual;
	char both[64];
	const char *key = doctor_key(bucket);
	snprintf(both, sizeof both, "%s%s", key + strlen(bucket->prefix), end);
	enum outcome o = put(bucket, key, &plain, ret_problem);
	if (o == OUTCOME_OK)
		o = put(bucket, doctor_key_of(bucket, both), &unusual, ret_problem);
	*ret_is_lost = o == OUTCOME_REFUSED;
	if (o == OUTCOME_OK)
		o = look_for(bucket, &plain, ret_is_lost, ret_problem);
	if (o == OUTCOME_OK)
		o = look_for(bucket, &unusual, ret_is_lost, ret_problem);
	return *ret_is_lost ? OUTCOME_OK : o;
}

void doctor_names(struct doctor_bucket *bucket)
{
	static const char what[] = "names";
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	struct text lost = TEXT(500);
	enum outcome o = OUTCOME_OK;
	for (unsigned i = 0; o == OUTCOME_OK && i < ENDS; i++) {
		bool is_lost;
		o = try_end(bucket, ends[i], &is_lost, &problem);
		if (is_lost)
			text_addf(&lost, "%s'%s'", lost.len ? ", " : "", quote(ends[i]).text);
	}
	if (lost.len)
		doctor_find(doctor, DOCTOR_FAILURE, what,
			"objects whose keys end in %s are not found under their keys, although the "
			"server answered that it stored them, or take the place of others: files "
			"whose keys have such characters cannot be kept here",
			text_string(&lost));
	else if (o == OUTCOME_OK)
		doctor_find(doctor, DOCTOR_OK, what,
			"objects are found under their keys, with characters that have to be "
			"encoded too");
	else
		doctor_refused(doctor, DOCTOR_WARNING, what,
			"s3:GetObject to find objects with unusual characters in their keys", o,
			&problem);
	text_clear(&lost);
}
