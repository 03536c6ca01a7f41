"""Makes tests/suites/credentials.tsv anew, of a clone of smithy-lang/smithy-rs.

    tests/setup/suites/credentials.py CLONE

A row is one case: what the environment and the files have, the requests that AWS's SDKs send for credentials with the answers
to them, and the credentials that come out. For chains of profiles, containers and the metadata service the suite has only what
is asked; the answers to that are made up here. Moments are in the year 2099, so that nothing has expired.
"""

import base64
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs

from repository import Repository, write_table

DATA = "aws/rust-runtime/aws-config/test-data"
COLUMNS = ["suite", "case", "profile", "env", "files", "requests", "access_key", "secret", "token"]
# Files with absolute paths are below a folder of the test.
ROOT = re.compile(r"(?<![\w.:/-])/(home|token\.jwt|var/token\.jwt)")
MOMENT = re.compile(r"\b(?:19|20)\d\d(-\d\d-\d\dT\d\d:\d\d:\d\d)")
LATER_MS = 4070908800000
KEYS = ("access_key_id", "secret_access_key", "session_token")


def later(text):
    text = MOMENT.sub(r"2099\1", text)
    return re.sub(r'("expiration": ?)\d{13}', rf"\g<1>{LATER_MS}", text)


def later_in_base64(text):
    """A program that prints credentials has them so in its command line."""
    again = lambda found: base64.b64encode(later(base64.b64decode(found[0]).decode()).encode()).decode()
    return re.sub(r"[A-Za-z0-9+/]{100,}={0,2}", again, text) if "base64 " in text else text


def placed(text):
    return ROOT.sub(r"{root}/\1", text)


def flat(body):
    return later(re.sub(r"\s*\n\s*", "", body))


def recorded(traffic):
    """[method, url, parameters, by whom it is signed, status, answer] of each request that was recorded."""
    connections = {}
    for event in traffic["events"]:
        action, at = event["action"], connections.setdefault(event["connection_id"], ["", "", {}, "", 0, ""])
        if "Request" in action:
            request = action["Request"]["request"]
            at[:2] = request["method"], request["uri"]
        elif "Response" in action:
            at[4] = action["Response"]["response"]["Ok"]["status"]
        elif "Data" in action:
            text = action["Data"]["data"].get("Utf8", "")
            if action["Data"]["direction"] == "Request":
                at[2] = {name: value[0] for name, value in parse_qs(text).items() if name == "Action"}
            elif at[4] < 400 or text.startswith("<ErrorResponse"):
                at[5] += flat(text)
    return [request for request in connections.values() if request[0]]


def chains(clone, suite, folder):
    """Cases that are recorded whole. Those of a profile alone ask nobody else."""
    for path in sorted({file.split("/")[5] for file in clone.files(f"{DATA}/{folder}")}):
        read = lambda name: clone.json(f"{DATA}/{folder}/{path}/{name}")
        env, expected = read("env.json"), read("test-case.json")["result"]
        profile = ""
        if suite == "Profile provider":
            profile, env = "default", {**env, "AWS_EC2_METADATA_DISABLED": "true"}
        begin = f"{DATA}/{folder}/{path}/fs/"
        files = {file[len(begin) :]: clone.read(file) for file in clone.files(begin[:-1])}
        files = {name: placed(later_in_base64(later(text))) for name, text in files.items() if name.startswith(("home/", "token"))}
        env = {name: placed(value) for name, value in env.items() if not name.startswith("EXPOSE")}
        if "Err" in "".join(expected):
            found = ["", "", ""]
        else:
            found = [expected["Ok"].get(name, "") for name in KEYS]
        yield [suite, path, profile, env, files, recorded(read("http-traffic.json")), *found]


def instance(url, keys):
    """The requests of the metadata service at this URL."""
    roles = f"{url}/latest/meta-data/iam/security-credentials/"
    answer = {"Code": "Success", "AccessKeyId": keys[0], "SecretAccessKey": keys[1], "Token": keys[2], "Expiration": "2099-01-01T00:00:00Z"}
    return [
        ["PUT", f"{url}/latest/api/token", {}, "", 200, "metadata-token"],
        ["GET", roles, {}, "", 200, "role"],
        ["GET", f"{roles}role", {}, "", 200, json.dumps(answer)],
    ]


def keys_of(n):
    return [f"ASIAMADE{n}", f"made-secret-{n}", f"made-token-{n}"]


def sts(action, asked, signer, keys):
    names = {"role_arn": "RoleArn", "role_session_name": "RoleSessionName", "external_id": "ExternalId"}
    parameters = {"Action": action, **{names[name]: value for name, value in asked.items() if name in names}}
    answer = "".join(
        f"<{name}>{value}</{name}>"
        for name, value in zip(("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"), [*keys, "2099-01-01T00:00:00Z"])
    )
    body = f"<{action}Response><{action}Result><Credentials>{answer}</Credentials></{action}Result></{action}Response>"
    return ["POST", "https://sts.us-east-1.amazonaws.com/", parameters, signer, 200, body]


