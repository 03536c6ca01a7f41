/* AWS Security Token Service: temporary credentials of a role. Source: AWS STS API Reference. */
#pragma once
#include "aws/credentials/credentials_provider.h"

struct sts_parameter {
	const char *name, *value; /* value NULL: left out */
};

struct sts_request {
	const char *action; /* AssumeRole, AssumeRoleWithWebIdentity */
	const struct sts_parameter *parameters;
	size_t n_parameters;
	const struct credentials *signed_by; /* NULL: it needs no signature */
};

/* Asks the loader's STS endpoint. 0; else -errno with a sentence, which keeps the service's code
 * and request id. */
int sts_assume(struct credentials_loader *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem);
/* The name of the session where none is given: "s3once-" and the time. */
void sts_session_name(char ret[static 32]);
