# SPDX-License-Identifier: Apache-2.0
"""The package on a clean machine: installed, used, its pages read."""

import os
import pwd

from checks import HERE, check, expect, run
import machine_state


@check("apt install")
def installed():
    # The service is there with its user, and not started.
    machine_state.remember()
    run("apt-get", "install", "-y", HERE + "/ksym.deb", seconds=300)
    pwd.getpwnam("ksym")
    expect(run("systemctl", "is-active", "ksym-profiled",
               status=3).strip() == "inactive", "it was started")
    expect(run("systemctl", "is-enabled", "ksym-profiled",
               status=1).strip() == "disabled", "it was enabled")


@check("manual pages")
def manual():
    for page in ("ksym-profile", "ksym-profiled", "ksym-symbolize",
                 "gen_ksym", "gen_gsym"):
        text = run("man", "-P", "cat", page)
        expect("NAME" in text and page in text, page)


@check("a flame graph")
def flame_graph():
    path = "/root/flame.html"
    run("ksym-profile", "-F", "99", "3", "-o", path)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    os.unlink(path)
    expect(page.startswith("<!") and "<script" in page and len(page) > 20000,
           page[:500])
    return "%d bytes" % len(page)


@check("systemd-analyze")
def analyze():
    unit = "ksym-profiled.service"
    said = run("systemd-analyze", "verify",
               "/usr/lib/systemd/system/" + unit)
    expect(said == "", said)
    return run("systemd-analyze", "security", "--threshold=31", unit,
               "--no-pager").splitlines()[-1].encode(
                   "ascii", "ignore").decode().strip()