def requests_of(chain, files):
    """The requests of a chain of profiles, and the credentials at its end."""
    requests, keys = [], ["", "", ""]
    for n, step in enumerate(chain):
        ((kind, asked),) = step.items()
        before, keys = keys, keys_of(n)
        if kind == "AccessKey":
            keys = [asked["access_key_id"], asked["secret_access_key"], ""]
        elif kind == "AssumeRole":
            requests.append(sts("AssumeRole", asked, before[0], keys))
        elif kind == "WebIdentityToken":
            files[asked["web_identity_token_file"][1:]] = "a-token"
            requests.append(sts("AssumeRoleWithWebIdentity", asked, "", keys))
        elif kind == "Sso":
            name = hashlib.sha1(asked["sso_start_url"].encode()).hexdigest()
            files[f"home/.aws/sso/cache/{name}.json"] = json.dumps({"accessToken": "a-token", "expiresAt": "2099-01-01T00:00:00Z"})
            query = f"account_id={asked['sso_account_id']}&role_name={asked['sso_role_name']}"
            url = f"https://portal.sso.{asked['sso_region']}.amazonaws.com/federation/credentials?{query}"
            names = dict(zip(("accessKeyId", "secretAccessKey", "sessionToken"), keys))
            requests.append(["GET", url, {}, "", 200, json.dumps({"roleCredentials": {**names, "expiration": LATER_MS}})])
        else:
            assert (kind, asked) == ("NamedSource", "Ec2InstanceMetadata")
            requests += instance("http://169.254.169.254", keys)
    return requests, keys


def roles(clone, others):
    for test in clone.json(f"{DATA}/assume-role-tests.json"):
        given, expected = test["input"], test["output"]
        sections = [(f"profile {name}", keys) for name, keys in given["profiles"].items()]
        sections += [(f"sso-session {name}", keys) for name, keys in given.get("sso_sessions", {}).items()]
        config = "".join(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()) for name, keys in sections)
        files = {"home/.aws/config": placed(config)}
        chain = expected.get("ProfileChain", [])
        if any("Sso" in step and "sso_role_name" not in step["Sso"] for step in chain):
            others["Chains of roles", "a token of SSO that stands for no role"] += 1
            continue
        needs_host = any("NamedSource" in step for step in chain)
        env = {"HOME": "{root}/home", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "false" if needs_host else "true"}
        yield ["Chains of roles", test["docs"], given["selected_profile"], env, files, *end(requests_of(chain, files))]


def end(found):
    requests, keys = found
    return [requests, *keys]


def containers(clone):
    for test in clone.json(f"{DATA}/ecs-tests.json")["tests"]:
        url, keys = test["result"].get("Ok"), keys_of(0)
        answer = dict(zip(("AccessKeyId", "SecretAccessKey", "Token", "Expiration"), [*keys, "2099-01-01T00:00:00Z"]))
        requests = [["GET", url, {}, "", 200, json.dumps(answer)]] if url else []
        env = {"HOME": "{root}/home", "AWS_EC2_METADATA_DISABLED": "true", **test["env"]}
        yield ["Containers", test["docs"], "", env, {}, requests, *(keys if url else ["", "", ""])]


def metadata(clone, others):
    for test in clone.json(f"{DATA}/imds-config/imds-endpoint-tests.json")["tests"]:
        if "mode_override" in test or "endpoint_override" in test:
            others["Metadata of instances", "a setting of a program of one's own"] += 1
            continue
        url, keys = test["result"].get("Ok"), keys_of(0)
        requests = instance(url.removesuffix("/latest/api/token"), keys) if url else []
        env = {"HOME": "{root}/home", **test["env"]}
        if "AWS_CONFIG_FILE" in env:
            env["AWS_CONFIG_FILE"] = "{root}/" + env["AWS_CONFIG_FILE"]
        yield ["Metadata of instances", test["docs"], "", env, test["fs"], requests, *(keys if url else ["", "", ""])]


def logins(clone):
    """Sessions of `aws login`, whose token is in a file."""
    for test in clone.json(f"{DATA}/login-provider-test-cases.json"):
        env = {"HOME": "{root}/home", "AWS_EC2_METADATA_DISABLED": "true"}
        first = test["outcomes"][0]
        found = [first.get(name, "") for name in ("accessKeyId", "secretAccessKey", "sessionToken")]
        files = {"home/.aws/config": test["configContents"]}
        yield ["Sessions of aws login", test["documentation"], "signin", env, files, [], *found]


def main():
    clone, others = Repository(sys.argv[1], "smithy-lang/smithy-rs"), Counter()
    rows = [
        *chains(clone, "Chain of credentials", "default-credential-provider-chain"),
        *chains(clone, "Profile provider", "profile-provider"),
        *roles(clone, others),
        *containers(clone),
        *metadata(clone, others),
        *logins(clone),
    ]
    cells = [[json.dumps(cell) if isinstance(cell, (dict, list)) else cell for cell in row] for row in rows]
    source = f"{DATA} of {clone.name}, {clone.date}, by tests/setup/suites/credentials.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "credentials.tsv", source, others, COLUMNS, cells)


main()
