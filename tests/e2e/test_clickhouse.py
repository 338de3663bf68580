# SPDX-License-Identifier: Apache-2.0
"""A fleet's samples in ClickHouse: a real server that dies, and one that lies,
has each of them once."""

import collections
import datetime
import glob
import os
import random
import re
import signal
import time

import clickhouse_server
import fleet_server
import harness
import reports
import service_harness

DOCS = os.path.join(harness.SOURCE_DIR, "docs/fleet.md")
FREQUENCY_HZ = 99
TABLES = ("samples", "stacks", "intervals")


def documented(beginning):
    """The SQL of docs/fleet.md that begins so."""
    for block in re.findall(r"```sql\n(.*?)```", harness.read_text(DOCS), re.S):
        if block.startswith(beginning):
            return block
    raise AssertionError("docs/fleet.md has no " + beginning)


def second(text):
    return int(datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(
        tzinfo=datetime.timezone.utc).timestamp())


class PushCase(service_harness.ServiceCase):
    """What the service wrote into files is what `server` has."""

    server = None

    def start_pushing(self, profiles):
        """A service that has made some profiles and pushes them."""
        self.push_to(self.server.port)
        self.workload("spin")
        service = self.start_service()
        self.wait_files(profiles, "json")
        return service

    def push_to(self, port, **more):
        self.push = [{"url": "clickhouse+http://127.0.0.1:%d/fleet" % port,
                      **more}]
        self.configure(FREQUENCY_HZ, format="json")

    def drain(self):
        harness.wait_for(lambda: self.metrics()["ksym_push_waiting"] == 0,
                         "all is sent", 90)

    def written(self):
        """The service's own files: by the second in which they begin, their
        samples by kind, command and names, and the sum of each kind."""
        sums = {}
        for path in self.files("json"):
            document = reports.Document(harness.read_bytes(path))
            kinds = [kind["name"] for kind in
                     document.metadata.get("kinds", [{"name": "cpu"}])]
            begin = document.metadata["start_unix_ns"] // 10**9
            found = sums.setdefault(begin, collections.Counter())
            for stack in document.stacks:
                kind = stack.get("sample_kind", kinds[0])
                key = (kind, stack["comm"], stack.get("parked", False),
                       tuple(document.names(stack)))
                found[key] += stack["count"]
                found[kind] += stack.get(
                    "value", stack["count"] * (10**9 // FREQUENCY_HZ))
        return sums

    def stored(self):
        """The same of what the server has, as docs/fleet.md says it is to be
        read; the query is the documented one, with the row's own columns."""
        query = documented("SELECT stack, sum(count)")
        more = "stack, time, kind, command, parked"
        query = query.replace("SELECT stack,", "SELECT %s," % more)
        query = query.replace("GROUP BY stack\n", "GROUP BY %s\n" % more)
        query = query.replace("WHERE FILTER\n", "WHERE 1\n").replace(
            "WHERE TIMES", "WHERE 1")
        self.assertNotIn("FILTER", query)
        query = self.of_all_servers(query)
        names = {}
        for row in self.server.ask(
                "SELECT stack, any(names) AS names, any(kinds) AS kinds "
                "FROM stacks GROUP BY stack"):
            names[row["stack"]] = tuple(
                name for name, kind in zip(row["names"], row["kinds"]) if kind)
        sums = collections.defaultdict(collections.Counter)
        for row in self.server.ask(query):
            key = (row["kind"], row["command"], bool(row["parked"]),
                   names[row["stack"]])
            sums[second(row["time"])][key] += int(row["count"])
            sums[second(row["time"])][row["kind"]] += int(row["value"])
        return sums

    def of_all_servers(self, query):
        return query

    def spooled(self):
        """The seconds in which what still waits to be sent begins."""
        paths = glob.glob(self.path("spool") + "/*/*/*/*/*.push")
        return {int(harness.read_bytes(path).split(b"\n", 2)[1]) // 10**9
                for path in paths}

    def check_all_stored(self):
        """Each interval that was written is there or waits on the disk, and
        each sample once."""
        written, stored, spooled = self.written(), self.stored(), self.spooled()
        times = {second(row["time"]) for row in
                 self.server.ask("SELECT DISTINCT time FROM intervals")}
        self.assertLessEqual(len(spooled), 2)
        self.assertEqual(set(written) - times - spooled, set())
        # A killed service may have had no time for one file.
        self.assertLessEqual(len(times - set(written)), 1)
        self.assertGreater(len(times), 3)
        for begin in set(written) - spooled:
            self.assertEqual(stored[begin], written[begin], begin)
        # taken and lost are of the whole interval. Two may begin in a second.
        emitted = collections.Counter()
        for row in self.server.ask(
                "SELECT time, any(taken) - any(lost) AS emitted FROM intervals "
                "GROUP BY run, time"):
            emitted[second(row["time"])] += int(row["emitted"])
        for begin in set(emitted) - spooled:
            self.assertEqual(emitted[begin], self.samples(stored[begin]))

    @staticmethod
    def samples(sums):
        return sum(count for key, count in sums.items()
                   if isinstance(key, tuple))

    def raw_rows(self, table):
        return int(self.server.ask(
            "SELECT count() AS n FROM " + table)[0]["n"])


class ClickHouseTest(PushCase):

    def setUp(self):
        super().setUp()
        self.need_command("clickhouse-server")
        self.server = clickhouse_server.Server(
            self.path("server"), self.free_port(), self.free_port())
        self.addCleanup(
            lambda: self.server.process and self.server.kill())

    def test_samples(self):
        # What the service writes into files is in the tables, made by it, in
        # the days of UTC; SQL of the documentation works as it is there.
        self.server.start()
        self.waiting = {"enabled": True}
        self.push_to(self.server.port)
        self.workload("spin")
        self.start(["sleep", "60"])
        service = self.start_service()
        self.wait_files(6, "json")
        self.drain()
        self.assertLess(service.end(signal.SIGTERM), 3)
        self.check_all_stored()
        self.assertEqual(self.raw_rows("samples"), int(self.server.ask(
            "SELECT count() AS n FROM samples FINAL")[0]["n"]))
        hot = self.server.ask(
            "SELECT sum(count) AS c, sum(value) AS v FROM samples "
            "WHERE command = 'spin' AND kind = 'cpu'")[0]
        self.assertEqual(int(hot["v"]),
                         int(hot["c"]) * (10**9 // FREQUENCY_HZ))
        self.assertGreater(int(hot["c"]), FREQUENCY_HZ)
        self.assertEqual(
            {row["kind"] for row in self.server.ask(
                "SELECT DISTINCT kind FROM samples WHERE command = 'sleep'")},
            {"blocked"})
        row, = self.server.ask(documented("SELECT host, max(time)"))
        self.assertIn(os.uname().nodename, row.values())
        self.assertIn(os.uname().release, row.values())
        for table in TABLES:
            days = {row["partition"] for row in self.server.ask(
                "SELECT partition FROM system.parts WHERE active "
                "AND database = 'fleet' AND table = '%s'" % table)}
            today = datetime.datetime.now(datetime.timezone.utc)
            self.assertIn(today.strftime("%Y-%m-%d"), days)
            self.assertLessEqual(len(days), 2)

    def test_budget(self):
        # A service with more samples than are wanted of it is sent in fewer
        # rows, which add up to the same for each kind.
        self.server.start()
        self.push_to(self.server.port, samples_per_hour=3600)
        other = service_harness.Receiver(self.free_port())
        self.push.append("clickhouse+http://127.0.0.1:%d/other" % other.port)
        self.configure(FREQUENCY_HZ, format="json")
        other.start()
        self.addCleanup(other.stop)
        for _ in range(2):
            self.workload("spin")
        service = self.start_service()
        self.wait_files(6, "json")
        self.drain()
        self.assertGreater(
            self.metrics()["ksym_push_left_out_samples_total"], 0)
        self.assertLess(service.end(signal.SIGTERM), 3)
        written, stored = self.written(), self.stored()
        compared = set(written) & set(stored) - self.spooled()
        self.assertGreater(len(compared), 3)
        for begin in compared:
            self.assertEqual(self.samples(stored[begin]),
                             self.samples(written[begin]))
            self.assertEqual(stored[begin]["cpu"], written[begin]["cpu"])
        # Intervals have one run, whether a target gets all of their samples or
        # few. A second interval that begins in a second is of another run.
        begun_together = len(self.files("json")) - len(written)
        self.assertLessEqual(
            self.raw_rows("(SELECT DISTINCT run FROM intervals)"),
            1 + begun_together)
        # An interval of a second has one of each service.
        most, = self.server.ask(
            "SELECT max(n) AS n FROM (SELECT uniqExact(stack, command) AS n "
            "FROM samples GROUP BY service, kind, run, time)")
        self.assertEqual(int(most["n"]), 1)

    def test_documented_tables(self):
        # The documentation has the tables that are made.
        with open(os.path.join(harness.SOURCE_DIR,
                               "daemon/clickhouse/tables.cc")) as file:
            source = file.read()
        created = documented("CREATE TABLE").split("\n\n")
        self.assertEqual(len(created), len(TABLES))
        for statement in created:
            self.assertIn('R"(%s)"' % statement.strip(), source)

    def test_killed_server(self):
        # Killed again and again while it takes samples, and the service is
        # killed once as well: nothing is lost and nothing counts twice.
        self.server.start()
        service = self.start_pushing(profiles=1)
        rng = random.Random(1)
        for turn in range(6):
            time.sleep(rng.uniform(0.2, 1.5))
            self.server.kill()
            if turn == 3:
                service.end(signal.SIGKILL)
                service = self.start_service()
            time.sleep(rng.uniform(0, 0.7))
            self.server.start()
        self.wait_files(10, "json")
        self.drain()
        self.assertEqual(self.metrics()["ksym_push_dropped_total"], 0)
        self.assertEqual(self.metrics()["ksym_push_rejected_total"], 0)
        self.assertLess(service.end(signal.SIGTERM), 3)
        self.check_all_stored()

    def test_lost_answers(self):
        # Each of the requests for an interval is taken and its answer lost, at
        # one time or another: the tables have rows twice, the reader does not.
        self.server.start()
        thief = clickhouse_server.AnswerThief(
            self.free_port(), self.server.port, every=3)
        self.addCleanup(thief.close)
        self.push_to(thief.listener.getsockname()[1])
        self.workload("spin")
        service = self.start_service()
        harness.wait_for(
            lambda: all(thief.lost[table] >= 2 for table in TABLES),
            "lost answers", 90)
        thief.every = 0
        self.drain()
        self.assertGreaterEqual(
            self.metrics()["ksym_push_failures_total"], 6)
        self.assertLess(service.end(signal.SIGTERM), 3)
        self.check_all_stored()
        twice = int(self.server.ask(
            "SELECT count() AS n FROM (SELECT run, time FROM intervals "
            "GROUP BY run, time HAVING count() > 1)")[0]["n"])
        self.assertGreater(twice, 0)
        # Merging makes one of them as well.
        counted = sum(map(self.samples, self.stored().values()))
        self.server.ask("OPTIMIZE TABLE samples FINAL")
        self.assertEqual(counted, int(self.server.ask(
            "SELECT sum(count) AS n FROM samples")[0]["n"]))
        self.check_all_stored()

    def test_tables_that_go(self):
        # They are made again, and have all stacks again.
        self.server.start()
        service = self.start_pushing(profiles=3)
        self.drain()
        for table in TABLES:
            self.server.ask("DROP TABLE " + table)
        before = self.metrics()["ksym_push_sent_total"]
        harness.wait_for(
            lambda: self.metrics()["ksym_push_sent_total"] >= before + 3,
            "intervals")
        self.assertGreaterEqual(self.metrics()["ksym_push_failures_total"], 1)
        service.end(signal.SIGTERM)
        stored = self.stored()  # looks each stack up
        self.assertGreaterEqual(len(stored), 3)

    def test_login(self):
        # The token's file has a user and a password, which may have colons.
        harness.write_text(self.path("token"), "writer:a:b\n")
        self.server.start()
        self.push_to(self.server.port, token_file=self.path("token"))
        self.workload("spin")
        service = self.start_service()
        harness.wait_for(
            lambda: self.metrics()["ksym_push_sent_total"] >= 2, "intervals")
        self.assertEqual(self.metrics()["ksym_push_failures_total"], 0)
        harness.write_text(self.path("token"), "writer:b\n")
        service.process.send_signal(signal.SIGHUP)
        harness.wait_for(
            lambda: self.metrics()["ksym_push_failures_total"] >= 1, "refusal")
        self.assertEqual(self.metrics()["ksym_push_rejected_total"], 0)


class ShardsTest(PushCase):

    def of_all_servers(self, query):
        return re.sub(r"(NOT )?IN \(", r"GLOBAL \g<0>", query)

    def test_killed_shard(self):
        # The tables are Distributed over two servers, of which one is killed
        # again and again: nothing is lost and nothing counts twice.
        self.need_command("clickhouse-server")
        os.mkdir(self.path("servers"))
        self.server = fleet_server.ShardedServer(self.path("servers"))
        self.addCleanup(self.server.kill)
        service = self.start_pushing(profiles=1)
        rng = random.Random(2)
        for _ in range(5):
            time.sleep(rng.uniform(0.2, 1.5))
            self.server.other.kill()
            time.sleep(rng.uniform(0.5, 1.5))
            self.server.other.start()
        self.wait_files(10, "json")
        self.drain()
        self.assertGreater(self.metrics()["ksym_push_failures_total"], 0)
        self.assertEqual(self.metrics()["ksym_push_dropped_total"], 0)
        self.assertEqual(self.metrics()["ksym_push_rejected_total"], 0)
        self.assertLess(service.end(signal.SIGTERM), 3)
        self.check_all_stored()


class LiarTest(service_harness.ServiceCase):
    """Needs no ClickHouse: the receiver is none."""

    def test_liar(self):
        receiver = service_harness.Receiver(self.free_port())
        self.push = ["clickhouse+http://127.0.0.1:%d/fleet" % receiver.port]
        self.configure(format="pprof")
        self.workload("spin")
        receiver.start()
        self.addCleanup(receiver.stop)
        # Who says something behind a 200, be it without an end, is not
        # ClickHouse.
        receiver.answer = b"Code: 1, welcome to nginx " * 99999
        service = self.start_service()
        harness.wait_for(
            lambda: self.metrics()["ksym_push_failures_total"] >= 2, "failures")
        self.assertEqual(self.metrics()["ksym_push_sent_total"], 0)
        self.assertIn("is no answer of ClickHouse: Code: 1", service.log())
        receiver.stop()
        receiver.answer = b""
        receiver.posts.clear()
        # Nobody may make tables; then two requests are refused for a while.
        receiver.statuses = [403, 403] + [200, 500] * 2
        receiver.start()
        harness.wait_for(
            lambda: self.metrics()["ksym_push_sent_total"] >= 4, "intervals",
            60)
        self.assertEqual(self.metrics()["ksym_push_rejected_total"], 0)
        self.assertEqual(self.metrics()["ksym_push_dropped_total"], 0)
        # Once with what 18.16 wants to be told and 26.7 does not know, once
        # without.
        base = "/?database=fleet"
        self.assertEqual(
            [path for path, body in receiver.posts[:2]],
            [base + "&allow_experimental_low_cardinality_type=1", base])
        self.assertEqual(receiver.posts[0][1], receiver.posts[1][1])
        queries = [self.query(path, body) for path, body in receiver.posts]
        sent = [query for query in queries if query != "CREATE"]
        for before, query in zip(sent, sent[1:]):
            # Never samples without their stacks, nor these without a word of
            # the interval.
            self.assertIn(before, {"samples": ("stacks", "intervals"),
                                   "stacks": ("intervals",),
                                   "intervals": ("samples", "stacks",
                                                 "intervals")}[query])
        self.assertIn("samples", sent)
        # Refused for good.
        receiver.statuses = [400]
        harness.wait_for(
            lambda: self.metrics()["ksym_push_rejected_total"] >= 1, "refusal")
        self.assertLess(service.end(signal.SIGTERM), 3)

    @staticmethod
    def query(path, body):
        if body.startswith(b"CREATE TABLE IF NOT EXISTS"):
            return "CREATE"
        found = re.fullmatch(
            r"/\?database=fleet&query=INSERT(?:%20|\+)INTO(?:%20|\+)(\w+).*",
            path)
        reports.expect(found, path)
        reports.expect(body.startswith(b"\x1f\x8b"), "is no gzip")
        return found[1]


if __name__ == "__main__":
    harness.main()
