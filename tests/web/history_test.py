#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""history_test.py PROFILER DIRECTORY PROFILED: the page of a history in
Chromium, as the service serves it: two runs of a real one, of programs whose
names are made to deceive. Needs root."""

import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import web_test

PROFILED = sys.argv[3]
TOKEN = "open sesame & more"

# A command and functions with markup in their names, which use the CPU.
HOSTILE = r"""
import ctypes, time
ctypes.CDLL(None).prctl(15, b'<img src=x>\xe2\x80\xae', 0, 0, 0)
def spin(until):
    while time.monotonic() < until:
        sum(range(2000))
def renamed(function, name):
    names = [key for key in ('co_name', 'co_qualname')
             if hasattr(function.__code__, key)]
    return type(function)(
        function.__code__.replace(**dict.fromkeys(names, name)), globals())
hostile = renamed(spin, '<img src=x onerror="document.title=1">')
long = renamed(spin, 'x' * 5000)
end = time.monotonic() + 600
while time.monotonic() < end:
    hostile(time.monotonic() + 0.2)
    long(time.monotonic() + 0.2)
    spin(time.monotonic() + 0.2)
"""


# One that uses the CPU for a moment, and waits from then on.
WAITING = r"""
import ctypes, time
ctypes.CDLL(None).prctl(15, b'only-waits', 0, 0, 0)
time.sleep(600)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class HistoryPage(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ksym-web-history-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.port = free_port()
        self.socket = os.path.join(self.dir, "http.sock")
        self.token_file = os.path.join(self.dir, "token")
        with open(self.token_file, "w", encoding="utf-8") as file:
            file.write(TOKEN + "\n")

    def begin(self, command, stdout=subprocess.DEVNULL, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                   stdout=stdout, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def begin_service(self, frequency_hz, waiting=False):
        config = os.path.join(self.dir, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "frequency_hz": frequency_hz, "interval_seconds": 1,
                "waiting": {"enabled": waiting},
                "stacks": {"cache_directory": ""}, "files": {"directory": ""},
                "push_spool": {"directory": os.path.join(self.dir, "push")},
                "history": {"enabled": True,
                            "directory": os.path.join(self.dir, "history")},
                "http": {"listen": [f"127.0.0.1:{self.port}",
                                    f"unix:{self.socket}"],
                         "token_file": self.token_file}}, file)
        log = os.path.join(self.dir, f"log-{frequency_hz}")
        with open(log, "w", encoding="utf-8") as stderr:
            return self.begin([PROFILED, "--config", config], stderr=stderr)

    def ask(self, path, token=TOKEN):
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=30)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        except OSError:
            return 0, b"", {}
        finally:
            connection.close()

    def wait_seconds(self, seconds):
        """Until the history knows of so many since the beginning."""
        for _ in range(240):
            status, body, _ = self.ask(
                "/api/history/timeline?seconds=600&step=10&by=comm")
            if status == 200:
                line = json.loads(body)
                rows = [row["name"] for row in line["rows"]]
                if line["known"] >= seconds and any(
                        "<img" in name for name in rows):
                    return
            time.sleep(0.5)
        self.fail("there is no history")

    def test_page(self):
        """What a person does with the page: times, ranges, two of them,
        filters, functions over time, kinds of samples, downloads, keys, a
        token, phone, dark: nothing on the console, and no request but to the
        service."""
        self.begin([sys.executable, "-c", HOSTILE])
        self.begin([sys.executable, "-c", WAITING])
        first = self.begin_service(49)
        self.wait_seconds(6)
        first.terminate()
        first.wait()
        time.sleep(3)
        service = self.begin_service(99, waiting=True)
        self.wait_seconds(12)
        # Pages have no data; data want the token.
        status, page, headers = self.ask("/", token=None)
        self.assertEqual(status, 200)
        self.assertIn(b"<noscript>", page)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        for name in ("X-Content-Type-Options", "Referrer-Policy",
                     "Cross-Origin-Resource-Policy", "Cache-Control"):
            self.assertIn(name, headers)
        for path in ("/api/history/flame", "/api/history/files", "/metrics"):
            self.assertEqual(self.ask(path, token=None)[0], 401)
        scripts = [self.ask(path, token=None)[1]
                   for path in ("/history.js", "/flame.js")]
        size = sum(len(gzip.compress(script)) for script in scripts)
        print(f"\nscripts: {size} bytes, gzipped")
        self.assertLessEqual(size, 40_000)
        pictures = os.path.join(web_test.DIRECTORY, "pictures")
        os.makedirs(pictures, exist_ok=True)
        print("\n" + web_test.node(
            "history.mjs", f"http://127.0.0.1:{self.port}", TOKEN, self.dir,
            pictures).strip())
        print("pictures:", pictures)
        for name, wanted in (("folded", b";"), ("json", b'"stacks"')):
            with open(os.path.join(self.dir, "saved." + name), "rb") as file:
                self.assertIn(wanted, file.read())
        self.look_through_ui(service, pictures)

    def look_through_ui(self, service, pictures):
        """The same page by way of `ksym-profile ui`, until the service ends."""
        ui = self.begin([web_test.PROFILER, "ui", "--no-browser", "--socket",
                         self.socket], stdout=subprocess.PIPE, text=True)
        address = ui.stdout.readline().strip()
        self.addCleanup(ui.stdout.close)
        with web_test.begin_node("ui.mjs", address, pictures) as browser:
            self.assertEqual(browser.stdout.readline(), "ready\n",
                             browser.poll())
            service.terminate()
            service.wait()
            print(browser.communicate("gone\n", timeout=120)[0].strip())
            self.assertEqual(browser.returncode, 0)
        ui.terminate()
        self.assertEqual(ui.wait(10), 0)


if __name__ == "__main__":
    why = web_test.install_packages()
    if not why and os.geteuid() != 0:
        why = "the service needs root"
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
