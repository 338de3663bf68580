# SPDX-License-Identifier: Apache-2.0
"""A host with many kinds of work: servers under requests, databases, builds
and batches, each in a unit of its own, three of them at a time."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import cgroups
import programs
import waits_servers

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
PYTHON_LOADS = os.path.join(TESTS, "truth", "python", "workloads")
PORTS = {name: 18470 + i for i, name in enumerate(
    ("shop", "forum", "orders", "search", "nginx"))}
SHIFT_SECONDS = (20, 60)
SEED = 20
AT_A_TIME = 3
# Each run has a slice of its own, whose processes are all killed in the end.
SLICE = f"ksym-bench-{os.getpid()}.slice"
# Behind the name of a work in that of its unit; a server has one of its own.
UNIT_OF_WORK = "work"

CXX = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
struct Row { std::string name; std::vector<int> values; };
std::map<std::string, std::unique_ptr<Row>> Group(std::istream& in) {
  std::map<std::string, std::unique_ptr<Row>> rows;
  std::regex words("([a-z]+)([0-9]*)");
  for (std::string line; std::getline(in, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, words)) continue;
    auto& row = rows[found[1]];
    if (!row) row = std::make_unique<Row>(Row{found[1], {}});
    row->values.push_back(NUMBER);
    std::sort(row->values.begin(), row->values.end(), std::greater<>());
  }
  return rows;
}
"""
PYTHON = """
import csv, io, json, re, statistics
rows = [{"id": i, "text": "word %d " % i * 5} for i in range(2000)]
for _ in range(20):
    text = json.dumps(rows)
    json.loads(text)
    re.findall(r"w\\w+ (\\d+)", text)
    out = io.StringIO()
    csv.DictWriter(out, ["id", "text"]).writerows(rows)
    statistics.pstdev(len(row["text"]) for row in rows)
"""
PERL = ("my (%h, @w); for my $i (1..60000) { $h{$i % 997} .= $i }"
        "for (values %h) { push @w, $_ if s/(1+)2/$1x/g } print scalar sort @w")


def cgroup_mount():
    mount = cgroups.second_version()
    if mount is None:
        raise programs.Skipped("no cgroups of the second version to write to")
    return mount


