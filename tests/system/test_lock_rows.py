"""Lock rows of every dialect: exactly what its client writes, and what its client wrote is honoured."""

import re
import shlex
import threading
import time

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import wait_until
from tests.system.locking import Foreign, Probe, Table

DIALECTS = ["java", "go", "python", "dlm"]
EVERY = pytest.mark.parametrize("locks", [*DIALECTS, "java sorted", "go sorted"], indirect=True)
SERVERS = pytest.mark.parametrize("dynamodb", ["dynoxide", "dynalite"], indirect=True)


@pytest.fixture(params=DIALECTS)
def locks(request, dynamodb, s3once, table):
    return Table(dynamodb, s3once, table, request.param)


def acquire(s3once, locks, key="k", lease="20s", wait="0", **how):
    return s3once("lock", "acquire", *locks.extra, *locks.of_key, "--owner", "me", "--lease", lease, "--wait", wait, key, **how)


def check_held(row, dialect, lease):
    """Exactly the attributes and types of the dialect. Returns the version."""
    versions = {"python": "record_version_number", "dlm": "release_code"}
    version = row.get(versions.get(dialect, "recordVersionNumber"), {}).get("S")
    assert version
    now = time.time()
    if dialect == "java":
        expected = {"ownerName": {"S": "me"}, "leaseDuration": {"S": str(lease * 1000)}, "recordVersionNumber": {"S": version}}
    elif dialect == "go":
        expected = {"ownerName": {"S": "me"}, "leaseDuration": {"S": f"{lease}s"}, "recordVersionNumber": {"S": version}}
    elif dialect == "python":
        expiry = row["expiry_time"]["N"]
        assert expiry.isdigit() and now + 3500 < int(expiry) < now + 3700
        expected = {
            "owner_name": {"S": "me"},
            "lease_duration": {"N": str(lease)},
            "record_version_number": {"S": version},
            "expiry_time": {"N": expiry},
        }
    else:
        expires = row["expires"]["N"]
        assert len(version) == 32 and expires.isdigit() and abs(int(expires) - now - lease) < 5
        expected = {"release_code": {"S": version}, "expires": {"N": expires}}
    assert row == expected
    return version


@pytest.mark.parametrize("locks", ["dlm"], indirect=True)
def test_a_dlm_lease_ends_by_the_services_clock(s3once, dynamodb, locks):
    """From the first write on, when this host's clock is two minutes behind: others would take it at once."""
    with Proxy(dynamodb, "dynamodb") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        proxy.add(faults.date_ahead(120), times=None)
        assert acquire(s3once, locks).code == 0
    assert int(locks.row("k")["expires"]["N"]) > time.time() + 120


@pytest.mark.parametrize("locks", ["dlm"], indirect=True)
def test_an_end_that_is_no_time_in_seconds_is_shown_as_it_is(s3once, locks):
    locks.put("k", {"release_code": {"S": "c"}, "expires": {"N": "253402300800000"}})
    assert "expires 253402300800000" in s3once("lock", "status", *locks.extra, "k").out


@SERVERS
@EVERY
def test_rows_byte_for_byte(s3once, locks):
    """At acquire, renewal, release, and after a release again."""
    run = acquire(s3once, locks)
    assert run.code == 0, run
    handle = run.out.strip()
    first = check_held(locks.row("k"), locks.dialect, 20)
    assert s3once("lock", "renew", *locks.extra, handle).code == 0
    second = check_held(locks.row("k"), locks.dialect, 20)
    assert (first == second) == (locks.dialect == "dlm")
    assert s3once("lock", "release", *locks.extra, handle).code == 0
    row = locks.row("k")
    if locks.dialect == "go":
        assert row == {
            "ownerName": {"S": "me"},
            "leaseDuration": {"S": "0"},
            "recordVersionNumber": {"S": second},
            "isReleased": {"S": "1"},
        }
    else:
        assert row is None
    assert acquire(s3once, locks).code == 0
    check_held(locks.row("k"), locks.dialect, 20)


