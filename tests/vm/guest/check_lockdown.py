# SPDX-License-Identifier: Apache-2.0
"""What works on a kernel that is locked down."""

import subprocess

from checks import HERE, PROFILER, check, expect, read, run
import check_capture
import check_service
import reports


def mode():
    text = read("/sys/kernel/security/lockdown")
    return text[text.index("[") + 1:text.index("]")]


def one_clear_line():
    """What both programs say where they cannot work: one line, with the
    cause."""
    done = subprocess.run([PROFILER, "1"], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    said = done.stderr.decode().splitlines()
    expect(done.returncode == 1 and done.stdout == b"", done)
    expect(len(said) == 1 and "lockdown" in said[0], said)
    return said[0]


@check("one-shot, locked down")
def one_shot():
    run("dpkg", "-i", HERE + "/ksym.deb")
    if mode() == "confidentiality":
        return one_clear_line()
    for store in ("exact", "stackid"):
        document, _ = check_capture.capture("--stack-map", store)
        check_capture.expect_whole(document)
    kernel = subprocess.Popen(
        ["dd", "if=/dev/urandom", "of=/dev/null", "bs=64k"],
        stderr=subprocess.DEVNULL)
    try:
        said = subprocess.run(
            [PROFILER, "-F", "499", "--format", "json", "-p", str(kernel.pid),
             "1"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    finally:
        kernel.kill()
        kernel.wait()
    frames = reports.Document(said.stdout).of_kind("kernel")
    expect(frames and all("reason" not in f for f in frames),
           "kernel frames without names")
    return "all of it"


@check("service, locked down")
def service():
    if mode() == "confidentiality":
        run("systemctl", "start", check_service.UNIT, status=None)
        said = [text for priority, text in check_service.own_messages()
                if priority == 3]
        expect(said and all("lockdown" in text for text in said), said)
        return said[0]
    check_service.configure()
    run("systemctl", "start", check_service.UNIT)
    check_service.document(check_service.wait_profiles(2)[-1])
    run("systemctl", "stop", check_service.UNIT)
    expect(not [text for priority, text in check_service.own_messages()
                if priority < 6], check_service.own_messages())
    return "all of it"
