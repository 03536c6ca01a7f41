"""Fixtures for every test that runs the built program.

Servers are started on demand, once per pytest run, and shared by all xdist workers. What a test asks for is what
the program sees: with `bucket` it finds that S3 server, with `table` it keeps its marks there. Other servers than
the first are chosen by @pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True), likewise "dynamodb".
"""

import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from tests.servers.nginx_count import NginxCount
from tests.system.harness import IN_TURN, QUICK, S3, DynamoDB, Program, S3OfS3rver, SharedServers, fresh_name
from tests.system.pushing import DynamoDBMarks, SqliteMarks


def pytest_configure(config):
    # Of a shell in the background or nohup tests may inherit that these are ignored; the programs under test must not.
    # An xdist worker inherits what is set here, and may come by in another thread, which must not set it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: None)
    shared = getattr(config, "workerinput", {}).get("servers")
    if shared:
        config.servers = SharedServers(Path(shared), os.getppid())
    else:
        config.servers = SharedServers(Path(tempfile.mkdtemp(prefix="s3once-tests-")), os.getpid())
        config.pluginmanager.register(NamesFailures(config))


class NamesFailures:
    """Names each test that fails at once, as the summary does at the end: a run of hours may be stopped before."""

    def __init__(self, config):
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal:
            terminal.write_line(f" {report.when} of {report.nodeid} failed")


PLACES = {"s3", "dynamodb", "marks"}  # fixtures that stand for a server or a store, whatever their values
SERVERS = {"rgw", "swift", "s3rver", "aws", "simulated", "dynoxide", "dynalite", "sqlite"}  # values of other parameters
REAL_S3 = {"rgw", "swift", "s3rver"}
OTHER_SERVERS = REAL_S3 | {"dynoxide", "dynalite", "dynamodb", "table", "s3_proxy", "s3_wire", "marks"}


def parameters(item):
    return {name: str(value) for name, value in getattr(getattr(item, "callspec", None), "params", {}).items()}


def asks_for_one(item, servers):
    """Whether a test asks for one of these servers, by a fixture or a parameter, or by its mark for a real one."""
    marked = item.get_closest_marker("full") or item.get_closest_marker("real_s3")
    return bool(servers & (set(item.fixturenames) | set(parameters(item).values())) or marked)


def is_for_other_builds(item):
    return item.get_closest_marker("threaded") or item.get_closest_marker("smoke")


def pytest_collection_modifyitems(config, items):
    """./check --quick plays the cases that need the simulated S3 alone, or no server. ./check plays each case of a test on
    one of its servers and stores, and the next case on the next one; --full, and pytest itself, play each case on all of them."""

    def leave(which):
        config.hook.pytest_deselected(items=[item for item in items if item not in which])
        items[:] = [item for item in items if item in which]

    if QUICK:
        leave({item for item in items if not asks_for_one(item, OTHER_SERVERS)})
    if IN_TURN:
        cases = {}
        for item in items:
            others = tuple(sorted((name, value) for name, value in parameters(item).items() if name not in PLACES and value not in SERVERS))
            has_places = len(others) < len(parameters(item))
            cases.setdefault((item.path, item.originalname, others) if has_places else item, []).append(item)
        in_turn = {case[n % len(case)] for n, case in enumerate(cases.values())}
        leave(in_turn | {item for item in items if is_for_other_builds(item)})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    item.has_failed = getattr(item, "has_failed", False) or outcome.get_result().failed


@pytest.fixture
def tmp_path(request, tmp_path):
    """pytest's, but gone after a test that has passed. All that a run of ./check --full writes would fill a disk of 60 GB."""
    yield tmp_path
    if not request.node.has_failed:
        shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["servers"] = str(node.config.servers.folder)


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        config.servers.stop()


@pytest.fixture(scope="session")
def rgw(pytestconfig):
    return S3(pytestconfig.servers.get("rgw"))


@pytest.fixture(scope="session")
def swift(pytestconfig):
    return S3(pytestconfig.servers.get("swift"))


