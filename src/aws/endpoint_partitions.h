/* The partitions that AWS published on 2026-01-15. Made by tests/setup/suites/endpoints.py, not by
 * hand. */
#pragma once

struct partition {
	const char *region_prefix, *name, *suffix, *dualstack_suffix;
};

/* The first prefix that fits a region counts. */
static const struct partition partitions[] = {
	{"aws-us-gov-global", "aws-us-gov", "amazonaws.com", "api.aws"},
	{"aws-iso-b-global", "aws-iso-b", "sc2s.sgov.gov", "api.aws.scloud"},
	{"aws-iso-e-global", "aws-iso-e", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
	{"aws-iso-f-global", "aws-iso-f", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
	{"aws-iso-global", "aws-iso", "c2s.ic.gov", "api.aws.ic.gov"},
	{"aws-cn-global", "aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
	{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
	{"us-isob-", "aws-iso-b", "sc2s.sgov.gov", "api.aws.scloud"},
	{"us-isof-", "aws-iso-f", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
	{"us-gov-", "aws-us-gov", "amazonaws.com", "api.aws"},
	{"us-iso-", "aws-iso", "c2s.ic.gov", "api.aws.ic.gov"},
	{"eusc-", "aws-eusc", "amazonaws.eu", "api.amazonwebservices.eu"},
	{"cn-", "aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
	{"", "aws", "amazonaws.com", "api.aws"},
};

/* The regions that share STS's one endpoint if `sts_regional_endpoints` is "legacy". */
static const char *const sts_global_regions[] = {
	"ap-northeast-1",
	"ap-south-1",
	"ap-southeast-1",
	"ap-southeast-2",
	"aws-global",
	"ca-central-1",
	"eu-central-1",
	"eu-north-1",
	"eu-west-1",
	"eu-west-2",
	"eu-west-3",
	"sa-east-1",
	"us-east-1",
	"us-east-2",
	"us-west-1",
	"us-west-2",
};
