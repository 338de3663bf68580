#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ksym-fleet where names, rows and servers mean harm: names made for SQL and
for pages, stacks that are not there, and what answers in a database's place."""

import http.client
import json
import re
import socket
import threading
import time
import unittest

import fleet_program
import fleet_server
from fleet_program import A, B, FROM, Program, functions_of
from fleet_rows import NATIVE, FleetRows

# What nobody who asks may make SQL of, nor who is asked about a page.
HOSTILE = ["it's", "back\\slash", "' OR 1=1 --", "\\' OR 1=1 --",
           "x'); DROP TABLE samples; --", '<img src=x onerror="alert(1)">',
           "line\nbreak", "tab\t", "%27", "ünïcode", "`", "{x:String}",
           "?", "'||'"]


class HostileTest(fleet_program.WithDatabase):
    """Names that are made to be taken for SQL or for a page."""

    def insert(self, name, at):
        rows = FleetRows()
        rows.interval(at, name, "f" * 16)
        rows.sample(at, [(NATIVE, name, name)], 1, 7, service=name, host=name,
                    run="f" * 16, command=name, unit=name, namespace=name,
                    pod=name, version=name)
        rows.sample(at, [(NATIVE, "other", "/bin/o")], 1, 1000, run="f" * 16,
                    host="other")
        rows.interval(at, "other", "0" * 16)
        rows.insert(self.server)

    def test_every_filter_finds_its_own_and_no_other(self):
        program = Program(self, self.server.url + "/fleet")
        before = self.server.count()
        for number, name in enumerate(HOSTILE):
            at = FROM + 86400 + 100 * number
            self.insert(name, at)
            time_range = {"from": at, "until": at + 100}
            for key in ("service", "host", "command", "unit", "pod", "version",
                        "function"):
                value = f"={name}" if key == "function" else name
                answer = program.json("functions", **time_range, **{key: value})
                self.assertEqual(answer["sum"], 7, (key, name))
            for by in ("service", "host", "comm", "unit", "version"):
                line = program.json("timeline", **time_range, step=100, by=by,
                                    **{"service": name})
                self.assertEqual([row["sum"] for row in line["rows"]], [7])
                shown = line["rows"][0]["name"]
                self.assertEqual(shown, re.sub(r"[\n\t]", "?", name))
            flame = program.ask("flame", **time_range)
            self.assertEqual(sum(json.loads(flame)["leaves"][2::3]), 1007)
        self.assertEqual(self.server.count(), before + 2 * len(HOSTILE))

    def test_bytes_that_are_no_text(self):
        at = FROM + 2 * 86400
        rows = FleetRows()
        rows.interval(at, "h", "f" * 16)
        for number, name in enumerate((b"\xff\xfe", b"a\0b", b"\x1b[31mred",
                                       b"\xe2\x80\xae", b"x" * 1024)):
            rows.sample(at, [(NATIVE, name, name)], 1, 1 << number,
                        service=name, command=name, run="f" * 16, host="h")
        rows.insert(self.server)
        program = Program(self, self.server.url + "/fleet")
        time_range = {"from": at, "until": at + 10}
        answer = program.json("functions", **time_range)
        self.assertEqual(answer["sum"], 31)
        line = program.json("timeline", **time_range, step=10, by="service")
        self.assertEqual(sorted(row["sum"] for row in line["rows"]),
                         [1, 2, 4, 8, 16])
        for body in (program.ask("functions", **time_range),
                     program.ask("flame", **time_range),
                     program.ask("profile", **time_range)):
            self.assertNotRegex(body, rb"[\0-\x08\x0b-\x1f\x7f]|\xe2\x80\xae")
        status, _, _ = program.get(
            f"/api/history/functions?from={at}&until={at + 9}&service=%FF%FE")
        self.assertEqual(status, 200)

    def test_many_long_names(self):
        """As many rows as there may be, each of which is long as a literal."""
        at = FROM + 5 * 86400
        rows = FleetRows()
        rows.interval(at, "h", "f" * 16)
        for number in range(120):
            rows.sample(at, A, 1, 1000 - number, run="f" * 16, host="h",
                        service=f"{number:03}" + "?" * 1021)
        rows.insert(self.server)
        line = Program(self, self.server.url + "/fleet").json(
            "timeline", **{"from": at, "until": at + 10}, step=10, by="service",
            rows=100)
        self.assertEqual([row["sum"] for row in line["rows"]],
                         [1000 - number for number in range(100)] +
                         [sum(1000 - number for number in range(100, 120))])

    def test_names_too_long_for_one_answer(self):
        """Stacks that have more bytes than an answer may have hide no others:
        they are asked for in halves."""
        at = FROM + 3 * 86400
        rows = FleetRows()
        rows.interval(at, "h", "f" * 16)
        for number in range(24):
            frames = [(NATIVE, f"{number:03}-{depth:03}-" + "n" * 1000,
                       "m" * 1000) for depth in range(500)]
            rows.sample(at, frames, 1, 100, run="f" * 16, host="h")
        rows.insert(self.server)
        program = Program(self, self.server.url + "/fleet")
        answer = program.json("functions", **{"from": at, "until": at + 10})
        self.assertEqual(answer["sum"], 2400)
        self.assertEqual(answer["functions"], 24 * 500)

    def test_a_stack_that_is_not_there(self):
        at = FROM + 4 * 86400
        rows = FleetRows()
        rows.interval(at, "h", "f" * 16)
        rows.sample(at, A, 5, 55, run="f" * 16, host="h", has_stack=False)
        rows.sample(at, B, 4, 44, run="f" * 16, host="h")
        rows.insert(self.server)
        program = Program(self, self.server.url + "/fleet")
        answer = program.json("functions", **{"from": at, "until": at + 10})
        self.assertEqual(answer["sum"], 99)
        self.assertEqual(functions_of(answer)["[rare callees]"], (55, 55))
        self.assertIn("the database lacks the stacks of 5 samples",
                      answer["warnings"])

    def test_a_server_that_stops(self):
        program = Program(self, self.server.url + "/fleet")
        ask = f"/api/history/functions?from={FROM}&until={FROM + 10}"
        self.server.pause()
        try:
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(
                program.get(ask, timeout=90)[0])) for _ in range(4)]
            begin = time.monotonic()
            for thread in threads:
                thread.start()
            time.sleep(0.5)
            # What needs no database is there meanwhile.
            self.assertEqual(program.get("/", {}, timeout=5)[0], 200)
            for thread in threads:
                thread.join()
            self.assertLess(time.monotonic() - begin, 60)
            # Two at a time wait for the server, and the others for their turn.
            self.assertEqual(sorted(answers), [413, 413, 503, 503])
            waiting = threading.Thread(
                target=lambda: self.assertRaises(
                    (OSError, http.client.HTTPException), program.get, ask))
            waiting.start()
            time.sleep(0.5)
            status, seconds = program.end()
            waiting.join()
            self.assertEqual(status, 0)
            self.assertLess(seconds, 5)
        finally:
            self.server.go_on()


