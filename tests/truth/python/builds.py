# SPDX-License-Identifier: Apache-2.0
"""The builds of Python that are measured: of which root, and in what."""

import dataclasses
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
WORKLOADS = os.path.join(HERE, "workloads")
sys.path.insert(0, os.path.join(SOURCE, "tests", "roots"))
sys.path.insert(0, WORKLOADS)

import make_calls  # noqa: E402
import roots  # noqa: E402

LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
# Where the workloads are in a root.
INSIDE = "/tmp/ksym"
# How the interpreter is there, with the first version that has it.
KINDS = {
    "static": 8,
    "libpython": 8,
    "embedded": 8,
    "interpreter": 8,
    "perf": 12,
}
KIND_TEXTS = {
    "static": "program",
    "libpython": "libpython",
    "embedded": "in a C program's thread",
    "interpreter": "second interpreter",
    "perf": "program, -X perf",
}


class Missing(Exception):
    """Why a build cannot be had."""


@dataclasses.dataclass
class Build:
    version: str  # 3.11
    suite: str
    root: str  # its path
    kind: str  # of KINDS

    @property
    def minor(self):
        return int(self.version.split(".")[1])

    @property
    def text(self):
        return "%s %s" % (self.version, KIND_TEXTS[self.kind])

    def path(self, name):
        """Of a workload, in the root."""
        return INSIDE + "/" + name

    def outside(self, path):
        """A path of the root, for us."""
        return self.root + path

    def command(self, name, *arguments):
        """That runs a workload in this build."""
        python = "/usr/bin/python" + self.version
        prefix = {
            "static": [python],
            "perf": [python, "-X", "perf"],
            "libpython": [self._embed, "main"],
            "embedded": [self._embed, "thread"],
            "interpreter": [self._embed, "interpreter"],
        }[self.kind]
        return ["chroot", self.root, *prefix, self.path(name),
                *map(str, arguments)]

    @property
    def _embed(self):
        return "%s/embed-%s" % (INSIDE, self.version)

    def prepare(self):
        """Puts the workloads into the root."""
        directory = self.outside(INSIDE)
        os.makedirs(directory, exist_ok=True)
        for path in glob.glob(WORKLOADS + "/*.py"):
            shutil.copy(path, directory)
        with open(directory + "/calls.py", "w", encoding="utf-8") as file:
            file.write(make_calls.Program().source)
        if self.kind not in ("static", "perf"):
            self._link(self.outside(self._embed))

    def _link(self, target):
        """With the libraries of the root, which need not be those of this
        machine."""
        wanted = ["libpython%s.so.1.0" % self.version, "libc.so.6",
                  "libpthread.so.0"]
        subprocess.run(
            ["gcc", "-O2", "-o", target, WORKLOADS + "/embed.c",
             "-nodefaultlibs", "-Wl,--unresolved-symbols=ignore-in-shared-libs",
             *(self._library(name) for name in wanted)], check=True)

    def _library(self, name):
        for directory in LIBRARIES:
            path = os.path.join(self.root, directory, name)
            if os.path.exists(path):
                return path
        raise Missing("%s has no %s" % (self.suite, name))


def all_builds(cache, versions, kinds, say):
    """Those of the versions and kinds, prepared; what cannot be had is said."""
    made = roots.Roots(cache, say)
    for suite, content in roots.SUITES.items():
        found = [v for v in content.versions if not versions or v in versions]
        if not found:
            continue
        try:
            root = made.root(suite)
        except roots.apt.Failure as failure:
            say("%s of %s: left out: %s" % (
                ", ".join(found), suite, str(failure).splitlines()[0]))
            continue
        for version in found:
            for kind in kinds:
                build = Build(version, suite, root, kind)
                if build.minor < KINDS[kind]:
                    continue
                try:
                    build.prepare()
                except (Missing, subprocess.CalledProcessError) as error:
                    say("%s: left out: %s" % (build.text, error))
                    continue
                yield build