def enter(cgroup):
    with open(cgroup + "/cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


class Unit:
    """A cgroup as systemd makes one, and what runs in it."""

    def __init__(self, name):
        self.path = os.path.join(cgroup_mount(), SLICE, name)
        os.makedirs(self.path)

    def enter(self):
        enter(self.path)

    @contextlib.contextmanager
    def entered(self):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next(line[3:].strip() for line in file
                       if line.startswith("0::"))
        self.enter()
        try:
            yield
        finally:
            enter(cgroup_mount() + own)

    def start(self, command, cwd):
        return subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=self.enter,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C"))

    def close(self):
        """Ends all that is left in it."""
        for _ in range(100):
            with open(self.path + "/cgroup.procs", encoding="ascii") as file:
                pids = file.read().split()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                # And the slice where it was the last one in it.
                os.removedirs(self.path)
                return
            time.sleep(0.05)


def again(command):
    return ["/bin/sh", "-c", f"while :; do {command} || sleep 1; done"]


def requests(port, *paths):
    """Asks a server by turns for each of its pages."""
    return again("; ".join(
        "ab -q -l -c 4 -H 'Accept-Encoding: gzip' -t 2 -n 1000000 "
        f"http://127.0.0.1:{port}{path}" for path in paths))


class Host:
    """Its works by name, each the command that keeps it busy; and its servers,
    which are there all the time."""

    def __init__(self, context, stack):
        self.context = context
        self.stack = stack
        self.works = {}
        self.processes = {}  # of servers
        self.missing = []
        self.directory = context.scratch_file("varied")
        os.mkdir(self.directory)
        os.chmod(context.scratch, 0o755)
        for make in (self.servers, self.builds, self.batches, self.databases):
            make()

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def add(self, name, command, *needed):
        """Whether all is there for it."""
        lacking = [program for program in needed if shutil.which(program) is None]
        if lacking:
            self.missing.append(f"{name} ({', '.join(lacking)})")
        else:
            self.works[name] = command
        return not lacking

    def serve(self, name, paths, command, *needed):
        """A server that is always there, and at times gets requests."""
        if self.add(name, requests(PORTS[name], *paths), "ab", *needed):
            self.processes[name] = self.unit(name + ".service").start(
                command, self.directory)

    def ended(self):
        """Servers that are not there any more, as where a module is missing."""
        return [name for name, process in self.processes.items()
                if process.poll() is not None]

    def unit(self, name):
        unit = Unit(name)
        self.stack.callback(unit.close)
        return unit

    def servers(self):
        at = "127.0.0.1:%d"
        self.serve("shop", ["/"], [
            "gunicorn", "-w", "2", "-b", at % PORTS["shop"], "--chdir",
            PYTHON_LOADS, "django_app:application"], "gunicorn")
        self.serve("forum", ["/"], [
            "uwsgi-core", "--plugin", "python3", "--http-socket",
            at % PORTS["forum"], "--wsgi-file", PYTHON_LOADS + "/flask_app.py",
            "--processes", "2", "--master", "--disable-logging"], "uwsgi-core")
        self.serve("orders", ["/orders", "/totals", "/search", "/sign",
                              "/packed"], [
            "node", HERE + "/servers/api.js", str(PORTS["orders"])], "node")
        self.serve("search", ["/reindex", "/ranked", "/matches", "/digest",
                              "/packed"], [
            "java", HERE + "/servers/Search.java", str(PORTS["search"])],
            "java", "javac")
        self.file("page.html", "<p>a page of some length</p>\n" * 2000)
        self.file("nginx.conf", """
            daemon off; pid nginx.pid; error_log stderr crit; user root;
            worker_processes 2; events {} http { access_log off; gzip on;
            server { listen %s; root %s; } }
            """ % (at % PORTS["nginx"], self.directory))
        self.serve("nginx", ["/page.html"], [
            "nginx", "-p", self.directory, "-c",
            self.directory + "/nginx.conf"], "nginx")

    def builds(self):
        for number in range(4):
            self.file(f"part{number}.cc", CXX.replace("NUMBER", str(number)))
        self.add("build-cxx", again(
            "for i in 0 1 2 3; do g++ -std=c++17 -O2 -g -c -o part$i.o "
            "part$i.cc & done; wait"), "g++")
        self.add("build-java", again(
            f"javac -d classes {HERE}/servers/Search.java"), "javac")
        self.add("build-c", again(
            f"for f in {TESTS}/e2e/workloads/*.c; do gcc -O2 -c -o part.o $f; "
            "done"), "gcc")
        self.add("tests", again(
            "/usr/bin/python3 -m pytest -q -p no:cacheprovider " +
            PYTHON_LOADS + "/pytest_load.py"), "pytest-3")

    def batches(self):
        self.add("report", again(
            "/usr/bin/python3 " + self.file("report.py", PYTHON)))
        self.add("model", ["/usr/bin/python3",
                           PYTHON_LOADS + "/numpy_load.py", "3600"])
        self.add("logs", again(
            "perl " + self.file("logs.pl", PERL) + "; find /usr/share/doc "
            "-type f | xargs -n 500 grep -c copyright | sort -t: -k2n | awk "
            "-F: '{n[$2]++} END {for (i in n) print i, n[i]}'"), "perl", "awk")
        self.add("backup", again(
            "tar c /usr/share/doc /usr/lib/python3 | zstd -9 >all.zst; "
            "tar c /usr/include | xz -2 >all.xz; sha256sum all.*"), "zstd")
        self.add("sources", again(
            "rm -rf copy; git init -q copy; cp -r /usr/include/c++ copy; "
            "git -C copy add .; git -C copy -c user.name=a -c user.email=a "
            "commit -qm all; git -C copy gc -q; git -C copy log -p"), "git")
        self.add("keys", again(
            "openssl genrsa 3072; openssl speed -seconds 1 sha256 ecdsap256"),
            "openssl")

    def databases(self):
        socket = self.context.scratch_file("waits.sock")
        home = self.context.scratch_file("waits-postgres")
        for name, start, clients in (
                ("postgresql", waits_servers.postgres,
                 f"pgbench -h {home} -U postgres -c 4 -T 2 postgres; "
                 f"pgbench -h {home} -U postgres -S -c 4 -T 2 postgres"),
                ("redis", waits_servers.redis,
                 f"redis-benchmark -q -s {socket} -n 50000 -P 4")):
            try:
                # It starts in the unit that this process is in.
                with self.unit(name + ".service").entered():
                    self.stack.enter_context(start(self.context))
            except programs.Skipped as reason:
                self.missing.append(f"{name} ({reason})")
                continue
            self.works[name] = again(clients)

    @contextlib.contextmanager
    def working(self, names):
        with contextlib.ExitStack() as stack:
            for name in names:
                unit = Unit(f"{name}-{UNIT_OF_WORK}.service")
                stack.callback(unit.close)
                unit.start(self.works[name], self.directory)
            yield


def run(context, seconds, tick):
    """That long, with a call of `tick` about each second. Prints what works
    there are, what is missing, and which servers did not last."""
    with contextlib.ExitStack() as stack:
        host = Host(context, stack)
        print(f"{len(host.works)} kinds of work, {AT_A_TIME} at a time: "
              f"{', '.join(sorted(host.works))}; missing: "
              f"{', '.join(host.missing) or 'none'}\n", flush=True)
        # The same ones in each run.
        chance = random.Random(SEED)
        names = sorted(host.works)
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            shift_end = min(end, now + chance.uniform(*SHIFT_SECONDS))
            with host.working(chance.sample(names, min(AT_A_TIME,
                                                       len(names)))):
                while time.monotonic() < shift_end:
                    time.sleep(1)
                    tick()
        if ended := host.ended():
            print(f"servers that ended before: {', '.join(ended)}\n")