@EVERY
def test_rows_of_heartbeats(s3once, locks, tmp_path):
    """Those that lock run sends by itself change what the dialect says and nothing else."""
    run = s3once.start("lock", "run", *locks.extra, *locks.of_key, "--owner", "me", "--lease", "2s", "k", "--", "sh", "-c", f"while [ ! -e {tmp_path}/seen ]; do sleep 0.05; done")
    first = wait_until(lambda: locks.row("k"), 60, "the row")
    wait_until(lambda: locks.row("k") != first, 60, "a heartbeat")
    changed = locks.row("k")
    assert changed is not None
    check_held(changed, locks.dialect, 2)
    (tmp_path / "seen").touch()
    assert run.wait().code == 0


def test_data_and_attributes_are_the_rows_own(s3once, dynamodb, table, tmp_path):
    """data is bytes; it stays over heartbeats, is replaced and deleted."""
    locks = Table(dynamodb, s3once, table, "java")
    with Probe(s3once, tmp_path, 20000) as probe:
        assert probe.call("acquire 0 k 0 hello")[0] == 0
        row = locks.row("k")
        assert row.pop("data") == {"B": b"hello"} and row.pop("ownerName") == {"S": "probe"}
        assert set(row) == {"leaseDuration", "recordVersionNumber"}
        assert probe.call("heartbeat 0 x")[0] == 0 and locks.row("k")["data"] == {"B": b"hello"}
        assert probe.call("data 0 other")[0] == 0 and locks.row("k")["data"] == {"B": b"other"}
        assert probe.call("data 0")[0] == 0 and "data" not in locks.row("k")
        assert probe.call("release 0")[0] == 0


@EVERY
def test_take_over_of_a_dead_owner(s3once, locks):
    """Its row, unchanged for its lease (dlm: expired), becomes ours: exactly our attributes."""
    dead = Foreign(locks, lease=2)
    assert dead.try_acquire("k")
    begun = time.monotonic()
    assert acquire(s3once, locks).code == 4
    run = acquire(s3once, locks, wait="20s")
    assert run.code == 0, run
    assert time.monotonic() - begun > (0.5 if locks.dialect == "dlm" else 1.9)
    check_held(locks.row("k"), locks.dialect, 20)
    assert not dead.release("k")


def test_a_live_owner_is_never_taken_over(s3once, locks):
    holder = Foreign(locks, lease=3)
    assert holder.try_acquire("k")
    stop = threading.Event()

    def beat():
        while not stop.wait(0.2):
            if locks.dialect == "dlm":
                locks.put("k", holder.attributes())  # a program that acquires what it has, again and again
            else:
                assert holder.heartbeat("k")

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        run = acquire(s3once, locks, wait="4s")
        assert run.code == 4, run
        assert "held by" in run.err
        if locks.dialect != "dlm":
            assert holder.owner in run.err
    finally:
        stop.set()
        thread.join()
    assert holder.release("k")
    assert acquire(s3once, locks).code == 0


def test_released_rows_of_others_are_free(s3once, dynamodb, table):
    """Regardless of their lease: java and go write rows that the other cannot read."""
    locks = Table(dynamodb, s3once, table, "java")
    for key, lease in (("a", {"S": "20s"}), ("b", {"S": "what"}), ("c", {"N": "7"}), ("d", {"S": "20000"})):
        locks.put(key, {"ownerName": {"S": "x"}, "leaseDuration": lease, "isReleased": {"S": "1"}})
        assert acquire(s3once, locks, key).code == 0
        check_held(locks.row(key), "java", 20)


