/* Which of the sources of credentials is taken, what is asked of it, and what of its answers is
 * believed. The files of profiles, the variables and the services' replies are those of a row. */
#include "../script_aws.h"
#include "../store/sqlite_scratch.h"
#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include <errno.h>

#define JSON(key, more)                                                                            \
	SCRIPT_REPLY("200", "",                                                                    \
		"{\"AccessKeyId\":\"" key "\",\"SecretAccessKey\":\"s\",\"Token\":\"t\"" more "}")
#define ROLE(key, until)                                                                           \
	SCRIPT_REPLY("200", "",                                                                    \
		"<R><Credentials><AccessKeyId>" key "</AccessKeyId><SecretAccessKey>s</"           \
		"SecretAccessKey><SessionToken>t</SessionToken><Expiration>" until "</"            \
		"Expiration></Credentials></R>")
#define LATER          "2999-01-01T00:00:00Z"
#define PAST           "2001-01-01T00:00:00Z"
#define STATUS(status) SCRIPT_REPLY(status, "", "no")

/* Variables, "NAME=VALUE"; a $ at the end of a value is the URL of the server, and a path. */
struct row {
	const char *config, *keys; /* the files of the profiles */
	const char *variables[6];
	bool is_explicit; /* the user has named the profile */
	const char *replies[6];
	int error;
	const char *key, *from; /* of the credentials */
	int64_t expires_s;      /* 0: it is not looked at */
	const char *problem;
	size_t requests;
	const char *sent; /* a part of the last request */
	const char *not_sent;
};

#define KEYS(name) "aws_access_key_id=" name "\naws_secret_access_key=s\n"
#define ENV        "AWS_ACCESS_KEY_ID=env", "AWS_SECRET_ACCESS_KEY=s"
#define AGENT      "AWS_CONTAINER_CREDENTIALS_FULL_URI=$/agent"
#define IDENTITY   "AWS_WEB_IDENTITY_TOKEN_FILE=token", "AWS_ROLE_ARN=arn:pod"
#define IMDS       "AWS_EC2_METADATA_SERVICE_ENDPOINT=$//", "AWS_EC2_METADATA_DISABLED=false"
#define PROCESS                                                                                    \
	"credential_process = echo '{\"Version\":1,\"AccessKeyId\":\"process\","                   \
	"\"SecretAccessKey\":\"s\"}'\n"
#define TEN     "0123456789"
#define OF_ROLE "[profile p]\nrole_arn=arn:role\n"

