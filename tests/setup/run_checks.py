"""The steps of ./check, each single test counted. Started by ./check, which installs what this needs.

Tests wait for leases and timeouts more than they compute. So the steps that only compute run beside them, and get
a smaller share of the time.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LOGS = REPOSITORY / "build" / "logs"
BYTECODE = str(REPOSITORY / "build" / "bytecode")  # compiled once, for every worker of every step
FAST, FULL, QUICK, STATIC = (f"--{name}" in sys.argv for name in ("fast", "full", "quick", "static"))
SOAK = sys.argv[sys.argv.index("--soak") + 1] if "--soak" in sys.argv else None  # minutes
SIM = sys.argv[sys.argv.index("--sim") + 1] if "--sim" in sys.argv else None  # minutes
LIMIT = 8 * 3600 if FULL or STATIC or SOAK or SIM else 2400
JOBS = os.environ.get("S3ONCE_JOBS") or str(min(8, 4 * (os.cpu_count() or 1)))  # a test computes a quarter of its time

FEW = str(-(-int(JOBS) // 4))  # workers of a step beside the system tests

CLANG = 14  # of Debian 12, which decides about format
WORLDS = 400  # that ./check plays, the same each time: some two minutes
SKIPPED = 77  # the exit code of a check of the source that needs another version of its tool, and says which

ORDINARY = "not full and not static"
PROCESSOR = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)  # as Debian names it
STATIC_PROGRAM = REPOSITORY / "build" / "static" / PROCESSOR / "s3once"

# Of the tests. pytest's own would be shared by the runs beside each other, and each that begins takes it from other users,
# while a test of another run lets one look there.
TEMPORARY = Path(tempfile.mkdtemp(prefix="s3once-check-"))

passed, failed, skipped = [], [], []
here = threading.local()  # of the step that this thread does: beside, jobs, has_terminal, passed, failed


@atexit.register
def leave_only_what_explains():
    if not failed:
        shutil.rmtree(TEMPORARY, ignore_errors=True)


def note(name, ok):
    (passed if ok else failed).append(name)
    if ok:
        here.passed += 1
    else:
        here.failed += 1
        print(f"FAILED {name}", flush=True)


def beside_the_tests(argv):
    """The command, in a session of its own, which gets a third of what a test gets. With less it would starve on a busy host."""
    return ["setsid", "nice", "-n5", "sh", "-c", 'echo 5 2>/dev/null >/proc/self/autogroup; exec "$@"', "sh", *argv]


def run(argv, log=None, **environment):
    """The exit code of a command, bounded in time; its output goes to a log that is shown if it fails."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": BYTECODE, **environment}
    argv = [str(arg) for arg in (beside_the_tests(argv) if here.beside else argv)]
    try:
        if not log:
            return subprocess.run(argv, cwd=REPOSITORY, env=env, stdin=subprocess.DEVNULL, timeout=LIMIT).returncode
        with open(log, "ab") as writes:
            out = {"stdin": subprocess.DEVNULL, "stdout": writes, "stderr": writes}
            code = subprocess.run(argv, cwd=REPOSITORY, env=env, timeout=LIMIT, **out).returncode
    except subprocess.TimeoutExpired:
        print(f"{argv} took longer than {LIMIT} s")
        return 124
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}")
        return 127
    if code:
        print(log.read_text(errors="replace")[-6000:], flush=True)
    return code


def count(title, report, code):
    """Notes every test of a junit report and prints the figures it recorded; an exit code that its tests do not explain
    is a failure of its own."""
    failures = here.failed
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = f"{title}: {case.get('classname') or ''} {case.get('name')}"
            for figures in case.iterfind(".//property[@name='figures']"):
                print(f"{case.get('name')}: {figures.get('value')}")
            if case.find("failure") is not None or case.find("error") is not None:
                note(name, False)
            elif case.find("skipped") is not None:
                skipped.append(name)
            else:
                note(name, True)
    if code and here.failed == failures:
        note(f"{title} (exit code {code})", False)


def log_of(name):
    """The log of a step that runs beside another one; None if the step has the terminal."""
    if here.has_terminal:
        return None
    log = LOGS / f"{name}.log"
    log.unlink(missing_ok=True)
    return log


# --- kinds of steps