V, OWNER = {"recordVersionNumber": {"S": "v"}}, {"ownerName": {"S": "x"}}
MALFORMED = {
    "java": [
        {},
        {**OWNER, **V},
        {**OWNER, **V, "leaseDuration": {"N": "1"}},
        {**OWNER, **V, "leaseDuration": {"S": "1 "}},
        {**OWNER, **V, "leaseDuration": {"S": "-1"}},
        {**OWNER, **V, "leaseDuration": {"S": "0"}},
        {**OWNER, "leaseDuration": {"S": "1"}},
        {**V, "leaseDuration": {"S": "1"}},
        {**OWNER, **V, "leaseDuration": {"S": "1"}, "isReleased": {"BOOL": True}},
        {**OWNER, **V, "leaseDuration": {"S": "1"}, "isReleased": {"S": "0"}},
    ],
    "go": [
        {},
        {**OWNER, **V},
        {**OWNER, **V, "leaseDuration": {"S": "1"}},
        {**OWNER, **V, "leaseDuration": {"S": "1d"}},
        {**OWNER, **V, "leaseDuration": {"S": "-1s"}},
        {**OWNER, **V, "leaseDuration": {"S": ""}},
        {**OWNER, "leaseDuration": {"S": "1ms"}},
        {**V, "leaseDuration": {"S": "1ms"}},
        {**OWNER, **V, "leaseDuration": {"S": "1ms"}, "isReleased": {"N": "1"}},
        {**OWNER, "recordVersionNumber": {"N": "1"}, "leaseDuration": {"S": "1ms"}},
    ],
    "python": [
        {},
        {"owner_name": {"S": "x"}},
        {"lease_duration": {"S": "1"}},
        {"lease_duration": {"N": "-1"}},
        {"lease_duration": {"N": "0"}},
        {"lease_duration": {"N": "99999999999999"}},
        {"record_version_number": {"N": "1"}},
        {"owner_name": {"N": "1"}},
        {"expiry_time": {"S": "1"}},
        {"expiry_time": {"N": "-1"}},
    ],
    "dlm": [
        {},
        {"release_code": {"S": "c"}},
        {"expires": {"N": "1"}},
        {"release_code": {"N": "1"}, "expires": {"N": "1"}},
        {"release_code": {"S": "c"}, "expires": {"S": "1"}},
        {"release_code": {"S": "c"}, "expires": {"N": "-1"}},
        {"release_code": {"S": "c"}, "expires": {"N": "1.5"}},
        {"release_code": {"S": "c"}, "expires": {"NULL": True}},
        {"release_code": {"S": "c"}, "expires": {"N": "0"}},
        {"release_code": {"B": b"c"}, "expires": {"N": "1"}},
    ],
}
WHOLE = {
    "owner_name": {"S": "x"},
    "lease_duration": {"N": "1"},
    "record_version_number": {"S": "v"},
    "expiry_time": {"N": "1795224516"},
}


def test_unreadable_row_counts_as_held(s3once, locks):
    """Ten ways to be damaged: none is ever stale, status says what is wrong, nothing is changed."""
    rows = MALFORMED[locks.dialect]
    if locks.dialect == "python":
        rows = [{} if not row else {**WHOLE, **row} for row in rows]
        rows[1] = {"owner_name": {"S": "x"}}
    for at, row in enumerate(rows):
        locks.put(f"k{at}", row)
    running = [
        s3once.start("lock", "acquire", *locks.extra, "--lease", "20s", "--wait", "1500ms", f"k{at}") for at in range(len(rows))
    ]
    for at, run in enumerate(running):
        result = run.wait(60)
        assert result.code == 4 and "cannot be understood" in result.err, (rows[at], result)
        assert locks.row(f"k{at}") == rows[at]
    run = s3once("lock", "list", *locks.extra, "--json")
    assert run.code == 0 and len(run.events) == 10
    assert all(event["held"] and not event["understood"] and event["why"] for event in run.events)


@EVERY
@pytest.mark.parametrize("rounds", [8])
def test_with_a_foreign_client_at_the_same_time(s3once, locks, tmp_path, rounds):
    """A second implementation of the dialect's rules and ours take turns: never both at once."""
    journal = tmp_path / "journal"
    journal.touch()
    script = f'echo begin >>{journal}; sleep 0.1; echo end >>{journal}'
    argv = ["lock", "run", *locks.extra, *locks.of_key, "--lease", "4s", "--wait", "60s", "shared", "--", "sh", "-c", script]
    failures = []

    def foreign():
        try:
            client = Foreign(locks, lease=4)
            for _ in range(rounds):
                client.acquire("shared", 60)
                with open(journal, "a") as file:
                    file.write("begin\n")
                    file.flush()
                    time.sleep(0.1)
                    file.write("end\n")
                assert client.release("shared")
                time.sleep(0.05)
        except BaseException as failure:
            failures.append(failure)
            raise

    thread = threading.Thread(target=foreign)
    thread.start()
    for _ in range(rounds):
        run = s3once(*argv)
        assert run.code == 0, run
    thread.join(120)
    assert not failures and not thread.is_alive()
    assert journal.read_text().split() == ["begin", "end"] * (2 * rounds)


