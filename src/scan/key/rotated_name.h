/* The family of a rotated log: its base name without the additions of rotation and compression.
 * Pure. docs/rotation-names.md lists the recognised names. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The suffixes that compression adds to a name: ".gz" and so on. */
#define FAMILY_SUFFIXES 5
extern const char *const family_suffixes[FAMILY_SUFFIXES];
/* The suffix with this number: "" is number 0, and then come family_suffixes. */
static inline const char *family_suffix(size_t number)
{
	return number ? family_suffixes[number - 1] : "";
}

/* The form of a name beside the family, and the programs that give such names. No form proves that
 * a file is finished: see rotation_table.c. */
enum family_form {
	FAMILY_PLAIN, /* no rotation: the name is that of the family, perhaps with a suffix */
	FAMILY_DATED, /* a date, a time or a long number: some programs also give such a name to the
			 log that they are writing */
	FAMILY_COUNTED, /* a number of one to four digits after a dot, given by rotation */
	FAMILY_INDEXED, /* a number before the extension ("app-1.log"): log4j gives it to a finished
			   log, and others to one that is written beside "app-2.log" */
};

/* The parts of a base name: head, rotation, tail, suffix, in this order. Head and tail are the
 * family ("app.log" of "app.log.1.gz" and of "app-20260101.log.zst"). Where all of the name is the
 * rotation, the head is a constant. All else is borrowed from the base name. */
struct family {
	const char *head, *rotation, *tail;
	size_t head_bytes, rotation_bytes, tail_bytes;
	enum family_form form;
	bool is_unfinished; /* its ending (".tmp", ".backup") means that the file is not finished
			       yet, or is an unfinished copy that was put aside; its form is
			       FAMILY_PLAIN */
	bool was_packed;    /* it was rotated once more after it had been compressed */
	const char *suffix; /* suffix of compression: one of family_suffixes, or "" */
};

/* The compiled patterns. Read-only once made: any thread may use them. */
struct family_rules;
/* Returns 0, or -ENOMEM with a sentence. */
int family_rules_new(struct family_rules **ret, struct problem *ret_problem);
void family_rules_free(struct family_rules *rules);

/* Takes a base name apart. */
void family_of(const struct family_rules *rules, const char *base_name, struct family *ret);
/* Returns the moment in the rotation as a number to compare: its digits, with a minus unless they
 * are a date and a time to the second or the millisecond. 20261130120000 is the moment of
 * "app.log-20261130120000", and -20261130 that of "app.log-20261130". 0: they are no date. */
int64_t family_moment(const struct family *family);
/* Whether the moment is exact to the second or better, so that no two logs of a family can have the
 * same. Several logs may have the same date without a time. */
bool family_moment_is_unique(int64_t moment);
/* Adds the family's name. */
void family_add(struct text *t, const struct family *family);
