"""Every way to credentials, from nothing but its environment or files to objects in S3, and runs that outlive them. Who
hands out keys is a fake (fakes_*.py); what they are good for is checked at the real server's door (fakes_keys.py)."""

import asyncio
import json
import socket
import time

import pytest

from tests.faults import faults
from tests.system.fakes_keys import ANSWER, Keys
from tests.system.fakes_metadata import Agent, Imds
from tests.system.fakes_sso import Sso, cache_file, utc
from tests.system.fakes_sts import ROLE, Sts
from tests.system.harness import MIB, make_tree, wait_until

NOTHING = dict.fromkeys(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
LARGE = ["--part-size", "5MiB", "--concurrency", "2"]


@pytest.fixture
def keys(s3_wire):
    keys = Keys()
    s3_wire.add(keys.gate, times=None)
    return keys


@pytest.fixture
def aws(s3once):
    """~/.aws"""
    folder = s3once.home / ".aws"
    folder.mkdir()
    return folder


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"small": 100, "folder/large": 12 * MIB})


@pytest.fixture
def uploads(s3once, s3, bucket, tree, keys):
    """uploads(env) pushes as who has only these variables, and checks objects and whose keys they were."""

    def check(source, env=None, *options):
        run = s3once("push", *LARGE, *options, tree, f"s3://{bucket}/p", env={**NOTHING, **(env or {})})
        assert run.code == 0, run
        s3.assert_same(tree, bucket, "p")
        assert set(keys.used()) == {source}
        no_secrets(run, keys)
        return run

    return check


def no_secrets(run, keys):
    for key in keys.all.values():
        assert key.secret not in run.out + run.err and key.token not in run.out + run.err


def file_of(key, profile="default"):
    return (
        f"[{profile}]\naws_access_key_id = {key.access_key}\naws_secret_access_key = {key.secret}\n"
        f"aws_session_token = {key.token}\n"
    )


