"""ksym-profiled: the running service, its files, signals and configuration."""

import contextlib
import glob
import gzip
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

import harness

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
        harness.expect(text in self.log(), self.log())

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
    """A server that takes what is posted to it, and may be restarted."""

    def __init__(self, port):
        self.port = port
        self.posts = []  # path and body
        self.statuses = []  # of the next answers; then 200
        self.server = None

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                receiver.posts.append((self.path, self.rfile.read(size)))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class ServiceTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.folder = self.path("profiles")
        self.config_path = self.path("config.json")
        self.socket_path = self.path("http.sock")
        self.http = {"listen": ["unix:" + self.socket_path]}

        self.labels = None  # the default
        self.push = []

    def configure(self, frequency_hz=99, interval_seconds=1, **files):
        files = {"directory": self.folder, "format": "folded", **files}
        harness.write_text(
            self.config_path, "// written by a test\n" + json.dumps({
                "frequency_hz": frequency_hz,
                "interval_seconds": interval_seconds,
                "stacks": {"cache_directory": self.path("cache")},
                "files": files, "http": self.http,
                "push": self.push,
                "push_spool": {"directory": self.path("spool")},
                **({"labels": self.labels} if self.labels else {})},
                indent=1))

    def start_service(self, *arguments, prefix=(), **options):
        service = Service([*prefix, SERVICE, "--config", self.config_path,
                           *arguments], **options)
        self.addCleanup(service.kill)
        service.wait_log("a profile every")
        return service

    def files(self, extension="folded"):
        return sorted(glob.glob(
            self.folder + "/[0-9]*/[0-9]*/[0-9]*/*Z*." + extension))

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

    def test_http(self):
        # Clients get profiles from now on, at once, and those of the last
        # intervals; metrics add up. Only the group may connect.
        self.configure()
        spin = self.workload("spin")
        service = self.start_service()
        self.assertEqual(os.stat(self.socket_path).st_mode & 0o777, 0o660)
        self.assertEqual(self.get("/healthz"), (200, b"ok\n"))
        answers = []
        clients = [threading.Thread(target=lambda: answers.append(
            self.get("/debug/pprof/profile?seconds=2"))) for _ in range(5)]
        begin = time.monotonic()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertLess(time.monotonic() - begin, 6)
        self.assertEqual([status for status, _ in answers], [200] * 5)
        for _, body in answers:
            self.assertIn(b"spin", gzip.decompress(body))
        self.wait_files(3)
        status, body = self.get("/profile?seconds=60")
        self.assertEqual(status, 200)
        self.assertGreater(harness.Folded(body).share("spin", "main"), 0.9)
        harness.Document(self.get("/profile?format=json&seconds=60")[1])
        self.assertEqual(self.get("/profile?seconds=x")[0], 400)
        self.assertEqual(self.get("/debug/pprof/heap")[0], 404)
        metrics = self.metrics()
        lost = sum(value for name, value in metrics.items()
                   if name.startswith("ksym_samples_lost_total"))
        # What is being named is in neither.
        self.assertLessEqual(metrics["ksym_samples_emitted_total"] + lost,
                             metrics["ksym_samples_taken_total"])
        self.assertGreater(metrics["ksym_samples_emitted_total"], 100)
        self.assertGreater(metrics["ksym_resident_bytes"], 1e6)
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.assertFalse(os.path.exists(self.socket_path))
        spin.stop()

    def test_hanging_clients(self):
        # Clients that say nothing, one byte a second, or do not read, cost
        # the others their place at the most: what is over the limit is
        # refused at once, and capturing goes on.
        self.configure(frequency_hz=199)
        service = self.start_service()
        hanging = [self.connect() for _ in range(32)]
        hanging[0].sendall(b"GET /metrics HT")
        hanging[1].sendall(b"GET /profile?format=json HTTP/1.1\r\n\r\n")
        others = [self.connect() for _ in range(100)]
        time.sleep(1)
        refused = 0
        for client in others:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                refused += client.recv(100, socket.MSG_DONTWAIT).startswith(
                    b"HTTP/1.1 503 ")
        self.assertGreater(refused, 90)
        before = len(self.files())
        self.wait_files(before + 2)
        # Clients that hang while it ends do not keep it.
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)

    def test_tcp_and_token(self):
        # Over TCP the token is asked for, if there is one; go tool pprof reads
        # from a port without one.
        open_port, token_path = self.free_port(), self.path("token")
        self.http["listen"].append("127.0.0.1:%d" % open_port)
        address = "127.0.0.1:%d" % open_port
        harness.write_text(token_path, "sesame\n")
        self.http["token_file"] = token_path
        self.configure()
        service = self.start_service()
        self.assertEqual(self.get("/healthz", address)[0], 401)
        self.assertEqual(
            self.get("/healthz", address,
                     {"Authorization": "Bearer sesam!"})[0], 401)
        self.assertEqual(
            self.get("/healthz", address,
                     {"Authorization": "Bearer sesame"})[0], 200)
        self.assertEqual(self.get("/healthz")[0], 200)
        service.end(signal.SIGKILL)
        # The dead one's socket is no obstacle.
        del self.http["token_file"]
        self.configure()
        self.workload("spin")
        service = self.start_service()
        self.assertEqual(self.get("/healthz", address)[0], 200)
        if shutil.which("go"):
            done = subprocess.run(
                ["go", "tool", "pprof", "-sample_index=samples", "-top",
                 "http://%s/debug/pprof/profile?seconds=1" % address],
                capture_output=True, text=True, check=False, timeout=50,
                env=dict(os.environ, PPROF_TMPDIR=self.dir, HOME=self.dir))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"(?m)^ *\d+ .* Hot$")
        self.assertLess(service.end(), 2)

    def test_profiles_appear(self):
        # A profile per interval, aligned to the clock; together they have
        # every sample that was taken, and each sample is in one of them.
        self.configure()
        spin = self.workload("spin")
        service = self.start_service()
        self.wait_files(5)
        seconds = service.end()
        self.assertEqual(service.process.returncode, 0, service.log())
        self.assertLess(seconds, 2)
        taken, named, written, failed = self.totals(service)
        files = self.files()
        self.assertEqual((len(files), failed), (written, 0))
        profiles = [harness.Folded(harness.read_bytes(path))
                    for path in files]
        self.assertEqual(sum(p.total() for p in profiles), named)
        self.assertGreater(taken, 100)
        self.assertGreater(profiles[1].share("spin", "main"), 0.9)
        # The first begins with the service, the last ends with it. On a loaded
        # machine some are late.
        late_ms = sorted(int(os.path.basename(path).split(".")[1].rstrip("Z"))
                         for path in files[1:])
        self.assertLess(late_ms[len(late_ms) // 2], 500, files)
        self.assertEqual(os.stat(files[0]).st_mode & 0o111, 0)
        spin.stop()

    def test_signals(self):
        # SIGUSR1 writes at once, SIGHUP takes the new file into force or
        # keeps the old one and says why, SIGTERM writes the rest.
        self.configure(interval_seconds=3600)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.path("notify"))
        manager.settimeout(20)
        service = self.start_service(
            manager=self.path("notify"),
            environment={"WATCHDOG_USEC": "2000000"})
        self.assertIn("READY=1", manager.recv(4096).decode())
        self.assertEqual(manager.recv(4096), b"WATCHDOG=1")
        time.sleep(0.5)
        self.assertEqual(self.files(), [])
        service.process.send_signal(signal.SIGUSR1)
        self.wait_files(1)

        harness.write_text(self.config_path, "{\n\"frequency_hz\": 0}")
        service.process.send_signal(signal.SIGHUP)
        service.wait_log(
            self.config_path + ":2: frequency_hz: 0 is not from 1 to 1000")
        self.assertIn("not reloaded", service.log())
        service.process.send_signal(signal.SIGUSR1)
        self.wait_files(2)

        self.configure(frequency_hz=49, interval_seconds=3600, format="json")
        service.process.send_signal(signal.SIGHUP)
        service.wait_log("reloaded: ")
        time.sleep(0.5)
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        documents = [harness.Document(harness.read_bytes(path))
                     for path in self.files("json")]
        self.assertEqual(documents[-1].metadata["frequency_hz"], 49)
        self.totals(service)
        states = []
        manager.settimeout(0)
        try:
            while True:
                states.append(manager.recv(4096).decode().split("\n")[0])
        except BlockingIOError:
            pass
        states = [state for state in states if state != "WATCHDOG=1"]
        self.assertEqual(states, ["RELOADING=1", "READY=1", "RELOADING=1",
                                  "READY=1", "STOPPING=1"])

    def test_full_disk(self):
        # A full disk costs the profiles that did not fit, says so, and
        # nothing after there is room again.
        os.mkdir(self.folder)
        self.mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", self.folder)
        filler = os.path.join(self.folder, "filler")
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (8 << 20) - 16384)
        self.configure(frequency_hz=499)
        self.workload("paths")
        service = self.start_service()
        service.wait_log("was not written")
        self.assertIn("No space left", service.log())
        os.unlink(filler)
        service.wait_log("profiles are written again")
        service.end()
        taken, _, written, failed = self.totals(service)
        self.assertGreater(failed, 0)
        self.assertEqual(len(self.files()), written)
        self.assertGreater(taken, 100)
        for path in self.files():
            harness.Folded(harness.read_bytes(path))

    def test_killed(self):
        # After SIGKILL every file that is there is whole, and the next run
        # goes on and removes what was half written.
        self.configure(frequency_hz=499)
        for milliseconds in (1010, 1060, 1130):
            service = self.start_service()
            time.sleep(milliseconds / 1000)
            service.end(signal.SIGKILL)
        service = self.start_service()
        service.process.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: self.files(), "a file")
        service.end()
        self.totals(service)
        everything = [name for _, _, names in os.walk(self.folder)
                      for name in names]
        self.assertEqual(len(everything), len(self.files()), everything)
        for path in self.files():
            harness.Folded(harness.read_bytes(path))

    def test_unit_capabilities(self):
        # As another user with the unit's capabilities and no others it names
        # kernel and user frames of root's processes, also of a program that
        # only root may read and that was deleted.
        self.configure(frequency_hz=499, format="json")
        unit = harness.read_text(os.path.join(
            harness.SOURCE_DIR, "systemd/ksym-profiled.service.in"))
        names = re.search(r"(?m)^AmbientCapabilities=(.*)$", unit)[1].split()
        program = self.program("spin", "hidden")
        os.chmod(program, 0o700)
        spin = self.start([program], ready=True)
        os.unlink(program)
        self.workload("faults")
        service = self.start_service(prefix=harness.as_nobody(
            *(name.removeprefix("CAP_").lower() for name in names)))
        self.wait_files(2, "json")
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.assertNotIn("warning", service.log())
        document = harness.Document(
            harness.read_bytes(self.files("json")[1]))
        self.assertGreater(document.leaves(pid=spin.pid)["Hot"], 10,
                           document.leaves(pid=spin.pid))
        self.assertTrue([frame for frame in document.of_kind("kernel")
                         if "reason" not in frame])

    def test_labels(self):
        # A process in a container's cgroup has its labels, also one that
        # ended long before anybody could look at it.
        mounts = [line.split()[4] for line in
                  harness.read_text("/proc/self/mountinfo").splitlines()
                  if " - cgroup2 " in line]
        if not mounts or not os.access(mounts[0], os.W_OK):
            self.skipTest("no cgroups of the second version to write to")
        container = "c0" * 32
        path = "/ksym-test.slice/docker-%s.scope" % container
        cgroup = mounts[0] + path
        os.makedirs(cgroup)
        self.addCleanup(os.removedirs, cgroup)
        self.labels = ["host", "comm", "pid", "tid", "cgroup", "unit",
                       "container_id"]
        self.configure(frequency_hz=499, format="json", interval_seconds=3600)
        service = self.start_service()
        for mebibytes in (40, 400):
            zeros = self.path("zeros")
            with open(zeros, "wb") as file:
                file.truncate(mebibytes << 20)
            subprocess.run(
                ["/bin/sh", "-c", "echo $$ > %s/cgroup.procs && exec sha1sum "
                 "%s" % (cgroup, zeros)], stdout=subprocess.DEVNULL,
                check=True)
        status, body = self.get("/debug/pprof/profile?seconds=1")
        self.assertEqual(status, 200)
        self.assertIn(os.uname().nodename.encode(), gzip.decompress(body))
        self.assertLess(service.end(), 2)
        document = harness.Document(harness.read_bytes(self.files("json")[0]))
        inside = {stack["pid"]: stack for stack in document.stacks
                  if stack.get("cgroup") == path}
        self.assertEqual(
            len([s for s in inside.values() if s["comm"] == "sha1sum"]), 2,
            inside)
        for stack in inside.values():
            self.assertEqual(stack["unit"], "docker-%s.scope" % container)
            self.assertEqual(stack["container_id"], container)
        self.assertTrue(all("tid" in stack for stack in document.stacks))
        for stack in document.stacks:
            self.assertEqual(stack.get("self", False),
                             stack["pid"] == service.process.pid)
        self.assertIn(service.process.pid, document.pids())

    def spooled(self):
        """What waits to be sent, by its folder's first letters."""
        paths = glob.glob(self.path("spool") + "/*/*/*/*/*.push")
        return {harness.read_bytes(path).split(b"\n", 5)[5]
                for path in paths if "ingest" not in path}

    def test_push(self):
        # A receiver that is restarted, one that refuses, and a service that is
        # restarted meanwhile: every profile has arrived or waits.
        receiver = Receiver(self.free_port())
        url = "http://127.0.0.1:%d/" % receiver.port
        self.push = [url + "any?x=1", {"url": url + "ingest", "name": "app"}]
        self.configure(format="pprof")
        receiver.statuses = [503, 500]
        receiver.start()
        service = self.start_service()
        harness.wait_for(lambda: len(receiver.posts) >= 6, "profiles")
        receiver.stop()
        harness.wait_for(
            lambda: self.metrics()["ksym_push_waiting"] >= 4, "a backlog")
        self.assertGreaterEqual(self.metrics()["ksym_push_failures_total"], 3)
        self.assertLess(service.end(signal.SIGTERM), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        receiver.start()
        self.addCleanup(receiver.stop)
        service = self.start_service()
        sent = harness.wait_for(
            lambda: self.metrics()["ksym_push_waiting"] == 0
            and self.metrics()["ksym_push_sent_total"], "all is sent")
        self.assertGreaterEqual(sent, 4)
        self.assertEqual(self.metrics()["ksym_push_dropped_total"], 0)
        service.end(signal.SIGKILL)
        written = {harness.read_bytes(path) for path in self.files("pb.gz")}
        posted = {body for path, body in receiver.posts if path == "/any?x=1"}
        # Killed between the two sinks, the last one is in one of them.
        self.assertLessEqual(len(written ^ (posted | self.spooled())), 1)
        forms = [(path, body) for path, body in receiver.posts
                 if path.startswith("/ingest?")]
        whole = b"".join(body for _, body in forms)
        self.assertTrue(all(body in whole for body in posted & written))
        query = urllib.parse.parse_qs(forms[0][0].split("?")[1])
        self.assertEqual(query["name"],
                         ["app{hostname=%s}" % os.uname().nodename])
        self.assertIn(int(query["until"][0]) - int(query["from"][0]), (1, 2))
        self.assertEqual(query["sampleRate"], ["99"])

    def test_limits(self):
        # Memory over its limit lowers the rate; the profiles say theirs.
        self.configure(frequency_hz=400, format="json")
        self.workload("spin")
        service = self.start_service("--limits-memory-bytes", "1000000")
        harness.wait_for(lambda: self.metrics()["ksym_frequency_hz"] == 200,
                         "a lower rate", seconds=40)
        self.assertIn("over limits.memory_bytes: level 1, sampling at 200 Hz",
                      service.log())
        self.assertEqual(self.metrics()["ksym_guard_level"], 1)
        self.wait_files(len(self.files("json")) + 3, "json")
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)
        rates = [json.loads(harness.read_bytes(path))["metadata"]
                 ["frequency_hz"] for path in self.files("json")]
        self.assertEqual(sorted(rates, reverse=True), rates)
        self.assertEqual(set(rates), {400, 200})

    def test_check_config(self):
        # --check-config says what is wrong with the file or the flags, and
        # flags win over the file.
        def check(*arguments):
            done = subprocess.run(
                [SERVICE, "--config", self.config_path, "--check-config",
                 *arguments], capture_output=True, text=True, check=False,
                timeout=harness.RUN_SECONDS)
            return done.returncode, done.stderr

        self.configure()
        self.assertEqual(check(), (0, ""))
        self.assertEqual(check("--files-format", "svg")[0], 2)
        harness.write_text(self.config_path, '{"files": {"fromat": 1}}')
        status, stderr = check()
        self.assertEqual(status, 2)
        self.assertIn(self.config_path + ":1: files.fromat: unknown key",
                      stderr)
        os.unlink(self.config_path)
        status, stderr = check()
        self.assertEqual(status, 2)
        self.assertIn(self.config_path, stderr)

    def test_journal_priorities(self):
        # Where stderr is the journal each line begins with its priority.
        harness.write_text(self.config_path, "{")
        log = self.path("journal")
        with open(log, "w") as file:
            status = os.fstat(file.fileno())
            stream = "%d:%d" % (status.st_dev, status.st_ino)
            subprocess.run([SERVICE, "--config", self.config_path],
                           stderr=file, check=False,
                           env=dict(os.environ, JOURNAL_STREAM=stream))
        self.assertRegex(harness.read_text(log), r"\A<3>error: .*:1: ")


if __name__ == "__main__":
    harness.main()
