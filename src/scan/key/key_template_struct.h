/* What a template consists of once it is read: for key_template*.c alone. */
#pragma once
#include "base/time_zone.h"
#include "scan/key/key_template.h"
#include "scan/key/time_format.h"

enum key_field { LITERAL, PATH, DIR, NAME, STEM, EXT, FAMILY, HOST, FQDN, MTIME, ID, ENV };

struct template_piece {
	enum key_field field;
	char *text; /* of LITERAL, MTIME (the format) and ENV (the variable, then its value); owned
		     */
	int id_chars; /* of ID */
};

struct key_template {
	struct template_piece *pieces;
	size_t n;
	const struct family_rules *families;
	bool names_families;
	struct time_zone *zone; /* NULL: UTC */
	struct time_format *times;
};

/* Whether some piece is of this field. */
bool key_template_has(const struct key_template *template, enum key_field field);
