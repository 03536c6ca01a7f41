/* The words of aws, rclone, rsync, s5cmd and s3cmd that s3once does not have, with an answer for
 * each. No answer names an option that removes anything, so that a habit from another tool cannot
 * lead to a loss here. */
#include "cli/other_tools.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/options/values.h"
#include <string.h>
#include <sys/stat.h>

#define NEVER_DELETES    "s3once never deletes in S3"
#define REMOVES_HERE     "s3once push --help removal lists the options that remove local files"
#define WHOLE_FOLDERS    "a folder is uploaded with everything below it"
#define SHOWS_PROGRESS   "progress is shown only on a terminal, unless TERM is dumb or -q is given"
#define NEVER_OVERWRITES "existing objects are not overwritten, except as --if-changed allows"
#define FINDS_CONCURRENCY                                                                          \
	"a run finds the best number of concurrent requests; --concurrency limits it"
#define BY_SIZE_AND_TIME                                                                           \
	"files are compared by size and time; if only the time differs, by their content"
#define DRY_RUN   "the option is --dry-run, or -n"
#define TAKES_NUL "--files-from also reads names that end with NUL bytes, without an option"
#define HEADERS   "the option is --header, as in --header 'Cache-Control: max-age=3600'"
#define FILTERS   "the options are --exclude, --include and --exclude-from"

const struct option_elsewhere other_tools_options[] = {
	{"0", TAKES_NUL},
	{"P", SHOWS_PROGRESS},
	{"R", WHOLE_FOLDERS},
	{"bucket", "it is the relation of the bucket to the marks; name the bucket as "
		   "s3://BUCKET[/PREFIX]"},
	{"cache-control", HEADERS},
	{"checkers", FINDS_CONCURRENCY},
	{"checksum", "this one names the checksum that S3 verifies; --compare-content compares "
		     "files by their content"},
	{"content-disposition", HEADERS},
	{"content-encoding", HEADERS},
	{"content-language", HEADERS},
	{"debug", "-vvv prints requests, too"},
	{"del", NEVER_DELETES},
	{"delete", NEVER_DELETES},
	{"delete-before", NEVER_DELETES},
	{"delete-during", NEVER_DELETES},
	{"delete-excluded", NEVER_DELETES},
	{"delete-removed", NEVER_DELETES},
	{"dry_run", DRY_RUN},
	{"dryrun", DRY_RUN},
	{"expected-bucket-owner", "the option is --header 'x-amz-expected-bucket-owner: ACCOUNT'"},
	{"expires", HEADERS},
	{"filter", FILTERS},
	{"follow-symlinks", "the option is --follow"},
	{"from0", TAKES_NUL},
	{"ignore-existing", NEVER_OVERWRITES},
	{"include-from", FILTERS},
	{"jobs", FINDS_CONCURRENCY},
	{"no-clobber", NEVER_OVERWRITES},
	{"no-follow-symlinks", "symbolic links are skipped, unless --follow is given"},
	{"no-overwrite", NEVER_OVERWRITES},
	{"no-progress", SHOWS_PROGRESS},
	{"no-sign-request", "each request is signed, so that credentials are needed; s3once doctor "
			    "checks them"},
	{"null", TAKES_NUL},
	{"numworkers", FINDS_CONCURRENCY},
	{"only-show-errors", "-q prints only errors and warnings"},
	{"progress", SHOWS_PROGRESS},
	{"r", WHOLE_FOLDERS},
	{"recursive", WHOLE_FOLDERS},
	{"remove-source-files", REMOVES_HERE},
	{"size-only", BY_SIZE_AND_TIME},
	{"skip-existing", NEVER_OVERWRITES},
	{"transfers", FINDS_CONCURRENCY},
	{"u", NEVER_OVERWRITES},
	{"update", NEVER_OVERWRITES},
	{NULL},
};

/* The meaning of the two operands of another tool's command. */
enum other_kind {
	OTHER_ANSWERED, /* push does not do it; there is only an answer */
	OTHER_INTO,     /* it copies the first one into the second one, which is a prefix */
	OTHER_TO,       /* as OTHER_INTO, but a file gets the second one as its key */
};

#define PUSH         "files are uploaded by s3once push SOURCE... s3://BUCKET[/PREFIX]"
#define ONLY_UPLOADS "s3once copies only from this host to S3: use aws s3 cp or rclone copyto"
#define PUSH_PIPE    "s3once push - s3://BUCKET/KEY uploads its standard input"
#define STATUS       "s3once status s3://BUCKET[/PREFIX] shows what was uploaded"

