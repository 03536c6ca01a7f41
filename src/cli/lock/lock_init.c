/* `s3once lock init`. */
#include "base/log.h"
#include "base/quote.h"
#include "cli/json.h"
#include "cli/lock/lock_command.h"
#include <stdio.h>
#include <string.h>

static int init(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error = {0};
	const char *tags[2 * 50 + 1] = {NULL};
	int created = 0;
	if (n > 50) {
		log_error("lock init: at most 50 tags");
		return S3ONCE_EXIT_USAGE;
	}
	for (int i = 0; i < n; i++) {
		char *equals = strchr(operands[i], '=');
		if (!equals || equals == operands[i]) {
			log_error("lock init: '%s': a tag is NAME=VALUE", quote(operands[i]).text);
			return S3ONCE_EXIT_USAGE;
		}
		*equals = 0;
		tags[2 * i] = operands[i];
		tags[2 * i + 1] = equals + 1;
	}
	const struct s3once_locks_table table = {.read_units = options->read_units,
		.write_units = options->write_units,
		.ttl_name = options->ttl_name,
		.tags = tags};
	int code = lock_open(options, 1, &locks);
	if (!code)
		code = lock_exit(
			options, s3once_locks_init(locks, &table, &created, &error), &error);
	if (!code && *error.text)
		log_warning("lock init: %s", error.text);
	if (!code && options->json) {
		json_t *object = json_event("ready");
		json_object_set_new(object, "created", json_boolean(created));
		lock_print(object);
	} else if (!code) {
		printf("%s %s\n",
			lock_place(options) ? quote(lock_place(options)).text
					    : "the file of this user's locks",
			created ? "was created and is ready" : "is ready");
	}
	s3once_locks_free(locks);
	return code;
}
#define FIELD(name) offsetof(struct lock_options, name)

static const struct option init_options[] = {
	{.name = "read-units",
		.type = OPTION_NUMBER,
		.offset = FIELD(read_units),
		.argument = "N",
		.help = "provisioned capacity [on demand; 1 if only\n--write-units is given]",
		.least = 1,
		.most = 1000000},
	{.name = "write-units",
		.type = OPTION_NUMBER,
		.offset = FIELD(write_units),
		.argument = "N",
		.help = "provisioned capacity [on demand; 1 if only\n--read-units is given]",
		.least = 1,
		.most = 1000000},
	{.name = "ttl",
		.type = OPTION_STRING,
		.offset = FIELD(ttl_name),
		.argument = "NAME",
		.help = "turn time to live on for this attribute\n(python: expiry_time; not for go) [off]"},
	{NULL},
};

const struct lock_command lock_init_command = {
	.name = "init",
	.description = "make a table for locks",
	.operands = "[TAG=VALUE...]",
	.about =
		"Makes a DynamoDB table with the keys of the dialect, unless it is there, and waits\n"
		"until it can be used. Safe to run again. A file needs no init.\n",
	.examples = "  s3once lock init --locks dynamodb:locks team=storage\n"
		    "\n"
		    "Exit codes: 0 ready; 2 usage; 3 service. More: man s3once-lock\n",
	.groups = {init_options},
	.most = 50,
	.run = init,
};
