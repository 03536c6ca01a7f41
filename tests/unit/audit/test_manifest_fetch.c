/* How manifests are found in the bucket, and which of them are trusted. The S3 server is a script.
 */
#include "audit.h"
#include "audit/manifest_fetch.h"
#include <openssl/evp.h>

#define RUN(day) "202611" day "T031500Z-0123456789abcdef0123456789abcdef"
#define KEY(day) "p/_s3once/runs/dt=2026-11-" day "/host=h/" RUN(day) ".jsonl.gz"

#define OBJECT(key) "<Contents><Key>" key "</Key><Size>3</Size></Contents>"
#define LISTING(objects)                                                                           \
	AUDIT_STEP("200", "",                                                                      \
		"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false"             \
		"</IsTruncated>" objects "</ListBucketResult>")

static struct manifest_place place_of(const struct audit *audit)
{
	return (struct manifest_place){.s3 = audit->s3_conn, .bucket = "b", .prefix = "p"};
}

static enum outcome note_key(void *arg, const char *key, struct problem *ret_problem)
{
	char *keys = arg;
	snprintf(keys + strlen(keys), 500, "%s ", key);
	return strstr(keys, "host=z") ? OUTCOME_LOCAL : OUTCOME_OK;
}

/* Signatures and other objects are no manifests, and the first day to list is in the request. */
static void test_list(void)
{
	static const struct {
		const char *since, *asked;
	} rows[] = {{NULL, "GET /b?encoding-type=url&list-type=2&prefix=p%2F_s3once%2Fruns%2F"},
		{"2026-11-22", "GET /b?encoding-type=url&list-type=2&prefix=p%2F_s3once%2Fruns%2F"
			       "&start-after=p%2F_s3once%2Fruns%2Fdt%3D2026-11-22"}};
	for (unsigned i = 0; i < 2; i++) {
		const struct script_step step = LISTING(OBJECT(KEY("22")) OBJECT(KEY("22") ".sig")
				OBJECT("p/_s3once/runs/dt=2026-11-23/x") OBJECT(KEY("24")));
		struct audit audit;
		char keys[1000] = "";
		if (!audit_begin(&audit, &step, 1))
			return;
		const struct manifest_place place = place_of(&audit);
		CHECK_INT(manifest_list(&place, rows[i].since, note_key, keys, &audit.problem),
			OUTCOME_OK);
		CHECK_STRING(keys, KEY("22") " " KEY("24") " ");
		audit_asked(&audit, "GET ");
		CHECK(script_is_to(&audit.aws.server.requests[0], rows[i].asked));
		audit_end(&audit);
	}
}

static void test_end_of_a_list(void)
{
	const struct script_step steps[] = {
		LISTING(OBJECT("p/_s3once/runs/dt=2026-11-22/host=z/" RUN("22") ".jsonl.gz") OBJECT(
			"p/_s3once/runs/dt=2026-11-23/host=z/" RUN("23") ".jsonl.gz")),
		AUDIT_ERROR("403", "AccessDenied"), AUDIT_ERROR("400", "Odd")};
	struct audit audit;
	char keys[1000] = "";
	if (!audit_begin(&audit, steps, 3))
		return;
	const struct manifest_place place = place_of(&audit);
	CHECK_INT(manifest_list(&place, NULL, note_key, keys, &audit.problem), OUTCOME_LOCAL);
	CHECK(!strstr(keys, "dt=2026-11-23"));
	CHECK_INT(manifest_list(&place, NULL, note_key, keys, &audit.problem), OUTCOME_DENIED);
	CHECK(strstr(audit.problem.text, "manifests are found by the bucket's listing, which is "
					 "refused; allow s3:ListBucket of the bucket"));
	CHECK(manifest_list(&place, NULL, note_key, keys, &audit.problem) != OUTCOME_OK);
	CHECK(strstr(audit.problem.text, "manifests are found by the bucket's listing"));
	audit_asked(&audit, "GET GET GET ");
	audit_end(&audit);
}

/* A manifest is named by its run, by its key or by its URL. */
static void test_find(void)
{
	static const struct {
		const char *given, *key, *asked; /* key NULL: there is none */
	} rows[] = {
		{KEY("22"), KEY("22"), ""},
		{"s3://b/" KEY("22"), KEY("22"), ""},
		{"s3://bb/" KEY("22"), NULL, ""},
		{"s3://c/" KEY("22"), NULL, ""},
		{KEY("22") ".sig", NULL, ""},
		{RUN("22"), KEY("22"), "GET "},
		{"20261122T031500Z-0123456789abcdef0123456789abcdee", NULL, "GET "},
		{"20261122T031500Z-0123456789abcdef", NULL, "GET "},
		{RUN("22") "0", NULL, "GET "},
		{"run", NULL, ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = LISTING(OBJECT(KEY("22")) OBJECT(
			"p/_s3once/runs/dt=2026-11-22/host=z/" RUN("22") ".jsonl.gz"));
		struct audit audit;
		struct text key = TEXT(1000);
		if (!audit_begin(&audit, &step, 1))
			return;
		const struct manifest_place place = place_of(&audit);
		bool good = CHECK_INT(manifest_find(&place, rows[i].given, &key, &audit.problem),
			rows[i].key ? OUTCOME_OK : OUTCOME_ABSENT);
		good &= CHECK_STRING(text_string(&key), rows[i].key ? rows[i].key : "");
		if (!rows[i].key)
			CHECK(strstr(audit.problem.text, "there is no manifest of a run "));
		good &= audit_asked(&audit, rows[i].asked);
		if (*rows[i].asked)
			CHECK(strstr(audit.aws.server.requests[0].head,
				"prefix=p%2F_s3once%2Fruns%2Fdt%3D2026-11-22%2F"));
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].given);
		text_clear(&key);
		audit_end(&audit);
	}
}