static const struct row orders[] = {
	/* The environment, unless the user has named a profile. */
	{.keys = "[p]\n" KEYS("file"), .variables = {ENV}, .key = "env", .from = "environment"},
	{.keys = "[p]\n" KEYS("file"),
		.variables = {ENV},
		.is_explicit = true,
		.key = "file",
		.from = "credentials file"},
	{.variables = {"AWS_ACCESS_KEY_ID=env"},
		.error = -EINVAL,
		.problem = "set both or neither"},
	{.variables = {"AWS_ACCESS_KEY_ID=env\r", "AWS_SECRET_ACCESS_KEY=s"},
		.error = -EINVAL,
		.problem = "carriage return"},
	{.variables = {"AWS_ACCESS_KEY_ID='env'", "AWS_SECRET_ACCESS_KEY=s"},
		.error = -EINVAL,
		.problem = "in quotes"},
	{.variables = {"AWS_ACCESS_KEY_ID=e nv", "AWS_SECRET_ACCESS_KEY=s"},
		.error = -EINVAL,
		.problem = "no header may have"},
	{.variables = {"AWS_ACCESS_KEY_ID=env", "AWS_SECRET_ACCESS_KEY= s"},
		.error = -EINVAL,
		.problem = "a blank"},
	{.variables = {"AWS_ACCESS_KEY_ID=" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN,
		 "AWS_SECRET_ACCESS_KEY=s"},
		.error = -EINVAL,
		.problem = "it is too long"},
	{.variables = {"AWS_ACCESS_KEY_ID=env", "AWS_SECRET_ACCESS_KEY=s s"}, .key = "env"},
	/* The ways of a profile, in botocore's order. */
	{.config = "[profile p]\n" KEYS("config"), .keys = "[p]\n" KEYS("file"), .key = "file"},
	{.config = "[profile p]\n" PROCESS KEYS("config"),
		.keys = "[p]\n" KEYS("file"),
		.key = "file"},
	{.config = "[profile p]\n" PROCESS KEYS("config"),
		.key = "process",
		.from = "credential_process"},
	{.config = "[profile p]\n" KEYS("config"), .key = "config", .from = "config file"},
	{.config = "[profile p]\nlogin_session=x\n" KEYS("config"),
		.error = -EINVAL,
		.problem = "aws login"},
	{.config = "[profile p]\nlogin_session=x\n" PROCESS, .key = "process"},
	{.config = "[profile p]\naws_access_key_id=k\n",
		.error = -EINVAL,
		.problem = "no aws_secret_access_key"},
	{.config = OF_ROLE "source_profile=base\n",
		.keys = "[p]\n" KEYS("own") "[base]\n" KEYS("base"),
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.from = "role of the profile",
		.requests = 1,
		.sent = "Credential=base/"},
	/* A profile that yields none is no error; one that is wrong is. */
	{.config = "[profile p]\nregion=x\n",
		.variables = {AGENT},
		.replies = {JSON("agent", "")},
		.key = "agent",
		.from = "container's agent",
		.requests = 1},
	{.config = OF_ROLE "source_profile=none\n",
		.variables = {AGENT},
		.error = -ENOENT,
		.problem = "none"},
	{.config = OF_ROLE "source_profile=p\n",
		.variables = {AGENT},
		.error = -ENOENT,
		.problem = "its own source_profile and has no keys"},
	{.error = -ENODATA, .problem = "no credentials"},
};

