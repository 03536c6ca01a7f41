/* Whether an object is found under the key that it was stored under. Some servers cut or decode
 * keys with characters that mean something in a URL, and answer as if nothing had happened. */
#include "base/quote.h"
#include "cli/doctor/doctor.h"
#include "upload/body/proof.h"
#include <stdio.h>

/* What a key ends in: characters that have to be encoded, and what a server that decodes twice or
 * splits the key makes of it. */
static const char *const ends[] = {
	"#a", "?a", "%23a", "+a", " a", "&a=b;c", ":@,!$'()*", "\xc3\xa9"};
#define ENDS (sizeof ends / sizeof *ends)

struct named {
	const char *key;
	char content[64];
	struct sums sums;
};

static enum outcome put(struct doctor_bucket *bucket, unsigned number, struct named *ret,
	struct problem *ret_problem)
{
	struct s3_object object;
	ret->key = doctor_key(bucket, ends[number]);
	snprintf(ret->content, sizeof ret->content, "name %u of s3once doctor\n", number);
	const struct doctor_probe probe = {.key = ret->key,
		.content = ret->content,
		.is_new = true,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) | DIGEST_MD5};
	return doctor_put(bucket->conn, bucket, &probe, &ret->sums, &object, ret_problem);
}

/* All are put before the first is looked for, so that one that took the place of another shows. */
void doctor_names(struct doctor_bucket *bucket)
{
	static const char what[] = "names";
	struct doctor *doctor = bucket->doctor;
	struct named names[ENDS];
	struct problem problem = {0};
	struct text lost = TEXT(500);
	enum outcome o = OUTCOME_OK;
	for (unsigned i = 0; o == OUTCOME_OK && i < ENDS; i++)
		o = put(bucket, i, &names[i], &problem);
	for (unsigned i = 0; o == OUTCOME_OK && i < ENDS; i++) {
		const struct s3_target target = {.key = names[i].key};
		struct s3_object seen = {0};
		o = s3_head_object(bucket->conn, &target, &doctor->limits, &seen, &problem);
		if (o == OUTCOME_ABSENT ||
			(o == OUTCOME_OK && proof_whole(&names[i].sums, &seen, true) == PROOF_NO)) {
			text_addf(&lost, "%s'%s'", lost.len ? ", " : "", quote(ends[i]).text);
			o = OUTCOME_OK;
		}
	}
	if (lost.len)
		doctor_find(doctor, DOCTOR_FAILURE, what,
			"the server answered that objects whose keys end in %s were stored, but "
			"they are not there: files whose keys have such characters cannot be kept "
			"here",
			text_string(&lost));
	else if (o == OUTCOME_OK)
		doctor_find(doctor, DOCTOR_OK, what,
			"objects are found under their keys, with characters that have to be encoded too");
	else
		doctor_refused(doctor, DOCTOR_WARNING, what,
			"s3:GetObject to find objects with unusual characters in their keys", o,
			&problem);
	text_clear(&lost);
}
