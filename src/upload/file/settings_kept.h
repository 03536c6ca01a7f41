/* Settings that a server takes and does not keep: said once a run, of the first object with them.
 */
#pragma once

struct file;
struct worker;

/* After the file was uploaded. Looks at its storage class, metadata and tags, each of them once a
 * run, and warns of what the object lacks. It never fails the file: what may not be looked at is
 * only logged. AWS is not asked, since it refuses what it does not keep. */
void settings_look(struct worker *worker, const struct file *file);