static const struct row roles[] = {
	{.config = OF_ROLE "source_profile=p\n" KEYS("own"),
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.requests = 1,
		.sent = "Credential=own/"},
	{.config = OF_ROLE "source_profile=p\nexternal_id=x/y\nrole_session_name=n\n"
			   "duration_seconds=900\n" KEYS("own"),
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.requests = 1,
		.sent = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Arole&"
			"RoleSessionName=n&ExternalId=x%2Fy&DurationSeconds=900"},
	{.config = OF_ROLE, .error = -EINVAL, .problem = "not neither"},
	{.config = OF_ROLE "source_profile=p\ncredential_source=Environment\n",
		.error = -EINVAL,
		.problem = "not both"},
	{.config = OF_ROLE "source_profile=p\nmfa_serial=m\n" KEYS("own"),
		.error = -EINVAL,
		.problem = "mfa_serial"},
	{.config = OF_ROLE "source_profile=p\nduration_seconds=1h\n" KEYS("own"),
		.error = -EINVAL,
		.problem = "duration_seconds"},
	{.config = OF_ROLE "source_profile=q\n[profile q]\nrole_arn=r\nsource_profile=p\n",
		.error = -ELOOP,
		.problem = "leads back to itself"},
	/* A source has its keys before its role, and otherwise its role. */
	{.config = OF_ROLE
		"source_profile=q\n[profile q]\nrole_arn=r\nsource_profile=z\n" KEYS("q"),
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.requests = 1,
		.sent = "Credential=q/"},
	{.config = OF_ROLE
		"source_profile=q\n[profile q]\nrole_arn=r\nsource_profile=q2\n[profile q2]\n" KEYS(
			"q2"),
		.replies = {ROLE("first", LATER), ROLE("role", LATER)},
		.key = "role",
		.requests = 2,
		.sent = "Credential=first/"},
	/* The identity of a pod is the run's own, and not that of the source of a role. */
	{.config = OF_ROLE "source_profile=q\n[profile q]\n" KEYS("q"),
		.variables = {IDENTITY},
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.requests = 1,
		.sent = "Credential=q/",
		.not_sent = "WebIdentity"},
	{.config = OF_ROLE "source_profile=q\n[profile q]\nregion=x\n",
		.variables = {IDENTITY},
		.error = -ENOENT,
		.problem = "source_profile"},
	{.variables = {IDENTITY},
		.replies = {ROLE("pod", LATER)},
		.key = "pod",
		.from = "web identity",
		.requests = 1,
		.sent = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Apod&",
		.not_sent = "Credential="},
	{.keys = "[p]\n" KEYS("file"),
		.variables = {IDENTITY},
		.replies = {ROLE("pod", LATER)},
		.key = "pod",
		.requests = 1,
		.sent = "WebIdentityToken=the%2Ftoken"},
	{.keys = "[p]\n" KEYS("file"), .variables = {IDENTITY}, .is_explicit = true, .key = "file"},
	{.config = OF_ROLE "web_identity_token_file=token\nsource_profile=p\n",
		.replies = {ROLE("pod", LATER)},
		.key = "pod",
		.requests = 1,
		.sent = "RoleArn=arn%3Arole"},
	{.variables = {"AWS_WEB_IDENTITY_TOKEN_FILE=token"},
		.error = -EINVAL,
		.problem = "neither AWS_ROLE_ARN nor role_arn"},
	{.variables = {"AWS_WEB_IDENTITY_TOKEN_FILE=nowhere", "AWS_ROLE_ARN=arn:pod"},
		.error = -ENOENT,
		.problem = "cannot read a token from nowhere"},
	{.config = OF_ROLE "credential_source=Environment\n",
		.variables = {ENV},
		.is_explicit = true,
		.replies = {ROLE("role", LATER)},
		.key = "role",
		.requests = 1,
		.sent = "Credential=env/"},
	{.config = OF_ROLE "credential_source=EcsContainer\n",
		.variables = {AGENT},
		.replies = {JSON("agent", ""), ROLE("role", LATER)},
		.key = "role",
		.requests = 2,
		.sent = "Credential=agent/"},
	{.config = OF_ROLE "credential_source=EcsContainer\n",
		.error = -ENOENT,
		.problem = "credential_source EcsContainer"},
	{.config = OF_ROLE "credential_source=Elsewhere\n",
		.variables = {AGENT},
		.error = -EINVAL,
		.problem = "must be Environment"},
	/* Replies of STS. */
	{.variables = {IDENTITY},
		.replies = {ROLE("pod", PAST)},
		.error = -ESTALE,
		.requests = 1,
		.problem = "expired at 2001"},
	{.variables = {IDENTITY},
		.replies = {ROLE("pod", "soon")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "no credentials"},
	{.variables = {IDENTITY},
		.replies = {SCRIPT_REPLY("200", "", "<R><A>x</A></R>")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "no credentials"},
	{.variables = {IDENTITY},
		.replies = {SCRIPT_REPLY("403", "",
			"<E><Error><Code>AccessDenied</Code><Message>not you</Message></Error></E>")},
		.error = -EACCES,
		.requests = 1,
		.problem = "STS says: not you"},
	{.variables = {IDENTITY},
		.replies = {SCRIPT_REPLY(
				    "400", "", "<E><Error><Code>Throttling</Code></Error></E>"),
			ROLE("pod", LATER)},
		.key = "pod",
		.requests = 2},
	{.variables = {IDENTITY},
		.replies = {STATUS("503"), ROLE("pod", LATER)},
		.key = "pod",
		.requests = 2},
	{.variables = {IDENTITY},
		.replies = {SCRIPT_REPLY("200", "", "hello")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "is not what STS answers"},
	/* A refusal by a clock that is far from ours: once more, by that clock. */
	{.config = OF_ROLE "source_profile=p\n" KEYS("own"),
		.replies = {SCRIPT_REPLY("403", "Date: Thu, 01 Jan 2099 00:00:00 GMT\r\n", "<E/>"),
			ROLE("role", LATER)},
		.key = "role",
		.requests = 2,
		.sent = "x-amz-date: 2099010"},
	{.config = OF_ROLE "source_profile=p\n" KEYS("own"),
		.replies = {SCRIPT_REPLY("403", "", "<E/>")},
		.error = -EACCES,
		.requests = 1,
		.problem = "status 403"},
};

#define TOKEN SCRIPT_REPLY("200", "", "TOKEN")
#define NAMED SCRIPT_REPLY("200", "", "role\nanother")

static const struct row agents[] = {
	{.variables = {AGENT, "AWS_CONTAINER_AUTHORIZATION_TOKEN=abc"},
		.replies = {JSON("agent", "")},
		.key = "agent",
		.requests = 1,
		.sent = "\r\nAuthorization: abc\r\n"},
	{.variables = {AGENT, "AWS_CONTAINER_AUTHORIZATION_TOKEN=abc",
		 "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=token"},
		.replies = {JSON("agent", "")},
		.key = "agent",
		.requests = 1,
		.sent = "\r\nAuthorization: the/token\r\n"},
	{.variables = {AGENT},
		.replies = {JSON("agent", "")},
		.key = "agent",
		.requests = 1,
		.sent = "GET /agent ",
		.not_sent = "Authorization"},
	{.variables = {AGENT, "AWS_CONTAINER_AUTHORIZATION_TOKEN=a\r\nX: y"},
		.error = -EINVAL,
		.problem = "malformed"},
	{.variables = {AGENT, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=nowhere"},
		.error = -ENOENT,
		.problem = "TOKEN_FILE"},
	/* The token goes to no other host in the clear. */
	{.variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://10.0.0.1/"},
		.error = -EINVAL,
		.problem = "it must be https"},
	{.variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://128.0.0.1/"},
		.error = -EINVAL,
		.problem = "it must be https"},
	{.variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://localhost.example/"},
		.error = -EINVAL,
		.problem = "it must be https"},
	{.variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI=ftp://127.0.0.1/"},
		.error = -EINVAL,
		.problem = "it must be https"},
	{.variables = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=no-slash"},
		.error = -EINVAL,
		.problem = "begin with a slash"},
	{.variables = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=@evil.example/"},
		.error = -EINVAL,
		.problem = "begin with a slash"},
	/* A configured source that does not work is an error, and no other source is tried. */
	{.variables = {AGENT, IMDS},
		.replies = {SCRIPT_REPLY("403", "", "{\"message\":\"not you\"}")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "status 403: not you"},
	{.variables = {AGENT, IMDS},
		.replies = {STATUS("500"), STATUS("500"), STATUS("500")},
		.error = -EBADMSG,
		.requests = 3,
		.problem = "status 500"},
	{.variables = {AGENT},
		.replies = {STATUS("429"), JSON("agent", "")},
		.key = "agent",
		.requests = 2},
	{.variables = {AGENT},
		.replies = {SCRIPT_REPLY("200", "", "{\"AccessKeyId\":\"k\"}")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "no SecretAccessKey"},
	{.variables = {AGENT},
		.replies = {SCRIPT_REPLY("200", "", "[]")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "not a JSON object"},
	{.variables = {AGENT},
		.replies = {JSON("agent", ",\"Code\":\"Failed\"")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "it answers Failed"},
	{.variables = {AGENT},
		.replies = {JSON("agent", ",\"Expiration\":\"soon\"")},
		.error = -EBADMSG,
		.requests = 1,
		.problem = "not a time"},
	{.variables = {AGENT},
		.replies = {JSON("agent", ",\"Expiration\":\"" PAST "\"")},
		.error = -ESTALE,
		.requests = 1,
		.problem = "expired at 2001"},
	/* The metadata of an instance. */
	{.variables = {IMDS},
		.replies = {TOKEN, NAMED, JSON("ec2", ",\"Code\":\"Success\"")},
		.key = "ec2",
		.from = "instance metadata",
		.requests = 3,
		.sent = "GET /latest/meta-data/iam/security-credentials/role HTTP/1.1\r\n"},
	{.variables = {IMDS},
		.replies = {TOKEN, NAMED, JSON("ec2", "")},
		.key = "ec2",
		.requests = 3,
		.sent = "\r\nX-aws-ec2-metadata-token: TOKEN\r\n"},
	/* It hands out its last credentials while its own sources are out of order. */
	{.variables = {IMDS},
		.replies = {TOKEN, NAMED, JSON("ec2", ",\"Expiration\":\"" PAST "\"")},
		.key = "ec2",
		.requests = 3},
	{.variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT=$"},
		.replies = {TOKEN},
		.error = -ENODATA,
		.requests = 0,
		.problem = "AWS_EC2_METADATA_DISABLED"},
	/* Other clouds have other services there; one that may have a token later is an error. */
	{.variables = {IMDS},
		.replies = {STATUS("404")},
		.error = -ENODATA,
		.requests = 1,
		.problem = "no token (status 404)"},
	{.variables = {IMDS},
		.replies = {SCRIPT_REPLY("200", "", "a token")},
		.error = -ENODATA,
		.requests = 1,
		.problem = "no token"},
	{.variables = {IMDS},
		.replies = {STATUS("500"), STATUS("500"), STATUS("500")},
		.error = -EACCES,
		.requests = 3,
		.problem = "no token (status 500)"},
	{.variables = {IMDS},
		.replies = {TOKEN, STATUS("404")},
		.error = -ENODATA,
		.requests = 2,
		.problem = "the instance has no role"},
	{.variables = {IMDS},
		.replies = {TOKEN, SCRIPT_REPLY("200", "", "")},
		.error = -ENODATA,
		.requests = 2,
		.problem = "the instance has no role"},
	{.variables = {IMDS},
		.replies = {TOKEN, STATUS("403")},
		.error = -EACCES,
		.requests = 2,
		.problem = "does not name the role"},
	{.variables = {IMDS},
		.replies = {SCRIPT_REPLY("200", "", "")},
		.error = -ENODATA,
		.requests = 1,
		.problem = "no token"},
	{.variables = {IMDS},
		.replies = {TOKEN, SCRIPT_REPLY("200", "", "a role")},
		.error = -EACCES,
		.requests = 2,
		.problem = "does not name the role"},
	{.variables = {IMDS},
		.replies = {TOKEN, ""},
		.error = -ENODATA,
		.requests = 2,
		.problem = "nobody answers"},
	{.variables = {IMDS, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv4"},
		.replies = {TOKEN, NAMED, JSON("ec2", "")},
		.key = "ec2",
		.requests = 3},
	/* Version 1 is used only if it is asked for. */
	{.variables = {IMDS, "AWS_EC2_METADATA_V1_DISABLED=false"},
		.replies = {STATUS("404"), NAMED, JSON("ec2", "")},
		.key = "ec2",
		.requests = 3,
		.not_sent = "X-aws-ec2-metadata-token"},
	{.variables = {IMDS, "AWS_EC2_METADATA_V1_DISABLED=true"},
		.replies = {STATUS("404")},
		.error = -ENODATA,
		.requests = 1},
	{.variables = {IMDS, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=ipv5"},
		.error = -EINVAL,
		.problem = "IPv4 or IPv6"},
	{.variables = {IMDS, "AWS_METADATA_SERVICE_NUM_ATTEMPTS=2"},
		.replies = {TOKEN, "", ""},
		.error = -ENODATA,
		.requests = 3,
		.problem = "nobody answers"},
	{.variables = {IMDS, "AWS_METADATA_SERVICE_NUM_ATTEMPTS=-1"},
		.error = -EINVAL,
		.problem = "AWS_METADATA_SERVICE_NUM_ATTEMPTS is -1: it must be a number"},
	{.variables = {IMDS, "AWS_METADATA_SERVICE_TIMEOUT=5s"},
		.error = -EINVAL,
		.problem = "AWS_METADATA_SERVICE_TIMEOUT is 5s: it must be a number"},
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	if (CHECK(file != NULL)) {
		fputs(text ? text : "", file);
		fclose(file);
	}
}

/* No variable of the user who runs the test, and none of the row before. */
static void set_variables(const char *const *variables, const char *url)
{
	static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "AWS_EC2_METADATA_V1_DISABLED",
		"AWS_METADATA_SERVICE_TIMEOUT", "AWS_METADATA_SERVICE_NUM_ATTEMPTS"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("HOME", scratch, 1);
	for (size_t i = 0; i < 6 && variables[i]; i++) {
		char name[100], value[300];
		const char *sign = strchr(variables[i], '='), *dollar = strchr(sign, '$');
		snprintf(name, sizeof name, "%.*s", (int)(sign - variables[i]), variables[i]);
		snprintf(value, sizeof value, "%s%s", dollar ? url : "",
			dollar ? dollar + 1 : sign + 1);
		setenv(name, value, 1);
	}
}

struct fixture {
	struct script_server server;
	struct credentials_providers loader;
};

static bool begin(struct fixture *f, const struct row *row)
{
	struct script_step steps[6];
	size_t n = 0;
	for (; n < 6 && row->replies[n]; n++)
		steps[n] = (struct script_step){.reply = row->replies[n], .close = true};
	*f = (struct fixture){.loader = {.options = {.profile = "p",
						 .profile_is_explicit = row->is_explicit,
						 .credentials_path = "keys",
						 .config_path = "config"}}};
	if (!script_start(&f->server, steps, n))
		return false;
	write_file("config", row->config ? row->config : "[profile p]\n");
	write_file("keys", row->keys);
	write_file("token", "the/token\n");
	set_variables(row->variables, f->server.url);
	f->loader.options.sts = (struct endpoint){.region = "r", .signing_name = "sts"};
	snprintf(f->loader.options.sts.url, sizeof f->loader.options.sts.url, "%s", f->server.url);
	f->loader.options.sso_endpoint = f->loader.options.sso_oidc_endpoint = f->server.url;
	return true;
}

static void end(struct fixture *f)
{
	http_free(f->loader.http);
	http_shared_free(f->loader.shared);
	script_clear(&f->server);
}

/* Whether a part is in the head or in the body of the last request. */
static bool was_sent(const struct fixture *f, const char *part)
{
	const size_t n = f->server.n_requests;
	const struct script_request *last = &f->server.requests[n - 1];
	return n && (strstr(last->head, part) || strstr(last->body, part));
}

static bool check_row(const struct row *row)
{
	struct fixture f;
	struct credentials got = {0};
	struct problem problem = {0};
	if (!begin(&f, row))
		return false;
	bool ok = CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), row->error);
	script_stop(&f.server);
	ok = CHECK_STRING(got.access_key, row->key ? row->key : "") && ok;
	ok = CHECK(!row->from || (got.from && strcmp(got.from, row->from) == 0)) && ok;
	ok = (!row->expires_s || CHECK_INT(got.expires_s, row->expires_s)) && ok;
	ok = CHECK(!row->problem || strstr(problem.text, row->problem)) && ok;
	ok = CHECK_INT(f.server.n_requests, row->requests) && ok;
	ok = CHECK(!row->sent || was_sent(&f, row->sent)) && ok;
	ok = CHECK(!row->not_sent || !was_sent(&f, row->not_sent)) && ok;
	if (!ok)
		fprintf(stderr, "\t%s%s\n", problem.text,
			f.server.n_requests ? f.server.requests[f.server.n_requests - 1].head : "");
	credentials_wipe(&got);
	end(&f);
	return ok;
}

static void check_rows(const char *what, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!check_row(&rows[i]))
			fprintf(stderr, "\trow %zu of %s\n", i, what);
}
#define CHECK_ROWS(rows) check_rows(#rows, rows, sizeof(rows) / sizeof *(rows))

/* --- the tokens of SSO */

#define SSO                                                                                        \
	"[profile p]\nsso_account_id=a\nsso_role_name=r/x\nsso_session=s\n"                        \
	"[sso-session s]\nsso_start_url=u\nsso_region=us-east-1\n"
#define LEGACY                                                                                     \
	"[profile p]\nsso_account_id=a\nsso_role_name=r\nsso_start_url=s\nsso_region=us-east-1\n"
#define SSO_KEYS                                                                                   \
	SCRIPT_REPLY("200", "",                                                                    \
		"{\"roleCredentials\":{\"accessKeyId\":\"sso\",\"secretAccessKey\":\"s\","         \
		"\"sessionToken\":\"t\",\"expiration\":32472144000000}}")
#define FRESH "\"accessToken\":\"fresh\",\"expiresAt\":\"" LATER "\""
#define OLD   "\"accessToken\":\"old\",\"expiresAt\":\"2001-01-01T00:00:00UTC\""
#define CLIENT                                                                                     \
	",\"refreshToken\":\"again\",\"clientId\":\"c\",\"clientSecret\":\"cs\","                  \
	"\"registrationExpiresAt\":\"" LATER "\""
#define RENEWED                                                                                    \
	SCRIPT_REPLY("200", "",                                                                    \
		"{\"accessToken\":\"new\",\"expiresIn\":3600,\"refreshToken\":\"next\"}")

static const struct sso_row {
	const char *token; /* the file of the token; NULL: none */
	struct row row;
	const char *kept; /* a part of the file afterwards */
} tokens[] = {
	{"{" FRESH "}",
		{.config = SSO,
			.replies = {SSO_KEYS},
			.key = "sso",
			.from = "SSO",
			.expires_s = 32472144000,
			.requests = 1,
			.sent = "GET /federation/credentials?account_id=a&role_name=r%2Fx "}},
	{"{" FRESH "}", {.config = LEGACY,
				.replies = {SSO_KEYS},
				.key = "sso",
				.requests = 1,
				.sent = "x-amz-sso_bearer_token: fresh\r\n"}},
	{NULL, {.config = SSO, .error = -EKEYEXPIRED, .problem = "there is no SSO token"}},
	{"{" OLD "}",
		{.config = SSO, .error = -EKEYEXPIRED, .problem = "the SSO token has expired"}},
	{"{\"accessToken\":\"x\"}",
		{.config = SSO, .error = -EKEYEXPIRED, .problem = "the SSO token has expired"}},
	/* Renewed if that needs no person; only tokens of an sso-session can be. */
	{"{" OLD CLIENT "}",
		{.config = SSO,
			.replies = {RENEWED, SSO_KEYS},
			.key = "sso",
			.requests = 2,
			.sent = "x-amz-sso_bearer_token: new\r\n"},
		"\"refreshToken\":\"next\""},
	{"{" OLD CLIENT "}",
		{.config = LEGACY, .error = -EKEYEXPIRED, .problem = "the SSO token has expired"},
		"\"old\""},
	{"{" FRESH CLIENT "}", {.config = SSO, .replies = {SSO_KEYS}, .key = "sso", .requests = 1},
		"\"fresh\""},
	{"{" OLD CLIENT "}",
		{.config = SSO,
			.replies = {STATUS("400")},
			.error = -EKEYEXPIRED,
			.requests = 1,
			.problem = "log in"},
		"\"old\""},
	{"{" OLD CLIENT "}",
		{.config = SSO,
			.replies = {SCRIPT_REPLY(
				"200", "", "{\"accessToken\":\"new\",\"expiresIn\":0}")},
			.error = -EKEYEXPIRED,
			.requests = 1,
			.problem = "log in"},
		"\"old\""},
	{"{" OLD CLIENT "}",
		{.config = SSO,
			.replies = {SCRIPT_REPLY("200", "",
					    "{\"accessToken\":\"new\",\"expiresIn\":3600}"),
				SSO_KEYS},
			.key = "sso",
			.requests = 2},
		"\"refreshToken\":\"again\""},
	{"{\"accessToken\":\"a\\r\\nX: y\",\"expiresAt\":\"" LATER "\"}",
		{.config = SSO, .error = -EINVAL, .problem = "malformed"}},
	{"{" FRESH "}", {.config = SSO,
				.replies = {STATUS("401")},
				.error = -EACCES,
				.requests = 1,
				.problem = "the SSO token is refused"}},
	{"{" FRESH "}", {.config = "[profile p]\nsso_account_id=a\nsso_region=x\n" KEYS("config"),
				.error = -EINVAL,
				.problem = "it needs sso_account_id"}},
};

/* printf s | sha1sum; and of the start URL of LEGACY, which is the same */
#define TOKEN_FILE ".aws/sso/cache/a0f1490a20d0211c997b44bc357e1972deab8ae3.json"

static void test_sso(void)
{
	CHECK(!mkdir(".aws", 0700) && !mkdir(".aws/sso", 0700) && !mkdir(".aws/sso/cache", 0700));
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
		char kept[1000] = "";
		unlink(TOKEN_FILE);
		if (tokens[i].token)
			write_file(TOKEN_FILE, tokens[i].token);
		bool ok = check_row(&tokens[i].row);
		FILE *file = fopen(TOKEN_FILE, "r");
		if (file) {
			kept[fread(kept, 1, sizeof kept - 1, file)] = 0;
			fclose(file);
		}
		ok = CHECK(!tokens[i].kept || strstr(kept, tokens[i].kept)) && ok;
		if (!ok)
			fprintf(stderr, "\ttoken %zu: %s\n", i, kept);
	}
}

/* --- one identity for a run */

/* Once a source has yielded credentials, no other one is asked. */
static void test_one_source(void)
{
	static const struct row row = {.variables = {AGENT},
		.replies = {JSON("agent", ""), STATUS("403"), JSON("agent2", "")}};
	struct fixture f;
	struct credentials got = {0};
	struct problem problem = {0};
	if (!begin(&f, &row))
		return;
	CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), 0);
	CHECK(!f.loader.is_fixed);
	credentials_wipe(&got);
	setenv("AWS_ACCESS_KEY_ID", "env", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), -EBADMSG);
	CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), 0);
	CHECK_STRING(got.access_key, "agent2");
	credentials_wipe(&got);
	script_stop(&f.server);
	end(&f);
}

/* The old name of the token counts first, in the environment and in a file. */
static void test_tokens(void)
{
	static const struct row
		in_files = {.keys = "[p]\n" KEYS(
				    "file") "aws_session_token=new\naws_security_token=old\n"},
		in_variables = {.variables = {ENV, "AWS_SESSION_TOKEN=new",
					"AWS_SECURITY_TOKEN=old"}},
		one_in_files = {.keys = "[p]\n" KEYS("file") "aws_session_token=new\n"},
		one_variable = {.variables = {ENV, "AWS_SESSION_TOKEN=new"}};
	static const struct row *const rows[] = {
		&in_files, &in_variables, &one_in_files, &one_variable};
	for (size_t i = 0; i < 4; i++) {
		struct fixture f;
		struct credentials got = {0};
		struct problem problem = {0};
		if (!begin(&f, rows[i]))
			return;
		CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), 0);
		CHECK_STRING(got.session_token, i < 2 ? "old" : "new");
		CHECK(f.loader.is_fixed == (i % 2 == 1)); /* a variable never changes */
		credentials_wipe(&got);
		script_stop(&f.server);
		end(&f);
	}
}

