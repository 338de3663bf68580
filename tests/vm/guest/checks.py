# SPDX-License-Identifier: Apache-2.0
"""What the checks share. A check is a function with @check: it returns, maybe
with a text that is worth reading, raises Skip, or fails by any exception."""

import importlib
import json
import os
import subprocess
import sys
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/tests/e2e")
PROFILER = "/usr/sbin/ksym-profile"
os.environ.update(KSYM_PROFILE=PROFILER,
                  KSYM_PROFILED="/usr/sbin/ksym-profiled",
                  KSYM_SYMBOLIZE="/usr/bin/ksym-symbolize",
                  KSYM_E2E_WORKLOADS=HERE + "/workloads", KSYM_SOURCE_DIR=HERE)
import harness  # noqa: E402, which reads these variables
import reports  # noqa: E402

# The schema takes seconds in an emulated machine: one profile is held against
# it, the others against themselves.
validate, reports.validate = reports.validate, lambda _: None
harness.RUN_SECONDS = 300

# Fewer turns of what takes long.
QUICK = os.path.exists(HERE + "/quick")
KERNEL = tuple(map(int, os.uname().release.split("-")[0].split("+")[0]
                   .split(".")[:2]))

_CHECKS = []


class Skip(Exception):
    pass


def check(name):
    def add(function):
        _CHECKS.append((name, function))
        return function
    return add


def report(port, **values):
    port.write(json.dumps(values) + "\n")
    port.flush()


def run_all(port, modules):
    """Those of these modules, in their order."""
    for name, function in sorted(
            (c for c in _CHECKS if c[1].__module__ in modules),
            key=lambda c: modules.index(c[1].__module__)):
        print("=== " + name, flush=True)
        begin = time.monotonic()
        state, detail = "ok", ""
        try:
            detail = function() or ""
        except Skip as skip:
            state, detail = "skipped", str(skip)
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            where = traceback.extract_tb(error.__traceback__)[-1]
            state, detail = "failed", "%s:%d: %s: %s" % (
                os.path.basename(where.filename), where.lineno,
                type(error).__name__, error)
        report(port, check=name, state=state, detail=detail[-3000:],
               seconds=time.monotonic() - begin)


def run(*command, status=0, seconds=120, **options):
    """The output, both streams; fails on another exit status."""
    done = subprocess.run(
        [*map(str, command)], stdin=subprocess.DEVNULL, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
        errors="replace", **options)
    print("$ %s\n%s" % (" ".join(map(str, command)), done.stdout), flush=True)
    if status is not None and done.returncode != status:
        raise AssertionError("%s: status %d\n%s" % (
            " ".join(map(str, command)), done.returncode, done.stdout[-1500:]))
    return done.stdout


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def wait_for(condition, what, seconds=180):
    """The first true value of `condition`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("waited %d s for %s" % (seconds, what))


def test(file, name=None):
    """Runs an end-to-end test of the source, or all of a file."""
    module = importlib.import_module(file)
    loader = unittest.defaultTestLoader
    suite = (loader.loadTestsFromName(name, module) if name
             else loader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(suite)
    wrong = [text for _, text in result.failures + result.errors]
    expect(not wrong, "\n".join(wrong)[-2500:])
    expect(result.testsRun > 0, "no test ran")
    reasons = "; ".join(reason for _, reason in result.skipped)
    if len(result.skipped) == result.testsRun:
        raise Skip(reasons)
    return "of %d tests %d skipped: %s" % (
        result.testsRun, len(result.skipped), reasons) if reasons else ""


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