def build(name, compiler, *options, targets=("all",)):
    """A counted build in build/NAME, where every warning is an error."""
    folder, log = REPOSITORY / "build" / name, LOGS / f"build-{name}.log"
    again = ["--reconfigure"] if (folder / "build.ninja").exists() else []
    log.unlink(missing_ok=True)
    linker = {"CC_LD": "gold"} if shutil.which("ld.gold") and name != "release" else {}  # five times as fast
    code = run(["meson", "setup", *again, folder, "--werror", "-Dtests=true", *options], log, CC=compiler, **linker)
    code = code or run(["ninja", "-j2", "-C", folder, *targets], log)
    note(f"build {name}", code == 0)


def unit_tests(name):
    folder = REPOSITORY / "build" / name
    report = folder / "meson-logs" / "testlog.junit.xml"
    report.unlink(missing_ok=True)
    code = run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", "--num-processes", here.jobs], log_of(f"unit-{name}"))
    count(f"unit tests ({name})", report, code)


def pytest(name, marker, wrap="", where=("tests", "--ignore=tests/faults"), program=None):
    """Tests of the program in build/NAME, or of another one; marker chooses them, where the files."""
    title = f"{marker or 'all'} tests in {where[0]} ({program or name})"
    report = LOGS / f"pytest-{name}-{where[0].replace('/', '-')}-{marker.replace(' ', '-') or 'all'}.xml"
    report.unlink(missing_ok=True)
    argv = ["/usr/bin/python3", "-m", "pytest", "-q", "-n", here.jobs, "-m", marker, "--junit-xml", report, *where]
    argv += ["--basetemp", tempfile.mkdtemp(dir=TEMPORARY)]
    environment = {"S3ONCE_BUILD": f"build/{name}", "S3ONCE_WRAP": wrap, "S3ONCE_FULL": "1" if FULL else "0"}
    environment["S3ONCE_QUICK"] = "1" if QUICK else "0"
    if program:
        environment["S3ONCE_PROGRAM"] = program
    code = run(argv + ["-o", "junit_family=xunit1"], log_of(report.stem), **environment)
    count(title, report, 0 if code == 5 else code)  # 5: nothing is marked so


def collection():
    """Leaves the compiled tests in BYTECODE. Otherwise each worker would compile all of them at the same time."""
    log = LOGS / "collection.log"
    log.unlink(missing_ok=True)
    argv = ["/usr/bin/python3", "-m", "pytest", "-q", "--collect-only", "-m", "", "tests"]
    note("collection of the tests", run(argv, log) == 0)


def static_build():
    """Builds the static program. Downloads and built libraries are kept for the next time."""
    log = LOGS / "build-static.log"
    log.unlink(missing_ok=True)
    STATIC_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    code = run(["flock", STATIC_PROGRAM.parent, "packaging/static", STATIC_PROGRAM.parent], log)
    note("build static", code == 0)


def static_tests(marker):
    if not STATIC_PROGRAM.exists():  # the step that builds it said so
        return
    pytest("check", marker, where=("tests/system",), program=str(STATIC_PROGRAM.relative_to(REPOSITORY)))


def clang_format():
    """Another version would have some lines otherwise."""
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    if f"version {CLANG}." not in version:
        print(f"skipped: clang-format {CLANG} decides how lines are broken, and this is {version.strip()}")
        skipped.append("clang-format")
        return
    sources = [path for room in ("src", "include", "tests") for path in (REPOSITORY / room).rglob("*.[ch]")]
    if sources:
        note("clang-format", run(["clang-format", "--dry-run", "-Werror", *sources], LOGS / "clang-format.log") == 0)


def soak():
    note("soak", run(["/usr/bin/python3", "-m", "tests.faults.soak", SOAK], S3ONCE_BUILD="build/check") == 0)


def fingerprints(name, last):
    argv = [REPOSITORY / "build" / name / "tests/sim/sim", "--fingerprints", "1", str(last)]
    return subprocess.run(["setarch", "-R", *map(str, argv)], capture_output=True, text=True, timeout=LIMIT).stdout.split()


def one_story():
    """A seed is the same story in every build."""
    stories = fingerprints("release", 4)
    note("simulation: a release and a build with ASan tell the same stories", len(stories) == 4 and stories == fingerprints("check", 4))


