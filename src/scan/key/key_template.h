/* Keys made of a template: --key '{family}/{mtime:%Y/%m/%d}/{host}-{name}'. All fields are
 * properties of the file or of the host, so that a rerun, another process and a host that has lost
 * its marks find the same key. s3once-push(1), KEY TEMPLATES, describes the fields. */
#pragma once
#include "base/text.h"
#include "scan/key/rotated_name.h"
#include <stdint.h>

/* The default template of rotated files. It has only properties that rotation and compression do
 * not change. src/cat reads such keys. */
#define ROTATED_KEY "{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}"

struct key_template_options {
	const char *text;      /* the template */
	const char *time_zone; /* time zone of {mtime:…}; NULL: UTC */
	/* The caller also uses the time zone for something else. Otherwise a time zone is refused
	 * if the template has no {mtime:…}. */
	bool zone_has_other_use;
	const struct family_rules *families; /* for {family}; borrowed until key_template_free */
	/* {stem} and {ext} come from the family's name, not the file's */
	bool names_families;
};

/* Read-only once made: any thread may use it. */
struct key_template;
/* Reads the template, the host's name, and the environment where {env:NAME} asks for it. {fqdn} may
 * ask the resolver. Returns 0, or with a sentence -EINVAL for a template that is not valid, or
 * another -errno for a host without a name, an unreadable time zone or a lack of memory. */
int key_template_new(const struct key_template_options *options, struct key_template **ret,
	struct problem *ret_problem);
void key_template_free(struct key_template *template);

/* Whether keys depend on the content, so that the caller has to compute content_id. */
bool key_template_needs_id(const struct key_template *template);
/* Whether keys depend on the content or the modification time. Then a key is right only for the
 * version of the file that it was made for. */
bool key_template_depends_on_version(const struct key_template *template);
/* Whether files of different folders have different keys: the template has {path} or {dir}. */
bool key_template_names_folder(const struct key_template *template);
/* Whether other hosts make other keys: the template has {host}, {fqdn} or {env:NAME}. */
bool key_template_names_host(const struct key_template *template);
/* Whether the key is that of another host: with other values of these fields the template may make
 * it, and with those of this host it does not. A suffix of compression after the key does not
 * matter. A field of the file may have any value here. So some keys of other hosts, such as those
 * of web1-b for {host}-{path} on web1, are not recognised. Thread-safe. */
bool key_template_is_elsewhere(const struct key_template *template, const char *key);

/* The properties of a file that its key is made of. Borrowed for the call. */
struct key_subject {
	const char *relative; /* path relative to the SOURCE; for a SOURCE file its base name */
	int64_t mtime_ns;
	const char *content_id; /* see content.h; may be NULL unless key_template_needs_id */
};
/* Adds the key that the template makes of the file to `key`. Returns 0, or -EINVAL with a sentence
 * if that key is empty or has a component that is empty, "." or "..", or if a field cannot be made
 * of this file. If memory runs out or `key` has no room, the result is 0 and key->error is set.
 * key_valid() checks the rest. Pure. */
int key_template_render(const struct key_template *template, const struct key_subject *subject,
	struct text *key, struct problem *ret_problem);