def put(path, text, mode=0o600):
    """Replaces the file like tools that renew credentials: readers never see half a file."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(mode)
    fresh.rename(path)


# --- environment and files


TOKENS = pytest.mark.parametrize("token", ["session_token", "security_token"])


@TOKENS
def test_environment(uploads, keys, token):
    key = keys.issue("environment")
    uploads(
        "environment",
        {"AWS_ACCESS_KEY_ID": key.access_key, "AWS_SECRET_ACCESS_KEY": key.secret, f"AWS_{token.upper()}": key.token},
    )


@TOKENS
def test_credentials_file(uploads, keys, aws, token):
    put(aws / "credentials", file_of(keys.issue("file")).replace("session_token", token))
    uploads("file")


def test_config_file(uploads, keys, aws):
    put(aws / "config", file_of(keys.issue("file"), "profile work"))
    uploads("file", {"AWS_PROFILE": "work"})


def test_a_session_of_aws_login_before_the_keys_beside_it(s3once, bucket, keys, aws, tree):
    """The AWS CLI takes the session, so that the keys would be another identity than its own."""
    put(aws / "config", file_of(keys.issue("file")) + "login_session = arn:aws:iam::123456789012:user/u\n")
    run = s3once("push", tree, f"s3://{bucket}", env=NOTHING, timeout=20)
    assert run.code == 3 and "export-credentials --profile default" in run.err and not keys.used(), run


def before_the_gate(s3_wire, fault, kind, nth):
    """Adds a rule for the nth request of this kind, before the one that looks at the keys of each request."""
    (gate,) = s3_wire.rules
    s3_wire.rules = []
    rule = s3_wire.add(fault, kind, nth=nth)
    s3_wire.rules = [rule, gate]
    return rule


def test_the_run_goes_on_with_a_file_that_changes_in_the_middle(s3once, s3, bucket, keys, aws, s3_wire, tree):
    """Before the old ones end: found by looking at the file, without a refused request."""
    old, new = keys.issue("old"), keys.issue("new")
    put(aws / "credentials", file_of(old))
    stop = before_the_gate(s3_wire, faults.hold_request, "UploadPart", 2)
    stop.fault = hold_then(keys)
    run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=NOTHING)
    assert stop.reached.wait(60)
    put(aws / "credentials", file_of(new))
    time_of_look = time.monotonic() + 4  # the file is looked at every 2 s
    wait_until(lambda: time.monotonic() > time_of_look, what="a look at the file")
    stop.released.set()
    result = run.wait()
    assert result.code == 0, result
    s3.assert_same(tree, bucket, "p")
    assert "UploadPart" in old.uses and new.uses
    assert all(record.answered < 400 or record.answered == 404 for record in s3_wire.history), s3_wire.history


def hold_then(keys):
    async def hold(x, rule):
        await x.body()
        await x.hold(rule)
        await keys.gate(x, rule)

    return hold


@pytest.mark.parametrize("late", [False, True], ids=["before", "after a while"])
def test_expired_in_the_middle_and_renewed_in_the_file(s3once, s3, bucket, keys, aws, s3_wire, tree, late):
    """The server says ExpiredToken in the middle of a multipart upload: the file is read again; if there is nothing new
    in it yet, the run pauses."""
    old, new = keys.issue("old"), keys.issue("new")
    put(aws / "credentials", file_of(old))

    async def expire(x, rule):
        old.expires = 0
        if not late:
            put(aws / "credentials", file_of(new))
        await keys.gate(x, rule)

    before_the_gate(s3_wire, expire, "UploadPart", 2)
    run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=NOTHING)
    if late:
        wait_until(lambda: "paused: the credentials" in run.output()[1], what="the pause")
        put(aws / "credentials", file_of(new))
    result = run.wait()
    assert result.code == 0, result
    assert result.err.count("paused: the credentials") == late
    s3.assert_same(tree, bucket, "p")
    assert "UploadPart" in new.uses
    no_secrets(result, keys)


def test_a_pause_that_lasts_too_long_ends_the_run(s3once, s3, bucket, keys, aws, s3_wire, tmp_path):
    """Not every file fails: the run ends, having said it once."""
    tree = make_tree(tmp_path / "many", {str(i): 10 for i in range(50)})
    key = keys.issue("old")
    put(aws / "credentials", file_of(key))

    async def expire(x, rule):
        key.expires = 0
        await keys.gate(x, rule)

    before_the_gate(s3_wire, expire, "PutObject", 20)
    run = s3once("push", "--request-timeout", "1s", tree, f"s3://{bucket}", env=NOTHING, timeout=60)
    assert run.code == 3, run
    assert run.err.count("paused: the credentials") == 1
    assert run.err.count("error:") == 1 and "no valid credentials for 5 s" in run.err, run
    assert 0 < len(s3.objects(bucket)) < 50


def test_keys_of_the_environment_that_expire_are_not_waited_for(s3once, s3, bucket, keys, s3_wire, tmp_path):
    """They cannot be renewed during the run, so it ends at once, with one message."""
    tree = make_tree(tmp_path / "many", {str(i): 10 for i in range(50)})
    key = keys.issue("old")

    async def expire(x, rule):
        key.expires = 0
        await keys.gate(x, rule)

    before_the_gate(s3_wire, expire, "PutObject", 20)
    own = {"AWS_ACCESS_KEY_ID": key.access_key, "AWS_SECRET_ACCESS_KEY": key.secret, "AWS_SESSION_TOKEN": key.token}
    run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **own}, timeout=60)
    assert run.code == 3 and "paused" not in run.err, run
    assert run.err.count("error:") == 1 and "the credentials have expired" in run.err, run
    assert 0 < len(s3.objects(bucket)) < 50


# --- credential_process


def helper(tmp_path, text, name="helper"):
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_process(uploads, keys, aws, tmp_path):
    (tmp_path / "a folder").mkdir()
    answer = json.dumps({"Version": 1, **keys.issue("process").as_json("SessionToken")})
    path = helper(tmp_path / "a folder", f'[ "$#" = 2 ] && [ "$2" = \'$HOME *\' ] && echo \'{answer}\'')
    put(aws / "config", f"[default]\ncredential_process = '{path}' --for '$HOME *'\n")
    uploads("process")


def test_process_of_a_shell(uploads, keys, aws, tmp_path):
    """A # in quotes is no comment, even behind a space."""
    put(tmp_path / "answer", json.dumps({"Version": 1, **keys.issue("process").as_json("SessionToken")}))
    put(aws / "config", f"[default]\ncredential_process = /bin/sh -c \"true ; cat {tmp_path}/answer # all of it\" ; a comment\n")
    uploads("process")


def test_process_is_run_again_before_its_credentials_expire(s3once, s3, bucket, keys, aws, tmp_path, s3_wire, tree):
    """One file of many parts, slowly, with credentials of four seconds: none of them signs when it has expired. A slow host may
    be late with what was signed in time, and S3 takes it."""
    made = tmp_path / "answers"
    made.mkdir()
    answer = f"n=$(ls {made}/*.asked 2>/dev/null | wc -l); touch {made}/$n.asked; while [ ! -e {made}/$n ]; do sleep 0.02; done; cat {made}/$n"
    path = helper(tmp_path, answer)
    put(aws / "config", f"[default]\ncredential_process = {path}\n")

    def issue(n):
        key = keys.issue(f"process {n}", 4)
        key.patience = 60
        put(made / "new", json.dumps({"Version": 1, **key.as_json("SessionToken")}))
        (made / "new").rename(made / str(n))

    s3_wire.latency = 0.7
    make_tree(tree, {"folder/large": 60 * MIB})
    run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=NOTHING)
    n = 0
    while run.popen.poll() is None:
        if (made / f"{n}.asked").exists():
            issue(n)
            n += 1
        time.sleep(0.02)
    result = run.wait()
    assert result.code == 0 and "paused" not in result.err, result
    s3.assert_same(tree, bucket, "p")
    users = [key for key in keys.all.values() if "UploadPart" in key.uses]
    assert len(users) >= 2
    assert all(signed < key.expires for key in keys.all.values() for signed in key.signed)
    assert all(record.answered < 400 or record.answered == 404 for record in s3_wire.history)


