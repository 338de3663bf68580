#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""File systems with the Python versions and JDKs of other distributions, to run
them with chroot:

    tests/roots/roots.py [--cache DIRECTORY] [ROOT...]         (default: all)

Each is made once, in some 20 s, with packages from the mirrors that this
machine's apt uses, and kept in the cache directory under its name, which is
that of its suite, with "-java" behind it where it has JDKs.
Packages are unpacked, not installed: nothing of theirs runs meanwhile. Prints
what is there, and why a root cannot be had. Exit status: 0, 3 if one cannot.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "vm"))

import apt  # noqa: E402

# Of what is made: raise it when that changes.
FORMAT = 1
MADE = ".ksym-root"  # has FORMAT, in a root that is whole
HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
UBUNTU_KEYRING = "ubuntu-archive-keyring.gpg"
# Which has the keys of Ubuntu's archive in a package.
UBUNTU_KEYRING_SUITE = "trixie"


@dataclasses.dataclass
class Suite:
    """What a root of that name has."""
    versions: list  # of Python
    libraries: list  # the packages of libpython
    ubuntu: bool = False

    language = "Python"

    @property
    def packages(self):
        return ["python3", "python3-greenlet", *self.libraries,
                *("python" + version for version in self.versions)]

    def check(self, version):
        """The command that has to run there."""
        return ["/usr/bin/python" + version, "-c", "import ctypes, re, zlib"]


@dataclasses.dataclass
class JavaSuite:
    versions: list  # of JDKs
    ubuntu: bool = False

    language = "Java"

    @property
    def packages(self):
        return ["openjdk-%s-jre-headless" % version
                for version in self.versions]

    def check(self, version):
        return [java_of(version), "-version"]


def java_of(version):
    """The program in a root."""
    jre = "jre/" if version == "8" else ""
    return "/usr/lib/jvm/java-%s-openjdk-amd64/%sbin/java" % (version, jre)


def inside(root, *command):
    """The command that runs another one in the root, with /proc. It becomes
    that: it has its process id."""
    return ["unshare", "--mount", "sh", "-c",
            'mkdir -p "$0/proc" && mount --rbind /proc "$0/proc" && '
            'exec chroot "$0" "$@"', root, *command]


SUITES = {
    "focal": Suite(["3.8"], ["libpython3.8"], ubuntu=True),
    "bullseye": Suite(["3.9"], ["libpython3.9"]),
    "jammy": Suite(["3.10"], ["libpython3.10"], ubuntu=True),
    "bookworm": Suite(["3.11"], ["libpython3.11"]),
    "noble": Suite(["3.12"], ["libpython3.12t64"], ubuntu=True),
    "trixie": Suite(["3.13"], ["libpython3.13"]),
    "sid": Suite(["3.14", "3.15"], ["libpython3.14", "libpython3.15"]),
}
JAVA_SUITES = {
    "bullseye-java": JavaSuite(["11"]),
    "trixie-java": JavaSuite(["21", "25"]),
    "sid-java": JavaSuite(["8"]),
    "plucky-java": JavaSuite(["24"], ubuntu=True),
}
ALL_SUITES = SUITES | JAVA_SUITES


class Roots:
    """The roots in a cache directory."""

    def __init__(self, directory, say=print):
        """`say` is told what takes a while."""
        self.directory = os.path.abspath(directory)
        self.say = say
        self._mirrors = None
        os.makedirs(self.directory, exist_ok=True)

    def root(self, name):
        """The root's path. apt.Failure: why it cannot be had."""
        path = os.path.join(self.directory, name)
        if self._is_whole(path):
            return path
        if os.geteuid() != 0:
            raise apt.Failure("making the root %s needs root" % name)
        if shutil.which("mmdebstrap") is None:
            raise apt.Failure("no mmdebstrap is installed")
        with self._locked():
            if not self._is_whole(path):  # somebody else has made it
                self.say("making the root %s" % name)
                self._make(name, path)
        return path

    @staticmethod
    def _is_whole(path):
        try:
            with open(os.path.join(path, MADE), encoding="ascii") as file:
                return file.read() == "%d\n" % FORMAT
        except OSError:
            return False

    @contextlib.contextmanager
    def _locked(self):
        with open(self.directory + "/lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Of a run that was killed.
            for path in glob.glob(self.directory + "/tmp.*"):
                shutil.rmtree(path, ignore_errors=True)
            yield

    def _make(self, name, path):
        directory = tempfile.mkdtemp(prefix="tmp.", dir=self.directory)
        try:
            self._unpack(name, directory + "/root")
            shutil.rmtree(path, ignore_errors=True)
            os.rename(directory + "/root", path)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _unpack(self, name, root):
        suite = ALL_SUITES[name]
        apt.run("mmdebstrap", "--variant=extract", "--mode=root",
                "--architectures=amd64",
                "--include=" + ",".join(suite.packages),
                '--aptopt=Acquire::Check-Valid-Until "false"',
                '--aptopt=Acquire::Retries "3"',
                '--aptopt=Acquire::Languages "none"',
                "--hook-dir=" + HOOKS, name.partition("-")[0], root,
                *self._sources(name),
                env=dict(os.environ, LC_ALL="C"))
        for version in suite.versions:
            done = subprocess.run(
                inside(root, *suite.check(version)), check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise apt.Failure("%s %s of %s does not run: %s" % (
                    suite.language, version, name,
                    done.stdout.strip()[-500:]))
        with open(os.path.join(root, MADE), "w", encoding="ascii") as file:
            file.write("%d\n" % FORMAT)

    @property
    def mirrors(self):
        if self._mirrors is None:
            self._mirrors = apt.Mirrors()
        return self._mirrors

    def _sources(self, name):
        suite = name.partition("-")[0]
        if not ALL_SUITES[name].ubuntu:
            return self.mirrors.sources(suite)
        return self.mirrors.ubuntu_sources(suite, self._ubuntu_keyring())

    def _ubuntu_keyring(self):
        """Debian's package of it: its archive vouches for the keys."""
        path = os.path.join(self.directory, UBUNTU_KEYRING)
        if not os.path.exists(path):
            with tempfile.TemporaryDirectory(prefix="tmp.",
                                             dir=self.directory) as directory:
                packages = apt.Apt(self.mirrors, UBUNTU_KEYRING_SUITE,
                                   directory + "/apt")
                packages.unpack(["ubuntu-keyring"], directory + "/tree")
                os.rename(os.path.join(directory, "tree/usr/share/keyrings",
                                       UBUNTU_KEYRING), path)
        return path


def main():
    parser = argparse.ArgumentParser(
        description="Makes roots with Python versions and JDKs, to run with "
                    "chroot.")
    parser.add_argument("--cache", default=SOURCE + "/build/roots",
                        help="build/roots if not given")
    parser.add_argument("roots", nargs="*", metavar="ROOT",
                        help="of " + ", ".join(ALL_SUITES))
    arguments = parser.parse_args()
    for name in arguments.roots:
        if name not in ALL_SUITES:
            parser.error("no root %s; there are %s" % (
                name, ", ".join(ALL_SUITES)))
    roots = Roots(arguments.cache, lambda text: print(text, flush=True))
    missing = False
    for name in arguments.roots or ALL_SUITES:
        suite = ALL_SUITES[name]
        try:
            print("%s: %s %s in %s" % (
                name, suite.language, " ".join(suite.versions),
                roots.root(name)))
        except apt.Failure as failure:
            missing = True
            print("%s: left out: %s" % (name, failure))
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
