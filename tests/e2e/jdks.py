# SPDX-License-Identifier: Apache-2.0
"""The JDKs that tests run programs with: this machine's, and those of roots of
other distributions, which are made at first use and kept in the build
directory."""

import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys

import harness

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests/roots"))
import roots  # noqa: E402

CACHE = os.path.join(harness.SOURCE_DIR, "build/roots")
WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "workloads")
JAVAC = shutil.which("javac")


@dataclasses.dataclass
class Jdk:
    version: int
    java: str
    root: str = ""  # empty: this machine's

    def __str__(self):
        return "JDK %d of %s" % (self.version, self.root or "this machine")

    def bring(self, classes):
        """Has what is in that directory there for command()."""
        if self.root:
            shutil.copytree(classes, self.root + "/classes", dirs_exist_ok=True)

    def command(self, classes, *arguments):
        """Runs java with what is in that directory."""
        if not self.root:
            return [self.java, "-cp", classes, *arguments]
        return roots.inside(self.root, self.java, "-cp", "/classes",
                            *arguments)


def _of_this_machine():
    for java in sorted(glob.glob("/usr/lib/jvm/*/bin/java")):
        if os.path.islink(os.path.dirname(os.path.dirname(java))):
            continue
        said = subprocess.run([java, "-version"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = re.search(r'version "(?:1\.)?(\d+)', said.stdout)
        if found:
            yield Jdk(int(found.group(1)), java)


def _of_roots(why_not):
    made = roots.Roots(CACHE, lambda text: print(text, file=sys.stderr,
                                                 flush=True))
    for name, suite in roots.JAVA_SUITES.items():
        try:
            root = made.root(name)
        except roots.apt.Failure as failure:
            why_not("%s: left out: %s" % (name, failure))
            continue
        for version in suite.versions:
            yield Jdk(int(version), roots.java_of(version), root)


def all_jdks(why_not):
    """`why_not` is told of what cannot be had."""
    yield from _of_this_machine()
    yield from _of_roots(why_not)


def compile_workload(name, directory):
    """For all of them; JDK 8 is the oldest."""
    subprocess.run([JAVAC, "--release", "8", "-Xlint:-options", "-nowarn",
                    "-d", directory, os.path.join(WORKLOADS, name)],
                   check=True, stderr=subprocess.DEVNULL)