def simulation(name, first, worlds=None, minutes=None):
    """Worlds from this seed on, on two processors: so many, or until the time is over."""
    program, log = REPOSITORY / "build" / name / "tests/sim/sim", LOGS / f"sim-{name}.log"
    end = time.monotonic() + 60 * minutes if minutes else None
    broken, played = [], [0, 0]

    def play(half):
        seed = first + 500_000 * half
        while time.monotonic() < end if end else played[half] < worlds // 2:
            done = subprocess.run([program, "--seeds", str(seed), str(seed + 9)], capture_output=True, text=True, errors="replace", timeout=LIMIT)
            broken.extend(done.stdout.splitlines() or (["a world ended without a word"] if done.returncode else []))
            played[half] += 10
            seed += 10

    halves = [threading.Thread(target=play, args=(half,)) for half in (0, 1)]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
    log.write_text("\n".join(broken))
    print(f"{sum(played)} worlds from seed {first} on ({name})")
    print("\n".join(broken[:20]), flush=True)
    note(f"simulation: {len(broken)} worlds broke a promise ({name})", not broken and min(played) > 0)


def fuzzed_worlds():
    """Worlds by the choices of some seeds, which libFuzzer changes so that they lead where it has not been: so many, from the same ones."""
    build("fuzz", "clang", "-Dbuildtype=debugoptimized", "-Dfuzzers=true", "-Db_lundef=false", targets=("tests/sim/fuzz_world",))
    corpus = REPOSITORY / "build" / "worlds-of-seeds"
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir()
    for seed in range(1, 9):
        run([REPOSITORY / "build/release/tests/sim/sim", "--bytes-of", seed, corpus / str(seed)])
    argv = [REPOSITORY / "build/fuzz/tests/sim/fuzz_world", "-runs=100", "-seed=1", "-max_len=3000", "-timeout=120", f"-artifact_prefix={LOGS}/", corpus]
    note("simulation: worlds by libFuzzer", run(argv, LOGS / "fuzz_world.log") == 0)


def models():
    report, log = LOGS / "model.xml", LOGS / "model.log"
    report.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    count("models", report, run([REPOSITORY / "tests" / "model" / "check", *(["--full"] if FULL else [])], log))


def executables(folder, but=()):
    """Each executable file of a folder is one test."""
    for path in sorted((REPOSITORY / "tests" / folder).glob("*")):
        if path.is_file() and os.access(path, os.X_OK) and path.name not in but:
            log = LOGS / f"{folder}-{path.name}.log"
            log.unlink(missing_ok=True)
            code = run([path], log, S3ONCE_FULL="1" if FULL else "0")
            if code == SKIPPED:
                skipped.append(f"{folder}/{path.name}")
            else:
                note(f"{folder}/{path.name}", code == 0)


# --- the tables: title, in --fast and --quick too, what is done

VALGRIND = "valgrind -q --leak-check=full --show-leak-kinds=definite,indirect,possible --error-exitcode=99"
PLAIN = ("tests/faults/test_clocks.py", "tests/faults/test_huge_replies.py")  # what sanitizers do not stand
MANY = "tests/faults/test_many_uploaders.py"  # --full measures with it
OF_OTHER_STEPS = (*PLAIN, MANY, *(() if FULL else ("tests/sim",)))


def system_tests():
    """With the faults, in one run: one start of each server, and one end in which workers have nothing left to do."""
    marker = "not static" if FULL else ORDINARY
    without = ("tests/faults",) if FAST else OF_OTHER_STEPS
    pytest("check", marker, where=("tests", *(f"--ignore={path}" for path in without)))


