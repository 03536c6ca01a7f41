/* What a server other than AWS has made of an object that it says it has stored. Some store it
 * under another key, and some keep only a part of its settings. */
#pragma once
#include "upload/file/file.h"

/* After the file was uploaded, and before its mark says so. A HEAD follows
 * - if the key has a character that has to be encoded and that no key had under which an object was
 *   found in this run: if nothing is there, the file fails;
 * - for each setting once of an object sent whole, and once of one sent in parts: it warns of what
 *   the object lacks, and what may not be looked at is only logged.
 * AWS is not asked. NEXT, or why not. */
enum step stored_look(struct worker *worker, struct file *file);
/* The file was uploaded, and nothing is under its key. It fails. SETTLED. */
enum step stored_nowhere(struct worker *worker, struct file *file);
