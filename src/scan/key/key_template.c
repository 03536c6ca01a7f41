/* A template of keys. It is parsed once, with the command line, and source_key.c makes the key of
 * each file with it. Fields that are the same for all files become literals then, so that a key
 * depends only on the file's path, its time, and the id of its content. */
#include "scan/key/key_template.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/host_name.h"
#include "base/time_zone.h"
#include "scan/content/content.h"
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEMPLATE_BYTES_MAX 4096
/* The path of a log below a folder NAMESPACE_POD_UID/CONTAINER, as the kubelet makes them.
 * NAMESPACE, POD and UID have no underscores. The groups 2, 3 and 4 are the fields NAMESPACE, POD
 * and CONTAINER. */
#define POD_PATH "(^|/)([^_/]+)_([^_/]+)_[^_/]+/([^/]+)/[^/]+$"
/* The characters allowed after a % in {mtime:…}: the conversions of C99 that no locale changes, s
 * and %. */
#define CONVERSIONS "YmdHMSjyCGgVUWbBheaAuwIpFTDRzZs%"

enum key_field {
	LITERAL,
	PATH,
	DIR,
	NAME,
	STEM,
	EXT,
	FAMILY,
	NAMESPACE,
	POD,
	CONTAINER,
	HOST,
	FQDN,
	MTIME,
	ID,
	ENV
};

struct template_part {
	enum key_field field;
	char *text;   /* the text as it is, or the format of MTIME; owned */
	int id_chars; /* for ID */
};

struct key_template {
	struct template_part *parts;
	size_t n;
	const struct family_rules *families;
	bool names_families;
	struct time_zone *zone; /* NULL: UTC */
	regex_t pod_path;
};

/* Whether the template has this field. */
static bool has_field(const struct key_template *template, enum key_field field)
{
	for (size_t i = 0; i < template->n; i++)
		if (template->parts[i].field == field)
			return true;
	return false;
}

/* Sets the sentence about a format in which a % is followed by c, which is no conversion. Returns
 * -EINVAL. */
static int refuse_format(const char *format, unsigned char c, struct problem *ret_problem)
{
	const char other = (char)(islower(c) ? toupper(c) : tolower(c));
	const bool has_other = isalpha(c) && strchr(CONVERSIONS, other);
	char what[60] = "a % is followed by no conversion";
	if (has_other)
		snprintf(what, sizeof what, "there is no %%%c; did you mean %%%c?", c, other);
	else if (isalnum(c))
		snprintf(what, sizeof what, "there is no %%%c", c);
	return problem_error(ret_problem, -EINVAL, "{mtime:%s} of --key: %s%s", quote(format).text,
		what, has_other ? "" : "; the most common are %Y %m %d %H %M %S");
}

/* Checks that the format has a conversion other than %%, and only CONVERSIONS. Returns 0, or
 * -EINVAL with a sentence. */
static int check_format(const char *format, struct problem *ret_problem)
{
	bool has_conversion = false;
	for (const char *p = format; *p; p++) {
		if (*p != '%')
			continue;
		if (!*++p || !strchr(CONVERSIONS, *p))
			return refuse_format(format, (unsigned char)*p, ret_problem);
		has_conversion |= *p != '%';
	}
	if (has_conversion)
		return 0;
	return problem_error(ret_problem, -EINVAL,
		"{mtime:…} of --key needs a format as of strftime(3), such as {mtime:%%Y/%%m/%%d}");
}

/* Adds the time in this format. %s, the seconds since the epoch, is written without strftime(),
 * which would take the fields of `tm` for those of the process's own time zone. */
static void add_formatted(const char *format, const struct tm *tm, int64_t wall_s, struct text *t)
{
	for (const char *p = format; *p; p++) {
		if (*p != '%') {
			text_add_char(t, *p);
		} else if (*++p == 's') {
			text_addf(t, "%lld", (long long)wall_s);
		} else {
			char made[64];
			const char conversion[] = {'%', *p, '\0'};
			text_add_bytes(t, made,
				strftime_l(made, sizeof made, conversion, tm, clock_c_locale()));
		}
	}
}

