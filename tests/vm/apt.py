# SPDX-License-Identifier: Apache-2.0
"""Debian packages by name, from the mirrors that this machine's apt uses.

Each suite has an apt state of its own, so neither this machine's package lists
nor its preferences play a part, and nothing of it is changed.
"""

import os
import re
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

CONFIGURATION = """
Dir::State "{directory}";
Dir::State::status "{directory}/status";
Dir::Cache "{directory}/cache";
Dir::Etc::sourcelist "{directory}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "root";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
"""


class Failure(Exception):
    """Something that is needed cannot be had; the text says what."""


def run(*command, **options):
    """The command's output; Failure with its last lines where it fails."""
    done = subprocess.run(
        [*map(str, command)], stdin=subprocess.DEVNULL, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise Failure("%s: status %d\n%s" % (
            " ".join(map(str, command)), done.returncode,
            "\n".join(done.stdout.splitlines()[-20:])))
    return done.stdout


def host_suite():
    """Of this machine, such as bookworm."""
    with open("/etc/os-release", encoding="utf-8") as file:
        found = re.search(r"(?m)^VERSION_CODENAME=(\w+)", file.read())
    if not found:
        raise Failure("/etc/os-release has no VERSION_CODENAME: this needs "
                      "Debian")
    return found[1]


class Mirrors:
    """Where the archive and its security updates are."""

    def __init__(self):
        suite = host_suite()
        lines = run("apt-get", "indextargets", "--no-release-info", "--format",
                    "$(RELEASE) $(SITE) $(REPO_URI)", "Created-By: Packages")
        places = {line.split()[0]: line.split()[-1].rstrip("/")
                  for line in lines.splitlines() if line.strip()}
        if suite not in places:
            raise Failure("apt has no source for %s, only for: %s" % (
                suite, " ".join(sorted(places)) or "nothing"))
        self.main = places[suite]
        self.security = places.get(suite + "-security")

    def sources(self, suite):
        """Lines of sources.list."""
        form = "deb [signed-by=%s] %%s %%s main" % KEYRING
        lines = [form % (self.main, suite)]
        rolling = suite in ("sid", "forky") or suite.endswith("-backports")
        if self.security and not rolling:
            lines.append(form % (self.security, suite + "-security"))
        return lines

    def ubuntu_sources(self, suite, keyring):
        """The same of Ubuntu, which a mirror that has both has beside Debian's
        archive."""
        place = self.main.rpartition("/")[0] + "/ubuntu"
        form = "deb [signed-by=%s] %s %%s main universe" % (keyring, place)
        return [form % name for name in (suite, suite + "-updates")]


class Apt:
    """The packages of one suite, in a directory that the caller deletes."""

    def __init__(self, mirrors, suite, directory):
        self.suite = suite
        for name in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(directory, name))
        self._write(directory, "status", "")
        self._write(directory, "sources.list",
                    "\n".join(mirrors.sources(suite)) + "\n")
        self._write(directory, "apt.conf", CONFIGURATION.format(directory=directory))
        self.environment = dict(os.environ, LC_ALL="C",
                                APT_CONFIG=directory + "/apt.conf")
        self._run("apt-get", "update")

    @staticmethod
    def _write(directory, name, text):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _run(self, *command, **options):
        return run(*command, env=self.environment, **options)

    def newest(self, pattern):
        """The name that matches and has the highest numbers in it, or None.
        apt's expressions are POSIX's."""
        lines = self._run("apt-cache", "search", "--names-only", pattern)
        names = [line.split()[0] for line in lines.splitlines()]
        return max(names, default=None,
                   key=lambda name: [*map(int, re.findall(r"\d+", name))])

    def depends(self, package):
        """The names of its direct dependencies."""
        lines = self._run("apt-cache", "depends", "--important", package)
        return re.findall(r"(?m)^ *\|?(?:Pre)?Depends: ([^<\s]+)", lines)

    def unpack(self, packages, target):
        """Downloads the packages and unpacks their files below `target`."""
        debs = os.path.join(target, "debs")
        os.makedirs(debs)
        self._run("apt-get", "download", *packages, cwd=debs)
        for name in sorted(os.listdir(debs)):
            path = os.path.join(debs, name)
            run("dpkg-deb", "-x", path, target)
            os.unlink(path)
        os.rmdir(debs)
