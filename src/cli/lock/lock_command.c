/* `s3once lock`: finds the command and reads its options. All commands but `lock run` are here.
 * acquire, renew and release hold a lock from one process to the next by a handle. status and list
 * show locks, and break frees one. init makes a table.
 *
 * Each command is a function, with one or two calls of include/s3once/lock.h, and a struct
 * lock_command with its options and texts. */
#include "base/clock.h"
#include "cli/child.h"
#include "cli/lock/lock_use.h"
#include "cli/options/values.h"
#include <errno.h>
#include <string.h>

#define HANDLE_MAX  3200 /* enough according to s3once_lock_handle() */
#define TAGS_MAX    50   /* the most tags of a table in DynamoDB */
#define FIELD(name) offsetof(struct lock_use, name)

/* Prints the handle of a lock that is held. */
static void print_held(const struct lock_use *use, struct s3once_lock *lock)
{
	char handle[HANDLE_MAX];
	s3once_lock_handle(lock, handle, sizeof handle);
	if (!use->frame->json) {
		output_result(&use->frame->output, handle);
		return;
	}
	lock_print(use, json_set(json_event("held"), BYTES("key", s3once_lock_key(lock)),
				BYTES("handle", handle), BYTES("owner", s3once_lock_owner(lock)),
				NUMBER("token", s3once_lock_token(lock)),
				NUMBER("slot", s3once_lock_slot(lock)),
				NUMBER("remaining_ms", s3once_lock_remaining_ms(lock))));
}

/* Prints an event about this key; nothing without --json. */
static void print_event(const struct lock_use *use, const char *event, const char *key)
{
	if (use->frame->json)
		lock_print(use, json_set(json_event(event), BYTES("key", key)));
}

/* The functions below are the `use` of a struct lock_command, and return as documented there. None
 * of them frees a struct s3once_lock: s3once_locks_free() does, and releases no lock. */
static int acquire_lock(struct lock_use *use)
{
	struct s3once_lock *lock;
	const int r = s3once_lock_acquire(use->locks, &use->request, &lock, &use->error);
	if (r)
		return r;
	print_held(use, lock);
	if (!output_has_failed(&use->frame->output))
		return 0;
	log_error("lock acquire: the handle cannot be printed: the lock is released again");
	s3once_lock_release(lock, NULL);
	use->code = S3ONCE_EXIT_SETUP;
	return 0; /* the library returned no error, and the exit code is use->code */
}

/* Renews the lock of the handle, and prints the handle to use from now on. */
static int renew_lock(struct lock_use *use)
{
	const uint64_t ms = use->for_ms; /* 0: --for was not given */
	struct s3once_lock *lock;
	int r = -ESTALE;
	/* -ESTALE of a renewal: another process may have renewed the lock by this handle at the
	 * same time. Then the handle is still good, and it is resumed and renewed again. The fourth
	 * -ESTALE is final. */
	for (int tries = 0; tries < 4 && r == -ESTALE; tries++) {
		r = s3once_lock_resume(use->locks, use->operands[0], &lock, &use->error);
		if (r) /* -ESTALE, if the lock was lost */
			return r;
		r = ms ? s3once_lock_ensure(lock, ms, &use->error)
		       : s3once_lock_heartbeat(lock, &use->error);
	}
	if (!r)
		print_held(use, lock);
	return r;
}

static int release_lock(struct lock_use *use)
{
	struct s3once_lock *lock;
	int r = s3once_lock_resume(use->locks, use->operands[0], &lock, &use->error);
	if (!r)
		r = s3once_lock_release(lock, &use->error);
	if (!r)
		print_event(use, "released", s3once_lock_key(lock));
	return r;
}

