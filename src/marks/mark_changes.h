/* The changes and conditions of one write to a mark or to the row of a job, by the names of
 * attributes. Names and texts are borrowed until the write has ended. */
#pragma once
#include "marks/mark.h"

/* A list of changes, with room for the decimal text of its numbers. Zero is an empty one. The
 * longest is that of a mark which becomes done after a take-over. */
struct changes {
	struct change list[28];
	size_t n;
	char numbers[8][24];
	size_t n_numbers;
};

void changes_set_text(struct changes *c, const char *name, const char *value);
void changes_set_number(struct changes *c, const char *name, int64_t value);
void changes_unset(struct changes *c, const char *name);
/* An empty value stands for an attribute that is not there. */
void changes_set_or_unset(struct changes *c, const char *name, const char *value);
/* All attributes of an open upload. */
void changes_set_upload(struct changes *c, const struct open_upload *upload);
void changes_unset_upload(struct changes *c);
/* The attributes that note a newer version of the file. */
void changes_unset_newer(struct changes *c);

/* Conditions on a string attribute. Of the second one an empty value, or NULL, stands for an
 * attribute that is not there. */
struct condition mark_equals(const char *name, const char *value);
struct condition mark_equals_or_absent(const char *name, const char *value);