static const struct {
	const char *word;
	enum other_kind kind;
	const char *answer;
} commands[] = {
	{"backup", OTHER_INTO, PUSH},
	{"copy", OTHER_INTO, PUSH},
	{"copyto", OTHER_TO, PUSH},
	{"cp", OTHER_TO, PUSH},
	{"del", OTHER_ANSWERED, NEVER_DELETES},
	{"delete", OTHER_ANSWERED, NEVER_DELETES},
	{"download", OTHER_ANSWERED, NO_DOWNLOADS},
	{"du", OTHER_ANSWERED,
		"s3once status --depth 1 s3://BUCKET[/PREFIX] shows a sum for each folder"},
	{"get", OTHER_ANSWERED, NO_DOWNLOADS},
	{"ls", OTHER_ANSWERED, STATUS},
	{"mirror", OTHER_INTO, PUSH},
	{"move", OTHER_ANSWERED, PUSH ", and stay on this host"},
	{"mv", OTHER_ANSWERED, PUSH ", and stay on this host"},
	{"pipe", OTHER_ANSWERED, PUSH_PIPE},
	{"put", OTHER_TO, PUSH},
	{"rcat", OTHER_ANSWERED, PUSH_PIPE},
	{"restore", OTHER_ANSWERED, NO_DOWNLOADS},
	{"rm", OTHER_ANSWERED, NEVER_DELETES},
	{"sync", OTHER_INTO, PUSH},
	{"upload", OTHER_TO, PUSH},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Adds a word as a shell reads it. Returns false if the word cannot be shown as it is. */
static bool add_shell_word(struct text *t, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/.,:=@%+_-";
	if (!*word || strcmp(quote(word).text, word) != 0 || strchr(word, '\''))
		return false;
	const bool is_plain = strspn(word, plain) == strlen(word);
	text_addf(t, is_plain ? " %s" : " '%s'", word);
	return true;
}

/* Adds the push that does the same as a copy to s3://. Returns false if there is none. */
static bool add_push(struct text *t, enum other_kind kind, const char *source, const char *target)
{
	char bucket[sizeof "s3://" + ARN_MAX];
	struct s3_url url;
	struct stat st;
	if (url_is_s3(source) || url_parse(target, &url, NULL) < 0)
		return false;
	const bool is_stdin = strcmp(source, "-") == 0;
	const bool is_file = is_stdin || (stat(source, &st) == 0 && !S_ISDIR(st.st_mode));
	const size_t n = strlen(url.key);
	const bool may_be_key = n && url.key[n - 1] != '/';
	/* Whether the target is the key of the object. Otherwise it is a prefix. */
	const bool is_key = may_be_key && is_file && kind == OTHER_TO;
	if (is_stdin && !is_key) /* push needs a key for standard input */
		return false;
	text_add(t, "s3once push");
	/* `push -` takes the key from the URL, while the key of a file is the value of --as. */
	if (is_stdin || !is_key)
		return add_shell_word(t, source) && add_shell_word(t, target);
	snprintf(bucket, sizeof bucket, "s3://%s", url.bucket);
	text_add(t, " --as");
	return add_shell_word(t, url.key) && add_shell_word(t, source) && add_shell_word(t, bucket);
}

/* The words behind another tool's command. An option is known by its dash alone, so that the value
 * of one counts as an operand. */
struct other_words {
	const char *operands[2]; /* the first two */
	int n;                   /* all operands */
	bool has_options;
};

static struct other_words split_words(int argc, char *const *argv)
{
	struct other_words words = {.n = 0};
	for (int i = 1; i < argc; i++) {
		const bool is_option = argv[i][0] == '-' && argv[i][1]; /* "-" is standard input */
		if (is_option) {
			words.has_options = true;
			continue;
		}
		if (words.n < 2)
			words.operands[words.n] = argv[i];
		words.n++;
	}
	return words;
}

bool other_tools_command(int argc, char *const *argv)
{
	int i = 0;
	if (argc > 1 && strcmp(argv[0], "s3") == 0) { /* aws s3 cp */
		argc--;
		argv++;
	}
	while (i < COMMANDS && strcmp(commands[i].word, argv[0]) != 0)
		i++;
	if (i == COMMANDS)
		return false;
	const struct other_words words = split_words(argc, argv);
	const char *source = words.operands[0], *target = words.operands[1];
	struct text line = TEXT(4096);
	const bool copies = commands[i].kind != OTHER_ANSWERED && words.n == 2;
	const char *answer = commands[i].answer;
	if (copies && url_is_s3(source))
		answer = url_is_s3(target) ? ONLY_UPLOADS : NO_DOWNLOADS;
	if (copies && add_push(&line, commands[i].kind, source, target))
		log_error("there is no command %s: type %s%s", argv[0], text_string(&line),
			words.has_options ? "; its options are in s3once push --help" : "");
	else
		log_error("there is no command %s: %s", argv[0], answer);
	text_clear(&line);
	return true;
}
