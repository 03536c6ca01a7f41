"""`s3once config`: which setting counts, and where it is said to be from. The rows follow AWS's documentation, which each group names."""

import json

import pytest
from botocore.configloader import load_config

KEY, SECRET = "AKIAVERYSECRETID", "wJalrXUtnFEMIsecret"
AWS_S3, AWS_DB = "https://s3.us-east-1.amazonaws.com", "https://dynamodb.us-east-1.amazonaws.com"
LAB = """\
[default]
services = lab
endpoint_url = http://profile:1
[profile bare]
services = lab
[profile deaf]
services = lab
ignore_configured_endpoint_urls = true
[profile lost]
services = none-such
endpoint_url = http://profile:1
[services lab]
s3 =
  endpoint_url = http://lab-s3:2
dynamodb =
  endpoint_url = http://lab-db:3
sso_oidc =
  endpoint_url = http://lab-oidc:7
"""
ALL = {"AWS_ENDPOINT_URL": "http://all:4"}
S3_ONE = {"AWS_ENDPOINT_URL_S3": "http://env-s3:5"}

# What to set, the config file, the options → values by name.
ROWS = [
    # "Service-specific endpoints" (AWS SDKs and Tools Reference Guide)
    ({}, "", [], {"s3_endpoint": AWS_S3, "dynamodb_endpoint": AWS_DB}),
    (ALL, "", [], {"s3_endpoint": "http://all:4", "dynamodb_endpoint": "http://all:4", "sts_endpoint": "http://all:4"}),
    (S3_ONE, "", [], {"s3_endpoint": "http://env-s3:5", "dynamodb_endpoint": AWS_DB}),
    ({**ALL, **S3_ONE}, "", [], {"s3_endpoint": "http://env-s3:5", "dynamodb_endpoint": "http://all:4"}),
    ({"AWS_ENDPOINT_URL_DYNAMODB": "http://d:1"}, LAB, [], {"s3_endpoint": "http://lab-s3:2", "dynamodb_endpoint": "http://d:1"}),
    ({}, LAB, [], {"s3_endpoint": "http://lab-s3:2", "dynamodb_endpoint": "http://lab-db:3", "sts_endpoint": "http://profile:1"}),
    (ALL, LAB, [], {"s3_endpoint": "http://all:4", "dynamodb_endpoint": "http://all:4"}),
    (S3_ONE, LAB, [], {"s3_endpoint": "http://env-s3:5", "dynamodb_endpoint": "http://lab-db:3"}),
    ({}, LAB, ["--endpoint-url", "http://o:6"], {"s3_endpoint": "http://o:6", "dynamodb_endpoint": "http://lab-db:3"}),
    ({"AWS_PROFILE": "bare"}, LAB, [], {"s3_endpoint": "http://lab-s3:2", "sts_endpoint": "https://sts.us-east-1.amazonaws.com"}),
    ({}, LAB, [], {"sso_endpoint": "http://profile:1", "sso_oidc_endpoint": "http://lab-oidc:7"}),
    ({"AWS_PROFILE": "bare"}, LAB, [], {"sso_endpoint": None, "sso_oidc_endpoint": "http://lab-oidc:7"}),
    ({"AWS_PROFILE": "deaf", **ALL}, LAB, [], {"sso_endpoint": None, "sso_oidc_endpoint": None}),
    ({"AWS_ENDPOINT_URL_SSO": "http://s:8", **ALL}, LAB, [], {"sso_endpoint": "http://s:8", "sso_oidc_endpoint": "http://all:4"}),
    ({"AWS_ENDPOINT_URL_SSO_OIDC": "http://i:9"}, LAB, [], {"sso_endpoint": "http://profile:1", "sso_oidc_endpoint": "http://i:9"}),
    ({"AWS_ENDPOINT_URL_STS": "http://t:5"}, LAB, [], {"sts_endpoint": "http://t:5"}),
    ({"AWS_DEFAULT_PROFILE": "bare", "AWS_PROFILE": "deaf"}, LAB, [], {"profile": "bare"}),  # as botocore reads them
    ({"AWS_PROFILE": "deaf"}, LAB, [], {"s3_endpoint": AWS_S3, "dynamodb_endpoint": AWS_DB}),
    ({"AWS_PROFILE": "deaf", **ALL}, LAB, [], {"s3_endpoint": AWS_S3}),
    ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", **ALL}, LAB, [], {"s3_endpoint": AWS_S3, "dynamodb_endpoint": AWS_DB}),
    ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, LAB, ["--endpoint-url", "http://o:6"], {"s3_endpoint": "http://o:6"}),
    ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false", "AWS_PROFILE": "deaf"}, LAB, [], {"s3_endpoint": "http://lab-s3:2"}),
    # "Data Integrity Protections for Amazon S3" (the same guide)
    ({}, "", [], {"request_checksum_calculation": "when_supported"}),
    ({"AWS_REQUEST_CHECKSUM_CALCULATION": "WHEN_REQUIRED"}, "", [], {"request_checksum_calculation": "WHEN_REQUIRED"}),
    ({}, "[default]\nrequest_checksum_calculation = when_required\n", [], {"request_checksum_calculation": "when_required"}),
    ({}, "[default]\nrequest_checksum_calculation = when_required\n", [], {"checksum": "md5"}),
    ({"S3ONCE_CHECKSUM": "sha1"}, "", [], {"checksum": "sha1"}),
    ({"S3ONCE_CHECKSUM": "sha1"}, "", ["--checksum", "crc64nvme"], {"checksum": "crc64nvme"}),
    # "Retry behavior", "AWS Region", "Dual-stack and FIPS endpoints", "AWS STS Regional endpoints" (the same guide)
    ({"AWS_MAX_ATTEMPTS": "4"}, "[default]\nmax_attempts = 5\n", [], {"max_attempts": "4"}),
    ({}, "[default]\nmax_attempts = 5\n", [], {"max_attempts": "5"}),
    ({}, "", [], {"retry_mode": "adaptive"}),
    ({"AWS_RETRY_MODE": "standard"}, "[default]\nretry_mode = adaptive\n", [], {"retry_mode": "standard"}),
    ({}, "[default]\nretry_mode = legacy\n", [], {"retry_mode": "legacy"}),
    ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "", [], {"region": "eu-west-1"}),
    ({"AWS_DEFAULT_REGION": "eu-west-2"}, "[default]\nregion=eu-west-3\n", [], {"region": "eu-west-2"}),
    ({"AWS_REGION": "eu-west-1"}, "", ["--region", "cn-north-1"], {"s3_endpoint": "https://s3.cn-north-1.amazonaws.com.cn"}),
    ({"AWS_USE_FIPS_ENDPOINT": "true"}, "", [], {"s3_endpoint": "https://s3-fips.us-east-1.amazonaws.com"}),
    ({"AWS_USE_FIPS_ENDPOINT": "false"}, "[default]\nuse_fips_endpoint = true\n", [], {"s3_endpoint": AWS_S3}),
    ({"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "", [], {"dynamodb_endpoint": "https://dynamodb.us-east-1.api.aws"}),
    ({}, "[default]\ns3 =\n  use_dualstack_endpoint = true\n", [], {"s3_endpoint": "https://s3.dualstack.us-east-1.amazonaws.com"}),
    ({}, "[default]\ns3 =\n  use_dualstack_endpoint = true\n", [], {"dynamodb_endpoint": AWS_DB}),
    ({"AWS_STS_REGIONAL_ENDPOINTS": "legacy"}, "", [], {"sts_endpoint": "https://sts.amazonaws.com"}),
    ({}, "[default]\nsts_regional_endpoints = legacy\n", [], {"sts_endpoint": "https://sts.amazonaws.com"}),
]


@pytest.fixture
def config(s3once, tmp_path):
    """config(env, file, *options) gives (run, {name: (value, from)})."""
    path = tmp_path / "config"
    s3once.environment.update({"AWS_CONFIG_FILE": str(path), "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
        s3once.environment[name] = None

    def run(env, file, *options):
        path.write_text(file)
        done = s3once("config", "--json", *options, env=env)
        return done, {event["name"]: (event["value"], event["from"]) for event in done.events}

    run.path = path
    return run


def test_which_setting_counts(config):
    for env, file, options, expected in ROWS:
        run, found = config(env, file, *options)
        assert run.code == 0, run
        assert {name: found[name][0] if name in found else None for name in expected} == expected, (env, file, options)


def test_services_section_that_is_missing(config):
    """As in botocore. Without this check, files would go to a service other than the intended one."""
    run, _ = config({"AWS_PROFILE": "lost"}, LAB)
    assert run.code == 3 and "has no section [services none-such]" in run.err, run
    assert config({"AWS_PROFILE": "lost", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, LAB)[0].code == 0


def test_source_of_each_setting_is_shown(config, s3once):
    file = "[default]\nregion = eu-west-1\nservices = lab\n[services lab]\ns3 =\n  endpoint_url = http://lab:2\n"
    _, found = config({"AWS_MAX_ATTEMPTS": "4", "AWS_ENDPOINT_URL_DYNAMODB": "http://o:1", "S3ONCE_LOCKS": "",
                       "HTTP_PROXY": "http://p:1"}, file, "--request-timeout", "5s")
    assert found["region"] == ("eu-west-1", f"region of [default] in {config.path}")
    assert found["s3_endpoint"] == ("http://lab:2", f"s3.endpoint_url of [services lab] in {config.path}")
    assert found["dynamodb_endpoint"] == ("http://o:1", "AWS_ENDPOINT_URL_DYNAMODB")
    assert found["sts_endpoint"] == ("https://sts.eu-west-1.amazonaws.com", "AWS")
    assert found["max_attempts"] == ("4", "AWS_MAX_ATTEMPTS")
    assert found["request_timeout"] == ("5s", "--request-timeout")
    assert found["locks"] == ("local", "default") and "proxy_of_http" not in found  # which libcurl takes in small letters alone
    assert found["marks"] == ("local", "default") and found["profile"] == ("default", "default")
    assert found["config_file"] == (str(config.path), "AWS_CONFIG_FILE")
    for variable in ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"):
        assert config({variable: "default"}, file)[1]["profile"] == ("default", variable)
    text = s3once("config").out.splitlines()
    assert [line.split()[0] for line in text][:2] == ["profile", "config_file"]


AK, SK = f"aws_access_key_id = {KEY}\n", f"aws_secret_access_key = {SECRET}\n"
REGION, BLOCK = "region = eu-west-1\n", "s3 =\n      addressing_style = path\n"
INDENTED = [
    f"[default]\n  {REGION}  {AK}  {SK}",
    f"[default]\n\t{REGION}\t{AK}\t{SK}",
    f"[default]\n\t{REGION} {AK}\t{SK}",  # a tab is as deep as a space
    f"[default]\n  {REGION}{AK}{SK}",
    f"[default]\n    {REGION}  {AK}{SK}",
    f"[default]\n  {REGION}\n# one\n      ; two\n  {AK}\n  {SK}",
    f"  [default]\n{REGION}{AK}{SK}",
    f"  [default]\n  {REGION}  {AK}  {SK}",
    f"[default]\n  {BLOCK}  {REGION}  {AK}  {SK}",
    f"[default]\n  {AK}  {SK}  {BLOCK}# one\n  {REGION}",
    f"[default]\n  {AK}  {SK}  {REGION}[profile x]\n  region = eu-west-2\n",
    f"[profile x]\n  region = eu-west-2\n  [default]\n{REGION}{AK}{SK}",
    f"[profile x]\nregion = eu-west-2\n  [default]\n{REGION.replace('region', 'output')}",  # no header, but more of the region
    # Two sections of one profile
    f"[default]\nregion = eu-west-2\n[profile default]\n{REGION}{AK}{SK}",
    f"[profile default]\n{REGION}{AK}{SK}",
]


@pytest.mark.parametrize("file", INDENTED, ids=range(len(INDENTED)))
def test_profiles_are_read_as_botocore_reads_them(config, file):
    _, found = config({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, file)
    theirs = load_config(str(config.path))["profiles"].get("default", {})
    ours = {name: found.get(row, ("", ""))[0][-4:] for name, row in [("region", "region"), ("aws_access_key_id", "access_key")]}
    standard = {"region": "us-east-1"}
    assert ours == {name: theirs.get(name, standard.get(name, ""))[-4:] for name in ours}
    style = theirs["s3"]["addressing_style"] if "s3" in theirs else "auto"
    assert found["s3.addressing_style"][0] == style


def test_profile_default_counts_before_default(config):
    """By the rules of "Shared config and credentials files"; botocore takes the last one."""
    _, found = config({}, f"[profile default]\n{REGION}[default]\nregion = eu-west-2\n")
    assert found["region"] == ("eu-west-1", f"region of [profile default] in {config.path}")


@pytest.mark.parametrize("of_credentials", [False, True])
def test_a_setting_that_swallowed_a_secret_is_not_shown(config, tmp_path, of_credentials):
    file = f"[default]\n{REGION}  {SK}"
    (tmp_path / "credentials").write_text(file if of_credentials else "")
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    run, _ = config(env, "" if of_credentials else file)
    path = tmp_path / ("credentials" if of_credentials else "config")
    assert run.code == 3 and f"{path}: region of [default] goes on in a line" in run.err, run
    assert SECRET not in run.out + run.err


def test_secrets_are_masked(config, s3once):
    env = {"AWS_SESSION_TOKEN": "sessionsecret", "HTTPS_PROXY": "http://me:proxysecret@proxy:3128", "NO_PROXY": "localhost"}
    run, found = config(env, "")
    assert found["access_key"] == ("*" * 16 + KEY[-4:], "environment")
    assert found["secret_key"][0] == found["session_token"][0] == "*" * 16
    assert found["proxy_of_https"] == ("http://****@proxy:3128", "HTTPS_PROXY") and found["no_proxy"][0] == "localhost"
    for text in (run.out, s3once("config", env=env).out):
        for secret in (KEY, SECRET, "sessionsecret", "proxysecret"):
            assert secret not in text


@pytest.mark.parametrize("expiration", ["2099-01-01T00:00:00Z", "2098-12-31T19:00:00-05:00"])
def test_credentials_of_a_profile(config, expiration):
    env = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    keys = {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET, "Expiration": expiration}
    run, found = config(env, f"[default]\ncredential_process = echo '{json.dumps(keys)}'\n")
    assert run.code == 0 and found["access_key"][1] == "credential_process", run
    assert found["credentials_expire"][0] == "2099-01-01T00:00:00Z"


def test_without_credentials_the_rest_is_told(config):
    run, found = config({"AWS_ACCESS_KEY_ID": None}, "")
    assert run.code == 3 and "no credentials" in run.err, run
    assert found["s3_endpoint"] == (AWS_S3, "AWS") and "access_key" not in found


@pytest.mark.parametrize(
    ("env", "file", "sentence"),
    [
        ({"AWS_USE_FIPS_ENDPOINT": "1"}, "", "AWS_USE_FIPS_ENDPOINT is 1: it must be false or true"),
        ({"AWS_RETRY_MODE": "eager"}, "", "AWS_RETRY_MODE is eager: it must be legacy, standard or adaptive"),
        ({}, "[default]\nmax_attempts = many\n", "max_attempts of [default] in "),
        ({}, "[default]\ns3 =\n  addressing_style = diagonal\n", "it must be auto, virtual or path"),
        ({"AWS_ENDPOINT_URL_S3": "ftp://h"}, "", "ftp://h cannot be used"),
        ({"AWS_REGION": "Frankfurt"}, "", "Frankfurt is not a region"),
        ({"AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_REGION": "local"}, "", "has no FIPS and no dualstack endpoint"),
        ({"AWS_USE_FIPS_ENDPOINT": "true", "AWS_REGION": "cn-north-1"}, "", "no FIPS endpoints in China"),
    ],
)
def test_wrong_values_are_refused(config, env, file, sentence):
    run, _ = config(env, file)
    assert run.code == 3 and sentence in run.err, run
