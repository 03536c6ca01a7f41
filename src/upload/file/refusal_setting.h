/* Which setting of a file's object may be the reason why S3 refuses it. Pure. */
#pragma once
#include <stdbool.h>

struct file;
struct problem;

/* Whether S3 says no more than that the request is invalid or not implemented, and the file's
 * object has settings that may be the reason: some servers refuse a storage class or tags so. */
bool refusal_may_be_of_setting(const struct file *file, const struct problem *problem);
/* Names the options behind a refusal in its sentence, as far as the refusal's code tells. */
void refusal_name_setting(const struct file *file, struct problem *problem);
