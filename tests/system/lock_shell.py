"""A shell script that takes locks by `s3once lock acquire --wait 0` and `lock release`, again and again (test_lock_exclusion.py).

    lock_shell.py S3ONCE KEYS TIMES SECONDS SEED

Writes down when it surely held one, as lock_holder.c does.
"""

import json
import random
import subprocess
import sys
import time

BINARY, (KEYS, TIMES, SECONDS, SEED) = sys.argv[1], map(int, sys.argv[2:])
MOST = 4  # looks at a lock that is held


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def say(*words):
    print(*words, flush=True)


def run(*argv):
    done = subprocess.run([BINARY, "lock", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if done.returncode not in (0, 3, 4, 5):  # the service: again
        sys.exit(f"lock {argv}: exit {done.returncode}")
    return done


def hold(key):
    """True if it was held for a while. What was left was said after the command began: so long is it held surely."""
    begun = now()
    done = run("acquire", "--wait", "0", "--lease", "3s", "--json", key)
    if done.returncode:
        return False
    event = json.loads(done.stdout)
    until = begun + event["remaining_ms"] * 10**6
    held = False
    for _ in range(MOST):
        if (since := now()) < until:
            say(key, event["token"], since, until)
            held = True
            time.sleep(0.01)
    say(key, event["token"], now(), 0)
    run("release", event["handle"])
    return held


def main():
    chance, done, end = random.Random(SEED), 0, time.monotonic() + SECONDS
    while done < TIMES or time.monotonic() < end:
        key = f"key{chance.randrange(KEYS)}"
        while not hold(key):
            time.sleep(0.02)
        done += 1


main()