def test_process_that_gives_refused_keys_a_later_expiry(s3once, s3, bucket, keys, aws, tmp_path, s3_wire, tree):
    """They are the same keys: the run pauses, and goes on with others."""
    old = keys.issue("old")
    answer, calls = tmp_path / "answer", tmp_path / "calls"
    put(answer, json.dumps({"Version": 1, **old.as_json("SessionToken"), "Expiration": "LATER"}))
    later = f"echo >>{calls}; n=$(wc -l <{calls}); sed s/LATER/$(date -u -d \"3600 seconds $n seconds\" +%FT%TZ)/ {answer}"
    put(aws / "config", f"[default]\ncredential_process = {helper(tmp_path, later)}\n")

    async def expire(x, rule):
        old.expires = 0
        await keys.gate(x, rule)

    before_the_gate(s3_wire, expire, "UploadPart", 2)
    run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=NOTHING)
    wait_until(lambda: "paused: the credentials" in run.output()[1], what="the pause")
    put(answer, json.dumps({"Version": 1, **keys.issue("new").as_json("SessionToken")}))
    result = run.wait()
    assert result.code == 0 and result.err.count("paused: the credentials") == 1, result
    s3.assert_same(tree, bucket, "p")
    assert keys.used() == ["old", "new"]


def test_process_that_fails_for_a_while(s3once, s3, bucket, keys, aws, tmp_path, s3_wire, tree):
    """Its credentials expire meanwhile: the run pauses, says so once, and goes on."""
    answer, flag = tmp_path / "answer", tmp_path / "fail"
    put(answer, json.dumps({"Version": 1, **keys.issue("first", 3).as_json("SessionToken")}))
    path = helper(tmp_path, f'[ ! -e {flag} ] || {{ echo "login is over" >&2; exit 7; }}; cat {answer}; touch {flag}')
    put(aws / "config", f"[default]\ncredential_process = {path}\n")
    (first,) = keys.all.values()

    async def until_it_expires(x, rule):
        while time.time() < first.expires:
            await asyncio.sleep(0.02)
        await keys.gate(x, rule)

    before_the_gate(s3_wire, until_it_expires, "UploadPart", 2)
    run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=NOTHING)
    wait_until(lambda: "paused: the credentials" in run.output()[1], what="the pause")
    put(answer, json.dumps({"Version": 1, **keys.issue("second").as_json("SessionToken")}))
    flag.unlink()
    result = run.wait()
    assert result.code == 0, result
    assert result.err.count("paused: the credentials") == 1 and result.err.count("cannot be renewed: ") <= 2
    assert "ended with status 7 and said: login is over" in result.err
    s3.assert_same(tree, bucket, "p")
    assert keys.used() == ["first", "second"]
    no_secrets(result, keys)


@pytest.mark.parametrize(
    "script, says",
    [
        ("echo no", "it printed something other than a JSON object"),
        ("exit 0", "it printed something other than a JSON object"),
        ('echo \'{"Version": 2}\'', "it printed a Version other than 1"),
        ('echo \'{"Version": 1, "AccessKeyId": "A"}\'', "it gives no SecretAccessKey"),
        (
            'echo \'{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "topsecret", "Expiration": "soon"}\'',
            "it gives an Expiration that is not a time: soon",
        ),
        (
            'echo \'{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "topsecret", '
            '"Expiration": "2020-01-01T00:00:00Z"}\'',
            "expired at 2020-01-01T00:00:00Z",
        ),
        ("yes topsecret", "it printed more than 65536 bytes"),
        ("printf 'bad \\033[31m day\\nmore' >&2; exit 3", r"it ended with status 3 and said: bad \x1b[31m day"),
        ("kill -9 $$", "it was ended by signal 9"),
    ],
)
def test_process_that_cannot_say_them(s3once, bucket, aws, tmp_path, tree, script, says):
    put(aws / "config", f"[default]\ncredential_process = {helper(tmp_path, script)}\n")
    run = s3once("push", tree, f"s3://{bucket}", env=NOTHING, timeout=20)
    assert run.code == 3, run
    assert says in run.err and "topsecret" not in run.err, run


@pytest.mark.parametrize(
    "line, says", [("/no/such/helper x", "cannot be run: No such file"), ("helper 'x", "a quotation does not end")]
)
def test_process_that_cannot_be_run(s3once, bucket, aws, tree, line, says):
    put(aws / "config", f"[default]\ncredential_process = {line}\n")
    run = s3once("push", tree, f"s3://{bucket}", env=NOTHING, timeout=20)
    assert run.code == 3 and says in run.err, run


# --- containers


def test_container(uploads, keys):
    with Agent(keys) as agent:
        uploads("container", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path})
        assert len(agent.requests) == 1


def test_container_token(uploads, keys):
    with Agent(keys, token="Basic c2VjcmV0") as agent:
        uploads(
            "container",
            {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint.replace("127.0.0.1", "localhost") + agent.path,
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": agent.token,
            },
        )


