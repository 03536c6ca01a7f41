"""The policies of config/iam against AWS's service authorization reference, against what whole runs really ask for, and as an
evaluator of policies by others (iam-simulate) understands them."""

import fnmatch
import json
import re
import subprocess

import pytest

from tests.faults import faults
from tests.servers.base import npm_package
from tests.suites.suite import Suite, read_table
from tests.system.harness import MIB, REPOSITORY, make_tree
from tests.system.test_permissions import OF_BUCKET, OPERATIONS, policies, wires  # noqa: F401
from tests.system.watching import Watched

ROWS, _ = read_table("permissions")
REFERENCE = {row["action"]: (json.loads(row["resources"]), json.loads(row["condition_keys"])) for row in ROWS}
IAM = REPOSITORY / "config" / "iam"
# Reads requests with the policies that hold for them, and prints what becomes of each.
EVALUATE = """
import { readFileSync } from "fs"
const { runSimulation } = await import(process.argv[1])
const said = []
for (const request of JSON.parse(readFileSync(0, "utf8"))) said.push((await runSimulation(request, {})).overallResult ?? "not valid")
console.log(JSON.stringify(said))
"""
ACCOUNT = "123456789012"


def evaluate(requests):
    """The verdict of iam-simulate for each (action, arn, statements, bucket policy or None, context)."""
    package = npm_package("@cloud-copilot/iam-simulate")
    if not package:
        pytest.skip("iam-simulate is not installed here: tests/setup/install test")
    asked = [
        {
            "request": {
                "principal": f"arn:aws:iam::{ACCOUNT}:user/s3once",
                "action": action,
                "resource": {"resource": arn, "accountId": ACCOUNT},
                "contextVariables": context,
            },
            "identityPolicies": [{"name": "own", "policy": {"Version": "2012-10-17", "Statement": statements}}],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
            **({"resourcePolicy": bucket} if bucket else {}),
        }
        for action, arn, statements, bucket, context in requests
    ]
    argv = ["node", "--input-type=module", "-e", EVALUATE, (package / "dist" / "esm" / "index.js").as_uri()]
    return json.loads(subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, timeout=120, check=True).stdout)


def statements():
    """(policy, statement, action) of all policies, that of the bucket too."""
    for path in sorted(IAM.glob("*.json")):
        policy = json.loads(path.read_text())
        for statement in policy.get("Statement", []):
            actions = statement["Action"]
            for action in [actions] if isinstance(actions, str) else actions:
                yield path.stem, statement, action


def test_the_reference_knows_them():
    """Action, kind of resource and condition keys of each statement; and each action that the page names."""
    suite = Suite("Permissions, named")
    for policy, statement, action in statements():
        arns, keys = REFERENCE.get(action, ([], []))
        pattern = statement["Resource"].replace("*", "x")
        kinds = [re.sub(r"\\\$\\\{\w+\\\}", "[^:/]*", re.escape(arn)).replace("[^:/]*$", ".*") for arn in arns]
        fits = any(re.fullmatch(kind, pattern) for kind in kinds)
        asked = [key for terms in statement.get("Condition", {}).values() for key in terms]
        suite.count(fits and set(asked) <= set(keys), "", (policy, action, kinds, pattern))
    page = (REPOSITORY / "docs" / "permissions.md").read_text()
    for action in sorted(set(re.findall(r"`((?:s3|dynamodb|kms|sts):[A-Z]\w+)`", page))):
        is_key = any(action in keys for _, keys in REFERENCE.values())
        suite.count(action in REFERENCE or is_key, "", action)
    suite.compare_with_page()