def shape_of(dynamodb, table):
    """(keys, read and write units, billing mode) as the server says."""
    found = dynamodb.client.describe_table(TableName=table)["Table"]
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in found["AttributeDefinitions"]}
    keys = [(key["AttributeName"], key["KeyType"], types[key["AttributeName"]]) for key in found["KeySchema"]]
    units = found.get("ProvisionedThroughput", {})
    mode = found.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    return keys, (units.get("ReadCapacityUnits"), units.get("WriteCapacityUnits")), mode


@SERVERS
def test_tables_are_made_with_the_keys_of_the_dialect(s3once, dynamodb, locks):
    """On demand unless units are said; a second init is fine, and one with other keys is not."""
    keys, _, mode = shape_of(dynamodb, locks.name)
    sort = {"python": [("sort_key", "RANGE", "S")], "dlm": [("concurrency_id", "RANGE", "N")]}.get(locks.dialect, [])
    assert keys == [(locks.pk, "HASH", "S"), *sort] and mode == "PAY_PER_REQUEST"
    again = s3once("lock", "init", *locks.extra)
    assert again.code == 0 and "created" not in again.out
    other = s3once("lock", "init", "--dialect", "go", "--key-name", "another")
    assert other.code == 3 and "another" in other.err, other
    wrong = s3once("lock", "status", "--key-name", "another", "k")
    assert wrong.code == 3 and f"table {locks.name} has other keys: " in wrong.err and "give another table, or the dialect, key name and sort name that it has" in wrong.err, wrong


@SERVERS
def test_a_table_with_units_and_tags(request, s3once, dynamodb, table):
    """Provisioned as said; tags as the server's own call shows them (dynalite keeps none)."""
    locks = Table(dynamodb, s3once, table, "go sorted", "--read-units", "3", "--write-units", "7", "team=storage", "é=a=b")
    assert s3once("lock", "init", "--dialect", "go", "tag").code == 2
    keys, units, mode = shape_of(dynamodb, locks.name)
    assert keys == [("key", "HASH", "S"), ("range", "RANGE", "S")] and units == (3, 7) and mode == "PROVISIONED"
    if request.node.callspec.params["dynamodb"] == "dynalite":
        return
    arn = dynamodb.client.describe_table(TableName=table)["Table"]["TableArn"]
    tags = dynamodb.client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    assert sorted((tag["Key"], tag["Value"]) for tag in tags) == [("team", "storage"), ("é", "a=b")]


def test_a_handle_is_good_in_its_own_place_only(s3once, dynamodb, table, tmp_path):
    """Taken for one of another dialect or place it changes nothing."""
    locks = Table(dynamodb, s3once, table, "java")
    handle = acquire(s3once, locks, lease="20s").out.strip()
    before = locks.row("k")
    assert s3once("lock", "init", "--locks", f"sqlite:{tmp_path}/other.db").code == 0
    for command in ("renew", "release"):
        run = s3once("lock", command, "--dialect", "go", handle)
        assert run.code == 2 and "dialect" in run.err, run
        run = s3once("lock", command, "--dialect", "python", handle)
        assert run.code == 2, run
        run = s3once("lock", command, "--locks", f"sqlite:{tmp_path}/other.db", handle)
        assert run.code == 5 and "another place" in run.err, run
    assert locks.row("k") == before
    assert s3once("lock", "release", handle).code == 0


@pytest.mark.parametrize("words", ["", "--dialect python", "--dialect dlm", "--key-name 'the id' --sort-name range --sort-key a"])
def test_the_hint_makes_the_table_that_is_missing(s3once, dynamodb, table, words):
    """With the keys that this client needs, not those of the usual dialect."""
    command = ["lock", "acquire", "--lease", "1m", "--locks", f"dynamodb:{table}", *shlex.split(words), "k"]
    run = s3once(*command)
    assert run.code == 3 and f"the table {table} does not exist: make it with" in run.err, run
    hint = re.search("`s3once (lock init [^`]*)`", run.err)[1]
    assert s3once(*shlex.split(hint)).code == 0
    assert s3once(*command).code == 0


def test_a_table_with_other_keys_is_named_with_the_options(s3once, dynamodb, table):
    Table(dynamodb, s3once, table, "python")
    for command in (["status", "k"], ["acquire", "--lease", "1m", "k"]):
        run = s3once("lock", *command)
        assert run.code == 3 and f"table {table} has other keys: " in run.err, run
        assert "need the partition key key (S) and no sort key: give another table, or the dialect, key name and sort name that it has" in run.err, run