def test_eks_pod_identity(s3once, s3, bucket, keys, s3_wire, tree, tmp_path):
    """The token is a file, which is written anew from time to time: it is read at each load."""
    token = tmp_path / "eks-pod-identity-token"
    put(token, "first.token\n")
    with Agent(keys, path="/v1/credentials", token="first.token", seconds=4) as agent:
        env = {
            **NOTHING,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "not this one",
        }
        s3_wire.latency = 0.7
        make_tree(tree, {"folder/large": 60 * MIB})
        run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env=env)
        wait_until(lambda: agent.requests, what="the first load")
        agent.token = "second.token"
        put(token, "second.token\n")
        result = run.wait()
        assert result.code == 0 and "paused" not in result.err, result
        assert [headers["authorization"] for _, _, headers in agent.requests][:2] == ["first.token", "second.token"]
    s3.assert_same(tree, bucket, "p")
    assert len(keys.used()) >= 2


@pytest.mark.parametrize(
    "uri", ["http://198.51.100.7/creds", "http://169.254.170.3/creds", "http://127.0.0.1.example.org/", "ftp://localhost/"]
)
def test_container_only_of_hosts_that_can_be_trusted(s3once, bucket, tree, uri):
    run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, "AWS_CONTAINER_CREDENTIALS_FULL_URI": uri}, timeout=20)
    assert run.code == 3 and "it must be https, or on a loopback address" in run.err, run


@pytest.mark.parametrize("token", ["a\r\nx-evil: 1", "a\nb\n"])
def test_container_token_of_several_lines_is_refused(s3once, bucket, tree, keys, token, tmp_path):
    put(tmp_path / "token", token)
    with Agent(keys, token="a") as agent:
        env = {
            **NOTHING,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
        }
        run = s3once("push", tree, f"s3://{bucket}", env=env, timeout=20)
        assert run.code == 3 and "it has several lines" in run.err and not agent.requests, run


def test_container_that_refuses(s3once, bucket, tree, keys):
    with Agent(keys, token="secret") as agent:
        env = {**NOTHING, "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path}
        run = s3once("push", tree, f"s3://{bucket}", env=env, timeout=20)
    assert run.code == 3 and "it answers with status 401" in run.err, run


# --- EC2


def metadata(imds, **more):
    return {"AWS_EC2_METADATA_DISABLED": None, "AWS_EC2_METADATA_SERVICE_ENDPOINT": imds.endpoint + "/", **more}


def test_imds(uploads, keys):
    with Imds(keys) as imds:
        uploads("imds", metadata(imds))
        assert [(method, path) for method, path, _ in imds.requests] == [
            ("PUT", "/latest/api/token"),
            ("GET", "/latest/meta-data/iam/security-credentials/"),
            ("GET", "/latest/meta-data/iam/security-credentials/uploader"),
        ]


def test_imds_out_of_order_for_a_moment(uploads, keys):
    """Each of its three answers may be a server error twice."""
    with Imds(keys) as imds:
        imds.stumbles = [(500, ""), (503, ""), ANSWER] * 3
        uploads("imds", metadata(imds))
        assert len(imds.requests) == 9


def test_imds_named_in_the_profile(uploads, keys, aws):
    with Imds(keys) as imds:
        put(aws / "config", f"[default]\nec2_metadata_service_endpoint = {imds.endpoint}\n")
        uploads("imds", {"AWS_EC2_METADATA_DISABLED": "false"})


def test_imds_and_containers_without_the_proxy(s3once, bucket, tree, keys):
    """Services of this host are never reached through a proxy. (S3 is, so the run ends there.)"""
    dead = {"http_proxy": "http://127.0.0.1:9"}
    with Imds(keys) as imds, Agent(keys) as agent:
        command = ["push", "--give-up-after", "1s", tree, f"s3://{bucket}"]
        run = s3once(*command, env={**NOTHING, **dead, **metadata(imds)}, timeout=60)
        assert run.code == 3 and len(imds.requests) == 3, run
        uri = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path}
        run = s3once(*command, env={**NOTHING, **dead, **uri}, timeout=60)
        assert run.code == 3 and len(agent.requests) == 1, run


def test_imds_is_renewed_and_outlives_an_outage(s3once, s3, bucket, keys, s3_wire, tree):
    with Imds(keys, seconds=4) as imds:
        s3_wire.latency = 0.7
        make_tree(tree, {"folder/large": 60 * MIB})
        run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env={**NOTHING, **metadata(imds)})
        wait_until(lambda: len(imds.requests) >= 3, what="the first load")
        imds.failing = 503
        wait_until(lambda: "paused: the credentials" in run.output()[1], what="the pause")
        imds.failing = None
        result = run.wait()
    assert result.code == 0 and result.err.count("paused: the credentials") == 1, result
    s3.assert_same(tree, bucket, "p")
    assert len(keys.used()) >= 2


def test_imds_version_1_only_if_asked_for(uploads, s3once, bucket, tree, keys):
    with Imds(keys, version=1) as imds:
        run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **metadata(imds)}, timeout=20)
        assert run.code == 3 and "it returned no token" in run.err, run
        assert len(imds.requests) == 1
        uploads("imds", metadata(imds, AWS_EC2_METADATA_V1_DISABLED="false"))