def asked_by(names, record, table):
    """[(action, arn)] that a request needs, for the bucket and the tables as the policies name them. Locks have their own."""
    operation = record.operation
    if operation.statements:
        kinds = {"PutItem": "dynamodb:PartiQLInsert", "UpdateItem": "dynamodb:PartiQLUpdate"}
        found = {(kinds[one.kind.partition(":")[0]], one.table) for one in operation.statements}
    else:
        kind = operation.kind.partition(":")[0]
        found = {(OPERATIONS[kind][0], operation.table)}
        if operation.version:
            found.add(("s3:GetObjectVersion", None))
        if record.headers.get("x-amz-tagging"):
            found.add(("s3:PutObjectTagging", None))
    arns = []
    for action, name in found:
        if action.startswith("dynamodb:"):
            place = (name or table).replace(table, "s3once").removesuffix("-locks" if names == "init" else "")
            arns.append((action, f"arn:aws:dynamodb:eu-west-1:123456789012:table/{place}"))
        else:
            arns.append((action, "arn:aws:s3:::my-bucket" + ("" if action in OF_BUCKET else f"/{operation.key}")))
    return arns


class Runs:
    """Plays commands, and collects what they ask for by the policies that they have."""

    def __init__(self, s3once, wires, table):
        self.s3once, self.wires, self.table, self.asked = s3once, wires, table, {}

    def __call__(self, names, *command, code=0, **how):
        run = self.s3once(*command, **how)
        assert run.code == code, run
        self.note(names)
        return run

    def watch(self, names, watched, *options):
        """A service that sends what is there, and then what comes."""
        watched.write(*options)
        watched.start()
        watched.rename_in(names, 10)
        watched.manager.pass_with(files=1)
        run = watched.stop()
        assert run.code == 0, run
        self.note(names)

    def note(self, names):
        for wire in self.wires:
            for record in (record for record in wire.history if record.answered != 403):
                for action, arn in asked_by(names, record, self.table):
                    self.asked.setdefault(names, {}).setdefault((action, arn), record.kind)
            wire.history.clear()


@pytest.mark.real_s3
def test_a_whole_run_needs_them_all(s3once, s3, wires, bucket, table, tmp_path):  # noqa: F811
    """Each request of each command is allowed by one of its policies, and each permission is needed by one."""
    s3_wire, _ = wires
    runs = Runs(s3once, wires, table)
    url, locks = f"s3://{bucket}/p", ["--locks", f"dynamodb:{table}-locks"]
    s3.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    tree = make_tree(tmp_path / "tree", {f"small{n}": 10 for n in range(60)})
    push = ["push", "--part-size", "5MiB", tree, url]

    def folder(name):
        (tmp_path / name).mkdir()
        return tmp_path / name

    runs("init", "init")
    runs("init", "lock", "init", *locks)
    runs("doctor+upload-verify", "doctor", url)
    denied = [s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None) for kind, (_, names) in OPERATIONS.items()
              if "upload" not in names and kind[:4] in ("Head", "List", "GetO", "GetB")]  # fmt: skip
    (tree / "large").write_bytes(b"first" * 2 * MIB)
    runs("upload", *push)
    runs.watch("upload", Watched(s3once, bucket, folder("service")))
    for rule in denied:
        s3_wire.rules.remove(rule)
    for name in ("resumed", "changed"):
        (tree / name).write_bytes(name.encode() * MIB)
        broken = s3_wire.add(faults.answer(403, "AccessDenied"), "UploadPart", where=lambda record: record.operation.part == 2, times=None)
        runs("upload-verify", *push, code=1)
        s3_wire.rules.remove(broken)
        if name == "changed":
            (tree / name).write_bytes(b"another" * MIB)
        runs("upload-verify", *push)
    (tree / "left").write_bytes(b"left" * 2 * MIB)
    broken = s3_wire.add(faults.answer(403, "AccessDenied"), "UploadPart", where=lambda record: record.operation.part == 2, times=None)
    runs("upload-verify", *push, code=1)
    s3_wire.rules.remove(broken)
    (tree / "left").unlink()
    runs("upload-verify", "gc", "--keep-uploads", "0", url)
    runs.watch("upload-verify", Watched(s3once, bucket, folder("another service")))
    runs("upload-verify", "forget", "--missing", url)
    (tree / "small1").write_bytes(b"tagged")
    run = runs("upload-verify", *push, "--manifest", "--if-changed", "replace")
    manifest = re.search(r"^manifest: s3://[^/]*/(.*)$", run.out, re.M)[1]
    runs("upload-verify", "status", url)
    runs("verify", "verify", "--download", url, code=1)  # one file was never sent
    runs("verify", "verify", "--manifest", manifest, url)
    runs("verify", "verify", "--after", "p/small1", url)
    runs("fleet", "fleet")
    runs("upload-verify", "push", tree, "s3://no-bucket-of-this-name/p", code=3)
    for command in (["run", *locks, "k", "--", "true"], ["list", *locks], ["status", *locks, "k"]):
        runs("lock", "lock", *command)
    handle = runs("lock", "lock", "acquire", *locks, "--lease", "1m", "held").out.strip()
    for command in ("renew", "release"):
        runs("lock", "lock", command, *locks, handle)

    suite, allowed = Suite("Permissions, needed"), policies()
    needed = {name: set() for name in allowed}
    for names, asked in runs.asked.items():
        own, missing = names.split("+"), []
        for (action, arn), kind in asked.items():
            granted = [name for name in own for one in allowed[name] if action in one["Action"] and fnmatch.fnmatchcase(arn, one["Resource"])]
            missing += [] if granted else [f"{action} on {arn} for {kind}"]
            for name in granted:
                needed[name].add(action)
        for action in sorted({action for action, _ in asked}):
            suite.count(not any(one.startswith(f"{action} on") for one in missing), "", (names, missing))
    for name, own in allowed.items():
        for action in sorted({action for one in own for action in one["Action"]} - needed[name]):
            suite.count(False, unneeded(name, action), f"{name} never needs {action}")
    suite.compare_with_page()
    second_opinion(runs.asked, allowed)