class LiarTest(unittest.TestCase):
    """What answers at the database's place and is none."""

    def liar(self, answer, endless=b""):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    try:
                        client.recv(65536)
                        client.sendall(answer)
                        while endless:
                            client.sendall(endless)
                    except OSError:
                        pass
        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/fleet"

    def test_answers_that_are_none(self):
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
        cases = {
            b"SSH-2.0-OpenSSH_9.2\r\n": 502,
            b"": 502,
            ok % (5, b"short"): 502,
            ok % (100, b"cut off"): 502,
            ok % (300, b"\xff" * 300): 502,
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n": 502,
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
            b"Content-Length: 0\r\n\r\n": 502,
            b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nCode: 999": 502,
        }
        for answer, wanted in cases.items():
            program = Program(self, self.liar(answer))
            for path in ("timeline", "functions", "flame"):
                status, _, body = program.get(f"/api/history/{path}?seconds=9")
                self.assertEqual(status, wanted, (answer, path, body))
            self.assertEqual(program.end()[0], 0)

    def test_endless_answer(self):
        program = Program(self, self.liar(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"10000\r\n" + b"\1" * 65536 + b"\r\n"))
        status, _, _ = program.get("/api/history/functions?seconds=9")
        self.assertEqual(status, 413)
        with open(f"/proc/{program.process.pid}/status",
                  encoding="utf-8") as file:
            peak = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))
        self.assertLess(peak, 200_000)

    def test_nobody_there(self):
        port = fleet_server.free_ports(1)[0]
        program = Program(self, f"http://127.0.0.1:{port}/fleet")
        status, _, body = program.get("/api/history/functions?seconds=9")
        self.assertEqual((status, b"no connection" in body), (502, True))


if __name__ == "__main__":
    fleet_program.main()
