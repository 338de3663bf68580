#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ksym-profile ui: who gets through to the service's Unix socket, and what."""

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time

import harness

ADDRESS = re.compile(r"http://((?:127\.0\.0\.1|\[::1\]):\d+)/#token=([0-9a-f]{64})\n")
HEADERS = ("HTTP/1.1 {} OK\r\nContent-Security-Policy: default-src 'none'\r\n"
           "X-From: service\r\nConnection: close\r\n"
           "Content-Length: {}\r\n\r\n")
LARGE_BYTES = 40 << 20


class FakeService:
    """A Unix socket that answers GETs by their paths, and keeps what it was
    asked."""

    def __init__(self, path):
        self.path = path
        self.asked = []
        self.gone = threading.Event()  # a slow request's client went away
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,),
                             daemon=True).start()

    def serve(self, client):
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(4096)
                if not part:
                    return
                head += part
            self.asked.append(head.decode())
            path = head.split()[1].decode()
            if "slow" in path:
                client.settimeout(60)
                try:
                    client.recv(1)
                except OSError:
                    pass
                self.gone.set()
            elif "dies" in path:
                return
            elif "large" in path:
                client.sendall(HEADERS.format(200, LARGE_BYTES).encode())
                try:
                    for _ in range(LARGE_BYTES >> 20):
                        client.sendall(b"x" * (1 << 20))
                except OSError:
                    pass
            else:
                status = 404 if "missing" in path else 200
                client.sendall(HEADERS.format(status, 5).encode() + b"hello")

    def end(self):
        self.listener.close()
        os.unlink(self.path)


