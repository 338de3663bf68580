# SPDX-License-Identifier: Apache-2.0
"""main.py MODULE...: runs the checks of check_MODULE.py, in this order, and
writes a line of JSON per check to the port that the host reads. Then it ends
the machine."""

import glob
import importlib
import os
import subprocess
import sys
import traceback

import checks


def open_port(name):
    """The virtio port with that name; udev's links to them are not there."""
    for path in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(path, encoding="utf-8") as file:
            if file.read().strip() == name:
                device = "/dev/" + path.split("/")[-2]
                return open(device, "w", encoding="utf-8", buffering=1)
    sys.exit("no port " + name)


def main():
    log = open_port("vm.log")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    os.environ.update(
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME="/root", LC_ALL="C.UTF-8")
    for name in ("INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"):
        os.environ.pop(name, None)
    results = open_port("vm.results")
    try:
        checks.report(results, started=True)
        modules = ["check_" + name for name in sys.argv[1:]]
        for name in modules:
            importlib.import_module(name)
        checks.run_all(results, modules)
        subprocess.run(["journalctl", "--no-pager", "-b"], check=False)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        checks.report(results, check="the checks themselves", state="failed",
                      seconds=0, detail=traceback.format_exc())
    checks.report(results, ended=True)
    subprocess.run(["systemctl", "poweroff", "-ff"], check=False)


main()
