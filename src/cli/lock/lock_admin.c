/* `s3once lock status`, `list` and `break`. */
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/lock/lock_command.h"
#include "cli/options/values.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view {
	bool json;
	unsigned held;
};

static void set_data(json_t *object, const struct s3once_lock_info *info)
{
	char *text = info->data ? malloc(4 * ((info->data_bytes + 2) / 3) + 1) : NULL;
	if (text)
		base64_encode(info->data, info->data_bytes, text);
	json_object_set_new(object, "data", text ? json_string(text) : json_null());
	free(text);
}

static void print_json(const struct s3once_lock_info *info)
{
	json_t *object = json_event("lock");
	json_set_bytes(object, "key", info->key);
	json_set_bytes(object, "sort_key", info->sort_key);
	json_object_set_new(object, "held", json_boolean(info->held));
	json_set_bytes(object, "owner", info->owner);
	json_set_bytes(object, "version", info->version);
	json_set_number(object, "lease_ms", info->lease_ms);
	json_set_number(object, "unchanged_ms", info->unchanged_ms);
	json_set_number(object, "token", info->token);
	json_set_number(object, "expires", (uint64_t)info->expires_s);
	json_object_set_new(object, "understood", json_boolean(info->understood));
	json_set_bytes(object, "why", info->why);
	json_t *attributes = json_object();
	for (size_t i = 0; i < info->n_attributes; i++)
		json_set_bytes(attributes, info->attributes[i].name, info->attributes[i].value);
	json_object_set_new(object, "attributes", attributes);
	set_data(object, info);
	lock_print(object);
}

static void print_line(const struct s3once_lock_info *info)
{
	struct text line = TEXT(8192);
	text_add_escaped_string(&line, info->key);
	if (*info->sort_key) {
		text_add_char(&line, ' ');
		text_add_escaped_string(&line, info->sort_key);
	}
	text_add(&line, info->held ? ": held by " : ": free");
	if (info->held)
		text_add(&line, *info->owner ? quote(info->owner).text : "someone without a name");
	if (info->held && info->lease_ms) {
		text_add(&line, ", lease ");
		value_show_duration(&line, info->lease_ms);
	}
	if (info->held && info->expires_s) {
		char time[21];
		clock_format_iso(info->expires_s, time);
		if (info->expires_s <= CLOCK_LAST_S)
			text_addf(&line, ", expires %s", time);
		else
			text_addf(&line, ", expires %lld", (long long)info->expires_s);
	}
	if (!info->understood)
		text_addf(&line, ", not understood (%s)", info->why);
	if (info->held && *info->version)
		text_addf(&line, ", version %s", quote(info->version).text);
	printf("%s\n", text_string(&line));
	text_clear(&line);
}

static int show_lock(void *arg, const struct s3once_lock_info *info)
{
	struct view *view = arg;
	view->held += info->held != 0;
	(view->json ? print_json : print_line)(info);
	return 0;
}

static int show_slot(struct s3once_locks *locks, const struct lock_options *options,
	const char *key, unsigned slot, struct view *view, struct s3once_lock_error *error)
{
	char name[1100], number[16];
	const char *sort = options->sort_key;
	const bool is_dlm = options->dialect == S3ONCE_LOCK_DLM;
	snprintf(number, sizeof number, "%u", slot);
	snprintf(name, sizeof name, "%s%s%s", key, slot && !is_dlm ? "#" : "",
		slot && !is_dlm ? number : "");
	if (slot && is_dlm)
		sort = number;
	int r = s3once_lock_get(locks, name, sort, show_lock, view, error);
	if (r != -ENOENT)
		return r;
	const struct s3once_lock_info absent = {.key = name,
		.sort_key = sort ? sort : "",
		.owner = "",
		.version = "",
		.understood = 1,
		.why = ""};
	return show_lock(view, &absent);
}