#define FAR_CLOCK "Date: Thu, 01 Jan 2099 00:00:00 GMT\r\n"
#define FAR(more)                                                                                  \
	SCRIPT_REPLY("200", FAR_CLOCK,                                                             \
		"{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s\",\"Token\":\"t\"" more "}")

/* Expiry is told by the server's clock, and counted by ours. */
static void test_expiry(void)
{
	static const struct row row = {.variables = {AGENT},
		.replies = {FAR(",\"Expiration\":\"2099-01-01T01:00:00Z\""), FAR("")}};
	struct fixture f;
	struct credentials got = {0};
	struct problem problem = {0};
	if (!begin(&f, &row))
		return;
	CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), 0);
	const int64_t left_s = got.expires_s - clock_wall_s();
	CHECK(left_s > 3590 && left_s <= 3600);
	credentials_wipe(&got);
	CHECK_INT(credentials_providers_load(&f.loader, &got, &problem), 0);
	CHECK_INT(got.expires_s, 0); /* never */
	credentials_wipe(&got);
	script_stop(&f.server);
	end(&f);
}

int main(void)
{
	scratch_make();
	CHECK_ROWS(orders);
	CHECK_ROWS(roles);
	CHECK_ROWS(agents);
	test_sso();
	test_one_source();
	test_tokens();
	test_expiry();
	scratch_remove();
	return check_result();
}