@pytest.fixture(scope="session")
def s3rver(pytestconfig):
    return S3OfS3rver(pytestconfig.servers.get("s3rver"))


@pytest.fixture(scope="session")
def simulated(pytestconfig):
    return S3(pytestconfig.servers.get("simulated"))


@pytest.fixture(scope="session")
def simulated_dynamodb(pytestconfig):
    return DynamoDB(pytestconfig.servers.get("simulated"))


@pytest.fixture(scope="session")
def dynoxide(pytestconfig):
    if os.uname().machine != "x86_64":
        pytest.skip("dynoxide exists for x86_64 only")
    return DynamoDB(pytestconfig.servers.get("dynoxide"))


@pytest.fixture(scope="session")
def dynalite(pytestconfig):
    return DynamoDB(pytestconfig.servers.get("dynalite"))


@pytest.fixture
def s3(request):
    """./check plays a test that asks for no real S3 with the simulated one, --full and pytest itself with a real one."""
    is_simulated = QUICK or IN_TURN and not asks_for_one(request.node, REAL_S3) and not is_for_other_builds(request.node)
    return request.getfixturevalue(getattr(request, "param", "simulated" if is_simulated else "rgw"))


@pytest.fixture
def dynamodb(request):
    first = "dynoxide" if os.uname().machine == "x86_64" else "dynalite"
    return request.getfixturevalue(getattr(request, "param", first))


@pytest.fixture
def bucket(s3):
    """A fresh bucket on s3, emptied and removed afterwards."""
    name = fresh_name("bucket")
    s3.client.create_bucket(Bucket=name)
    yield name
    s3.remove_bucket(name)


@pytest.fixture
def table():
    """The name of a table that does not exist yet: `s3once init` makes it."""
    return fresh_name("table")


@pytest.fixture
def s3_proxy(s3):
    """nginx between the program and s3 that counts requests: see NginxCount.requests()."""
    with NginxCount(s3) as proxy:
        yield proxy


@pytest.fixture
def dynamodb_proxy(dynamodb):
    """The same between the program and dynamodb."""
    with NginxCount(dynamodb) as proxy:
        yield proxy


@pytest.fixture
def s3_wire(s3):
    """The wire proxy between the program and s3, for holding and breaking requests."""
    with Proxy(s3, "s3") as proxy:
        yield proxy
        assert not proxy.failures


@pytest.fixture
def dynamodb_wire(dynamodb, s3once):
    """The wire proxy between the program and dynamodb."""
    with Proxy(dynamodb, "dynamodb") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        yield proxy
        assert not proxy.failures


@pytest.fixture
def s3once(request, tmp_path):
    """Runs the program with what the test's other fixtures stand for: see Program."""

    def asked_for(*names):
        return next((request.getfixturevalue(name) for name in names if name in request.fixturenames), None)

    table_name = asked_for("table")
    dynamodb_server = asked_for("dynamodb_proxy", "dynamodb")
    if table_name and not dynamodb_server:
        dynamodb_server = request.getfixturevalue("dynamodb")
    program = Program(tmp_path, asked_for("s3_wire", "s3_proxy", "s3"), dynamodb_server, table_name)
    yield program
    program.kill_all()


@pytest.fixture
def marks(request, s3once):
    """Marks that are ready for a first push: in DynamoDB behind a counting proxy, or with
    @pytest.mark.parametrize("marks", ["dynamodb", "sqlite", "dynalite"], indirect=True) also in this host's file and on
    the other server."""
    place = getattr(request, "param", "dynamodb")
    if place == "sqlite":
        yield SqliteMarks(s3once.state / "s3once" / "marks.db")
        return
    dynamodb, table = request.getfixturevalue(place), request.getfixturevalue("table")
    with NginxCount(dynamodb) as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        s3once.environment["S3ONCE_MARKS"] = f"dynamodb:{table}"
        run = s3once("init")
        assert run.code == 0, run
        proxy.requests()
        yield DynamoDBMarks(dynamodb, table, proxy)