#define CONTENT(etag, content)                                                                     \
	AUDIT_STEP("206", "Content-Length: 3\r\nETag: \"" etag "\"\r\n", content)
#define SIGNATURE_HEAD                                                                             \
	{                                                                                          \
		head, .close = true                                                                \
	}

/* A manifest is the one that was signed, and it has to be signed if a key is given. */
static void test_open(void)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"),
		 *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	const char *const name = KEY("22");
	struct text signature = TEXT(5000);
	struct digest digest;
	struct sums sums;
	struct problem problem;
	CHECK_INT(digest_init(&digest, DIGEST_SHA256), 0);
	digest_update(&digest, "abc", 3);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	CHECK(manifest_sign(
		key, &(struct signed_manifest){"b", name, &sums}, &signature, &problem));
	char head[300], body[5000];
	snprintf(head, sizeof head,
		"HTTP/1.1 200 X\r\nConnection: close\r\nETag: \"s\"\r\nContent-Length: %zu\r\n\r\n",
		signature.len);
	snprintf(body, sizeof body,
		"HTTP/1.1 206 X\r\nConnection: close\r\nETag: \"s\"\r\nContent-Length: %zu\r\n\r\n%s",
		signature.len, text_string(&signature));
	const struct {
		const char *what;
		EVP_PKEY *key;
		struct script_step steps[4];
		const char *asked, *problem; /* NULL: it is opened */
		bool is_wrong;
	} rows[] = {
		{"without a key", NULL, {AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc")},
			"HEAD GET ", NULL, false},
		{"signed", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"), SIGNATURE_HEAD,
				{body, .close = true}},
			"HEAD GET HEAD GET ", NULL, false},
		{"signed by another key", other,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"), SIGNATURE_HEAD,
				{body, .close = true}},
			"HEAD GET HEAD GET ", "cannot be trusted: its signature is not by this key",
			true},
		{"another content", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abd"), SIGNATURE_HEAD,
				{body, .close = true}},
			"HEAD GET HEAD GET ",
			"cannot be trusted: its signature is about other bytes", true},
		{"not signed", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"), AUDIT_ABSENT},
			"HEAD GET HEAD ",
			"cannot be trusted: it has no signature (" KEY("22") ".sig)", true},
		{"an empty signature", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"),
				AUDIT_HEAD("0", "s", "AAAAAA==")},
			"HEAD GET HEAD ", "cannot be trusted: its signature has a wrong size",
			true},
		{"a large signature", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"),
				AUDIT_HEAD("4097", "s", "AAAAAA==")},
			"HEAD GET HEAD ", "cannot be trusted: its signature has a wrong size",
			true},
		{"a signature that cannot be read", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"),
				AUDIT_STEP("403", "", "")},
			"HEAD GET HEAD ", "cannot be read", false},
		{"a signature that is shown, and cannot be read", key,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e", "abc"), SIGNATURE_HEAD,
				AUDIT_STEP("403", "", "")},
			"HEAD GET HEAD GET ", "cannot be read", false},
		{"absent, with a key", key, {AUDIT_ABSENT}, "HEAD ",
			"cannot be read: there is no such object", false},
		{"absent", NULL, {AUDIT_ABSENT}, "HEAD ", "cannot be read: there is no such object",
			false},
		{"replaced meanwhile", NULL,
			{AUDIT_HEAD("3", "e", "AAAAAA=="), CONTENT("e2", "abc")}, "HEAD GET ",
			"cannot be read: it was replaced while it was read", false},
	};
	const size_t descriptors = count_descriptors();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct audit audit;
		int fd = -1;
		bool is_wrong = !rows[i].is_wrong;
		char bytes[10] = "";
		if (!audit_begin(&audit, rows[i].steps, 4))
			return;
		const struct manifest_place place = place_of(&audit);
		const enum outcome o =
			manifest_open(&place, name, rows[i].key, &fd, &is_wrong, &audit.problem);
		bool good = CHECK_INT(o == OUTCOME_OK, !rows[i].problem) &&
			    CHECK_INT(is_wrong, rows[i].is_wrong) &&
			    CHECK_INT(fd >= 0, !rows[i].problem);
		if (rows[i].problem)
			good &= CHECK(strstr(audit.problem.text, rows[i].problem) != NULL);
		else
			good &= CHECK_INT(pread(fd, bytes, sizeof bytes, 0), 3) &&
				CHECK_STRING(bytes, "abc");
		good &= audit_asked(&audit, rows[i].asked);
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].what, audit.problem.text);
		if (fd >= 0)
			close(fd);
		audit_end(&audit);
	}
	CHECK_INT(count_descriptors(), descriptors);
	text_clear(&signature);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
}

int main(void)
{
	test_list();
	test_end_of_a_list();
	test_find();
	test_open();
	return check_result();
}