COLLECTION = [("collection of the tests", True, collection)]  # while the first build runs
# The program is no PIE: otherwise the loader writes 215,000 pointers of the sanitizers at each start.
FIRST = [
    ("build: gcc, ASan + UBSan", True, lambda: build("check", "gcc", "-Dbuildtype=debug", "-Db_sanitize=address,undefined", "-Db_pie=false")),
    ("source: format", True, clang_format),
]
# With assertions, which the simulated worlds are to meet.
RELEASE = ("-Dbuildtype=release", "-Db_ndebug=false")
BUILDS = [  # of OF_OTHER_BUILDS and of the simulation
    ("build: release", False, lambda: build("release", "gcc", *RELEASE, targets=("src/cli/s3once", "tests/sim/sim"))),
    ("build: TSan", False, lambda: build("tsan", "gcc", "-Dbuildtype=debug", "-Doptimization=1", "-Db_sanitize=thread")),
    *([("build: the static program", False, static_build)] if FULL else []),
]
BESIDE = [
    ("simulation", False, lambda: (one_story(), simulation("release", 1, worlds=WORLDS), simulation("check", 1, worlds=WORLDS // 10))),
    ("tests of the simulation", False, lambda: pytest("release", ORDINARY, where=("tests/sim", "-n2"))),
    *([("build: clang", False, lambda: build("clang", "clang", "-Dbuildtype=plain"))] if FULL else []),
    *([("simulation: worlds by libFuzzer", False, fuzzed_worlds)] if FULL else []),
]
OF_THE_SOURCE = [  # clang's warnings are among those of clang-tidy; --full builds with it
    ("source: shape", True, lambda: executables("shape", but=() if FULL else ("gcc-analyzer",))),
    ("model of the protocol", False, models),
]
TESTS = [
    ("unit tests: ASan + UBSan", True, lambda: unit_tests("check")),
    ("system tests and faults: ASan + UBSan", True, system_tests),
]
OF_OTHER_BUILDS = [
    ("faults: clocks, memory, many uploaders", False, lambda: pytest("release", "", where=(*PLAIN, *(() if FULL else (MANY,))))),
    ("system tests: release", False, lambda: pytest("release", "smoke")),
    ("unit tests: TSan", False, lambda: unit_tests("tsan")),
    ("system tests: TSan", False, lambda: pytest("tsan", "threaded")),
]
THOROUGHLY = [
    ("system tests: valgrind", True, lambda: pytest("release", "smoke", VALGRIND)),
    ("system tests: the static program", True, lambda: static_tests("not full or static")),
]
STATICALLY = [
    ("build: the static program", False, static_build),
    ("system tests: the static program", False, lambda: static_tests("not full or static")),
]
QUICKLY = [  # what compiles and reads code for minutes is left out
    ("unit tests: ASan + UBSan", True, lambda: unit_tests("check")),
    ("system tests with the simulated S3: ASan + UBSan", True, lambda: pytest("check", ORDINARY, where=("tests/system",))),
    ("simulation", True, lambda: simulation("check", 1, worlds=40)),
    ("source: shape", True, lambda: executables("shape", but=("clang-tidy", "gcc-analyzer"))),
]
ALONE = [("faults: many uploaders", False, lambda: pytest("release", "", where=(MANY, "-n0")))]  # it measures


def do(steps, beside=False, jobs=JOBS, has_terminal=True):
    """beside: with a lower priority than the tests."""
    for title, is_fast, step in steps:
        if FAST and not is_fast:
            continue
        begun = time.monotonic()
        here.beside, here.jobs, here.has_terminal = beside, jobs, has_terminal
        here.passed, here.failed = 0, 0
        if has_terminal:
            print(f"\n== {title}", flush=True)
        try:
            step()
        except Exception as error:  # in a thread it would be lost
            note(f"{title}: {error!r}", False)
        remark = ", beside the tests" if beside else ""
        print(f"== {title}: {here.passed} passed, {here.failed} failed, {time.monotonic() - begun:.0f} s{remark}", flush=True)


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    collected = threading.Thread(target=lambda: do([] if SIM or SOAK else COLLECTION, has_terminal=False))
    collected.start()
    do([("build: the simulation", True, lambda: build("sim-clang", "clang", "-Dbuildtype=debugoptimized", targets=("tests/sim/sim",)))] if SIM else FIRST[:1] if SOAK else FIRST)
    collected.join()
    if "build check" in failed:
        pass  # there is nothing to test
    elif SIM:
        do([("simulation", True, lambda: simulation("sim-clang", 1_000_000 * int(time.strftime("%Y%m%d")), minutes=float(SIM)))])
    elif SOAK:
        do([("soak", False, soak)])
    elif QUICK:
        do(QUICKLY)
    elif STATIC:
        do(STATICALLY)
    else:
        builds = threading.Thread(target=lambda: do(BUILDS, beside=True, has_terminal=False))
        beside = threading.Thread(target=lambda: (builds.join(), do(BESIDE, beside=True, has_terminal=False)))
        of_the_source = threading.Thread(target=lambda: (builds.join(), do(OF_THE_SOURCE, beside=True, has_terminal=False)))
        others = threading.Thread(target=lambda: (builds.join(), do(OF_OTHER_BUILDS, jobs=FEW, has_terminal=False)))
        started = (builds, beside, of_the_source, others)
        for steps in started:
            steps.start()
        do(TESTS)
        for steps in (builds, beside, others):
            steps.join()
        do(THOROUGHLY if FULL else [])
        of_the_source.join()  # with --full, the models compute for an hour and more
        do(ALONE if FULL else [])
    print()
    if failed:
        print(f"the files of the tests are in {TEMPORARY}")
    for kind, names in (("skipped", skipped), ("FAILED", failed)):
        for name in names:
            print(f"{kind} {name}")
    print(f"{len(passed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or not passed else 0)


main()