def test_imds_disabled_is_not_asked(s3once, bucket, tree, keys):
    with Imds(keys) as imds:
        env = {**NOTHING, **metadata(imds), "AWS_EC2_METADATA_DISABLED": "True"}
        run = s3once("push", tree, f"s3://{bucket}", env=env)
        assert run.code == 3 and not imds.requests and "AWS_EC2_METADATA_DISABLED is set" in run.err, run


@pytest.mark.parametrize(
    "how, says",
    [
        ({"role": None}, "the instance has no role"),
        ({"answer": (200, {"Code": "AssumeRoleUnauthorizedAccess"})}, "it answers AssumeRoleUnauthorizedAccess"),
        ({"answer": (200, "<html>")}, "its reply is not a JSON object"),
        ({"role": "a role"}, "it does not name the role"),
    ],
)
def test_imds_without_credentials(s3once, bucket, tree, keys, how, says):
    with Imds(keys, **how) as imds:
        run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **metadata(imds)}, timeout=20)
    assert run.code == 3 and says in run.err, run


def test_imds_that_never_answers_costs_a_second(s3once, bucket, tree):
    """On a laptop the address leads nowhere; in a container the reply to the token's request may be lost."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {
            **NOTHING,
            "AWS_EC2_METADATA_DISABLED": None,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        run = s3once("push", tree, f"s3://{bucket}", env=env)
    assert run.code == 3 and "no credentials: AWS_ACCESS_KEY_ID is not set" in run.err, run
    assert 0.9 < run.seconds < 20


# --- roles

BASE = "[base]\naws_access_key_id = AKIABASE\naws_secret_access_key = baseSecret\n"
KNOWN = {"AKIABASE": ("baseSecret", "base")}


def sts_env(sts, **more):
    return {"AWS_ENDPOINT_URL_STS": sts.endpoint, **more}


def test_role_of_a_source_profile(uploads, keys, aws):
    wanted = {"ExternalId": "a+b/c =d", "RoleSessionName": "nightly@host", "DurationSeconds": "1800"}
    put(aws / "credentials", BASE)
    put(
        aws / "config",
        f"[profile work]\nrole_arn = {ROLE}up\nsource_profile = base\nexternal_id = a+b/c =d\n"
        "role_session_name = nightly@host\nduration_seconds = 1800\n",
    )
    with Sts(keys, {"up": wanted}, KNOWN) as sts:
        uploads("up", sts_env(sts, AWS_PROFILE="work", AWS_REGION="eu-west-1"))
        assert sts.assumed == [("up", "base", wanted)]
        assert "/eu-west-1/sts/aws4_request" in sts.requests[0][2]["authorization"]


def test_chain_of_roles(uploads, keys, aws):
    put(
        aws / "config",
        f"[default]\nrole_arn = {ROLE}c\nsource_profile = b\n[profile b]\nrole_arn = {ROLE}b\nsource_profile = a\n"
        f"[profile a]\nrole_arn = {ROLE}a\nsource_profile = base\n[profile base]\nregion = us-east-1\n",
    )
    put(aws / "credentials", BASE)
    with Sts(keys, {"a": {}, "b": {}, "c": {}}, KNOWN) as sts:
        uploads("c", sts_env(sts))
        assert [assumed[:2] for assumed in sts.assumed] == [("a", "base"), ("b", "a"), ("c", "b")]
        assert all(parameters["RoleSessionName"].startswith("s3once-") for _, _, parameters in sts.assumed)


def test_role_of_a_profile_that_is_its_own_source(uploads, keys, aws):
    put(aws / "config", f"[profile base]\nrole_arn = {ROLE}up\nsource_profile = base\n")
    put(aws / "credentials", BASE)
    with Sts(keys, {"up": {}}, KNOWN) as sts:
        uploads("up", sts_env(sts, AWS_PROFILE="base"))


@pytest.mark.parametrize(
    "kind, written",
    [("Environment", "Environment"), ("EcsContainer", "ecscontainer"), ("Ec2InstanceMetadata", "EC2InstanceMetadata")],
)
def test_role_of_a_credential_source(uploads, keys, aws, kind, written):
    """Written as people write it: botocore does not mind."""
    put(aws / "config", f"[default]\nrole_arn = {ROLE}up\ncredential_source = {written}\n")
    with Sts(keys, {"up": {}}, KNOWN) as sts, Imds(keys) as imds, Agent(keys) as agent:
        env = {
            "Environment": {"AWS_ACCESS_KEY_ID": "AKIABASE", "AWS_SECRET_ACCESS_KEY": "baseSecret"},
            "EcsContainer": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + agent.path},
            "Ec2InstanceMetadata": metadata(imds),
        }[kind]
        # As an option, since keys of the environment come before a profile that nobody named.
        uploads("up", sts_env(sts, **env), "--profile", "default")
        assert sts.assumed[0][1] in ("base", "container", "imds")


def test_role_is_assumed_again_before_it_ends(s3once, s3, bucket, keys, aws, s3_wire, tree):
    put(aws / "credentials", BASE)
    put(aws / "config", f"[profile work]\nrole_arn = {ROLE}up\nsource_profile = base\n")
    s3_wire.latency = 0.7
    make_tree(tree, {"folder/large": 60 * MIB})
    with Sts(keys, {"up": {}}, KNOWN, seconds=4) as sts:
        env = {**NOTHING, **sts_env(sts, AWS_PROFILE="work")}
        result = s3once("push", *LARGE, tree, f"s3://{bucket}/p", env=env)
    assert result.code == 0 and "paused" not in result.err, result
    s3.assert_same(tree, bucket, "p")
    assert len(keys.used()) >= 2


@pytest.mark.parametrize(
    "credentials, config, says",
    [
        (None, None, "HOME/credentials does not exist, and HOME/config does not exist"),
        ("[web]\naws_access_key_id = AKIA", "", "HOME/credentials has no section [default], and HOME/config has no section [default]"),
        ("[default]\naws_acess_key_id = AKIA", "[default]", "[default] in HOME/credentials has no aws_access_key_id, and [default] in HOME/config has no"),
        ("", "[profile default]\nregion = x", "and [profile default] in HOME/config has no aws_access_key_id"),
    ],
)
def test_files_without_keys(s3once, bucket, aws, tree, credentials, config, says):
    for name, text in (("credentials", credentials), ("config", config)):
        if text is not None:
            put(aws / name, text + "\n")
    run = s3once("push", tree, f"s3://{bucket}", env=NOTHING, timeout=20)
    assert run.code == 3 and says.replace("HOME", str(aws)) in run.err, run


@pytest.mark.parametrize(
    "config, says",
    [
        (f"role_arn = {ROLE}no\nsource_profile = base", r"AccessDenied, request id r-2"),
        (f"role_arn = {ROLE}up\nsource_profile = wrong", r"SignatureDoesNotMatch, request id r-2"),
        (f"role_arn = {ROLE}up", "one of source_profile and credential_source, not neither"),
        (f"role_arn = {ROLE}up\nsource_profile = base\ncredential_source = Environment", "not both"),
        (f"role_arn = {ROLE}up\nsource_profile = default", "it is its own source_profile and has no keys"),
        (f"role_arn = {ROLE}up\nsource_profile = loop", "source_profile default leads back to itself"),
        (f"role_arn = {ROLE}up\nsource_profile = nobody", "/config has no section [profile nobody])"),
        (f"role_arn = {ROLE}up\ncredential_source = Moon", "credential_source is Moon: it must be"),
        (f"role_arn = {ROLE}up\ncredential_source = Environment", "AWS_ACCESS_KEY_ID is not set"),
        (f"role_arn = {ROLE}up\nsource_profile = base\nmfa_serial = x", "mfa_serial asks for a code"),
        (f"role_arn = {ROLE}up\nsource_profile = base\nduration_seconds = long", "duration_seconds is not a number"),
    ],
)
def test_role_that_cannot_be_assumed(s3once, bucket, keys, aws, tree, config, says):
    put(aws / "credentials", BASE + "[wrong]\naws_access_key_id = AKIABASE\naws_secret_access_key = other\n")
    put(aws / "config", f"[default]\n{config}\n[profile loop]\nrole_arn = {ROLE}x\nsource_profile = default\n")
    with Sts(keys, {"up": {}}, KNOWN) as sts:
        run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **sts_env(sts)}, timeout=20)
    assert run.code == 3 and says in run.err and "baseSecret" not in run.err, run


@pytest.mark.parametrize(
    "stumbles",
    [
        [None, (500, ""), (503, "")],
        [Sts.error(400, "Throttling", "Rate exceeded")] * 3,
        [Sts.error(400, "RequestLimitExceeded", ""), Sts.error(400, "IDPCommunicationError", "")],
    ],
    ids=["no reply", "throttled", "other codes"],
)
@pytest.mark.parametrize("profile", ["work", "pod"])
def test_sts_out_of_order_for_a_moment(uploads, keys, aws, tmp_path, stumbles, profile):
    """A first load that fails is tried again a little; it does not end the run."""
    put(tmp_path / "token", "eyJ.one")
    put(aws / "credentials", BASE)
    put(
        aws / "config",
        f"[profile work]\nrole_arn = {ROLE}up\nsource_profile = base\n"
        f"[profile pod]\nrole_arn = {ROLE}up\nweb_identity_token_file = {tmp_path / 'token'}\n",
    )
    with Sts(keys, {"up": {}}, KNOWN, web_tokens=["eyJ.one"]) as sts:
        sts.stumbles = list(stumbles)
        uploads("up", sts_env(sts, AWS_PROFILE=profile))
        assert len(sts.requests) == len(stumbles) + 1


# --- web identity


def test_web_identity_of_the_environment(s3once, s3, bucket, keys, s3_wire, tree, tmp_path):
    """As in EKS. The token's file is replaced from time to time, and each assumption reads the present one."""
    token = tmp_path / "token"
    put(token, "eyJ.one.+/=\n")
    s3_wire.latency = 0.7
    make_tree(tree, {"folder/large": 60 * MIB})
    with Sts(keys, {"pod": {"RoleSessionName": "pod-1"}}, web_tokens=["eyJ.one.+/="], seconds=4) as sts:
        env = sts_env(
            sts, AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE + "pod", AWS_ROLE_SESSION_NAME="pod-1"
        )
        run = s3once.start("push", *LARGE, tree, f"s3://{bucket}/p", env={**NOTHING, **env})
        wait_until(lambda: sts.assumed, what="the first assumption")
        sts.web_tokens = ["eyJ.two"]
        put(token, "eyJ.two")
        result = run.wait()
    assert result.code == 0 and "paused" not in result.err, result
    s3.assert_same(tree, bucket, "p")
    assert len(keys.used()) >= 2 and "eyJ" not in result.out + result.err