static const struct {
	const char *name, *example;
	enum { NO_ARGUMENT, MAY_HAVE_ARGUMENT, NEEDS_ARGUMENT } argument;
	bool is_of_file;
} fields[] = {
	[PATH] = {"path", "{path}", NO_ARGUMENT, true},
	[DIR] = {"dir", "{dir}", NO_ARGUMENT, true},
	[NAME] = {"name", "{name}", NO_ARGUMENT, true},
	[STEM] = {"stem", "{stem}", NO_ARGUMENT, true},
	[EXT] = {"ext", "{ext}", NO_ARGUMENT, true},
	[FAMILY] = {"family", "{family}", NO_ARGUMENT, true},
	[NAMESPACE] = {"namespace", "{namespace}", NO_ARGUMENT, true},
	[POD] = {"pod", "{pod}", NO_ARGUMENT, true},
	[CONTAINER] = {"container", "{container}", NO_ARGUMENT, true},
	[HOST] = {"host", "{host}", NO_ARGUMENT, false},
	[FQDN] = {"fqdn", "{fqdn}", NO_ARGUMENT, false},
	[MTIME] = {"mtime", "{mtime:%Y/%m/%d}", NEEDS_ARGUMENT, true},
	[ID] = {"id", "{id:8}", MAY_HAVE_ARGUMENT, true},
	[ENV] = {"env", "{env:NAME}", NEEDS_ARGUMENT, false},
};
#define FIELDS (sizeof fields / sizeof *fields)

/* Adds a part whose text is the first n bytes of `text`. Returns 0 or -ENOMEM. */
static int add_part(struct key_template *template, enum key_field field, const char *text, size_t n)
{
	struct template_part *parts =
		realloc(template->parts, (template->n + 1) * sizeof *template->parts);
	if (!parts)
		return -ENOMEM;
	template->parts = parts;
	parts[template->n] = (struct template_part){.field = field, .text = strndup(text, n)};
	if (!parts[template->n].text)
		return -ENOMEM;
	template->n++;
	return 0;
}

/* Sets the sentence about an unknown field. Returns -EINVAL. */
static int refuse_field(const char *name, struct problem *ret_problem)
{
	const char *names[FIELDS - 1]; /* the names of all but LITERAL, which has none */
	struct text all = TEXT(512);
	for (size_t i = 1; i < FIELDS; i++) {
		names[i - 1] = fields[i].name;
		text_add(&all, i == 1 ? "" : i + 1 < FIELDS ? ", " : " and ");
		text_add(&all, fields[i].example);
	}
	const char *nearest = nearest_name(name, names, FIELDS - 1);
	if (strcmp(name, "now") == 0 || strcmp(name, "date") == 0 || strcmp(name, "time") == 0)
		problem_set(ret_problem,
			"--key has no field {%s}, because the next run would make another key of "
			"the same file; {mtime:%%Y/%%m/%%d} is the file's own time",
			name);
	else if (nearest)
		problem_set(ret_problem, "--key has no field {%s}; did you mean {%s}?",
			quote(name).text, nearest);
	else
		problem_set(ret_problem, "--key has no field {%s}; there are %s", quote(name).text,
			text_string(&all));
	text_clear(&all);
	return -EINVAL;
}

/* Returns the index of the field with this name, or FIELDS if there is none. */
static size_t find_field(const char *name)
{
	size_t field = 1; /* 0 is LITERAL, which has no name */
	while (field < FIELDS && strcmp(fields[field].name, name) != 0)
		field++;
	return field;
}

/* Whether the field may be written with this argument; NULL: without one. */
static bool takes_argument(size_t field, const char *argument)
{
	if (!argument)
		return fields[field].argument != NEEDS_ARGUMENT;
	return *argument && fields[field].argument != NO_ARGUMENT;
}

/* Finds the text of a field that is the same for every file: the name of the host, which is written
 * to `host`, or a variable of the environment. For all other fields, *ret is the argument. Returns
 * 0, or -errno with a sentence. */
static int find_constant(size_t field, const char *argument, char host[static HOST_NAME_BYTES],
	const char **ret, struct problem *ret_problem)
{
	if (field == HOST || field == FQDN) {
		*ret = host;
		return field == HOST ? host_name_short(host, ret_problem)
				     : host_name_full(host, ret_problem);
	}
	*ret = argument;
	if (field != ENV)
		return 0;
	/* A variable has to be set: if it were missing in one job and set in another, one file
	 * would get two keys. */
	*ret = getenv(argument);
	if (*ret && **ret)
		return 0;
	return problem_error(ret_problem, -EINVAL,
		"{env:%s} of --key: this variable is not set, or is empty", quote(argument).text);
}

