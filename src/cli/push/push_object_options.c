/* The options of `s3once push` that say how an object is stored. */
#include "cli/push/push_options.h"

#define RUN(field) offsetof(struct push_options, run.field)
#define OWN(field) offsetof(struct push_options, field)

static const char *const payers[] = {"owner", "requester", NULL};

#define SETTING(setting_name, setting_argument, setting_help)                                      \
	{                                                                                          \
		.name = (setting_name), .type = OPTION_SETTING, .offset = OWN(settings),           \
		.argument = (setting_argument), .help = (setting_help)                             \
	}

const struct option push_object_options[] = {
	SETTING("storage-class", "CLASS", "STANDARD_IA, GLACIER, … or a class of the server's own"),
	SETTING("acl", "ACL", "private, public-read, bucket-owner-full-control, …"),
	SETTING("grant", "WHAT=TYPE=WHO",
		"grant read, readacl, writeacl or full to id=USER,\n"
		"uri=GROUP or emailaddress=ADDRESS; may be repeated"),
	SETTING("tag", "KEY=VALUE", "add a tag; may be repeated, up to ten times"),
	SETTING("metadata", "KEY=VALUE", "add user metadata; may be repeated"),
	SETTING("content-type", "TYPE", "such as text/plain; see also --media-types"),
	SETTING("content-encoding", "CODING",
		"such as gzip; with --compress the same as there, in\n"
		"place of the suffix"),
	SETTING("content-language", "TAG", "such as de"),
	SETTING("content-disposition", "TEXT", "such as attachment"),
	SETTING("cache-control", "TEXT", "such as max-age=3600"),
	SETTING("expires", "TIME", "such as 2030-12-31T23:59:59Z, UTC"),
	SETTING("website-redirect", "PLACE",
		"redirect requests to a website bucket to /KEY or a URL"),
	SETTING("sse", "KIND", "encrypt on the server: AES256, aws:kms or aws:kms:dsse"),
	SETTING("sse-kms-key-id", "ID", "use this KMS key"),
	SETTING("sse-kms-context", "JSON", "the encryption context of KMS, an object of strings"),
	SETTING("sse-bucket-key", "true|false",
		"use an S3 Bucket Key, which saves requests to KMS"),
	SETTING("sse-c-key-file", "FILE",
		"encrypt with the key in FILE (SSE-C): 32 bytes, or\n"
		"their base64"),
	SETTING("object-lock-mode", "MODE", "retain objects in GOVERNANCE or COMPLIANCE mode"),
	SETTING("object-lock-retain-until-date", "TIME", "retain objects until this time, UTC"),
	SETTING("object-lock-legal-hold", "ON|OFF", "place a legal hold on objects"),
	{.name = "compress",
		.type = OPTION_STRING,
		.offset = RUN(compress),
		.argument = "zstd|gzip[:LEVEL]",
		.help = "compress what is not compressed yet, and add .zst or\n"
			".gz to its key"},
	{.name = "media-types",
		.type = OPTION_STRING,
		.offset = RUN(media_types),
		.argument = "FILE",
		.help = "read content types by extension from FILE, such as\n"
			"/etc/mime.types"},
	{.name = "rules",
		.type = OPTION_STRING,
		.offset = RUN(rules_file),
		.argument = "FILE",
		.help = "read these options for files that match a pattern, as\n"
			"in rules.example; options given here take precedence"},
	{.name = "expected-bucket-owner",
		.type = OPTION_STRING,
		.offset = RUN(expected_bucket_owner),
		.argument = "ACCOUNT",
		.help = "fail if the bucket belongs to another account"},
	{.name = "request-payer",
		.type = OPTION_CHOICE,
		.offset = OWN(pays),
		.argument = "owner|requester",
		.help = "who pays for requests",
		.standard = "owner",
		.choices = payers},
	{NULL},
};