def test_keys_of_another_type_are_named(s3once, dynamodb, table):
    dynamodb.client.create_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.client.put_item(TableName=table, Item={"key": {"N": "1"}})
    for command in (["status", "k"], ["list"], ["acquire", "--lease", "1m", "k"]):
        run = s3once("lock", *command, "--locks", f"dynamodb:{table}")
        assert run.code == 3 and f"table {table} has other keys: " in run.err and "need the partition key key (S) and no sort key: give another table" in run.err, run


def test_the_table_of_marks_is_none_of_locks(s3once, dynamodb, table):
    assert s3once("init", "--marks", f"dynamodb:{table}").code == 0
    for command in (["status", "k"], ["list"], ["acquire", "--lease", "1m", "k"]):
        run = s3once("lock", *command, "--locks", f"dynamodb:{table}")
        assert run.code == 3 and f"table {table} has other keys: " in run.err and "need the partition key key (S) and no sort key: give another table" in run.err, run


def test_sort_keys_are_locks_of_their_own(s3once, dynamodb, table):
    locks = Table(dynamodb, s3once, table, "java sorted")
    tokens = []
    for sort in ("a", "b", "a"):
        run = s3once("lock", "acquire", *locks.extra, "--sort-key", sort, "--lease", "20s", "--wait", "0", "--json", "k")
        tokens.append(run.events[0]["token"] if run.code == 0 else run.code)
    assert tokens == [1, 1, 4]
    assert s3once("lock", "acquire", *locks.extra, "--lease", "20s", "k").code == 2  # which one?
    status = s3once("lock", "status", *locks.extra, "--sort-key", "b", "--json", "k")
    assert status.code == 4 and status.events[0]["sort_key"] == "b"
    assert {event["sort_key"] for event in s3once("lock", "list", *locks.extra, "--json").events} == {"a", "b"}
    version = status.events[0]["version"]
    assert s3once("lock", "break", *locks.extra, "--sort-key", "a", "--if-version", version, "k").code == 4
    assert s3once("lock", "break", *locks.extra, "--sort-key", "b", "--if-version", version, "k").code == 0


def test_the_end_of_a_dlm_row_never_comes_nearer(s3once, dynamodb, table):
    """Its version stays: a heartbeat that comes late must not shorten it."""
    locks = Table(dynamodb, s3once, table, "dlm")
    handle = acquire(s3once, locks, lease="20s").out.strip()
    late = str(int(locks.row("k")["expires"]["N"]) + 1000)
    locks.put("k", {**locks.row("k"), "expires": {"N": late}})
    assert s3once("lock", "renew", *locks.extra, handle).code == 0
    assert locks.row("k")["expires"] == {"N": late}
    assert s3once("lock", "release", *locks.extra, handle).code == 0 and locks.row("k") is None


def test_slots_of_dlm(s3once, dynamodb, table):
    locks = Table(dynamodb, s3once, table, "dlm")
    taken = [s3once("lock", "acquire", *locks.extra, "--slots", "2", "--lease", "20s", "--wait", "0", "k") for _ in range(3)]
    assert sorted(run.code for run in taken) == [0, 0, 4]
    assert locks.row("k", 0) and locks.row("k", 1) and not locks.row("k", 2)
    assert "wall clock" in taken[0].err
    run = s3once("lock", "acquire", *locks.extra, "--slots", "2", "--lease", "20s", "--wait", "0", "--json", "k")
    assert "held by someone who gives no name" in run.err and run.events[-1]["holder"] == "", run  # its rows have none


def test_tokens_grow_over_deletes_and_foreign_writers(s3once, locks):
    """Each holder's token is greater, whatever becomes of the row in between."""
    tokens = []
    for between in ("nothing", "delete", "foreign", "nothing"):
        run = s3once("lock", "acquire", *locks.extra, "--json", "--lease", "20s", "--wait", "0", "k")
        assert run.code == 0, run
        tokens.append(run.events[-1]["token"])
        handle = run.events[-1]["handle"]
        if between == "delete":
            locks.delete("k")
            assert s3once("lock", "release", *locks.extra, handle).code == 5
        else:
            assert s3once("lock", "release", *locks.extra, handle).code == 0
        if between == "foreign":
            client = Foreign(locks)
            client.acquire("k")
            client.release("k")
    assert tokens == [1, 2, 3, 4]
