# SPDX-License-Identifier: Apache-2.0
"""ksym-profiled over the network: its HTTP server, and what it pushes."""

import glob
import gzip
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import harness
import reports
from service_harness import Receiver, ServiceCase


class ServiceHttpTest(ServiceCase):

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
        self.assertGreater(reports.Folded(body).share("spin", "main"), 0.9)
        reports.Document(self.get("/profile?format=json&seconds=60")[1])
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
        # Clients that say nothing, do not end their request, or do not read,
        # keep nobody out, and capturing goes on.
        self.configure(frequency_hz=199)
        service = self.start_service()
        hanging = [self.connect() for _ in range(200)]
        hanging[-1].sendall(b"GET /metrics HT")
        hanging[-2].sendall(b"GET /profile?format=json HTTP/1.1\r\n\r\n")
        self.assertEqual(self.get("/healthz"), (200, b"ok\n"))
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

    def spooled(self):
        """What waits to be sent, by its directory's first letters."""
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

    def certificate(self, name):
        """A file with a certificate of localhost, signed by itself."""
        path = self.path(name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
             "-keyout", path, "-out", path + ".crt", "-days", "2",
             "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost"],
            capture_output=True, check=True)
        harness.write_text(path, harness.read_bytes(path).decode() +
                           harness.read_bytes(path + ".crt").decode())
        return path

    def test_push_https(self):
        # Profiles go to a receiver whose certificate is trusted, and to no
        # other, which the log says.
        trusted, other = (Receiver(self.free_port(), self.certificate(name))
                          for name in ("trusted.pem", "other.pem"))
        for receiver in (trusted, other):
            receiver.start()
            self.addCleanup(receiver.stop)
        self.push = ["https://localhost:%d/all" % receiver.port
                     for receiver in (trusted, other)]
        self.configure()
        service = self.start_service(
            environment={"SSL_CERT_FILE": self.path("trusted.pem.crt")})
        harness.wait_for(lambda: trusted.posts, "a profile")
        service.wait_log("certificate is not of an authority")
        self.assertLess(service.end(), 2)
        self.assertEqual(trusted.posts[0][0], "/all")
        self.assertTrue(trusted.posts[0][1].startswith(b"\x1f\x8b"))
        self.assertEqual(other.posts, [])

    def reload(self, service, answer="reloaded: "):
        """Returns when it has said so, once more than before."""
        before = service.log().count(answer)
        service.process.send_signal(signal.SIGHUP)
        harness.wait_for(lambda: service.log().count(answer) > before, answer)

    def test_reload(self):
        # With SIGHUP addresses, tokens and receivers change, all or nothing;
        # clients that are being served stay, and so does what waits.
        first, second = (Receiver(self.free_port()) for _ in range(2))
        first.start()
        self.addCleanup(first.stop)
        port, token_path = self.free_port(), self.path("token")
        address = "127.0.0.1:%d" % port
        harness.write_text(token_path, "sesame\n")
        self.push = ["http://127.0.0.1:%d/a" % first.port]
        self.configure()
        service = self.start_service()
        harness.wait_for(lambda: first.posts, "a profile")
        answers = []
        client = threading.Thread(target=lambda: answers.append(
            self.get("/debug/pprof/profile?seconds=4")))
        client.start()
        time.sleep(0.5)

        self.http["listen"].append(address)
        self.http["token_file"] = token_path
        self.push = ["http://127.0.0.1:%d/b" % second.port]
        self.configure()
        self.reload(service)
        sent = len(first.posts)
        bearer = {"Authorization": "Bearer sesame"}
        self.assertEqual(self.get("/healthz", address)[0], 401)
        self.assertEqual(self.get("/healthz", address, bearer)[0], 200)
        harness.write_text(token_path, "open\n")
        self.reload(service)
        self.assertEqual(self.get("/healthz", address, bearer)[0], 401)

        # Nobody takes them yet.
        harness.wait_for(lambda: self.metrics()["ksym_push_waiting"] >= 2,
                         "a backlog")
        self.http["listen"].append("127.0.0.1:%d" % first.port)
        self.configure()
        self.reload(service, "not reloaded")
        self.assertIn("Address already in use", service.log())
        self.http["listen"] = [address]
        self.configure()
        self.reload(service)
        harness.wait_for(lambda: not os.path.exists(self.socket_path),
                         "the socket to go")
        second.start()
        self.addCleanup(second.stop)
        harness.wait_for(lambda: len(second.posts) >= 3, "profiles")
        self.assertLessEqual(len(first.posts), sent + 1)
        client.join()
        self.assertEqual([status for status, _ in answers], [200])
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())


if __name__ == "__main__":
    harness.main()
