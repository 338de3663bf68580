#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""web_test.py PROFILER DIRECTORY [TEST...]: the flame graph page in Chromium, driven
by Playwright, and our files in speedscope's own page.

DIRECTORY gets the npm packages of package.json, once, and pictures of the pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROFILER, DIRECTORY = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# What flamegraph.pl, inferno and speedscope's importer all take for a line.
FOLDED = re.compile(r"^[^;\n]+(?:;[^;\n]+)* [0-9]+$")


def install_packages():
    """The reason why there are none, or None."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    if CHROMIUM is None:
        return "there is no chromium (Debian's package)"
    os.makedirs(DIRECTORY, exist_ok=True)
    wanted = os.path.join(HERE, "package.json")
    mark = os.path.join(DIRECTORY, "package.json")
    with open(wanted, encoding="utf-8") as file:
        text = file.read()
    if os.path.exists(mark) and os.path.exists(DIRECTORY + "/node_modules"):
        with open(mark, encoding="utf-8") as file:
            if file.read() == text:
                return None
    with open(mark + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    shutil.rmtree(DIRECTORY + "/node_modules", ignore_errors=True)
    os.replace(mark + ".new", mark)
    try:
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
             "--no-package-lock", "--fetch-retries=1"],
            cwd=DIRECTORY, text=True, capture_output=True, timeout=120,
            check=False)
    except subprocess.TimeoutExpired:
        return "npm install took more than two minutes"
    if done.returncode == 0:
        return None
    shutil.rmtree(DIRECTORY + "/node_modules", ignore_errors=True)
    return "npm install failed: " + done.stderr.strip().splitlines()[0]


def node_options():
    return {"text": True, "env": {**os.environ, "KSYM_CHROMIUM": CHROMIUM,
                                  "KSYM_NODE_MODULES":
                                      DIRECTORY + "/node_modules"}}


def begin_node(script, *arguments):
    """A script that runs, whose standard input and output are pipes."""
    return subprocess.Popen(
        ["node", os.path.join(HERE, script), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **node_options())


def node(script, *arguments):
    done = subprocess.run(
        ["node", os.path.join(HERE, script), *arguments],
        capture_output=True, timeout=900, check=False, **node_options())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="ksym-web-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        # The text of perf script has modules and lines of code.
        cls.perf = cls.write("in.perf", cls.perf_text())

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    @classmethod
    def convert(cls, source, name, *options):
        path = os.path.join(cls.dir, name)
        subprocess.run([PROFILER, "convert", source, "-o", path, *options],
                       check=True)
        return path

    @staticmethod
    def perf_text(one_thread=False):
        """100 samples of two processes, of two and one threads, as perf script
        prints them; Sort has an inlined call."""
        server, kernel = "(/usr/bin/server)", "([kernel.kallsyms])"
        work = [f"2010 Work+0x10 {server}", f"3010 main+0x10 {server}"]
        sort = ["1010 Compare (inlined)", f"1010 Sort+0x10 {server}", *work]
        stacks = [
            (40, "77/77", sort), (20, "77/78", sort),
            (30, "77/77", [f"ffffffff81000010 ksys_write+0x10 {kernel}",
                           f"1510 Send+0x10 {server}", *work]),
            (10, "99/99", work)]
        text, time = "", 1.0
        for count, ids, frames in stacks:
            ids = "77/77" if one_thread else ids
            for _ in range(count):
                time += 0.01
                text += f"server {ids} {time:.6f}: 10000000 cpu-clock: \n"
                text += "".join(f"\t{frame}\n" for frame in frames) + "\n"
        return text

    @classmethod
    def small_json(cls):
        """The profile of perf_text() and a second command, of which a service
        would know when and where it was taken and in which cgroups."""
        path = cls.convert(cls.perf, "perf.json", "--by", "tid")
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
        metadata = profile["metadata"]
        del metadata["count_period"]
        metadata |= {"hostname": "web1", "start_unix_ns": 1700000000 * 10**9,
                     "duration_ns": 10 * 10**9, "frequency_hz": 99,
                     "cpus": "0-1"}
        metadata["samples"]["taken"] += 5
        metadata["samples"]["lost"]["counts-full"] = 5
        frames = profile["frames"]
        frames.append({"name": "epoll_wait", "kind": "user",
                       "module": "/usr/lib/libc.so.6"})
        for stack in profile["stacks"]:
            stack["cgroup"] = "/system.slice/web.service"
            if stack["pid"] == 99:
                stack["comm"] = "batch"
                stack["cgroup"] = f"/system.slice/docker-{'ab' * 32}.scope"
                stack["user"].append(len(frames) - 1)
        return cls.write("small.json", json.dumps(profile))

    @classmethod
    def kinds_json(cls, small):
        """The same with what the threads waited, as --wall has it: half of a
        second each of Work of server and of batch in poll, a tenth for a CPU."""
        with open(small, encoding="utf-8") as file:
            profile = json.load(file)
        frames = profile["frames"]
        for name in ("[runnable: woken]", "[blocked: poll]"):
            frames.append({"name": name, "kind": "wait"})
        waits = {"event": "sched_exit_tp", "unit": "nanoseconds",
                 "has_values": True}
        profile["metadata"]["kinds"] = [
            {"name": "cpu", "unit": "nanoseconds", "event": "cpu-clock",
             "frequency_hz": 100},
            {"name": "runnable", **waits}, {"name": "blocked", **waits}]
        for stack in profile["stacks"]:
            stack["sample_kind"] = "cpu"
        work = next(i for i, frame in enumerate(frames)
                    if frame["name"] == "Work")
        for comm, pid, kind, reason, value in (
                ("server", 77, "blocked", len(frames) - 1, 5 * 10**8),
                ("server", 77, "runnable", len(frames) - 2, 10**8),
                ("batch", 99, "blocked", len(frames) - 1, 5 * 10**8)):
            profile["stacks"].append({
                "comm": comm, "pid": pid, "tid": pid, "user_state": "whole",
                "kernel_state": "whole", "user": [work], "kernel": [reason],
                "count": 1, "sample_kind": kind, "value": value})
        return cls.write("kinds.json", json.dumps(profile))

    @classmethod
    def parked_json(cls, kinds):
        """The same with three more threads that wait in Pool of server, of which
        two are parked."""
        with open(kinds, encoding="utf-8") as file:
            profile = json.load(file)
        frames = profile["frames"]
        frames.append({"name": "Pool", "kind": "user",
                       "module": "/usr/bin/server"})
        reason = next(i for i, frame in enumerate(frames)
                      if frame["name"] == "[blocked: poll]")
        for tid, is_parked in ((81, True), (82, True), (83, False)):
            stack = {
                "comm": "server", "pid": 77, "tid": tid, "user_state": "whole",
                "kernel_state": "whole", "user": [len(frames) - 1],
                "kernel": [reason], "count": 1, "sample_kind": "blocked",
                "value": 10**9 if is_parked else 5 * 10**8}
            if is_parked:
                stack["parked"] = True
            profile["stacks"].append(stack)
        return cls.write("parked.json", json.dumps(profile))

    @classmethod
    def large_folded(cls):
        """100,000 stacks."""
        return cls.write("large.folded", "".join(
            f"app;main;f{i % 10};g{i // 10 % 100};h{i // 1000};leaf{i} "
            f"{i % 7 + 1}\n" for i in range(100_000)))

    @staticmethod
    def pictures():
        directory = os.path.join(DIRECTORY, "pictures")
        os.makedirs(directory, exist_ok=True)
        return directory

    def test_flame_graph(self):
        """What a person does with the page: mouse, keyboard, address, search,
        filters, table, callers, selection, paper, downloads, phone, light and
        dark, a difference, hostile names: nothing on the console, no request.
        """
        small = self.small_json()
        self.convert(small, "small.html")
        self.convert(small, "small.folded")
        kinds = self.kinds_json(small)
        self.convert(kinds, "kinds.html")
        self.convert(kinds, "blocked.html", "--value", "blocked")
        parked = self.parked_json(kinds)
        self.convert(parked, "parked.html", "--value", "blocked")
        self.convert(parked, "open.html", "--value", "blocked", "--parked")
        names = ["<img src=x onerror=alert(1)>", "</script><b>", "a b 7",
                 "\u202egnp", "\u2066x", "\x1b[31mred", "\u05d0\u05d1 \u05d2",
                 "&quot;\"'", "_[k", "x" * 60000, "a::" * 400 + "end"]
        hostile = self.write("in.folded", "".join(
            f"prog;main;{name} {7 + i}\n" for i, name in enumerate(names)))
        self.convert(hostile, "hostile.html")
        self.convert(hostile, "hostile.folded")
        self.convert(self.write("deep_in.folded", "app;" + ";".join(
            f"f{i}" for i in range(300)) + " 5\n"), "deep.html")
        after = self.write("after.folded", "server;main;Work;Sort 10\n"
                                           "server;main;Work;Send 90\n")
        before = self.convert(self.perf, "before.folded")
        subprocess.run([PROFILER, "diff", before, after, "-o",
                        os.path.join(self.dir, "difference.html")],
                       check=True, stdout=subprocess.DEVNULL)
        node("flamegraph.mjs", self.dir, self.pictures())
        print("\npictures:", self.pictures())

    def test_bench(self):
        """The benchmark of the page runs to its end."""
        large = self.convert(self.large_folded(), "large.html")
        print("\n" + node("bench.mjs", large, self.pictures()).strip())

    def test_speedscope(self):
        """speedscope reads each format of ours that it knows, without a
        complaint, and adds up what we added up, with inlined calls."""
        # Of perf's text it makes a profile for each thread.
        perf = self.write("one.perf", self.perf_text(one_thread=True))
        files = [self.convert(perf, name) for name in
                 ("out.speedscope.json", "out.perf", "out.folded",
                  "out.pb.gz")]
        for line in node("speedscope.mjs", *files).splitlines():
            opened = json.loads(line)
            with self.subTest(opened["file"]):
                self.assertEqual(opened["complaints"], [])
                rows = {name.removesuffix("_[k]").removesuffix("_[i]"):
                        (total, own) for total, own, name in opened["rows"]}
                share = {name: [re.search(r"\(<?([\d.]+)%\)", part)[1]
                                for part in parts]
                         for name, parts in rows.items()}
                # Of pprof it takes the outermost of the calls at one place.
                # It prints nothing as <0.01%.
                has_inlined = not opened["file"].endswith(".pb.gz")
                self.assertEqual("Compare" in share, has_inlined)
                if has_inlined:
                    self.assertEqual(share["Compare"], ["60", "60"])
                self.assertEqual(share["Sort"],
                                 ["60", "0.01" if has_inlined else "60"])
                self.assertEqual(share["Work"], ["100", "10"])
                self.assertEqual(share["ksys_write"], ["30", "30"])

    def test_folded_grammar(self):
        """Whatever names are, each line of folded output is one that
        flamegraph.pl, inferno and speedscope read, with all samples."""
        hostile = ["operator()(int, char) const", "a;b", "x 7", "näme", "_[k]",
                   "std::map<int, std::less<int>>::find", "\u202egnp", "  "]
        source = "".join(f"my prog;main;{name.replace(';', ':')} 3\n"
                         for name in hostile)
        path = self.convert(self.write("names.folded", source), "out2.folded")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertGreaterEqual(len(lines), len(hostile) - 1)
        for line in lines:
            self.assertRegex(line, FOLDED)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines),
                         3 * len(hostile))


if __name__ == "__main__":
    why = install_packages()
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
