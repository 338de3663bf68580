#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the Debian package on Debian's kernels, under systemd, and checks
there what cannot be checked on the machine that builds it:

    tests/vm/run.py [--kernel VERSION]... [--boot NAME]... PACKAGE.deb

Prints a line per check and a table of kernels and checks. What it needs is
made on the first run, with packages from the mirrors that this machine's apt
uses, and kept in the cache directory. The log of each boot is below it in logs/.

Exit status: 0 all is well, 1 a check failed or a guest did not run, 2 wrong
usage, 3 what a guest is made of cannot be had, 77 QEMU does not run on this
machine at all.
"""

import argparse
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time

import apt
import images
import machine

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# Where Debian has which kernel. The first suite that has it is taken.
KERNELS = {
    "5.10": ["bullseye"],
    "6.1": ["bookworm"],
    "6.12": ["trixie", "bookworm-backports"],
    "6.18": ["trixie-backports"],
    "7.2": ["trixie-backports", "sid"],
}
DEFAULT_KERNELS = ["6.1"]

BOOTS = [
    machine.Boot("plain", "", ["install", "service", "capture", "modules",
                               "remove"]),
    machine.Boot("integrity", "lockdown=integrity", ["lockdown"]),
    machine.Boot("confidentiality", "lockdown=confidentiality", ["lockdown"]),
]
BOOT_SECONDS = 2400  # a loaded host; 130 of an idle one

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
SKIPPED_STATUS = 77


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Checks the Debian package on Debian's kernels in QEMU.")
    parser.add_argument("package", help="the .deb")
    parser.add_argument("--kernel", action="append", metavar="VERSION",
                        choices=[*KERNELS, "all"],
                        help="%s or all; %s if not given" % (
                            ", ".join(KERNELS), " ".join(DEFAULT_KERNELS)))
    parser.add_argument("--boot", action="append", metavar="NAME",
                        choices=[boot.name for boot in BOOTS],
                        help="only these; all if not given")
    parser.add_argument("--checks", metavar="NAME,NAME",
                        help="instead of a boot's own, guest/check_NAME.py")
    parser.add_argument("--quick", action="store_true",
                        help="one boot, without what takes long")
    parser.add_argument("--accelerator", choices=["tcg", "kvm"],
                        default="tcg", help="tcg (default) or kvm")
    parser.add_argument("--cache", default=SOURCE + "/build/vm",
                        help="build/vm if not given")
    parser.add_argument("--build", default=SOURCE + "/build/release",
                        help="where the tests' programs are built")
    return parser.parse_args()


class Results:
    """What the checks of all kernels said, in the order in which they came."""

    def __init__(self):
        self.columns = []  # kernels
        self.rows = {}  # check: {kernel: result}
        self.notes = []

    def add(self, kernel, result):
        name, state = result["check"], result["state"]
        self.rows.setdefault(name, {})[kernel] = state
        detail = result["detail"]
        if detail and state != OK:
            self.notes.append("%s: %s: %s: %s" % (kernel, name, state, detail))
        say("%-8s %-7s %5.1f s  %s%s" % (
            kernel, state, result["seconds"], name,
            "  (%s)" % detail if detail and state == OK else ""))
        if state != OK:
            print(detail, flush=True)

    def table(self):
        rows = [["check", *self.columns]]
        rows += [[name, *(states.get(kernel, "") for kernel in self.columns)]
                 for name, states in self.rows.items()]
        widths = [max(len(row[i]) for row in rows)
                  for i in range(len(rows[0]))]
        rows.insert(1, ["-" * width for width in widths])
        return "\n".join("| " + " | ".join(
            cell.ljust(width) for cell, width in zip(row, widths)) + " |"
            for row in rows)

    def failed(self):
        return any(FAILED in states.values() for states in self.rows.values())


BEGIN = time.monotonic()


def say(text):
    print("[%5.1f s] %s" % (time.monotonic() - BEGIN, text), flush=True)


def make_payload(arguments, directory):
    """What the guest has in /run/vm."""
    shutil.copytree(os.path.join(SOURCE, "tests/vm/guest"), directory)
    os.unlink(directory + "/init")
    shutil.copy(arguments.package, directory + "/ksym.deb")
    for source, target in (("tests/e2e", "tests/e2e"), ("docs", "docs"),
                           ("systemd", "systemd")):
        shutil.copytree(
            os.path.join(SOURCE, source), os.path.join(directory, target),
            ignore=shutil.ignore_patterns("workloads", "__pycache__", "*.png",
                                          "*.md"))
    workloads = os.path.join(arguments.build, "tests/e2e/workloads")
    if not os.path.isdir(workloads):
        raise apt.Failure(workloads + ": not there; build the tests first")
    shutil.copytree(workloads, directory + "/workloads",
                    ignore=shutil.ignore_patterns("CMakeFiles", "*.cmake"))
    if arguments.quick:
        open(directory + "/quick", "w", encoding="utf-8").close()


def run_kernel(cache, version, arguments, payload, results):
    """Whether the guests ran."""
    kernel = cache.kernel(version, KERNELS[version])
    guest = machine.Machine(cache.qemu(), kernel,
                            cache.root_disk(arguments.package), payload,
                            arguments.accelerator)
    results.columns.append(kernel.version)
    logs = os.path.join(cache.directory, "logs")
    os.makedirs(logs, exist_ok=True)
    well = True
    for boot in BOOTS[:1] if arguments.quick else BOOTS:
        if arguments.boot and boot.name not in arguments.boot:
            continue
        if arguments.checks:
            boot = machine.Boot(boot.name, boot.command_line,
                                arguments.checks.split(","))
        say("%s %s" % (kernel.version, boot.name))
        log = os.path.join(logs, "%s-%s.log" % (version, boot.name))
        wrong = guest.run(
            boot, BOOT_SECONDS, log,
            lambda result: "check" in result
            and results.add(kernel.version, result))
        if wrong:
            well = False
            results.notes.append("%s %s: %s; see %s" % (
                kernel.version, boot.name, wrong, log))
            say(results.notes[-1])
    return well


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("tests/vm/run.py: needs root, to make a root file system")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the guest ends
        signal.signal(number, lambda *_: sys.exit(1))
    reason = images.why_no_qemu()
    if reason:
        print("tests/vm/run.py: skipped: " + reason)
        sys.exit(SKIPPED_STATUS)
    wanted = arguments.kernel or DEFAULT_KERNELS
    if "all" in wanted:
        wanted = list(KERNELS)
    os.makedirs(arguments.cache, exist_ok=True)
    results, well, missing = Results(), True, False
    with open(arguments.cache + "/lock", "w", encoding="utf-8") as lock, \
            tempfile.TemporaryDirectory(prefix="ksym-vm-") as directory:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two guests at once are too slow
        make_payload(arguments, directory + "/vm")
        cache = images.Cache(os.path.abspath(arguments.cache), say)
        for version in wanted:
            try:
                well &= run_kernel(cache, version, arguments, directory + "/vm",
                                   results)
            except apt.Failure as failure:
                missing = True
                results.notes.append("%s: %s" % (version, failure))
                say(results.notes[-1])
    print("\n" + results.table())
    for note in results.notes:
        print("\n" + note)
    if not well or results.failed():
        sys.exit(1)
    sys.exit(3 if missing else 0)


if __name__ == "__main__":
    main()
