/* Where a service listens and how a bucket is addressed there. Pure. Source: "Amazon S3 endpoints
 * and quotas", "Bucket naming rules" and "Virtual hosting of buckets" (Amazon S3 User Guide). */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The partition a region belongs to: "aws", "aws-cn", "aws-us-gov", "aws-iso", … Static. */
const char *endpoint_partition(const char *region);

/* "https://SERVICE.REGION.amazonaws.com", with the partition's own suffix. 0; -EINVAL if the region
 * cannot be part of a host name; -ENAMETOOLONG if ret is too small. */
int endpoint_aws_url(const char *service, const char *region, char *ret, size_t size);

/* A custom endpoint as it is used: scheme and host in lower case, no default port, a base path
 * without trailing slash, nothing else. 0, or -EINVAL with *ret_why a static phrase ("it has no
 * host"). *ret is the caller's to free. */
int endpoint_parse_url(const char *url, char **ret, const char **ret_why);

/* Whether the bucket goes into the host name: not in path style, not where its name is no DNS
 * label, not before an IP address, and not with a dot over https, where no certificate would match.
 * endpoint is one that endpoint_parse_url made. */
bool endpoint_bucket_in_host(const char *endpoint, const char *bucket, bool path_style);
