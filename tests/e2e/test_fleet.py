#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ksym-fleet against a ClickHouse server that has rows whose sums the test
knows, in tables of one server, of two and of an older version; and who gets
in."""

import json
import os
import signal
import socket
import subprocess
import unittest

import fleet_program
import fleet_server
import harness
from fleet_program import A, B, FROM, Program, functions_of
from fleet_rows import JIT, MARK, FleetRows

STEPS = 12
C = [(MARK, "[truncated]", ""), (JIT, "Lgenerated;", "/tmp/b")]


def whole(**parameters):
    return {"from": FROM, "until": FROM + 10 * STEPS, **parameters}


def run_of(host):
    """Runs of which each of two shards has one."""
    return host.ljust(16, "0" if host == "alpha" else "1")


def fill():
    """Two hosts and three services, of versions; a host's first interval was
    sent twice, with its samples."""
    rows = FleetRows()
    for step in range(STEPS):
        at = FROM + 10 * step
        for host in ("alpha", "beta"):
            run = run_of(host)
            rows.interval(at, host, run, kinds=("cpu", "blocked"), lost=step % 2,
                          taken=100)
            some = {"host": host, "run": run}
            rows.sample(at, A, 10, 1000, version="1" if step < 6 else "2",
                        unit="shop.service", **some)
            rows.sample(at, B, 3, 300, service="mail", command="it's",
                        namespace="ns", pod="mail-0", **some)
            rows.sample(at, B, 5, 70_000, kind="blocked", service="mail",
                        **some)
            if host == "beta":
                rows.sample(at, C, 1, 50 + step, service="java",
                            command="worker", parked=1, **some)
    twice = FleetRows()
    run = run_of("alpha")
    twice.interval(FROM, "alpha", run, kinds=("cpu", "blocked"), taken=100,
                   attempt=2)
    twice.sample(FROM, A, 10, 1000, version="1", unit="shop.service",
                 host="alpha", run=run)
    twice.sample(FROM, B, 3, 300, service="mail", command="it's",
                 namespace="ns", pod="mail-0", host="alpha", run=run)
    return rows, twice


SHOP = 2 * STEPS * 1000
MAIL = 2 * STEPS * 300
JAVA = sum(50 + step for step in range(STEPS))


class FleetTest(fleet_program.WithDatabase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows, twice = fill()
        rows.insert(cls.server)
        twice.insert(cls.server)
        cls.url = cls.server.url + "/fleet"

    def setUp(self):
        self.program = Program(self, self.url)

    def test_rows_are_there_twice(self):
        """What the other tests prove is not that a merge came first."""
        self.assertEqual(self.server.count(), 2 * 3 * STEPS + STEPS + 2)

    def test_functions(self):
        answer = self.program.json("functions", **whole())
        self.assertEqual(answer["sum"], SHOP + MAIL + JAVA)
        self.assertEqual(answer["kind"], "cpu")
        self.assertEqual(answer["known"], 10 * STEPS)
        self.assertEqual(functions_of(answer), {
            "main": (0, SHOP + MAIL), "handle": (0, SHOP),
            "compare": (SHOP, SHOP), "write": (0, MAIL),
            "vfs_write": (MAIL, MAIL), "Lgenerated;": (JAVA, JAVA)})
        self.assertIn(f"{STEPS} of {2 * STEPS * 100} samples were lost",
                      answer["warnings"])

    def test_filters(self):
        for filters, total in (
                ({"service": "shop"}, SHOP), ({"service": "mail"}, MAIL),
                ({"host": "alpha"}, SHOP // 2 + MAIL // 2),
                ({"host": "beta"}, SHOP // 2 + MAIL // 2 + JAVA),
                ({"command": "it's"}, MAIL), ({"command": "worker"}, JAVA),
                ({"unit": "shop"}, SHOP), ({"unit": "shop.service"}, SHOP),
                ({"pod": "mail-0"}, MAIL), ({"pod": "ns/mail-0"}, MAIL),
                ({"version": "1"}, SHOP // 2),
                ({"version": ["1", "2"]}, SHOP), ({"version": ["1", ""]}, SHOP // 2),
                ({"host": ["alpha", "beta"]}, SHOP + MAIL + JAVA),
                ({"host": ["alpha", "gamma"], "service": ["mail", "java"]},
                 MAIL // 2),
                ({"host": ["alpha"] + [f"h{i}" for i in range(63)]},
                 SHOP // 2 + MAIL // 2),
                ({"pod": ["mail-0", "other"]}, MAIL),
                ({"unit": ["other", "shop"]}, SHOP),
                ({"version": "2", "host": "alpha"}, SHOP // 4),
                ({"kind": "blocked"}, 2 * STEPS * 70_000),
                ({"function": "compare"}, SHOP), ({"function": "ompar"}, SHOP),
                ({"function": "=main"}, SHOP + MAIL),
                ({"function": "=ain"}, 0), ({"service": "none"}, 0),
                ({"service": "mail", "host": "alpha", "command": "it's",
                  "function": "=vfs_write"}, MAIL // 2)):
            with self.subTest(filters=filters):
                answer = self.program.json("functions", **whole(**filters))
                self.assertEqual(answer["sum"], total)

    def test_times(self):
        for begin, end, steps in ((0, 10, 1), (10, 30, 2), (5, 15, 1),
                                  (0, 1, 1), (1, 10, 0), (110, 500, 1)):
            with self.subTest(begin=begin, end=end):
                answer = self.program.json(
                    "functions", **{"from": FROM + begin, "until": FROM + end},
                    service="shop")
                self.assertEqual(answer["sum"], 2 * steps * 1000)

    def test_timeline(self):
        line = self.program.json("timeline", **whole(step=20, by="service"))
        self.assertEqual(line["step"], 20)
        self.assertEqual(line["names"], 3)
        self.assertEqual(line["known_ms"], [20_000] * 6)
        self.assertEqual(line["lost"], [2] * 6)
        self.assertEqual(line["samples"], [398] * 6)
        self.assertEqual(
            [(row["name"], row["rest"], row["values"]) for row in line["rows"]],
            [("shop", False, [4000] * 6), ("mail", False, [1200] * 6),
             ("java", False, [101 + 4 * i for i in range(6)])])

    def test_timeline_by(self):
        def rows(by, **more):
            line = self.program.json("timeline", **whole(step=60, by=by, **more))
            return [(row["name"], row["sum"]) for row in line["rows"]]
        self.assertEqual(rows("all"), [("", SHOP + MAIL + JAVA)])
        self.assertEqual(rows("host"), [
            ("beta", SHOP // 2 + MAIL // 2 + JAVA),
            ("alpha", SHOP // 2 + MAIL // 2)])
        self.assertEqual(rows("comm"),
                         [("main", SHOP), ("it's", MAIL), ("worker", JAVA)])
        self.assertEqual(rows("version"), [
            ("1", SHOP // 2), ("2", SHOP // 2), ("", MAIL + JAVA)])
        self.assertEqual(rows("unit"),
                         [("shop.service", SHOP), ("", MAIL + JAVA)])
        self.assertEqual(rows("pod"), [("", SHOP + JAVA), ("ns/mail-0", MAIL)])
        self.assertEqual(rows("comm", host="alpha"),
                         [("main", SHOP // 2), ("it's", MAIL // 2)])

    def test_what_was_sent_once(self):
        """Where no interval was sent twice the queries are others."""
        later = {"from": FROM + 10, "until": FROM + 10 * STEPS}
        share = STEPS - 1
        java = JAVA - 50
        total = share * 2600 + java
        self.assertEqual(
            self.program.json("functions", **later)["sum"], total)
        for by, wanted in (
                ("all", [("", total)]),
                ("host", [("beta", share * 1300 + java), ("alpha", share * 1300)]),
                ("service", [("shop", share * 2000), ("mail", share * 600),
                             ("java", java)])):
            line = self.program.json("timeline", **later, step=60, by=by, lanes=1)
            self.assertEqual([(row["name"], row["sum"]) for row in line["rows"]],
                             wanted)
            names = self.program.json("names", **later, by=by)["names"]
            self.assertEqual([(row["name"], row["sum"]) for row in names], wanted)
        # A row of its own would hide that there are others.
        line = self.program.json("timeline", **later, step=60, by="service",
                                 rows=2)
        self.assertEqual([row["rest"] for row in line["rows"]],
                         [False, False, True])

    def test_timeline_rest(self):
        line = self.program.json("timeline",
                                 **whole(step=120, by="service", rows=1))
        self.assertEqual(
            [(row["name"], row["rest"], row["sum"]) for row in line["rows"]],
            [("shop", False, SHOP), ("", True, MAIL + JAVA)])
        self.assertEqual(line["names"], 3)

    def test_timeline_lanes(self):
        line = self.program.json("timeline",
                                 **whole(step=60, by="service", lanes=1))
        self.assertEqual([lane["kind"] for lane in line["lanes"]],
                         ["cpu", "blocked"])
        self.assertEqual(line["rows"][1]["name"], "mail")
        self.assertEqual(line["rows"][1]["others"],
                         [[12 * 70_000, 12 * 70_000]])
        line = self.program.json(
            "timeline", **whole(step=60, by="service", lanes=1, kind="blocked"))
        self.assertEqual(line["kind"], "blocked")
        self.assertEqual(line["rows"][0]["name"], "mail")
        self.assertEqual(line["rows"][0]["values"], [12 * 70_000] * 2)
        self.assertEqual(line["rows"][0]["others"], [[3600, 3600]])

    def test_nothing_known_is_not_nothing_used(self):
        line = self.program.json("timeline", **{
            "from": FROM - 40, "until": FROM + 160, "step": 40, "by": "host"})
        self.assertEqual(line["known_ms"], [0, 40_000, 40_000, 40_000, 0])
        status, _, body = self.program.get(
            f"/api/history/flame?from={FROM - 100}&until={FROM - 50}")
        self.assertEqual((status, b"nothing is known" in body), (404, True))

    def test_flame_graph(self):
        flame = self.program.json("flame", **whole())
        self.assertEqual(sum(flame["leaves"][2::3]), SHOP + MAIL + JAVA)
        names = {frame[0] for frame in flame["frames"]}
        self.assertLessEqual({"main", "compare", "vfs_write", "it's", "worker",
                              "Lgenerated;", "[truncated]"}, names)
        cut = self.program.json("flame", **whole(nodes=3))
        self.assertEqual(sum(cut["leaves"][2::3]), SHOP + MAIL + JAVA)
        self.assertIn("[rare callees]", {frame[0] for frame in cut["frames"]})

    def test_difference(self):
        def sums(**parameters):
            data = self.program.json("difference", **whole(**parameters))
            return sum(data["before"][2::3]), sum(data["leaves"][2::3])
        self.assertEqual(sums(before=FROM, before_until=FROM + 10),
                         (2 * 1300 + 50, SHOP + MAIL + JAVA))
        self.assertEqual(sums(host="beta", before_host="alpha"),
                         (SHOP // 2 + MAIL // 2, SHOP // 2 + MAIL // 2 + JAVA))
        self.assertEqual(sums(host="alpha", before_host=["alpha", "beta"]),
                         (SHOP + MAIL + JAVA, SHOP // 2 + MAIL // 2))
        self.assertEqual(
            sums(version="2", before_version="1", host="beta", before=FROM,
                 before_until=FROM + 20), (2000, SHOP // 4))
        for wrong in ("before=5&before_until=5", "", "before=9"):
            status, _, _ = self.program.get(
                f"/api/history/difference?from={FROM}&until={FROM + 9}&{wrong}")
            self.assertEqual(status, 400, wrong)

    def test_formats(self):
        folded = self.program.ask("profile", **whole()).decode().splitlines()
        self.assertEqual(sorted(folded), [
            # In microseconds. Who waits for work is no more than that.
            f"it's;main;write;vfs_write {MAIL // 1000}",
            f"main;main;handle;compare {SHOP // 1000}", "worker;[parked] 1"])
        for form in ("pprof", "json", "flamegraph", "svg", "text", "speedscope",
                     "perf-script", "otlp"):
            self.assertGreater(
                len(self.program.ask("profile", **whole(format=form))), 100,
                form)

    def test_names(self):
        answer = self.program.json("names", **whole(by="service"))
        self.assertEqual(answer["names"], [
            {"name": "shop", "samples": 20 * STEPS, "sum": SHOP},
            {"name": "mail", "samples": 6 * STEPS, "sum": MAIL},
            {"name": "java", "samples": STEPS, "sum": JAVA}])

    def test_stacks_are_fetched_once(self):
        self.program.json("functions", **whole())
        # Without the table of stacks only what is in memory has names.
        self.server.ask("RENAME TABLE stacks TO gone")
        try:
            again = self.program.json("functions", **whole())
            self.assertEqual(functions_of(again)["compare"], (SHOP, SHOP))
            other = Program(self, self.url)
            status, _, body = other.get(
                f"/api/history/functions?from={FROM}&until={FROM + 10}")
            self.assertEqual(status, 404)
            self.assertIn(b"there is no such table", body)
        finally:
            self.server.ask("RENAME TABLE gone TO stacks")

    def test_wrong_requests(self):
        for query in ("functions?from=5&until=5", "functions?from=x",
                      "functions?seconds=5&until=9", "timeline?by=nothing",
                      "timeline?step=9", "timeline?rows=0", "timeline?rows=101",
                      "timeline?rows=26&lanes=1", "functions?pid=1",
                      "functions?kind=nothing&seconds=4000000000",
                      "functions?service=" + "x" * 1025,
                      "profile?format=nothing", "functions?kind=cpu&kind=blocked",
                      "functions?" + "&".join(f"host={i}" for i in range(65)),
                      "functions?" + "&".join(
                          f"before_host={i}" for i in range(65)),
                      "timeline?step=10&seconds=2000000"):
            status, _, body = self.program.get(f"/api/history/{query}")
            self.assertEqual(status, 400, (query, body))
        for path in ("/api/history/", "/api/history/files", "/metrics",
                     "/api/history/timeline/", "/etc/passwd"):
            self.assertEqual(self.program.get(path)[0], 404, path)

    def test_who_gets_in(self):
        ask = f"/api/history/functions?from={FROM}&until={FROM + 10}"
        for headers in ({}, {"Authorization": "Bearer "},
                        {"Authorization": f"Bearer {self.program.token[:-1]}"},
                        {"Authorization": self.program.token}):
            self.assertEqual(self.program.get(ask, headers)[0], 401, headers)
        token = {"Authorization": f"Bearer {self.program.token}"}
        for host in ("evil.example", "evil.example:80", "[::1].evil.example"):
            for path in (ask, "/"):
                self.assertEqual(
                    self.program.get(path, {**token, "Host": host})[0], 421)
        self.assertEqual(
            self.program.get(ask, {**token, "Host": "localhost:1"})[0], 200)
        self.assertEqual(self.program.get(ask, token, method="POST")[0], 405)
        for path, kind in (("/", "text/html"), ("/history.js", "text/javascript"),
                           ("/history.css", "text/css"), ("/flame", "text/html"),
                           ("/flame.js", "text/javascript")):
            status, headers, body = self.program.get(path, {})
            self.assertEqual(status, 200, path)
            self.assertIn(kind, headers["Content-Type"])
            self.assertIn("default-src 'none'",
                          headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertGreater(len(body), 100)
        self.assertIn(b"'services'", self.program.get("/history.js", {})[2])

    def test_token_and_password_of_files(self):
        path = os.path.join(self.directory, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sesame\n")
        program = Program(self, self.url, "--token-file", path)
        self.assertEqual(program.line, f"http://127.0.0.1:{program.port}/\n")
        program.token = "sesame"
        self.assertEqual(program.json("functions", **whole())["sum"],
                         SHOP + MAIL + JAVA)
        def asked_as(login):
            with open(path, "w", encoding="utf-8") as file:
                file.write(login + "\n")
            program = Program(self, self.url, "--login-file", path)
            status, _, body = program.get(
                f"/api/history/names?from={FROM}&until={FROM + 10}")
            return status, body
        # Who may only read may ask.
        status, body = asked_as("two:a:b")
        self.assertEqual((status, json.loads(body)["names"][0]["samples"]),
                         (200, 27))
        for login, why in (("nobody:sesame", b"the database: status"),
                           ("two:wrong", b"the database: status"),
                           ("one:a:b", b"wants readonly = 2")):
            status, body = asked_as(login)
            self.assertEqual((status, why in body), (502, True), body)

    def test_needs_no_privilege(self):
        if os.geteuid() != 0:
            self.skipTest("is not root already")
        status = f"/proc/{self.program.process.pid}/status"
        with open(status, encoding="utf-8") as file:
            held = dict(line.split(":", 1) for line in file)
        self.assertEqual(int(held["CapEff"], 16), 0)
        command = ["setpriv", "--reuid", str(harness.NOBODY), "--clear-groups",
                   fleet_program.FLEET, "--version"]
        self.assertIn("ksym-fleet", subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True).stdout)

    def test_ends_at_any_moment(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            status, seconds = Program(self, self.url).end(number)
            self.assertEqual(status, 0)
            self.assertLess(seconds, 5)

    def test_no_database_and_no_table(self):
        for database, why in (("none", b"no such database"),
                              ("default", b"no such table")):
            program = Program(self, f"{self.server.url}/{database}")
            status, _, body = program.get("/api/history/functions?seconds=9")
            self.assertEqual((status, why in body), (404, True), body)


class ShardsTest(FleetTest):
    """The same answers over Distributed tables of two servers, each of which has
    some of the rows."""

    make_server = fleet_server.ShardedServer

    def test_rows_are_on_both(self):
        for table in ("samples", "stacks", "intervals"):
            counts = [int(server.ask(f"SELECT count() AS n FROM {table}",
                                     "shard")[0]["n"])
                      for server in (self.server, self.server.other)]
            self.assertEqual(sum(counts), self.server.count(table))
            self.assertGreater(min(counts), 0, table)

    def test_a_shard_that_is_gone(self):
        """Half of the rows are no answer."""
        self.server.other.pause()
        self.addCleanup(self.server.other.go_on)
        status, _, body = self.program.get(
            f"/api/history/functions?from={FROM}&until={FROM + 10}")
        self.assertIn(status, (413, 502), body)


class OlderTablesTest(fleet_program.WithDatabase):
    make_server = fleet_server.OlderServer

    def test_older_tables(self):
        """Tables that are there stay as they are, and say the same."""
        types = [row["type"] for row in self.server.ask(
            "SELECT type FROM system.columns WHERE database = 'fleet' "
            "AND table = 'stacks' AND name IN ('names', 'modules')")]
        self.assertEqual(types, ["Array(String)"] * 2)
        key, = self.server.ask("SELECT sorting_key AS k FROM system.tables WHERE "
                               "database = 'fleet' AND name = 'stacks'")
        self.assertEqual(key["k"], "stack")
        for rows in fill():
            rows.insert(self.server)
        program = Program(self, self.server.url + "/fleet")
        self.assertEqual(functions_of(program.json("functions", **whole())), {
            "main": (0, SHOP + MAIL), "handle": (0, SHOP),
            "compare": (SHOP, SHOP), "write": (0, MAIL),
            "vfs_write": (MAIL, MAIL), "Lgenerated;": (JAVA, JAVA)})
        for function, total in (("=main", SHOP + MAIL), ("ompar", SHOP)):
            answer = program.json("functions", **whole(function=function))
            self.assertEqual(answer["sum"], total)


class UsageTest(unittest.TestCase):
    def run_program(self, *arguments):
        return subprocess.run([fleet_program.FLEET, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)

    def test_usage(self):
        database = ["--clickhouse", "http://127.0.0.1:1/fleet"]
        for arguments, status in (
                ([], 2), (["--nothing"], 2), (["--clickhouse"], 2),
                (database + ["--login-file", "/nowhere"], 1),
                (["--clickhouse", "http://127.0.0.1:1"], 1),
                (database + ["--listen", "unix:/tmp/x"], 1),
                (database + ["--listen", "example.org:80"], 1),
                (database + ["--token-file", "/nowhere"], 1)):
            run = self.run_program(*arguments)
            self.assertEqual(run.returncode, status, (arguments, run.stderr))
            self.assertEqual(run.stdout, "")
            self.assertTrue(run.stderr.startswith("ksym-fleet: "), run.stderr)
        self.assertIn("--clickhouse", self.run_program("--help").stdout)
        self.assertIn("--clickhouse",
                      self.run_program("--completion", "bash").stdout)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            port = taken.getsockname()[1]
            run = self.run_program("--clickhouse", "http://127.0.0.1:1/fleet",
                                   "--listen", f"127.0.0.1:{port}")
        self.assertEqual(run.returncode, 1)
        self.assertIn("Address already in use", run.stderr)


if __name__ == "__main__":
    fleet_program.main()