static int status(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error = {0};
	struct view view = {.json = options->json};
	const unsigned slots = options->slots ? options->slots : 1;
	int r = 0;
	(void)n;
	int code = lock_open(options, 1, &locks);
	for (unsigned slot = 0; !code && slot < slots; slot++) {
		r = show_slot(locks, options, operands[0], slot, &view, &error);
		code = lock_exit(options, r, &error);
	}
	if (!code && view.held == slots)
		code = S3ONCE_EXIT_HELD;
	s3once_locks_free(locks);
	return code;
}

static int list_locks(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error = {0};
	struct view view = {.json = options->json};
	(void)n;
	(void)operands;
	int code = lock_open(options, 1, &locks);
	if (!code)
		code = lock_exit(options,
			s3once_lock_list(locks, options->prefix, show_lock, &view, &error), &error);
	s3once_locks_free(locks);
	return code;
}

static int break_lock(const struct lock_options *options, int n, char **operands)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error = {0};
	(void)n;
	if (!options->if_version) {
		log_error(
			"lock break: say with --if-version which holder is meant: lock status shows "
			"its version");
		return S3ONCE_EXIT_USAGE;
	}
	int code = lock_open(options, 1, &locks);
	if (!code)
		code = lock_exit(options,
			s3once_lock_break(
				locks, operands[0], options->sort_key, options->if_version, &error),
			&error);
	if (!code && options->json) {
		json_t *object = json_event("broken");
		json_set_bytes(object, "key", operands[0]);
		lock_print(object);
	}
	s3once_locks_free(locks);
	return code;
}

#define FIELD(name) offsetof(struct lock_options, name)

static const struct option status_options[] = {
	{.name = "slots",
		.type = OPTION_NUMBER,
		.offset = FIELD(slots),
		.argument = "N",
		.help = "as its users say; a line for each slot [1]",
		.least = 1,
		.most = 1000},
	{NULL},
};

const struct lock_command lock_status_command = {
	.name = "status",
	.description = "who holds a lock",
	.operands = "KEY",
	.about =
		"Says who holds a lock, and the version of its row. Changes nothing. A lock that is\n"
		"used with --slots is looked at with the same --slots: without, only slot 0 is.\n",
	.examples =
		"  s3once lock status nightly\n"
		"\n"
		"Exit codes: 0 free, or a slot is; 2 usage; 3 service; 4 held. More: man s3once-lock\n",
	.groups = {status_options, lock_key_options},
	.least = 1,
	.most = 1,
	.run = status,
};

static const struct option list_options[] = {
	{.name = "prefix",
		.type = OPTION_STRING,
		.offset = FIELD(prefix),
		.argument = "TEXT",
		.help = "only locks whose key begins so"},
	{NULL},
};

const struct lock_command lock_list_command = {
	.name = "list",
	.description = "all locks of a table or file",
	.operands = "",
	.about = "Lists the rows of all locks, held or not, by reading the whole table.\n",
	.examples = "  s3once lock list --locks dynamodb:locks --prefix deploy/\n"
		    "\n"
		    "Exit codes: 0 listed; 2 usage; 3 service. More: man s3once-lock\n",
	.groups = {list_options},
	.run = list_locks,
};

static const struct option break_options[] = {
	{.name = "if-version",
		.type = OPTION_STRING,
		.offset = FIELD(if_version),
		.argument = "VERSION",
		.help = "of the holder that is meant, as lock status shows it;\nrequired"},
	{NULL},
};

const struct lock_command lock_break_command = {
	.name = "break",
	.description = "take a lock away from its holder",
	.operands = "KEY",
	.about =
		"Frees a lock whose holder is known to be gone, if its row still has the version\n"
		"given. A holder that lives notices with its next heartbeat. The key of slot N from 1\n"
		"on is KEY#N; for dlm --sort-key N says which slot.\n",
	.examples =
		"  s3once lock break --if-version 5f0c.81 nightly\n"
		"\n"
		"Exit codes: 0 free; 2 usage; 3 service; 4 the version differs. More: man s3once-lock\n",
	.groups = {break_options, lock_key_options},
	.least = 1,
	.most = 1,
	.run = break_lock,
};