def test_web_identity_of_a_profile_as_source_of_a_role(uploads, keys, aws, tmp_path):
    put(tmp_path / "token", "eyJ.one")
    put(
        aws / "config",
        f"[default]\nrole_arn = {ROLE}up\nsource_profile = pod\n"
        f"[profile pod]\nrole_arn = {ROLE}pod\nweb_identity_token_file = {tmp_path / 'token'}\n",
    )
    with Sts(keys, {"pod": {}, "up": {}}, web_tokens=["eyJ.one"]) as sts:
        uploads("up", sts_env(sts))
        assert [assumed[:2] for assumed in sts.assumed] == [("pod", "web identity"), ("up", "pod")]


def test_web_identity_of_the_environment_is_not_that_of_a_source_profile(uploads, keys, aws, tmp_path):
    """In a pod with an identity of its own, the keys of a source_profile are still its own."""
    put(tmp_path / "token", "eyJ.one")
    put(aws / "credentials", BASE)
    put(aws / "config", f"[profile work]\nrole_arn = {ROLE}up\nsource_profile = base\n")
    with Sts(keys, {"pod": {}, "up": {}}, KNOWN, web_tokens=["eyJ.one"]) as sts:
        pod = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": ROLE + "pod"}
        uploads("up", sts_env(sts, AWS_PROFILE="work", **pod))
        assert [assumed[:2] for assumed in sts.assumed] == [("up", "base")]