/* Reads the number of hex digits of an id; NULL: all. Returns 0, or -EINVAL with a sentence. */
static int read_id_chars(const char *argument, int *ret, struct problem *ret_problem)
{
	char *end = NULL;
	const long chars = argument ? strtol(argument, &end, 10) : CONTENT_ID_CHARS;
	if (argument && (*argument < '1' || *argument > '9' || *end || chars > CONTENT_ID_CHARS))
		return problem_error(ret_problem, -EINVAL,
			"{id:%s} of --key: an id has %d hex digits, and {id:8} is its first eight",
			quote(argument).text, CONTENT_ID_CHARS);
	*ret = (int)chars;
	return 0;
}

/* Adds the field that the n bytes between braces name: "name" or "name:argument". n is less than
 * TEMPLATE_BYTES_MAX. Returns 0 or -errno, with a sentence unless memory ran out. */
static int add_field(
	struct key_template *template, const char *s, size_t n, struct problem *ret_problem)
{
	char name[TEMPLATE_BYTES_MAX], host[HOST_NAME_BYTES];
	const char *text;
	memcpy(name, s, n);
	name[n] = '\0';
	char *colon = strchr(name, ':');
	if (colon)
		*colon = '\0';
	const char *argument = colon ? colon + 1 : NULL;
	const size_t field = find_field(name);
	if (field == FIELDS)
		return refuse_field(name, ret_problem);
	if (!takes_argument(field, argument))
		return problem_error(ret_problem, -EINVAL, "{%s} of --key: write it as %s",
			quote_bytes(s, n).text, fields[field].example);
	const char *argument_text = argument ? argument : "";
	int error = find_constant(field, argument_text, host, &text, ret_problem);
	if (!error)
		error = add_part(template, (enum key_field)field, text, strlen(text));
	if (error)
		return error;
	struct template_part *added = &template->parts[template->n - 1];
	if (field == MTIME)
		return check_format(argument_text, ret_problem);
	return field == ID ? read_id_chars(argument, &added->id_chars, ret_problem) : 0;
}

/* Cuts the template into literals and fields. "{{" and "}}" are braces in a literal. Returns 0 or
 * -errno, with a sentence unless memory ran out. */
static int read_parts(struct key_template *template, const char *text, struct problem *ret_problem)
{
	struct text literal = TEXT(TEMPLATE_BYTES_MAX);
	int error = 0;
	for (const char *p = text; !error;) {
		const bool is_brace = *p == '{' || *p == '}';
		const bool is_double_brace = is_brace && p[1] == *p;
		if (*p && (!is_brace || is_double_brace)) {
			text_add_char(&literal, *p);
			p += is_double_brace ? 2 : 1;
			continue;
		}
		error = literal.error;
		if (!error && literal.len)
			error = add_part(template, LITERAL, text_string(&literal), literal.len);
		text_reset(&literal);
		if (error || !*p)
			break;
		/* A field begins here, unless its brace has no counterpart. */
		const char *end = p + 1 + strcspn(p + 1, "{}");
		const bool is_field = *p == '{' && *end == '}';
		if (!is_field) {
			error = problem_error(ret_problem, -EINVAL,
				"the %c at character %zu of --key has no %c; write %c%c for a "
				"brace as it is",
				*p, (size_t)(p - text) + 1, *p == '{' ? '}' : '{', *p, *p);
			break;
		}
		error = add_field(template, p + 1, (size_t)(end - p - 1), ret_problem);
		p = end + 1;
	}
	text_clear(&literal);
	return error;
}

/* Refuses a template whose keys would all be wrong. Returns 0, or -EINVAL with a sentence. */
static int check_parts(const struct key_template *template, struct problem *ret_problem)
{
	bool is_of_file = false;
	for (size_t i = 0; i < template->n; i++) {
		const struct template_part *part = &template->parts[i];
		const bool begins_with_slash = part->field == LITERAL && *part->text == '/';
		is_of_file |= fields[part->field].is_of_file;
		const bool follows_dir = i && template->parts[i - 1].field == DIR;
		if (begins_with_slash && follows_dir)
			return problem_error(ret_problem, -EINVAL,
				"{dir} of --key ends in a slash already: leave out the one behind "
				"it");
		const bool has_two_slashes = part->field == LITERAL && strstr(part->text, "//");
		const bool is_first = i == 0;
		if ((begins_with_slash && is_first) || has_two_slashes)
			return problem_error(ret_problem, -EINVAL,
				"--key begins with a slash, or has two in a row: parts of keys are "
				"not empty");
	}
	if (is_of_file)
		return 0;
	/* {name} changes with each rotation, and --as is not for rotated logs. */
	if (template->names_families)
		return problem_error(ret_problem, -EINVAL,
			"--key has no field of the file, such as {family} or {id:8}, so that all "
			"files would have one key");
	return problem_error(ret_problem, -EINVAL,
		"--key has no field of the file, such as {name}, so that all files would have one "
		"key; --as names the key of one file");
}

