#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The service keeps a history, and `ksym-profile history` shows times of it."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import time

import harness
import history_reader
import reports
from service_harness import ServiceCase

NOBODY = 65534
# Ahead of every other program: its bursts are where it means them to be on a
# loaded machine as well.
BURST = """
import os, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except OSError:
    pass  # a control group without real-time: then the machine has to be calm
def busy(until):
    while time.time() < until:
        sum(range(500))
while True:
    begin = int(time.time() + 0.7) + 0.3
    time.sleep(max(0, begin - time.time()))
    busy(begin + 0.1)
"""


class HistoryTest(ServiceCase):

    def setUp(self):
        super().setUp()
        self.stored = self.path("history")
        self.configure()

    def keep(self, *arguments):
        return self.start_service(
            "--history-enabled", "true", "--history-directory", self.stored,
            *arguments)

    def history(self, *arguments, status=0, **options):
        """What it prints on stdout and on stderr; status None: whatever it
        ends with."""
        done = subprocess.run(
            [harness.PROFILER, "history", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60, **options)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def samples_of(self, pid, status=0):
        """So many there are of it, and what is said of the time."""
        text, said = self.history(self.stored, "--from", "-5m", "--pid",
                                  pid, "--format", "folded", status=status)
        return sum(int(line.rsplit(" ", 1)[1])
                   for line in text.splitlines()), said

    def wait_samples(self, pid, count):
        # There is no history at first, or none of that time.
        return harness.wait_for(
            lambda: self.samples_of(pid, status=None)[0] >= count,
            "samples in the history")

    def read_twice(self):
        """The same from a reader of the format's description, and from the
        program."""
        said = history_reader.samples_of(
            history_reader.read_directory(self.stored))
        output = self.path("all.json")
        end = int(time.time()) + 1
        self.history(self.stored, "--from", end - 3600, "--to", end, "-o",
                     output)
        document = reports.Document(harness.read_bytes(output))
        shown = collections.Counter()
        for stack in document.stacks:
            names = [tuple(frame["name"] or "" for frame in frames)
                     for frames in (document.user(stack),
                                    document.kernel(stack))]
            shown[stack["comm"], stack["pid"], *names] += stack["count"]
        self.assertEqual((said - shown, shown - said),
                         (collections.Counter(),) * 2)
        return said

    def test_has_the_format_that_is_described(self):
        service = self.keep()
        spin = self.workload("spin")
        self.wait_samples(spin.pid, 100)
        service.end()
        journal = self.read_twice()
        self.assertGreater(journal.total(), 100)
        # The next one makes a segment of it.
        service = self.keep()
        service.end()
        self.assertTrue(any(name.endswith(".segment")
                            for name in os.listdir(self.stored)))
        self.read_twice()

    def test_reads_the_versions_before(self):
        # What an older service left: a journal, and then its segment.
        os.mkdir(self.stored)
        data = os.path.join(os.path.dirname(__file__), "..", "data", "history")
        end = 1795572783
        files = [(version, kind, name, samples, function)
                 for version, samples, function in ((1, 45, "rare_2"),
                                                    (2, 5, "[no stack]"),
                                                    (3, 5, "[no stack]"),
                                                    (4, 5, "[no stack]"),
                                                    (5, 5, "[no stack]"))
                 for kind, name in (
                     ("journal", "000000000007.journal"),
                     ("segment", f"000000000007-000000000007-{end - 3}-{end}"
                                 ".segment"))]
        for version, kind, name, samples, function in files:
            for left in os.listdir(self.stored):
                os.unlink(os.path.join(self.stored, left))
            shutil.copy(os.path.join(data, f"version-{version}.{kind}"),
                        os.path.join(self.stored, name))
            files = history_reader.read_directory(self.stored)
            self.assertEqual(history_reader.samples_of(files).total(), samples)
            listed = json.loads(self.history(self.stored, "--list",
                                             "--format", "json")[0])
            self.assertEqual(listed["warnings"], [])
            self.assertEqual([file["samples"] for file in listed["files"]],
                             [samples])
            table = self.history(self.stored, "--from", end - 60, "--to",
                                 end, "--functions")[0]
            self.assertIn(function, table)

    def test_flames_say_what_rows_say(self):
        # The file was recorded; services' files are compared as they are read.
        path = os.path.join(os.path.dirname(__file__), "..", "fuzz", "corpus",
                            "history_fuzz", "flames.segment")
        segment = history_reader.read_segment(harness.read_bytes(path))
        self.assertEqual(len(segment.flames.tables["flames"]), 4)
        self.assertEqual(sum(node[3] for node in
                             segment.flames.tables["nodes"]), 600)

    def make_old(self):
        """Has the only segment be one of three days ago, by its name; its
        path."""
        name, = (name for name in os.listdir(self.stored)
                 if name.endswith(".segment"))
        first, last, begin, end = name.removesuffix(".segment").split("-")
        then = [int(time) - 3 * 86400 for time in (begin, end)]
        path = os.path.join(self.stored, "{}-{}-{}-{}.segment".format(
            first, last, *then))
        os.rename(os.path.join(self.stored, name), path)
        return path

    def test_loses_rare_stacks_with_age(self):
        service = self.keep()
        spin = self.workload("spin")
        self.wait_samples(spin.pid, 100)
        service.end()
        self.keep().end()
        path = self.make_old()
        whole = history_reader.read_segment(harness.read_bytes(path))
        service = self.keep()
        metrics = harness.wait_for(
            lambda: (now := self.metrics())["ksym_history_thinnings_total"] and
            now, "a file that is thinned out")
        service.end()
        thin = history_reader.read_segment(harness.read_bytes(path))
        self.assertEqual(whole.tables["thinning"], [])
        (folded,), = thin.tables["thinning"]
        self.assertEqual(metrics["ksym_history_folded_stacks_total"], folded)
        self.assertEqual(metrics["ksym_history_thinnings_failed_total"], 0)
        # All samples of each process, in each second; and of each stack what
        # the description says.
        self.assertEqual(history_reader.sums_of(thin),
                         history_reader.sums_of(whole))
        self.assertEqual((history_reader.samples_of([thin]), folded),
                         history_reader.samples_when_thinned(whole))
        text, _ = self.history(self.stored, "--list")
        self.assertIn(f"(thinned out: {folded} rare stacks are folded)", text)

    def compact(self):
        """As the service does when an hour is over; the numbers of the files
        that came out."""
        subprocess.run(
            [os.path.join(os.environ["KSYM_BUILD_DIR"], "tests", "bench",
                          "profile", "bench_compact"), self.stored],
            stdout=subprocess.DEVNULL, check=True, timeout=60)
        return [name.split("-")[:2] for name in os.listdir(self.stored)
                if name.endswith(".segment")]

    def test_has_the_format_when_files_become_one(self):
        spin = self.workload("spin")
        # Three files: an hour that ends meanwhile leaves two of them in one.
        for count in (100, 200, 300):
            service = self.keep()
            self.wait_samples(spin.pid, count)
            service.end()
        before = self.read_twice()
        files = self.compact()
        self.assertLess(len(files), 3)
        self.assertTrue(any(first != last for first, last in files), files)
        self.assertEqual(self.read_twice(), before)

    def test_shows_a_time(self):
        # While it is written, and what became of it when the service ended.
        begin = int(time.time())
        service = self.keep()
        spin = self.workload("spin")
        pid = spin.pid
        self.wait_samples(pid, 100)
        metrics = self.metrics()
        self.assertGreater(metrics["ksym_history_records_total"], 0)
        self.assertGreater(metrics["ksym_history_bytes"], 0)
        self.assertEqual(metrics["ksym_history_samples_dropped_total"], 0)
        service.end()
        self.totals(service)
        names = sorted(os.listdir(self.stored))
        self.assertEqual(names, ["000000000001.journal", "lock"])

        end = int(time.time()) + 1
        table, said = self.history(self.stored, "--from", begin, "--to",
                                   end, "--by", "comm")
        self.assertIn("spin", table)
        self.assertIn(" samples of ", said)
        output = self.path("x.json")
        self.history(self.stored, "--from", begin, "--to", end, "--command",
                     "spin", "-o", output)
        document = reports.Document(harness.read_bytes(output))
        self.assertEqual(document.pids(), {pid})
        page = self.path("x.html")
        self.history(self.stored, "--from", begin, "--to", end, "-o", page)
        self.assertIn("spin", harness.read_text(page))
        changes = self.path("change.html")
        middle = (begin + end) // 2
        self.history(self.stored, "--from", middle, "--to", end,
                     "--before-from", begin, "--before-to", middle + 1, "-o",
                     changes)
        self.assertIn("spin", harness.read_text(changes))
        said = self.history(self.stored, "--from", "2001-01-01", "--to",
                            "2001-01-02", status=1)[1]
        self.assertIn("nothing is known of", said)

    def test_tells_slices(self):
        # A program that is busy for a tenth of each second has its samples there,
        # to 20 ms.
        service = self.keep("--frequency-hz", "199")
        burst = subprocess.Popen([sys.executable, "-I", "-c", BURST],
                                 preexec_fn=harness.die_with_parent)
        self.addCleanup(burst.wait)
        self.addCleanup(burst.kill)
        self.wait_samples(burst.pid, 100)
        end = int(time.time()) - 1
        times = {"within": (0.28, 0.42), "before": (0, 0.28),
                 "behind": (0.42, 0.999)}
        found = collections.Counter()
        for second in range(end - 2, end):
            for where, (begin, until) in times.items():
                # One process may have nothing there; of the machine something
                # is known.
                text = self.history(
                    self.stored, "--from", f"{second + begin:.3f}", "--to",
                    f"{second + until:.3f}", "--pid", burst.pid, "--format",
                    "folded")[0]
                found[where] += sum(int(line.rsplit(" ", 1)[1])
                                    for line in text.splitlines())
        self.assertGreater(found["within"], 12, found)
        # The interpreter looks at the clock between the bursts.
        self.assertLess(found["before"] + found["behind"],
                        found["within"] / 4, found)
        line = json.loads(self.ask(
            f"/api/history/timeline?from={end - 2}.000&until={end}.000"
            f"&step=0.02&pid={burst.pid}")[1])
        self.assertEqual(line["step"], 0.02)
        self.assertEqual(len(line["known_ms"]), 100)
        self.assertGreaterEqual(min(line["known_ms"]), 18, line)
        by_slice = [sum(row["values"][i] + row["values"][i + 50]
                        for row in line["rows"]) for i in range(50)]
        self.assertGreater(sum(by_slice[14:21]), 0.75 * sum(by_slice))
        flame = json.loads(self.ask(
            f"/api/history/flame?from={end - 1}.280&until={end - 1}.420"
            "&command=python3")[1])
        self.assertIn("busy", json.dumps(flame["frames"]))
        # Steps of seconds have no slices, and files have no parts of a second.
        for path, status in (("timeline?from=1&until=2&step=0.02", 400),
                             ("timeline?from=1.000&until=2&step=0.019", 400),
                             ("flame?from=1.0000&until=2", 400),
                             ("flame?from=1.&until=2", 400),
                             ("functions?from=2.5&until=2.5", 400),
                             ("flame?from=1.5&until=2", 404)):
            got, body, _ = self.ask("/api/history/" + path)
            self.assertEqual(got, status, (path, body))
        self.assertIn(b"for an hour", body)
        # An older file has none, and says so.
        service.end()
        for name in os.listdir(self.stored):
            os.unlink(os.path.join(self.stored, name))
        data = os.path.join(os.path.dirname(__file__), "..", "data", "history")
        shutil.copy(os.path.join(data, "version-5.journal"),
                    os.path.join(self.stored, "000000000007.journal"))
        said = self.history(self.stored, "--from", "1795572780.5", "--to",
                            "1795572783", status=1)[1]
        self.assertIn("or not to 20 ms", said)

    def test_survives_a_kill(self):
        # What was on the disk is there, and the hole as well.
        service = self.keep()
        pid = self.workload("spin").pid
        self.wait_samples(pid, 100)
        service.kill()
        before, said = self.samples_of(pid)
        self.assertNotIn("warning", said)
        time.sleep(3)
        service = self.keep()
        self.wait_samples(pid, before + 100)
        service.end()
        # The second run made a segment of what the first had left.
        names = sorted(os.listdir(self.stored))
        self.assertTrue(names[0].endswith(".segment"), names)
        self.assertTrue(names[1].endswith(".journal"), names)
        after, said = self.samples_of(pid)
        self.assertGreaterEqual(after, before + 100)
        self.assertIn("the service was not running", said)
        self.assertIn("over 1 restarts", said)

    def test_is_read_elsewhere(self):
        # A copy, made while it is written, by another user.
        self.keep()
        self.wait_samples(self.workload("spin").pid, 50)
        copy = self.path("copy")
        shutil.copytree(self.stored, copy)
        for path in [os.path.dirname(copy), copy]:
            os.chmod(path, 0o755)
        for name in os.listdir(copy):
            os.chmod(os.path.join(copy, name), 0o644)
        table, said = self.history(copy, "--from", "-5m", "--by", "comm",
                                   user=NOBODY, group=NOBODY)
        self.assertIn("spin", table, said)

    def test_shows_when_it_was(self):
        # Curves, tables and the list of files say the same as profiles.
        begin = int(time.time())
        service = self.keep()
        pid = self.workload("spin").pid
        self.wait_samples(pid, 100)
        service.end()
        span = ["--from", begin, "--to", int(time.time()) + 1]
        listing = json.loads(self.history(self.stored, "--list", "--format",
                                          "json")[0])
        samples = sum(file["samples"] for file in listing["files"])
        self.assertIn(f"{samples} samples, ",
                      self.history(self.stored, "--list")[0])
        line = json.loads(self.history(
            self.stored, *span, "--series", "--by", "comm", "--step", 1,
            "--format", "json")[0])
        self.assertEqual(sum(line["samples"]), samples)
        rows = {row["name"]: row for row in line["rows"]}
        self.assertGreater(rows["spin"]["sum"], 0.9e9)
        self.assertEqual(sum(rows["spin"]["values"]), rows["spin"]["sum"])
        functions = json.loads(self.history(
            self.stored, *span, "--functions", "--command", "spin",
            "--top", 0, "--format", "json")[0])
        self.assertEqual(functions["sum"], rows["spin"]["sum"])
        self.assertEqual(functions["sum"],
                         sum(row["self"] for row in functions["rows"]))
        output = self.path("series.json")
        self.history(self.stored, *span, "--series", "-o", output)
        self.assertEqual(json.loads(harness.read_text(output))["known"],
                         line["known"])
        for arguments in (["--series"], ["--series", "--by", "comm"],
                          ["--functions"]):
            text = self.history(self.stored, *span, *arguments)[0]
            self.assertIn("CPUs", text)
        for arguments, wanted in (
                (["--series", "--by", "module"], "none of unit"),
                (["--functions", "--step", "1"], "--step is of --series"),
                (["--list", "--format", "pprof"], "text and json"),
                (["--list", "--functions"], "excludes")):
            said = self.history(self.stored, *arguments, status=2)[1]
            self.assertIn(wanted, said)

    def ask(self, path):
        """Status, body and headers of an answer."""
        with contextlib.closing(self.connect()) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode())
            answer = http.client.HTTPResponse(client)
            answer.begin()
            return answer.status, answer.read(), dict(answer.getheaders())

    def run_profiler(self, *arguments, status=0):
        done = subprocess.run(
            [harness.PROFILER, *map(str, arguments)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def test_is_read_as_a_file(self):
        # A time, all of it, and two times compared.
        begin = int(time.time())
        service = self.keep()
        pid = self.workload("spin").pid
        self.wait_samples(pid, 200)
        service.end()
        end = int(time.time()) + 1
        span = f"{self.stored}@{begin}..{end}"
        for source in (span, self.stored, f"{self.stored}@{begin}.."):
            table = self.run_profiler("report", source, "--by", "comm")[0]
            self.assertIn("spin", table)
        self.run_profiler("diff", self.stored, span)
        output = self.path("x.json")
        self.run_profiler("convert", span, "-o", output)
        document = reports.Document(harness.read_bytes(output))
        self.assertIn(pid, document.pids())
        for source, wanted in ((f"{self.stored}@noon..", "no time"),
                               (f"{self.stored}@1..2", "nothing is known"),
                               (f"{self.stored}@2..1", "is not before")):
            said = self.run_profiler("report", source, status=1)[1]
            self.assertIn(wanted, said)

    def test_answers_http(self):
        # The page and its data; nothing of it where there is no history.
        self.keep()
        pid = self.workload("spin").pid
        self.wait_samples(pid, 100)
        for path in ("/", "/history.js", "/history.css", "/flame", "/flame.js",
                     "/flame.css"):
            status, body, headers = self.ask(path)
            self.assertEqual(status, 200, path)
            self.assertTrue(body)
            self.assertIn("default-src 'none'",
                          headers["Content-Security-Policy"])
        api = "/api/history/"
        line = json.loads(self.ask(
            api + "timeline?seconds=60&step=1&by=comm")[1])
        self.assertIn("spin", [row["name"] for row in line["rows"]])
        table = json.loads(self.ask(
            f"{api}functions?seconds=60&pid={pid}")[1])
        self.assertGreater(table["sum"], 0.9e9)
        flame = json.loads(self.ask(
            api + "flame?seconds=60&command=spin")[1])
        self.assertIn("spin", json.dumps(flame["frames"]))
        now = int(time.time())
        change = json.loads(self.ask(
            f"{api}difference?from={now - 2}&until={now + 1}"
            f"&before={now - 60}&before_until={now + 1}")[1])
        self.assertIn("before", change)
        folded = self.ask(f"{api}profile?seconds=60&pid={pid}")[1].decode()
        self.assertGreaterEqual(
            sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()),
            100)
        page = self.ask(api + "profile?seconds=60&format=flamegraph")
        self.assertIn("text/html", page[2]["Content-Type"])
        self.assertIn("frame-ancestors 'none'",
                      page[2]["Content-Security-Policy"])
        self.assertEqual(self.ask(api + "timeline?step=0")[0], 400)
        self.assertEqual(self.ask(api + "flame?from=1&until=2")[0], 404)

    def test_many_queries_keep_nobody_out(self):
        # Those that find no turn in time get 503; metrics come at once.
        self.keep()
        self.wait_samples(self.workload("spin").pid, 100)
        paths = ["/api/history/flame?seconds=600"] * 24
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
            answers = [pool.submit(self.ask, path) for path in paths]
            began = time.monotonic()
            self.assertEqual(self.ask("/healthz")[0], 200)
            self.assertEqual(self.ask("/metrics")[0], 200)
            self.assertLess(time.monotonic() - began, 10)
            statuses = {answer.result()[0] for answer in answers}
        self.assertIn(200, statuses)
        self.assertLessEqual(statuses, {200, 429, 503})

    def test_has_no_page_without_a_history(self):
        self.start_service("--history-enabled", "false")
        harness.wait_for(lambda: os.path.exists(self.socket_path), "a socket")
        self.assertEqual(self.ask("/")[0], 404)
        self.assertEqual(self.ask("/api/history/files")[0], 404)

    def test_has_one_service(self):
        # The second goes on and says that it keeps none.
        self.keep()
        second = self.keep("--http-listen", "")
        second.wait_log("another service writes its history there")
        self.assertIsNone(second.process.poll())

    def test_goes_on_without_a_directory(self):
        # A history that nobody asked for must not keep a service from its
        # work: it says what is wrong, and profiles are written.
        harness.write_text(self.stored, "no directory")
        service = self.keep()
        service.wait_log("the history is not written")
        harness.wait_for(lambda: len(self.files()) >= 2, "profiles")
        self.assertGreater(self.metrics()["ksym_history_failures_total"], 0)
        self.assertLess(service.end(), 3)
        self.assertEqual(service.process.returncode, 0, service.log())

    def test_usage(self):
        for arguments, wanted in [
                (["--from", "noon"], "--from: 'noon' is no time"),
                (["--from", "-1m", "--to", "-2m"], "--from is not before --to"),
                (["--before-from", "-1h"], "go together"),
                (["--by", "line"], "a history has no lines"),
                (["-o", "x.unknown"], "does not say the format")]:
            said = self.history(self.stored, *arguments, status=2)[1]
            self.assertIn(wanted, said)
        said = self.history(self.stored, status=1)[1]
        self.assertIn(self.stored, said)


if __name__ == "__main__":
    harness.main()
