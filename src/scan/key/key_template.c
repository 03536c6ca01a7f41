#include "base/clock.h"
#include "base/path.h"
#include "base/quote.h"
#include "scan/key/key_template_struct.h"
#include <errno.h>
#include <string.h>

bool key_template_has(const struct key_template *template, enum key_field field)
{
	for (size_t i = 0; i < template->n; i++)
		if (template->pieces[i].field == field)
			return true;
	return false;
}

bool key_template_has_id(const struct key_template *template)
{
	return key_template_has(template, ID);
}

bool key_template_is_of_version(const struct key_template *template)
{
	return key_template_has(template, MTIME) || key_template_has(template, ID);
}

static void add_family(
	const struct key_template *template, const struct key_subject *subject, struct text *t)
{
	struct family family;
	family_of(template->families, path_name(subject->relative), &family);
	family_add(t, &family);
}

/* The name that is split into stem and ext goes to the end of t. What is before a first dot is
 * never empty: ".profile" is a stem. */
static void add_half(const struct key_template *template, enum key_field half,
	const struct key_subject *subject, struct text *t)
{
	const size_t begin = t->len;
	if (template->names_families)
		add_family(template, subject, t);
	else
		text_add(t, path_name(subject->relative));
	if (t->error)
		return;
	char *name = t->data + begin, *dot = strrchr(name, '.');
	const size_t stem = dot && dot != name ? (size_t)(dot - name) : t->len - begin;
	if (half == EXT)
		memmove(name, name + stem, t->len - begin - stem + 1);
	t->len = half == STEM ? begin + stem : t->len - stem;
	t->data[t->len] = '\0';
}

static int add_time(const struct key_template *template, const char *format, int64_t mtime_ns,
	struct text *t, struct problem *ret_problem)
{
	const int64_t second_ns = (int64_t)NS_PER_S;
	const int64_t wall_s = mtime_ns / second_ns - (mtime_ns % second_ns < 0);
	struct tm tm;
	if (time_zone_local(template->zone, wall_s, &tm)) {
		problem_set(ret_problem, "its modification time is not a date, which --key needs");
		return -EINVAL;
	}
	time_format_add(template->times, format, &tm, wall_s, t);
	return 0;
}

static int add_piece(const struct key_template *template, const struct template_piece *piece,
	const struct key_subject *subject, struct text *t, struct problem *ret_problem)
{
	const char *relative = subject->relative, *name = path_name(relative);
	switch (piece->field) {
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
		add_half(template, piece->field, subject, t);
		return 0;
	case FAMILY:
		add_family(template, subject, t);
		return 0;
	case MTIME:
		return add_time(template, piece->text, subject->mtime_ns, t, ret_problem);
	case ID:
		text_add_bytes(t, subject->content_id, (size_t)piece->id_chars);
		return 0;
	case LITERAL:
	case HOST:
	case FQDN:
	case ENV:
		break;
	}
	text_add(t, piece->text);
	return 0;
}

/* What is wrong with the component of n bytes, or NULL. */
static const char *component_fault(const char *component, size_t n)
{
	if (n == 0)
		return "an empty part: it begins or ends with a slash, or has two in a row";
	if (n <= 2 && strncmp(component, "..", n) == 0)
		return "the part \".\" or \"..\"";
	return NULL;
}

static int check_made(const char *made, struct problem *ret_problem)
{
	const char *fault = NULL;
	for (const char *p = made, *end; !fault; p = end + 1) {
		end = strchrnul(p, '/');
		fault = component_fault(p, (size_t)(end - p));
		if (!*end)
			break;
	}
	if (!fault)
		return 0;
	if (*made)
		problem_set(ret_problem, "--key makes the key \"%s\" of it, which has %s",
			quote(made).text, fault);
	else
		problem_set(ret_problem, "--key makes an empty key of it");
	return -EINVAL;
}

int key_template_render(const struct key_template *template, const struct key_subject *subject,
	struct text *key, struct problem *ret_problem)
{
	const size_t begin = key->len;
	int error = 0;
	for (size_t i = 0; !error && i < template->n; i++)
		error = add_piece(template, &template->pieces[i], subject, key, ret_problem);
	if (error || key->error)
		return error;
	return check_made(text_string(key) + begin, ret_problem);
}