static const struct lock_command acquire_command = {
	.command.name = "lock acquire",
	.description = "acquire a lock and keep it after this command",
	.command.operands = "KEY",
	.command.about =
		"Waits for the lock and prints a handle, for lock renew and lock release in any\n"
		"process or on any host. The lock is held for --lease: nothing else renews it.\n",
	.command.examples = "  export S3ONCE_LOCKS=dynamodb:locks\n"
			    "  handle=$(s3once lock acquire --lease 10m deploy) && ./deploy.sh\n"
			    "  s3once lock release \"$handle\"\n\n"
			    "Exit codes: 0 held; 2 usage; 3 service; 4 held by another.\n",
	.command.groups = (const struct option_group[]){{"Lock", lock_wait_options},
		{NULL, lock_key_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {1, 1},
	.needs = "lease",
	.why = "how long it is to be held: nothing renews it but lock renew",
	.use = acquire_lock,
};

static const struct option renew_options[] = {
	VALUE("for", DURATION, offsetof(struct lock_use, for_ms), "DUR",
		"at least this long from now; at most 21h [the lease it\nwas acquired with]",
		.min = 1, .max = 21 * 3600 * 1000), /* the most of s3once_lock_ensure() */
	{NULL},
};

static const struct lock_command renew_command = {
	.command.name = "lock renew",
	.description = "hold a lock for longer, by its handle",
	.command.operands = "HANDLE",
	.command.about =
		"Renews the lease of a lock from lock acquire. Prints the handle to use from now\n"
		"on. The earlier handle stays valid, and renews with its own lease.\n",
	.command.examples = "  s3once lock renew \"$handle\"\n\n"
			    "Exit codes: 0 renewed; 2 usage; 3 service; 5 lost, or released.\n",
	.command.groups = (const struct option_group[]){{"Lock", renew_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {1, 1},
	.must_exist = true,
	.use = renew_lock,
};

static const struct lock_command release_command = {
	.command.name = "lock release",
	.description = "release a lock, by its handle",
	.command.operands = "HANDLE",
	.command.about = "Releases a lock from lock acquire.\n",
	.command.examples =
		"  s3once lock release \"$handle\"\n\n"
		"Exit codes: 0 released; 2 usage; 3 service; 5 it was lost, or released before.\n",
	.command.groups = (const struct option_group[]){LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {1, 1},
	.must_exist = true,
	.use = release_lock,
};

/* A command that prints rows, and the number of held ones so far. */
struct view {
	const struct lock_use *use;
	unsigned held;
};

/* Prints a row as an event, with its data in base64. */
static void print_json(const struct lock_use *use, const struct s3once_lock_info *info)
{
	json_t *attributes = json_object();
	struct text data = TEXT(SIZE_MAX);
	text_add_base64(&data, info->data, info->data_bytes);
	for (size_t i = 0; i < info->n_attributes; i++)
		json_set_bytes(attributes, info->attributes[i].name, info->attributes[i].value);
	lock_print(use,
		json_set(json_event("lock"), BYTES("key", info->key),
			BYTES("sort_key", info->sort_key), BOOLEAN("held", info->held),
			BYTES("owner", info->owner), BYTES("version", info->version),
			NUMBER("lease_ms", info->lease_ms),
			NUMBER("unchanged_ms", info->unchanged_ms), NUMBER("token", info->token),
			NUMBER("expires", info->expires_s), BOOLEAN("understood", info->understood),
			BYTES("why", info->why), NODE("attributes", attributes),
			BYTES("data", info->data ? text_string(&data) : NULL)));
	text_clear(&data);
}

/* Adds the lease of a held row, whether it has run out, and the time at which it expires. */
static void add_lease(struct text *line, const struct s3once_lock_info *info)
{
	char time[21];
	if (info->lease_ms) {
		text_add(line, ", lease ");
		value_show_duration(line, info->lease_ms);
	}
	if (info->lease_ms && info->unchanged_ms >= info->lease_ms) {
		/* In whole seconds, and from two minutes on in whole minutes. */
		const uint64_t unit_ms = info->unchanged_ms < 120000 ? 1000 : 60000;
		text_add(line, ", not renewed for ");
		value_show_duration(line, info->unchanged_ms / unit_ms * unit_ms);
		text_add(line, ": the next one takes it over");
	}
	if (info->expires_s && info->expires_s <= CLOCK_LAST_S) {
		clock_format_iso(info->expires_s, time);
		text_addf(line, ", expires %s", time);
	} else if (info->expires_s) { /* later than any date that can be written */
		text_addf(line, ", expires %lld", (long long)info->expires_s);
	}
}

/* Prints a row for people: "KEY: held by OWNER", or "free", and further details. */
static void print_line(const struct lock_use *use, const struct s3once_lock_info *info)
{
	struct text line = TEXT(1000);
	if (info->held)
		add_lease(&line, info);
	if (!info->understood)
		text_addf(&line, ", not understood (%s)", info->why);
	if (info->held && *info->version)
		text_addf(&line, ", version %s", quote(info->version).text);
	output_resultf(&use->frame->output, "%s%s%s: %s%s%s", escaped(info->key).text,
		*info->sort_key ? " " : "", escaped(info->sort_key).text,
		info->held ? "held by " : "free",
		!info->held    ? ""
		: *info->owner ? quote(info->owner).text
			       : "someone without a name",
		text_string(&line));
	text_clear(&line);
}

/* Prints a row and counts it if it is held: an s3once_lock_visitor, which goes on by returning 0.
 */
static int show_lock(void *arg, const struct s3once_lock_info *info)
{
	struct view *view = arg;
	view->held += info->held != 0;
	(view->use->frame->json ? print_json : print_line)(view->use, info);
	return 0;
}

/* Prints the row of a slot. The row of slot N > 0 has the key "KEY#N", or for dlm the sort key "N".
 * A slot without a row is free. */
static int show_slot(struct lock_use *use, unsigned slot, struct view *view)
{
	const bool is_dlm = use->client.dialect == S3ONCE_LOCK_DLM;
	const bool is_in_key = slot && !is_dlm, is_in_sort_key = slot && is_dlm;
	/* A KEY too long for the buffer is cut, but is still longer than any key may be. So the
	 * library refuses it, and it is never taken for another key. */
	char key[1100], number[16];
	snprintf(number, sizeof number, "%u", slot);
	snprintf(key, sizeof key, "%s%s%s", use->operands[0], is_in_key ? "#" : "",
		is_in_key ? number : "");
	const char *sort_key = is_in_sort_key ? number : use->request.sort_key;
	const int r = s3once_lock_get(use->locks, key, sort_key, show_lock, view, &use->error);
	if (r != -ENOENT)
		return r;
	const struct s3once_lock_info absent = {.key = key,
		.sort_key = sort_key ? sort_key : "",
		.owner = "",
		.version = "",
		.understood = 1,
		.why = ""};
	return show_lock(view, &absent);
}

/* Prints the row of each slot. */
static int show_slots(struct lock_use *use)
{
	struct view view = {.use = use};
	const unsigned slots = use->request.slots ? use->request.slots : 1;
	int r = 0;
	for (unsigned slot = 0; !r && slot < slots; slot++)
		r = show_slot(use, slot, &view);
	use->code = view.held == slots ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
	return r;
}

static int list_locks(struct lock_use *use)
{
	struct view view = {.use = use};
	return s3once_lock_list(use->locks, use->prefix, show_lock, &view, &use->error);
}

static int break_lock(struct lock_use *use)
{
	const char *key = use->operands[0];
	const int r = s3once_lock_break(
		use->locks, key, use->request.sort_key, use->if_version, &use->error);
	if (r && r != -ENOENT)
		return r;
	/* A lock that its holder has released meanwhile is as free as a broken one. */
	if (r)
		log_warning("lock break: %s", use->error.text);
	print_event(use, r ? "free" : "broken", key);
	return 0;
}

static const struct option status_options[] = {
	VALUE("slots", NUMBER, FIELD(request.slots), "N",
		"the --slots of its users; prints a line for each slot [1]", .min = 1, .max = 1000),
	{NULL},
};

static const struct lock_command status_command = {
	.command.name = "lock status",
	.description = "show the holder of a lock",
	.command.operands = "KEY",
	.command.about =
		"Prints the holder of a lock, and the version of its row. Changes nothing. For a\n"
		"lock with several slots, give the same --slots: otherwise only slot 0 is read.\n",
	.command.examples = "  s3once lock status nightly\n\n"
			    "Exit codes: 0 free, or a slot is; 2 usage; 3 service; 4 held.\n",
	.command.groups = (const struct option_group[]){{"Lock", status_options},
		{NULL, lock_key_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {1, 1},
	.read_only = true,
	.use = show_slots,
};

static const struct option list_options[] = {
	VALUE("prefix", STRING, FIELD(prefix), "TEXT",
		"list only locks whose keys begin with TEXT"),
	{NULL},
};

static const struct lock_command list_command = {
	.command.name = "lock list",
	.description = "list all locks of a place",
	.command.operands = "",
	.command.about =
		"Lists the rows of all locks, held or not, by reading the whole table. In S3,\n"
		"this takes one request for each lock whose key begins with --prefix.\n",
	.command.examples = "  s3once lock list --locks dynamodb:locks --prefix deploy/\n\n"
			    "Exit codes: 0 listed; 2 usage; 3 service.\n",
	.command.groups = (const struct option_group[]){{"Lock", list_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.read_only = true,
	.use = list_locks,
};

static const struct option break_options[] = {
	VALUE("if-version", STRING, FIELD(if_version), "VERSION",
		"the row's version, as lock status shows it; required"),
	{NULL},
};

static const struct lock_command break_command = {
	.command.name = "lock break",
	.description = "take a lock away from its holder",
	.removes = true,
	.command.operands = "KEY",
	.command.about =
		"Frees a lock whose holder is known to be gone, if its row still has the given\n"
		"version. A live holder notices with its next heartbeat. The key of slot N, from\n"
		"1 on, is KEY#N; for dlm, --sort-key N is the slot.\n",
	.command.examples = "  s3once lock break --if-version 5f0c.81 nightly\n\n"
			    "Exit codes: 0 free; 2 usage; 3 service; 4 the version differs.\n",
	.command.groups = (const struct option_group[]){{"Lock", break_options},
		{NULL, lock_key_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {1, 1},
	.needs = "if-version",
	.why = "which holder is meant: lock status shows its version",
	.must_exist = true,
	.use = break_lock,
};

/* Splits each operand NAME=VALUE in place into two elements of *ret_tags: NAME, VALUE, NAME, VALUE,
 * and so on. Returns false after an error that was reported. */
static bool read_tags(char **operands, const char **ret_tags)
{
	for (int i = 0; operands[i]; i++) {
		char *name = operands[i], *equals = strchr(name, '=');
		if (!equals || equals == name) {
			log_error(
				"lock init: '%s' is not a tag (NAME=VALUE): name the table or the "
				"bucket by --locks",
				quote(name).text);
			return false;
		}
		*equals = '\0';
		ret_tags[2 * i] = name;
		ret_tags[2 * i + 1] = equals + 1;
	}
	return true;
}

/* Makes the table. The tags are checked first, since opening the client makes the SQLite file. */
static int init_locks(struct lock_use *use)
{
	/* It ends in a NULL. There are at most TAGS_MAX operands. */
	const char *tags[2 * TAGS_MAX + 1] = {NULL}, *place = use->client.place;
	int created = 0;
	if (!read_tags(use->operands, tags))
		return S3ONCE_EXIT_USAGE;
	const struct s3once_locks_table table = {.read_units = use->read_units,
		.write_units = use->write_units,
		.ttl_name = use->ttl_name,
		.tags = tags};
	int code = lock_open(use);
	if (!code)
		code = lock_report_result(
			use, s3once_locks_init(use->locks, &table, &created, &use->error));
	s3once_locks_free(use->locks);
	if (code)
		return code;
	if (*use->error.text) /* a remark, such as that the server has no time to live */
		log_warning("lock init: %s", use->error.text);
	if (use->frame->json)
		lock_print(use, json_set(json_event("ready"), BOOLEAN("created", created)));
	else
		output_resultf(&use->frame->output, "%s %s",
			place ? quote(place).text : "the file of this user's locks",
			created ? "was created and is ready" : "is ready");
	return 0;
}

static const struct option init_options[] = {
	VALUE("read-units", NUMBER, FIELD(read_units), "N",
		"provisioned capacity [on demand; 1 if only\n--write-units is given]", .min = 1,
		.max = 1000000),
	VALUE("write-units", NUMBER, FIELD(write_units), "N",
		"provisioned capacity [on demand; 1 if only\n--read-units is given]", .min = 1,
		.max = 1000000),
	VALUE("ttl", STRING, FIELD(ttl_name), "NAME",
		"turn time to live on for this attribute\n(python: expiry_time; not for go) [off]"),
	{NULL},
};

static const struct lock_command init_command = {
	.command.name = "lock init",
	.description = "create a table for locks, or test a bucket",
	.command.operands = "[TAG=VALUE...]",
	.command.about =
		"Creates a DynamoDB table with the keys of the dialect, unless it exists, and\n"
		"waits until it can be used. Tests whether a bucket honours conditional writes;\n"
		"otherwise, the first lock does. Safe to run again. A file needs no init.\n",
	.command.examples = "  s3once lock init --locks dynamodb:locks team=storage\n\n"
			    "Exit codes: 0 ready; 2 usage; 3 service.\n",
	.command.groups = (const struct option_group[]){{"Lock", init_options}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {0, TAGS_MAX},
	.run = init_locks,
};

static const struct lock_command *const commands[] = {&lock_run_command, &acquire_command,
	&renew_command, &release_command, &status_command, &list_command, &break_command,
	&init_command};
/* NAME_AT: the name of each command is "lock NAME". */
enum { COMMANDS = sizeof commands / sizeof(void *), NAME_AT = 5 };

static void print_usage(FILE *stream)
{
	fprintf(stream, "Usage: s3once lock COMMAND [OPTIONS] ...\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-8s %s\n", commands[i]->command.name + NAME_AT,
			commands[i]->description);
	fprintf(stream,
		"\n"
		"  s3once lock COMMAND --help   the options of a command\n\n"
		"Example: s3once lock run --locks dynamodb:locks nightly -- backup --all\n");
}

/* Completes the options of the client, which the table of options has set in part. */
static void complete_client(struct s3once_locks_options *client, const struct lock_command *which,
	const struct aws_options *aws)
{
	if (!client->place)
		client->place = getenv("S3ONCE_LOCKS");
	if (client->place && !*client->place)
		client->place = NULL; /* the locks are in the file of this user */
	/* Heartbeats are for `lock run`, which holds its lock for as long as it runs. `lock init`
	 * also has a `run`, but holds no lock. */
	client->manual = !which->run;
	client->read_only = which->read_only;
	client->must_exist = which->must_exist;
	client->observations = ""; /* observations of others' locks are kept in this user's state */
	client->endpoint_url = aws->endpoint_url;
	client->region = aws->region;
	client->profile = aws->profile;
	client->ca_bundle = aws->ca_bundle;
}

/* Reads the words of a command, of which argv[0] is the first, and runs it. Returns the exit code.
 */
static int run_lock_command(const struct lock_command *which, int argc, char **argv)
{
	struct lock_use use = {.request.wait_ms = UINT64_MAX,
		.operands = argv,
		.is_run = which == &lock_run_command,
		.command_status = -1};
	struct command_frame frame = {
		.command = &which->command, .values = &use, .has_own_output = use.is_run};
	use.frame = &frame;
	log_set_level(LOG_NOTE);
	if (!frame_begin(&frame, argc, argv))
		return lock_exit_status(&use, frame_end(&frame));
	/* frame_begin() has moved the operands to the beginning of argv, which use.operands is.
	 * Every argv has room for a NULL at its end. */
	argv[frame.n_operands] = NULL;
	use.request.key = argv[0];
	complete_client(&use.client, which, &frame.access.aws);
	if (which->needs && !options_set_in(&frame.parsed, which->needs)) {
		problem_set(&frame.problem, "say with --%s %s", which->needs, which->why);
	} else if (which->run) {
		frame.code = which->run(&use);
	} else {
		frame.code = lock_open(&use);
		if (!frame.code) { /* the client is open */
			const int r = which->use(&use);
			frame.code = r ? lock_report_result(&use, r) : use.code;
		}
		s3once_locks_free(use.locks);
	}
	const int code = frame_end(&frame);
	/* A command that failed explains more than lost output does. */
	return use.command_status > 0 ? use.command_status : lock_exit_status(&use, code);
}

int lock_main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return S3ONCE_EXIT_USAGE;
	}
	const char *names[COMMANDS]; /* the commands that a message may propose */
	size_t n = 0;
	for (int i = 0; i < COMMANDS; i++) {
		const char *name = commands[i]->command.name + NAME_AT;
		if (strcmp(argv[1], name) == 0)
			return run_lock_command(commands[i], argc - 1, argv + 1);
		if (!commands[i]->removes)
			names[n++] = name;
	}
	if (strcmp(argv[1], "child") == 0) /* internal: only child_start() runs it */
		return child_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
		return command_unknown("lock ", argv[1], names, n);
	print_usage(stdout);
	return S3ONCE_EXIT_OK;
}