def second_opinion(asked, allowed):
    """Each request is allowed by the policies of its command, and would not be without its action."""
    suite, cases, requests = Suite("Permissions, second opinion"), [], []
    for names, own in asked.items():
        statements = [one for name in names.split("+") for one in allowed[name]]
        for action in sorted({action for action, _ in own}):
            others = [{**one, "Action": [name for name in one["Action"] if name != action]} for one in statements]
            others = [one for one in others if one["Action"]] or [{"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}]
            arns = sorted(arn for name, arn in own if name == action)
            cases.append((names, action, len(arns)))
            requests += [(action, arn, with_, None, {}) for with_ in (statements, others) for arn in arns]
    said = evaluate(requests)
    for names, action, n in cases:
        found, said = said[: 2 * n], said[2 * n :]
        suite.count(found == ["Allowed"] * n + ["ImplicitlyDenied"] * n, "", (names, action, found))
    suite.compare_with_page()


def test_write_once_denies_what_may_replace():
    """By the rules of iam-simulate: an object is created with If-None-Match or not at all, and parts are exempt."""
    upload, bucket = policies()["upload-verify"], json.loads((IAM / "write-once.json").read_text())
    makes, part, absent = {"s3:ObjectCreationOperation": "true"}, {"s3:ObjectCreationOperation": "false"}, {"s3:if-none-match": "*"}
    expected = [
        ({**makes, **absent}, "Allowed"),
        (makes, "ExplicitlyDenied"),
        ({**makes, "s3:if-match": "etag"}, "ExplicitlyDenied"),
        (part, "Allowed"),
    ]
    said = evaluate([("s3:PutObject", "arn:aws:s3:::my-bucket/p/k", upload, bucket, context) for context, _ in expected])
    assert said == [right for _, right in expected]


def unneeded(name, action):
    """Why a permission is there that these runs did not use."""
    return {
        "upload s3:AbortMultipartUpload": "A file that changes while it is sent needs it.",
        "upload s3:ListMultipartUploadParts": "An upload of an earlier run is looked at by HEAD first, which this policy does not allow.",
        "upload-verify s3:GetObjectTagging": "S3 tells by HEAD how many tags there are, to whoever has this permission.",
        "fleet dynamodb:BatchGetItem": "The sessions of runs that are under way need it.",
    }.get(f"{name} {action}", "")