@pytest.mark.parametrize(
    "token, role, says",
    [
        ("eyJ.wrong", "pod", "InvalidIdentityToken, request id r-2"),
        (None, "pod", "cannot read a token from"),
        ("eyJ.one", None, "neither AWS_ROLE_ARN nor role_arn"),
        ("x" * 30000, "pod", "cannot read a token from"),
    ],
)
def test_web_identity_that_is_refused(s3once, bucket, keys, tree, tmp_path, token, role, says):
    if token:
        put(tmp_path / "token", token)
    with Sts(keys, {"pod": {}}, web_tokens=["eyJ.one"]) as sts:
        env = sts_env(sts, AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ROLE_ARN=role and ROLE + role)
        run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **env}, timeout=20)
    assert run.code == 3 and says in run.err and "eyJ" not in run.err, run


# --- SSO

START = "https://example.awsapps.com/start"
SSO_ROLE = "sso_account_id = 123456789012\nsso_role_name = Up+load er\n"
SSO_PLACE = f"sso_start_url = {START}\nsso_region = us-east-1\n"
SESSION = f"[default]\nsso_session = corp\n{SSO_ROLE}[sso-session corp]\n{SSO_PLACE}"
LEGACY = f"[default]\n{SSO_ROLE}{SSO_PLACE}"


def sso_env(sso):
    return {"AWS_ENDPOINT_URL_SSO": sso.endpoint, "AWS_ENDPOINT_URL_SSO_OIDC": sso.endpoint}


def login(aws, name, seconds, end="Z", **more):
    put(cache_file(aws, name), json.dumps({"accessToken": "access-1", "expiresAt": utc(seconds, end), "x": 1, **more}))


@pytest.mark.parametrize("config, name, end", [(LEGACY, START, "UTC"), (SESSION, "corp", "Z")], ids=["legacy", "session"])
def test_sso(uploads, keys, aws, config, name, end):
    put(aws / "config", config)
    login(aws, name, 3600, end)
    with Sso(keys, ["access-1"]) as sso:
        uploads("sso", sso_env(sso))
        assert len(sso.requests) == 1


def test_sso_where_the_services_section_says(uploads, keys, aws):
    """And STS, for a role by that login."""
    role = f"[profile up]\nrole_arn = {ROLE}up\nsource_profile = default\nservices = lab\n"
    client = {"clientId": "id", "clientSecret": "cs", "registrationExpiresAt": utc(86400), "refreshToken": "refresh-1"}
    login(aws, "corp", -10, **client)
    with Sso(keys, refresh="refresh-1") as sso, Sts(keys, {"up": {}}) as sts:
        urls = {"sso": sso, "sso_oidc": sso, "sts": sts}
        blocks = "".join(f"{name} =\n  endpoint_url = {server.endpoint}/\n" for name, server in urls.items())
        put(aws / "config", SESSION + role + "[services lab]\n" + blocks)
        uploads("up", {"AWS_PROFILE": "up", "AWS_ENDPOINT_URL": None})
        assert len(sso.requests) == 2 and len(sts.requests) == 1


