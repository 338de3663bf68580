# SPDX-License-Identifier: Apache-2.0
"""What stacks are counted of: programs of every kind of call-frame
information, and of none.
"""

import glob
import os
import shutil
import subprocess
import sys

import programs

CALLS = "tests/e2e/workloads/calls.cc"
SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))))

# Its stacks lead through the C library, whose sort calls back.
SORT = """
#include <stdlib.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noinline)) static int compare(const void *a, const void *b) {
  for (int i = 0; i < 30; i++) sink += i;
  return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static void sort(int n) {
  int v[64];
  for (int i = 0; i < 64; i++) v[i] = (i * 7919 + n) % 101;
  qsort(v, 64, sizeof(v[0]), compare);
  sink += v[3];
}
__attribute__((noinline)) static void copy(int n) {
  static char from[4096], to[4096];
  for (int i = 0; i < 20; i++) memcpy(to, from, 4096 - n % 64);
  sink += to[n % 64];
}
int main(void) { for (int n = 0;; n++) { sort(n); copy(n); } }
"""
SORT_BUILDS = [("static C", "gcc", "-static"),
               # Debian's musl has no call-frame information.
               ("C with musl", "musl-gcc"),
               ("static C with musl", "musl-gcc", "-static"),
               ("32-bit C, by frame pointers", "gcc", "-m32",
                "-fno-omit-frame-pointer")]

GO = """
package main

import "sort"

func main() {
	values := make([]int, 200)
	for {
		for i := range values {
			values[i] = (i * 7919) % 101
		}
		sort.Slice(values, func(a, b int) bool { return values[a] < values[b] })
	}
}
"""


def write(context, name, text):
    path = context.scratch_file(name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def build_calls(context):
    path = context.scratch_file("calls")
    subprocess.run(["g++", "-O2", "-fomit-frame-pointer", "-fno-builtin",
                    "-I", os.path.join(SOURCE_ROOT, "tests/e2e/workloads"),
                    os.path.join(SOURCE_ROOT, CALLS), "-o", path], check=True)
    return [path]


def big_source(context, functions):
    body = ("#include <map>\n#include <string>\n#include <vector>\n"
            "#include <algorithm>\n") + "".join(
        f"int f{i}(std::vector<std::string>& v) {{ std::map<int, std::string> "
        f"m; for (auto& s : v) m[s.size() + {i}] = s; std::sort(v.begin(), "
        f"v.end()); return m.size(); }}\n" for i in range(functions))
    return write(context, "big.cc", body)


def java_command(context):
    write(context, "Busy.java",
          "public class Busy { static long f(int n) { return n < 2 ? n : "
          "f(n - 1) + f(n - 2); } public static void main(String[] a) { "
          "while (true) f(30); } }")
    return ["java", "-XX:+PreserveFramePointer",
            context.scratch_file("Busy.java")]


def built(context, command, output, **environment):
    """[output] if the command makes it."""
    try:
        done = subprocess.run(command, capture_output=True, check=False,
                              env=dict(context.environment(), **environment))
    except OSError:
        return None
    return [output] if done.returncode == 0 else None


def build_sort(context, source, compiler, *options):
    output = context.scratch_file("-".join(("sort", compiler) + options))
    return built(context, [compiler, "-O2", "-fomit-frame-pointer",
                           *options, source, "-o", output], output)


def build_go(context):
    output = context.scratch_file("sort-go")
    source = write(context, "sort.go", GO)
    return built(context, ["go", "build", "-o", output, source], output,
                 GO111MODULE="off")


def redis_command(context):
    """A server and the program that loads it. The tools' package has both in
    one file, and unlike the server's starts none on this machine."""
    tool = shutil.which("redis-check-rdb")
    if tool is None:
        return None
    server = context.scratch_file("redis-server")
    if not os.path.exists(server):
        os.symlink(tool, server)
    socket = context.scratch_file("redis.sock")
    return ["sh", "-c",
            # Left alone it would keep the pipes of who waits for this load.
            f"setpriv --pdeathsig KILL {server} --port 0 --unixsocket {socket} "
            "--save '' & "
            "sleep 0.3; while redis-benchmark -q -s " + socket +
            " -t set,get,lrange_300 -n 20000; do :; done"]


def postgres_command(context):
    """A server, which refuses to be root's, and the program that loads it;
    where Debian's postgresql is installed, which starts one of its own."""
    directories = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not directories or not shutil.which("pgbench") or os.geteuid() != 0:
        return None
    home = context.scratch_file("postgres")
    run = (f"cd {home}; PATH=$PATH:{directories[-1]}; export PGHOST={home}; "
           "as='setpriv --reuid=postgres --regid=postgres --clear-groups'; "
           "set -e; ")
    server = f"$as postgres -D {home}/db -k {home} -c listen_addresses= "
    if not os.path.exists(home):
        os.chmod(context.scratch, 0o711)
        os.mkdir(home)
        shutil.chown(home, "postgres", "postgres")
        made = subprocess.run(
            ["sh", "-c", run + f"$as initdb -D {home}/db -A trust; {server} & "
             "sleep 2; $as pgbench -U postgres -i -s 2 postgres; kill $!; "
             "wait"], capture_output=True, check=False)
        if made.returncode:
            return None
    return ["sh", "-c", run + f"{server} & sleep 1; "
            "$as pgbench -U postgres -c 4 -T 60 -S postgres"]


def loads(context):
    """Yields (name, command) that run for a while."""
    python = ("import json\nd = {str(i): list(range(9)) for i in range(999)}\n"
              "while True: json.loads(json.dumps(d, indent=1))")
    node = "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); for (;;) f(25)"
    small = write(context, "small.c", "".join(
        f"int f{i}(int x) {{ return x * {i} ^ x; }}\n" for i in range(300)))
    big = big_source(context, 60)
    sort = write(context, "sort.c", SORT)
    found = [("C++ without frame pointers", build_calls(context)),
             ("python3", [sys.executable, "-c", python]),
             ("cc1plus -O2", ["g++", "-O2", "-S", "-o", os.devnull, big]),
             ("clang -O2", ["clang", "-O2", "-S", "-o", os.devnull, big]),
             ("openssl speed", ["openssl", "speed", "-seconds", "9",
                                "rsa2048"]),
             ("node", ["node", "-e", node]),
             ("java, with frame pointers", java_command(context)),
             ("2,000 x /bin/true", ["bash", "-c", "for i in {1..2000}; do "
                                    "/bin/true; done"]),
             ("gcc, 40 files", ["sh", "-c", "for i in $(seq 40); do gcc -O2 "
                                f"-c -o {os.devnull} {small}; done"])]
    yield from installed(found)
    # Made one by one, as they are asked for.
    for name, *options in SORT_BUILDS:
        yield from installed([(name, build_sort(context, sort, *options))])
    yield from installed([("Go", build_go(context)),
                          ("redis", redis_command(context)),
                          ("postgres", postgres_command(context))])


def installed(found):
    for name, command in found:
        if command and programs.has_program(command[0]):
            yield name, command
        else:
            print(f"  {name}: skipped, what it needs is not installed "
                  "(scripts/setup bench truth; postgresql)")
