# SPDX-License-Identifier: Apache-2.0
"""The programs that are profiled, and how they are made and run."""

import os
import shutil
import subprocess
import time

C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static int Compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}
int main(void) {
  static int numbers[20000];
  for (;;) {
    for (int i = 0; i < 20000; ++i) numbers[i] = rand();
    qsort(numbers, 20000, sizeof(int), Compare);
  }
}
"""

GO_PROGRAM = """package main

import ("sort"; "strings"; "strconv")

func words(n int) []string {
	var out []string
	for i := 0; i < n; i++ {
		out = append(out, strings.Repeat(strconv.Itoa(i%977), 3))
	}
	return out
}

func main() {
	for {
		w := words(20000)
		sort.Strings(w)
	}
}
"""

RUST_PROGRAM = """use std::collections::BTreeMap;
fn count(n: u64) -> BTreeMap<String, u64> {
    let mut map = BTreeMap::new();
    for i in 0..n {
        *map.entry(format!("{}", i * 7919 % 5003)).or_insert(0) += i;
    }
    map
}
fn main() {
    let mut sum = 0;
    loop {
        sum += count(20000).len();
        if sum == 1 { println!("{}", sum); }
    }
}
"""

JAVA_PROGRAM = """import java.util.TreeMap;
public class Load {
  static int count(int n) {
    TreeMap<String, Integer> map = new TreeMap<>();
    for (int i = 0; i < n; i++) map.merge("" + i * 7919 % 5003, 1, Integer::sum);
    return map.size();
  }
  public static void main(String[] a) {
    long sum = 0;
    while (true) { sum += count(20000); if (sum == 1) System.out.println(sum); }
  }
}
"""

NODE_PROGRAM = """
function sortWords(n) {
  const words = [];
  for (let i = 0; i < n; i++) words.push(String(i * 7919 % 5003));
  return words.sort().length;
}
for (;;) sortWords(20000);
"""

PYTHON_PROGRAM = """
import json, re
while True:
    text = json.dumps([{"n": i, "s": str(i) * 3} for i in range(2000)])
    len(re.findall(r"(1+)[0-9]", text)), len(json.loads(text))
"""


class Missing(Exception):
    """A program that the load needs is not there."""


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing("there is no " + program)


def build(directory, name, text, command):
    need(command[0])
    with open(os.path.join(directory, name), "w") as file:
        file.write(text)
    environment = dict(os.environ, HOME=directory, GOCACHE=directory + "/cache",
                       GO111MODULE="off", GOTOOLCHAIN="local")
    # An installed rustup needs its own home.
    if "HOME" in os.environ:
        environment.setdefault("RUSTUP_HOME", os.path.join(
            os.environ["HOME"], ".rustup"))
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                          env=environment, check=False)
    if done.returncode != 0:
        raise Missing("%s failed: %s" % (command[0], done.stderr.strip()[-200:]))


class Load:
    """`command` runs for a while and ends. With `attach` it is started before
    the capture, which `attach` prepares it for."""

    def __init__(self, command, attach=None):
        self.command = command
        self.attach = attach


def for_two_seconds(*command):
    return Load(["timeout", "2", *command])


def python(_):
    need("python3")
    return for_two_seconds("/usr/bin/python3", "-c", PYTHON_PROGRAM)


def gcc(directory):
    text = "#include <stdlib.h>\n#include <stdio.h>\n" + "".join(
        "int f%d(int a, char** b) { int s = 0; for (int i = 0; i < a; ++i) "
        "s += atoi(b[i]) * %d; printf(\"%%d\", s); return s; }\n" % (i, i)
        for i in range(60))
    with open(os.path.join(directory, "file.c"), "w") as file:
        file.write(text)
    need("gcc")
    return Load(["sh", "-c", "cd %s; for i in $(seq 40); do gcc -O2 -c file.c "
                 "-o out$i.o; done" % directory])


def true(_):
    return Load(["sh", "-c", "i=0; while [ $i -lt 2000 ]; do /bin/true; "
                 "i=$((i+1)); done"])


def openssl(_):
    need("openssl")
    return for_two_seconds("openssl", "speed", "-seconds", "1", "rsa2048")


def node(directory):
    need("node")
    path = os.path.join(directory, "load.js")
    with open(path, "w") as file:
        file.write(NODE_PROGRAM)
    return for_two_seconds("node", "--perf-basic-prof", path)


def java(directory):
    need("java", "jcmd")
    build(directory, "Load.java", JAVA_PROGRAM, ["javac", "Load.java"])

    def write_map(pid):
        time.sleep(3)  # most is compiled then
        subprocess.run(["jcmd", str(pid), "Compiler.perfmap"], check=True,
                       capture_output=True, timeout=60)

    return Load(["java", "-XX:+PreserveFramePointer", "-cp", directory, "Load"],
                write_map)


def static(directory):
    build(directory, "static.c", C_PROGRAM,
          ["gcc", "-O2", "-static", "-o", "static", "static.c"])
    return for_two_seconds(os.path.join(directory, "static"))


def go(directory):
    build(directory, "load.go", GO_PROGRAM, ["go", "build", "-o", "go-load",
                                          "load.go"])
    return for_two_seconds(os.path.join(directory, "go-load"))


def rust(directory):
    build(directory, "load.rs", RUST_PROGRAM,
          ["rustc", "-O", "-o", "rust-load", "load.rs"])
    return for_two_seconds(os.path.join(directory, "rust-load"))


ALL = {f.__name__: f for f in (python, gcc, true, openssl, node, java, static,
                               go, rust)}
