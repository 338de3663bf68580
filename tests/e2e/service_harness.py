# SPDX-License-Identifier: Apache-2.0
"""What the tests of ksym-profiled share: a running service, and a server that
takes what it pushes."""

import contextlib
import glob
import http.client
import http.server
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import harness
import reports

SERVICE = os.environ.get("KSYM_PROFILED") or os.path.join(
    harness.SOURCE_DIR, "build/release/daemon/ksym-profiled")
ENDED = re.compile(r"ended: (\d+) samples taken, (\d+) in profiles, (\d+) lost,"
                   r" (\d+) dropped; (\d+) files written, (\d+) failed")


class Service:
    """A running command, the service; `manager` stands for systemd's socket."""

    def __init__(self, arguments, manager=None, environment=()):
        self.stderr = tempfile.TemporaryFile()
        variables = dict(os.environ, **dict(environment))
        if manager:
            variables["NOTIFY_SOCKET"] = manager
        self.process = subprocess.Popen(
            [*map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.stderr, env=variables,
            preexec_fn=harness.die_with_parent)

    def log(self):
        fd = self.stderr.fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode()

    def wait_log(self, text):
        harness.wait_for(lambda: text in self.log()
                         or self.process.poll() is not None, text)
        reports.expect(text in self.log(), self.log())

    def end(self, number=signal.SIGTERM):
        """The seconds from the signal to the end."""
        begin = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(20)
        return time.monotonic() - begin

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.stderr.close()


class Receiver:
    """A server that takes what is posted to it, and may be restarted;
    `certificate` is a file with that of localhost and its key, for https."""

    def __init__(self, port, certificate=None):
        self.port = port
        self.certificate = certificate
        self.posts = []  # path and body
        self.headers = []  # of these
        self.answer = b""  # what is said behind a status of 200
        self.statuses = []  # of the next answers; then 200
        self.server = None

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                receiver.headers.append(dict(self.headers))
                receiver.posts.append((self.path, self.rfile.read(size)))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                self.end_headers()
                if status == 200 and receiver.answer:
                    # The client may have read enough of it.
                    with contextlib.suppress(ConnectionError):
                        self.wfile.write(receiver.answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", self.port), Handler)
        if self.certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.certificate)
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True,
                do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class ServiceCase(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.directory = self.path("profiles")
        self.config_path = self.path("config.json")
        self.socket_path = self.path("http.sock")
        self.http = {"listen": ["unix:" + self.socket_path]}

        self.labels = None  # the default
        self.waiting = None
        self.push = []
        self.more_keys = {}  # of the configuration

    def configure(self, frequency_hz=99, interval_seconds=1, **files):
        files = {"directory": self.directory, "format": "folded", **files}
        harness.write_text(
            self.config_path, "// written by a test\n" + json.dumps({
                "frequency_hz": frequency_hz,
                "interval_seconds": interval_seconds,
                "stacks": {"cache_directory": self.path("cache")},
                "files": files, "http": self.http,
                "push": self.push,
                "push_spool": {"directory": self.path("spool")},
                "history": {"enabled": False},
                **({"waiting": self.waiting} if self.waiting else {}),
                **({"labels": self.labels} if self.labels else {}),
                **self.more_keys},
                indent=1))

    def start_service(self, *arguments, prefix=(), **options):
        service = Service([*prefix, SERVICE, "--config", self.config_path,
                           *arguments], **options)
        self.addCleanup(service.kill)
        service.wait_log("a profile every")
        return service

    def files(self, extension="folded"):
        return sorted(glob.glob(
            self.directory + "/[0-9]*/[0-9]*/[0-9]*/*Z*." + extension))

    def wait_files(self, count, extension="folded"):
        return harness.wait_for(
            lambda: len(self.files(extension)) >= count
            and self.files(extension), "%d files" % count)

    def totals(self, service):
        """What the last line says, checked against itself."""
        found = ENDED.search(service.log())
        self.assertIsNotNone(found, service.log())
        taken, named, lost, dropped, written, failed = map(int,
                                                           found.groups())
        self.assertEqual(taken, named + lost + dropped)
        return taken, named, written, failed

    def get(self, path, address=None, headers=None):
        """Status and body, from the Unix socket or from host:port."""
        connection = http.client.HTTPConnection(address or "unix", timeout=30)
        if address is None:
            connection.sock = self.connect()
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read()

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(self.socket_path)  # waits while the backlog is full
        client.settimeout(30)
        self.addCleanup(client.close)
        return client

    def metrics(self):
        """Metrics by name and labels."""
        status, body = self.get("/metrics")
        self.assertEqual(status, 200)
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in body.decode().splitlines()
                 if not line.startswith("#"))}

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]