class UiTest(harness.E2eTest):
    NEEDS_ROOT = False

    def setUp(self):
        super().setUp()
        self.socket = self.path("http.sock")
        self.service = FakeService(self.socket)

    def begin(self, *arguments, program=harness.PROFILER, **options):
        """A running ui, its address and token."""
        with open(self.path("stderr"), "w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [program, "ui", "--socket", self.socket, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr, text=True,
                preexec_fn=harness.die_with_parent, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        found = ADDRESS.fullmatch(process.stdout.readline())
        self.assertIsNotNone(found, harness.read_text(self.path("stderr")))
        return process, *found.groups()

    def ask(self, address, path, method="GET", **headers):
        """Status, body, headers. A header that is None is not sent."""
        connection = http.client.HTTPConnection(address, timeout=30)
        self.addCleanup(connection.close)
        connection.putrequest(method, path, skip_host="Host" in headers,
                              skip_accept_encoding=True)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def test_requests(self):
        # The page's files go through for anybody, data for the token alone, and
        # nothing else at all; the service's answer comes as it is.
        _, address, token = self.begin("--no-browser")
        right = {"Authorization": "Bearer " + token}
        for path in ("/", "/history.js", "/flame"):
            status, body, headers = self.ask(address, path)
            self.assertEqual((status, body), (200, b"hello"))
            self.assertEqual(headers["Content-Security-Policy"],
                             "default-src 'none'")
            self.assertEqual(headers["X-From"], "service")
        data = "/api/history/timeline?seconds=60&unit=a%20b"
        self.assertEqual(self.ask(address, data, **right)[:2], (200, b"hello"))
        self.assertTrue(self.service.asked[-1].startswith(
            f"GET {data} HTTP/1.1\r\n"), self.service.asked[-1])
        self.assertNotIn(token, "".join(self.service.asked))
        missing = self.ask(address, "/api/history/missing", **right)
        self.assertEqual(missing[:2], (404, b"hello"))
        asked = len(self.service.asked)
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        for authorization in (None, token, "Bearer " + wrong, "Bearer ",
                              "Basic " + token, "Bearer " + token + "0"):
            status, _, headers = self.ask(address, data,
                                          Authorization=authorization)
            self.assertEqual(status, 401, authorization)
            self.assertEqual(headers["WWW-Authenticate"], "Bearer")
        # Neither in the address nor in a cookie.
        self.assertEqual(self.ask(address, data + "&token=" + token)[0], 401)
        self.assertEqual(
            self.ask(address, data, Cookie="token=" + token)[0], 401)
        for path in ("/metrics", "/profile", "/debug/pprof/profile", "/x"):
            self.assertEqual(self.ask(address, path)[0], 401, path)
            self.assertEqual(self.ask(address, path, **right)[0], 404, path)
        for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(self.ask(address, data, method, **right)[0], 405)
        for host in ("evil.example", "evil.example:80", "", None):
            self.assertEqual(
                self.ask(address, "/", Host=host)[0], 421, host)
            self.assertEqual(
                self.ask(address, data, Host=host, **right)[0], 421, host)
        self.assertEqual(len(self.service.asked), asked,
                         "the service saw none of these")
        port = address.rsplit(":", 1)[1]
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
            self.assertEqual(self.ask(address, "/", Host=host)[0], 200, host)
        # Who sends too much, or no request, is cut off.
        with socket.create_connection(("127.0.0.1", int(port))) as client:
            client.settimeout(30)
            client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 40000)
            self.assertIn(b" 431 ", client.recv(4096))

    def test_tokens_differ(self):
        # Each run has a token of its own, which no command line shows.
        first, _, token = self.begin("--no-browser")
        other = self.begin("--no-browser")[2]
        self.assertNotEqual(token, other)
        self.assertNotIn(token.encode(), harness.read_bytes(
            f"/proc/{first.pid}/cmdline"))

    def test_streams(self):
        # A large answer goes through whole, and is never held.
        process, address, token = self.begin("--no-browser")
        status, body, _ = self.ask(address, "/api/history/large",
                                   Authorization="Bearer " + token)
        self.assertEqual((status, len(body)), (200, LARGE_BYTES))
        peak = re.search(r"VmHWM:\s+(\d+) kB", harness.read_text(
            f"/proc/{process.pid}/status")).group(1)
        self.assertLess(int(peak), 30_000)

    def test_bound(self):
        # More requests at once than there are places are refused, and those
        # that were given up make room.
        _, address, token = self.begin("--no-browser")
        host, port = address.rsplit(":", 1)
        slow = []
        for _ in range(8):
            client = socket.create_connection((host, int(port)))
            self.addCleanup(client.close)
            client.sendall(
                b"GET /api/history/slow HTTP/1.1\r\nHost: localhost\r\n"
                b"Authorization: Bearer " + token.encode() + b"\r\n\r\n")
            slow.append(client)
        harness.wait_for(lambda: len(self.service.asked) >= 9, "8 requests")
        self.assertEqual(self.ask(address, "/")[0], 503)
        slow.pop().close()
        self.assertTrue(self.service.gone.wait(10), "the service is told")
        harness.wait_for(lambda: self.ask(address, "/")[0] == 200, "room")

    def test_service_gone(self):
        # Where the service is not there a sentence says so; it may come back.
        _, address, token = self.begin("--no-browser")
        right = {"Authorization": "Bearer " + token}
        status, body, _ = self.ask(address, "/api/history/dies", **right)
        self.assertEqual(status, 502)
        self.assertIn(b"the service ended before it had answered", body)
        self.service.end()
        status, body, _ = self.ask(address, "/")
        self.assertEqual(status, 502)
        self.assertIn(b"ksym-profiled is not running", body)
        FakeService(self.socket)
        self.assertEqual(self.ask(address, "/")[0], 200)

    def test_ends_at_once(self):
        # A signal ends it, whatever is being answered.
        for number in (signal.SIGTERM, signal.SIGINT):
            process, address, token = self.begin("--no-browser")
            self.service.gone.clear()
            host, port = address.rsplit(":", 1)
            with socket.create_connection((host, int(port))) as client:
                client.sendall(
                    b"GET /api/history/slow HTTP/1.1\r\nHost: localhost\r\n"
                    b"Authorization: Bearer " + token.encode() + b"\r\n\r\n")
                asked = len(self.service.asked)
                harness.wait_for(lambda: any(
                    "slow" in text for text in self.service.asked[asked - 1:]),
                                 "the request")
                begin = time.monotonic()
                process.send_signal(number)
                self.assertEqual(process.wait(10), 0)
                self.assertLess(time.monotonic() - begin, 2)
            self.assertTrue(self.service.gone.wait(10))
            with self.assertRaises(OSError):
                socket.create_connection((host, int(port)))

    def test_refusals(self):
        # It says why there is nothing to open.
        for path, wanted in ((self.path("none"), "ksym-profiled is not running"),
                             ("/" + "x" * 200, "File name too long")):
            done = subprocess.run(
                [harness.PROFILER, "ui", "--socket", path, "--no-browser"],
                text=True, capture_output=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(wanted, done.stderr)
            self.assertEqual(done.stdout, "")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with socket.socket(socket.AF_INET6) as other:
                other.bind(("::1", taken.getsockname()[1]))
                other.listen()
                done = subprocess.run(
                    [harness.PROFILER, "ui", "--socket", self.socket, "--port",
                     str(taken.getsockname()[1]), "--no-browser"],
                    text=True, capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use", done.stderr)

    def test_without_privileges(self):
        # It keeps no capability, also of root, and as another user it needs
        # nothing but the socket.
        process, address, _ = self.begin("--no-browser")
        status = harness.read_text(f"/proc/{process.pid}/status")
        for name in ("CapEff", "CapPrm", "CapAmb"):
            self.assertRegex(status, name + r":\s+0{16}\n")
        self.assertEqual(self.ask(address, "/")[0], 200)
        if os.geteuid() != 0:
            return
        os.chmod(self.socket, 0o600)
        program = self.copy(harness.PROFILER, "ksym-profile")
        self.copy(harness.PROFILER + "-ui", "ksym-profile-ui")
        done = subprocess.run(
            [program, "ui", "--socket", self.socket, "--no-browser"],
            text=True, capture_output=True, timeout=30, check=False,
            user=harness.NOBODY, group=harness.NOBODY, extra_groups=[])
        self.assertEqual(done.returncode, 1)
        self.assertIn("members of the group ksym", done.stderr)
        os.chmod(self.socket, 0o666)
        address = self.begin("--no-browser", program=program,
                             user=harness.NOBODY, group=harness.NOBODY,
                             extra_groups=[])[1]
        self.assertEqual(self.ask(address, "/")[0], 200)

    def test_browser(self):
        # A browser gets a page that only its user can read, which leads it to
        # the address; it is gone at the end.
        bin_directory = self.path("bin")
        os.mkdir(bin_directory)
        opener = os.path.join(bin_directory, "xdg-open")
        harness.write_text(opener, "#!/bin/sh\nprintf '%s' \"$1\" > "
                           f"{self.path('opened')}\n")
        os.chmod(opener, 0o755)
        session = self.path("session")
        os.mkdir(session, 0o700)
        environment = {**os.environ, "DISPLAY": ":9", "XDG_RUNTIME_DIR": session,
                       "PATH": bin_directory + ":" + os.environ["PATH"]}
        environment.pop("SUDO_UID", None)
        process, address, token = self.begin(env=environment)
        opened = harness.read_text(self.path("opened"))
        self.assertTrue(opened.startswith(session), opened)
        self.assertEqual(os.stat(opened).st_mode & 0o777, 0o600)
        self.assertIn(f"url=http://{address}/#token={token}\"",
                      harness.read_text(opened))
        process.terminate()
        self.assertEqual(process.wait(10), 0)
        self.assertFalse(os.path.exists(opened))


if __name__ == "__main__":
    harness.main()