int key_template_new(const struct key_template_options *options, struct key_template **ret,
	struct problem *ret_problem)
{
	struct key_template *template = calloc(1, sizeof *template);
	if (!template || regcomp(&template->pod_path, POD_PATH, REG_EXTENDED)) {
		free(template);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	const char *zone = options->time_zone;
	template->families = options->families;
	template->names_families = options->names_families;
	int error = 0;
	if (strlen(options->text) >= TEMPLATE_BYTES_MAX)
		error = problem_error(ret_problem, -EINVAL, "--key is longer than %d bytes",
			TEMPLATE_BYTES_MAX - 1);
	if (!error)
		error = read_parts(template, options->text, ret_problem);
	if (!error)
		error = check_parts(template, ret_problem);
	const bool needs_zone = options->zone_has_other_use || has_field(template, MTIME);
	if (!error && zone && !needs_zone)
		error = problem_error(ret_problem, -EINVAL,
			"--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one");
	if (!error && zone) {
		error = time_zone_open(zone, &template->zone, ret_problem);
		if (error == -EINVAL)
			problem_prefix(ret_problem, "--time-zone");
	}
	if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	if (error)
		key_template_free(template);
	else
		*ret = template;
	return error;
}

void key_template_free(struct key_template *template)
{
	if (!template)
		return;
	for (size_t i = 0; i < template->n; i++)
		free(template->parts[i].text);
	free(template->parts);
	regfree(&template->pod_path);
	free(template->zone);
	free(template);
}

bool key_template_needs_id(const struct key_template *template)
{
	return has_field(template, ID);
}

bool key_template_depends_on_version(const struct key_template *template)
{
	return has_field(template, MTIME) || has_field(template, ID);
}

bool key_template_names_folder(const struct key_template *template)
{
	return has_field(template, PATH) || has_field(template, DIR);
}

static bool is_of_host(enum key_field field)
{
	return field == HOST || field == FQDN || field == ENV;
}

bool key_template_names_host(const struct key_template *template)
{
	return has_field(template, HOST) || has_field(template, FQDN) || has_field(template, ENV);
}

/* Literal text of keys: what is left of a template between two fields that may have any value. */
struct key_run {
	char text[KEY_BYTES_MAX + 1];
	size_t n;
};

/* Adds the text to the run. False: no key has room for it. */
static bool add_to_run(struct key_run *run, const char *text)
{
	const size_t n = strlen(text);
	if (n > KEY_BYTES_MAX - run->n)
		return false;
	memcpy(run->text + run->n, text, n + 1);
	run->n += n;
	return true;
}

/* Moves *key past the run, which has to be at its beginning or, if it floats, anywhere. */
static bool skip_run(const char **key, const struct key_run *run, bool floats)
{
	const char *found = *key;
	if (floats)
		found = strstr(*key, run->text);
	else if (strncmp(*key, run->text, run->n) != 0)
		found = NULL;
	if (found)
		*key = found + run->n;
	return found != NULL;
}

/* Whether the key begins as the template may make it, if each field of a file has any value and,
 * with any_host, each field of the host, too. Each run is looked for at its first place: what
 * follows may be anything, so that no later place is better. */
static bool may_make(const struct key_template *template, const char *key, bool any_host)
{
	struct key_run run = {.n = 0};
	bool floats = false;
	for (size_t i = 0; i < template->n; i++) {
		const struct template_part *part = &template->parts[i];
		const bool is_fixed =
			part->field == LITERAL || (is_of_host(part->field) && !any_host);
		if (!(is_fixed ? add_to_run(&run, part->text) : skip_run(&key, &run, floats)))
			return false;
		if (is_fixed)
			continue;
		run = (struct key_run){.n = 0};
		floats = true;
	}
	return skip_run(&key, &run, floats);
}

bool key_template_is_elsewhere(const struct key_template *template, const char *key)
{
	return key_template_names_host(template) && !may_make(template, key, false) &&
	       may_make(template, key, true);
}

static void add_family(
	const struct key_template *template, const struct key_subject *subject, struct text *t)
{
	struct family family;
	family_of(template->families, path_name(subject->relative), &family);
	family_add(t, &family);
}

/* Adds the STEM or the EXT of the name to t. A dot at the beginning of a name begins no extension,
 * so that ".profile" is a stem. */
static void add_stem_or_ext(const struct key_template *template, enum key_field half,
	const struct key_subject *subject, struct text *t)
{
	struct text whole = TEXT(t->max);
	if (template->names_families)
		add_family(template, subject, &whole);
	else
		text_add(&whole, path_name(subject->relative));
	const char *name = text_string(&whole), *dot = strrchr(name, '.');
	const size_t stem_bytes = dot && dot != name ? (size_t)(dot - name) : whole.len;
	if (whole.error)
		t->error = whole.error;
	else if (half == STEM)
		text_add_bytes(t, name, stem_bytes);
	else
		text_add(t, name + stem_bytes);
	text_clear(&whole);
}

/* Adds the namespace, the pod or the container that the path of a pod's log names. Returns 0, or
 * -EINVAL with a sentence if the path is another one. */
static int add_pod_field(enum key_field field, const regex_t *pod_path, const char *relative,
	struct text *t, struct problem *ret_problem)
{
	regmatch_t groups[5];
	if (regexec(pod_path, relative, 5, groups, 0))
		return problem_error(ret_problem, -EINVAL,
			"is not in a folder NAMESPACE_POD_UID/CONTAINER as the kubelet makes them, "
			"which {%s} of --key needs",
			fields[field].name);
	const regmatch_t group = groups[field - NAMESPACE + 2]; /* see POD_PATH */
	text_add_bytes(t, relative + group.rm_so, (size_t)(group.rm_eo - group.rm_so));
	return 0;
}

/* Adds the part's text for this file. Returns 0, or -EINVAL with a sentence if the file has no such
 * property. */
static int render_part(const struct key_template *template, const struct template_part *part,
	const struct key_subject *subject, struct text *t, struct problem *ret_problem)
{
	const char *relative = subject->relative, *name = path_name(relative);
	/* The second of the modification time, rounded down before 1970, too. */
	const int64_t second_ns = (int64_t)NS_PER_S;
	const int64_t wall_s = subject->mtime_ns / second_ns - (subject->mtime_ns % second_ns < 0);
	struct tm tm;
	switch (part->field) {
	case PATH:
		text_add(t, relative);
		return 0;
	case DIR:
		text_add_bytes(t, relative, (size_t)(name - relative));
		return 0;
	case NAME:
		text_add(t, name);
		return 0;
	case STEM:
	case EXT:
		add_stem_or_ext(template, part->field, subject, t);
		return 0;
	case FAMILY:
		add_family(template, subject, t);
		return 0;
	case NAMESPACE:
	case POD:
	case CONTAINER:
		return add_pod_field(part->field, &template->pod_path, relative, t, ret_problem);
	case MTIME:
		/* INT64_MIN and INT64_MAX mean times that do not fit (clock_to_ns()). */
		if (subject->mtime_ns == INT64_MIN || subject->mtime_ns == INT64_MAX ||
			time_zone_local(template->zone, wall_s, &tm))
			return problem_error(ret_problem, -EINVAL,
				"its modification time is not a date, which --key needs");
		add_formatted(part->text, &tm, wall_s, t);
		return 0;
	case ID:
		text_add_bytes(t, subject->content_id, (size_t)part->id_chars);
		return 0;
	case LITERAL:
	case HOST:
	case FQDN:
	case ENV:
		break;
	}
	text_add(t, part->text); /* the same for every file */
	return 0;
}

/* Checks that no part of the key between slashes is empty, "." or "..". Returns 0, or -EINVAL with
 * a sentence. */
static int check_rendered(const char *made, struct problem *ret_problem)
{
	const char *fault = NULL;
	for (const char *part = made, *end; !fault && part; part = *end ? end + 1 : NULL) {
		end = strchrnul(part, '/');
		const size_t n = (size_t)(end - part);
		if (n == 0)
			fault = "an empty part: it begins or ends with a slash, or has two in a "
				"row";
		else if (n <= 2 && strncmp(part, "..", n) == 0)
			fault = "the part \".\" or \"..\"";
	}
	if (!fault)
		return 0;
	if (!*made)
		return problem_error(ret_problem, -EINVAL, "--key makes an empty key of it");
	return problem_error(ret_problem, -EINVAL, "--key makes the key \"%s\" of it, which has %s",
		quote(made).text, fault);
}

int key_template_render(const struct key_template *template, const struct key_subject *subject,
	struct text *key, struct problem *ret_problem)
{
	const size_t begin = key->len;
	int error = 0;
	for (size_t i = 0; !error && i < template->n; i++)
		error = render_part(template, &template->parts[i], subject, key, ret_problem);
	if (error || key->error)
		return error;
	return check_rendered(text_string(key) + begin, ret_problem);
}