@pytest.mark.parametrize("seconds", [-10, 600], ids=["expired", "soon"])
def test_sso_token_is_renewed(uploads, keys, aws, seconds):
    """And written where others find it."""
    put(aws / "config", SESSION)
    client = {"clientId": "id", "clientSecret": "cs", "registrationExpiresAt": utc(86400), "refreshToken": "refresh-1"}
    login(aws, "corp", seconds, **client)
    with Sso(keys, refresh="refresh-1") as sso:
        run = uploads("sso", sso_env(sso))
    path = cache_file(aws, "corp")
    token = json.loads(path.read_text())
    assert (token["accessToken"], token["refreshToken"], token["x"]) == ("access-2", "refresh-2", 1)
    assert token["expiresAt"] > utc(28000) and path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert "access-" not in run.out + run.err and "refresh-" not in run.out + run.err


@pytest.mark.parametrize("life", [0, -1, 2**63 - 1, 2**53])
def test_sso_token_of_an_impossible_life(s3once, keys, aws, life):
    put(aws / "config", SESSION)
    client = {"clientId": "id", "clientSecret": "cs", "registrationExpiresAt": utc(86400), "refreshToken": "refresh-1"}
    login(aws, "corp", -10, **client)
    with Sso(keys, refresh="refresh-1", life=life) as sso:
        run = s3once("config", env={**NOTHING, **sso_env(sso)})
    assert run.code == 3 and "the SSO token has expired: log in" in run.err, run


def test_sso_role_is_asked_for_again(s3once, s3, bucket, keys, aws, s3_wire, tree):
    put(aws / "config", SESSION)
    login(aws, "corp", 3600)
    s3_wire.latency = 0.7
    make_tree(tree, {"folder/large": 60 * MIB})
    with Sso(keys, ["access-1"], seconds=4) as sso:
        run = s3once("push", *LARGE, tree, f"s3://{bucket}/p", env={**NOTHING, **sso_env(sso)})
    assert run.code == 0 and "paused" not in run.err, run
    s3.assert_same(tree, bucket, "p")
    assert len(keys.used()) >= 2


@pytest.mark.parametrize("stumble", [None, (500, "")], ids=["no reply", "500"])
def test_sso_out_of_order_for_a_moment(uploads, keys, aws, stumble):
    """When it is asked for a token, and for the role."""
    put(aws / "config", SESSION)
    client = {"clientId": "id", "clientSecret": "cs", "registrationExpiresAt": utc(86400), "refreshToken": "refresh-1"}
    login(aws, "corp", -10, **client)
    with Sso(keys, refresh="refresh-1") as sso:
        sso.stumbles = [stumble, ANSWER, stumble]
        uploads("sso", sso_env(sso))
        assert [path.partition("?")[0] for _, path, _ in sso.requests] == ["/token"] * 2 + ["/federation/credentials"] * 2


@pytest.mark.parametrize("hours", [-2, 2])
def test_the_clock_is_that_of_who_hands_them_out(s3once, keys, aws, hours):
    """By this host's clock they would have expired, or be good for too long, and STS would refuse the signature."""
    keys.clock = hours * 3600
    put(aws / "credentials", BASE)
    put(aws / "config", SESSION + f"[profile work]\nrole_arn = {ROLE}up\nsource_profile = base\n[profile instance]\n")
    login(aws, "corp", 3600)
    with Sts(keys, {"up": {}}, KNOWN) as sts, Sso(keys, ["access-1"]) as sso, Imds(keys) as imds:
        env = {**NOTHING, **sts_env(sts), **sso_env(sso), **metadata(imds)}
        for profile in ("work", "default", "instance"):
            run = s3once("config", "--json", env={**env, "AWS_PROFILE": profile})
            expiry = {event["name"]: event["value"] for event in run.events}["credentials_expire"]
            assert run.code == 0 and utc(3000) < expiry < utc(4200), (profile, run)
        assert [by for _, by, _ in sts.assumed] == ["base"] and len(sts.requests) == 2


@pytest.mark.parametrize(
    "config, seconds, says",
    [
        (SESSION, None, "there is no SSO token: log in with `aws sso login`"),
        (SESSION, -10, "the SSO token has expired: log in"),
        (SESSION, 3600, "the SSO token is refused: log in"),
        (SESSION.replace("[sso-session corp]", "[sso-session other]"), 3600, "it needs sso_account_id, sso_role_name"),
    ],
)
def test_sso_without_a_login(s3once, bucket, keys, aws, tree, config, seconds, says):
    put(aws / "config", config)
    if seconds:
        login(aws, "corp", seconds)
    with Sso(keys) as sso:
        run = s3once("push", tree, f"s3://{bucket}", env={**NOTHING, **sso_env(sso)}, timeout=20)
    assert run.code == 3 and says in run.err, run
