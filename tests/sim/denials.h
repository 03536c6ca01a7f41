/* Bucket policies that deny writes for a while: to all keys, or to some of them. */
#pragma once
#include "chance.h"
#include "wire.h"
#include <stdbool.h>

void denials_begin(void);
/* Puts a policy in force, and removes it after a while. */
void denials_impose(struct chance *chance);
/* Removes the policy that is in force, if any. */
void denials_calm(void);
/* Whether S3 answers this request with 403. Reads and requests to DynamoDB are never denied. */
bool denials_refuse(const struct wire_request *request);
