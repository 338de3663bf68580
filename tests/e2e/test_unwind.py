# SPDX-License-Identifier: Apache-2.0
"""User stacks of programs without frame pointers."""

import collections
import json
import math
import os
import re
import shutil
import subprocess

import harness
from known_calls import CALLERS, LIBRARY, is_taken_over, place, wrong_callers


MUSL_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static int Compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}
__attribute__((noinline)) unsigned Sort(unsigned seed) {
  static int numbers[20000];
  for (int i = 0; i < 20000; i++) {
    seed = seed * 1103515245 + 12345;
    numbers[i] = (int)(seed >> 8);
  }
  qsort(numbers, 20000, sizeof(int), Compare);
  return (unsigned)numbers[7];
}
__attribute__((noinline)) unsigned Print(unsigned seed) {
  char text[200];
  unsigned size = 0;
  for (int i = 0; i < 20000; i++) {
    size += (unsigned)snprintf(text, sizeof(text), "%d %s %g %x", i, "text",
                               seed * 1.5 + i, i);
  }
  return size;
}
int main(void) {
  prctl(PR_SET_PDEATHSIG, 9);
  alarm(120);
  puts("ready");
  fflush(stdout);
  for (unsigned sum = 0;; sum += Sort(sum) + Print(sum)) free(malloc(sum % 9));
}
"""


def has_bpf_loop():
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return tuple(map(int, version.groups())) >= (5, 17)


def pads_kernel_stacks():
    """Whether registers are not at the end of a kernel stack, where the walk
    by steps looks for them, which is for kernels before 5.17: since 6.9 where
    there is FRED."""
    return " asm_fred_entrypoint_user" in harness.read_text("/proc/kallsyms")


class CallsTest(harness.E2eTest):

    def check_callers(self, document):
        """No caller is wrong, and 99 of 100 stacks are whole, but for those in
        the middle of a jump."""
        samples = document.samples
        ends = samples["user_stack_ends"]
        wrong = {}
        whole = taken_over = 0
        for stack in document.stacks:
            names = [frame["name"] for frame in document.user(stack)]
            broken = stack["user_state"] == "broken"
            # What was sampled before the tables were there is not judged.
            if not names or not (broken or names[0] == "_start"):
                continue
            whole += 0 if broken else stack["count"]
            if broken and is_taken_over(names):
                taken_over += stack["count"]
            wrong.update((call, names) for call in wrong_callers(names))
        self.assertEqual(wrong, {})
        judged = sum(ends.values()) - ends["not-yet"]
        self.assertLessEqual(taken_over, 0.05 * judged, ends)
        judged -= taken_over
        self.assertGreater(judged, 700, ends)
        self.assertGreaterEqual(ends["outermost"], 0.99 * judged, ends)
        self.assertGreaterEqual(whole, 0.99 * ends["outermost"])
        return {place(name) for stack in document.stacks
                for name in document.names(stack)}

    def test_callers(self):
        # A callback through the C library, alloca, exceptions in flight, a
        # signal handler, recursion and the linkage table: every caller is a
        # legal one and the stacks are whole, by both of the programs that walk
        # by tables, in a dynamic and in a static program. Each function has
        # 3 % of the program's time or more, so that it is in some of 900
        # samples.
        for name, program in [("calls", "loop"), ("calls", "steps"),
                              ("calls_static", "loop")]:
            if program == "loop" and not has_bpf_loop():
                program = "steps"
            if program == "steps" and pads_kernel_stacks():
                continue
            with self.subTest(name=name, program=program):
                calls = self.workload(name)
                document = self.document_of_cpu_time(
                    calls, 1, "-F", 997, "--unwind-program", program)
                calls.stop()
                self.assertEqual(document.metadata["unwind"], "auto")
                self.assertEqual(self.check_callers(document),
                                 set(CALLERS) | {LIBRARY})

    def test_edges_of_pages(self):
        # A stack that begins where nothing more can be read, whose frames lie
        # at the edges of pages and whose words, where it is not aligned, across
        # them: no frame is missing and none is wrong.
        for program in ("loop", "steps") if has_bpf_loop() else ("steps",):
            with self.subTest(program=program):
                own_stack = self.workload("own_stack")
                document = self.document("-F", 997, "-p", own_stack.pid,
                                         "--unwind", "dwarf",
                                         "--unwind-program", program, 1.5)
                own_stack.stop()
                shapes = collections.Counter()
                for stack in document.stacks:
                    names = [f["name"] for f in document.user(stack)]
                    whole = names[:1] == ["_start"] and "main" in names
                    if whole:
                        names = names[names.index("main") + 1:]
                    self.assertIn(names[:1], ([], ["OnOwnStack"]))
                    self.assertEqual(names[1:], (["Ping", "Pong"] * 50)
                                     [:max(len(names) - 1, 0)])
                    shapes[whole, len(names)] += stack["count"]
                self.assertGreater(shapes[True, 101], 50)
                # From the first sample on, before there are tables.
                ends = document.samples["user_stack_ends"]
                self.assertGreaterEqual(ends["outermost"],
                                        0.995 * sum(ends.values()), ends)

    def test_dwarf(self):
        # Without any help of frame pointers.
        calls = self.workload("calls")
        document = self.document_of_cpu_time(calls, 1, "-F", 997, "--unwind",
                                             "dwarf")
        self.check_callers(document)
        self.assertEqual(document.samples["helped_by_frame_pointers"], 0)

    def test_none(self):
        # The innermost frame alone.
        calls = self.workload("calls")
        document = self.document("-F", 499, "-p", calls.pid, "--unwind",
                                 "none", 1)
        self.assertEqual({len(s["user"]) for s in document.stacks
                          if s["user"]}, {1})
        ends = document.samples["user_stack_ends"]
        self.assertEqual(sum(ends.values()), ends["not-walked"])
        self.assertEqual(document.samples["damaged"]["truncated"], 0)

    def test_fp(self):
        # By frame pointers the same program's stacks break.
        calls = self.workload("calls")
        document = self.document("-F", 499, "-p", calls.pid, "--unwind", "fp",
                                 1)
        ends = document.samples["user_stack_ends"]
        self.assertEqual(sum(ends.values()), ends["frame-pointers"])
        self.assertLess(document.share(
            lambda s: s["user"] and document.user(s)[0]["name"] == "_start"),
            0.1)


def fold(names):
    """From the root on, each place once: how often a library's or a recursive
    function is there in a row is left out."""
    folded = []
    for name in names:
        if not folded or folded[-1] != place(name):
            folded.append(place(name))
    return ";".join(folded)


def counts_of(stacks):
    """{folded stack: its count} of (names from the root on, count)s."""
    counts = collections.Counter()
    for names, count in stacks:
        counts[fold(names)] += count
    return counts


class PerfTest(harness.E2eTest):
    """The stacks of calls.cc beside those of perf's dwarf mode, of the same
    time."""

    # Each of the two has some 1,500 samples of a CPU of its own, and fewer where
    # others want that CPU as well.
    MIN_SAMPLES = 300
    # Two samplings of one program differ by chance; beside that by what one of
    # them does not see: perf, starting, is a little ahead.
    SIGMAS = 4.5
    TOLERANCE = 0.015

    def perf_stacks(self, data):
        script = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym", "--no-inline"],
            capture_output=True, text=True, errors="replace", check=True)
        for block in script.stdout.split("\n\n"):
            frames = [line.split(None, 1) for line in block.splitlines()]
            names = [frame[1] if len(frame) > 1 else "[unknown]"
                     for frame in frames if frame
                     and not frame[0].startswith("ffff")]
            # What perf could not follow is no stack to compare with.
            if names and names[-1] == "_start":
                yield names[::-1], 1

    def test_same_stacks(self):
        # Every call path has the share that perf gives it.
        self.need_command("perf")
        calls = self.workload("calls")
        data = self.path("perf.data")
        perf = self.start(["perf", "record", "-q", "-e", "cpu-clock:u", "-F",
                           "499", "--call-graph", "dwarf,8192", "-p",
                           str(calls.pid), "-o", data, "--", "sleep", "3"])
        document = self.document("-F", 499, "-p", calls.pid, "--unwind",
                                 "dwarf", 3)
        perf.process.wait(harness.RUN_SECONDS)
        ours = counts_of(
            ([frame["name"] for frame in document.user(s)], s["count"])
            for s in document.stacks
            if s["user"] and not s["kernel"]
            and document.user(s)[0]["name"] == "_start")
        perfs = counts_of(self.perf_stacks(data))
        totals = ours.total(), perfs.total()
        self.assertGreater(min(totals), self.MIN_SAMPLES)
        self.assertGreater(len(ours), 5)
        for stack in sorted(ours | perfs):
            both = ours[stack] / totals[0], perfs[stack] / totals[1]
            print(f"{both[0]:6.3f} {both[1]:6.3f} {stack}")
            share = (ours[stack] + perfs[stack]) / sum(totals)
            sigma = math.sqrt(share * (1 - share)
                              * (1 / totals[0] + 1 / totals[1]))
            with self.subTest(stack):
                self.assertLess(abs(both[0] - both[1]),
                                self.SIGMAS * sigma + self.TOLERANCE, totals)


class RoughTest(harness.E2eTest):
    """Programs that are hard to follow: every sample is accounted for (which
    each document is checked for) and nothing is made up."""

    def document_of(self, *arguments, hz=997):
        rough = self.workload("rough", *arguments)
        document = self.document("-F", hz, "-p", rough.pid, 1.5)
        self.assertIsNone(rough.process.poll(), "the program ended")
        rough.stop()
        self.assertGreater(document.total(), 20)
        return document

    def known(self, document, names):
        """The share of user stacks whose frames have no other names."""
        return document.share(
            lambda s: {f["name"] for f in document.user(s)} <= names,
            lambda s: s["user"])

    def test_ten_thousand_mappings(self):
        # Code in any of 10,000 mappings is found; its callers are walked by
        # frame pointer and then by table.
        document = self.document_of("maps", 10_000)
        whole = document.share(
            lambda s: [f["name"] for f in document.user(s)][:1] == ["_start"],
            lambda s: s["user"])
        self.assertGreater(whole, 0.9, document.samples)
        self.assertGreater(document.samples["helped_by_frame_pointers"], 20)

    def test_unmapped_under_the_walk(self):
        # Code that is gone when its sample is looked at.
        document = self.document_of("unmap")
        names = {"_start", "main", "Unmap", "NewCode", "WriteCode",
                 "[unknown]", "[replaced]", "[rough]"}
        self.assertTrue(any("Unmap" in document.names(s)
                            for s in document.stacks))
        libraries = {f["name"] for f in document.of_kind("user")
                     if "libc" in f.get("module", "")}
        self.assertGreater(self.known(document, names | libraries), 0.99)

    def test_overwritten_stack(self):
        # Where saved registers and return addresses are overwritten the walk
        # ends, and says so.
        document = self.document_of("scribble")
        self.assertGreater(document.samples["damaged"]["broken"], 0,
                           document.samples)
        names = {"_start", "main", "Scribble", "Smear", "[unknown]"}
        libraries = {f["name"] for f in document.of_kind("user")
                     if "/lib" in f.get("module", "")}
        self.assertGreater(self.known(document, names | libraries), 0.99)

    def test_reloaded_library(self):
        # dlopen and dlclose hundreds of times a second.
        document = self.document_of("reload", "libz.so.1")
        self.assertTrue(any("dlopen" in name or "dl_open" in name
                            for f in document.frames
                            for name in [f["name"]]))
        ends = document.samples["user_stack_ends"]
        total = sum(ends.values())
        self.assertGreater(ends["outermost"] + ends["zero-frame-pointer"],
                           0.9 * total, ends)


class FirstSamplesTest(harness.E2eTest):
    """Samples that were taken before their process had tables."""

    def whole_share(self, document):
        ends = document.samples["user_stack_ends"]
        whole = ends["outermost"] + ends["zero-frame-pointer"]
        return whole / max(sum(ends.values()), 1)

    def test_large_stacks(self):
        # A stack of 100 KiB is copied whole, and of no thread more than it has.
        for who in ("first", "thread"):
            with self.subTest(who=who):
                rough = os.path.join(harness.WORKLOADS, "rough")
                document = self.document("-F", 199, "--", rough, "large", who)
                ends = document.samples["user_stack_ends"]
                self.assertGreater(sum(ends.values()), 20, ends)
                self.assertGreater(self.whole_share(document), 0.9, ends)
                self.assertEqual(ends["beyond-copy"], 0, ends)

    def test_gaps(self):
        # Pages that nobody wrote to yet cannot be read; a copy leaves them out
        # and goes on behind them. These processes have no tables for most of
        # their lives.
        rough = os.path.join(harness.WORKLOADS, "rough")
        document = self.document(
            "-F", 997, "--", "bash", "-c",
            f"i=0; while [ $i -lt 100 ]; do {rough} gaps; i=$((i+1)); done")
        ends = document.samples["user_stack_ends"]
        self.assertGreater(sum(ends.values()), 300, ends)
        self.assertGreater(self.whole_share(document), 0.95, ends)
        below = [";".join(f["name"] for f in document.user(s))
                 for s in document.stacks]
        below = [stack for stack in below if "WorkUntil" in stack]
        self.assertTrue(below)
        for stack in below:
            self.assertIn("main;Gaps;Gap;WorkUntil", stack)

    def test_signal_stacks(self):
        # A handler on a stack of its own is followed to the thread that it
        # interrupted, also in processes that end before there are tables.
        rough = os.path.join(harness.WORKLOADS, "rough")
        document = self.document(
            "-F", 997, "--", "bash", "-c",
            f"i=0; while [ $i -lt 60 ]; do {rough} handlers; i=$((i+1)); done")
        ends = document.samples["user_stack_ends"]
        self.assertEqual(ends["beyond-copy"], 0, ends)
        self.assertGreater(self.whole_share(document), 0.98, ends)
        callers = collections.Counter()
        for stack in document.stacks:
            names = [f["name"] for f in document.user(stack)]
            if "OnSignal" in names:
                before = names[:names.index("OnSignal")]
                callers["Interrupted" in before, "main" in before] += (
                    stack["count"])
        self.assertEqual(set(callers), {(True, True), (True, False)})
        self.assertGreater(min(callers.values()), 50, callers)

    def test_untouched_page(self):
        # The page below a stack was never written and cannot be read: what is
        # above it is copied nevertheless.
        own_stack = self.workload("own_stack", "untouched")
        document = self.document("-F", 997, "-p", own_stack.pid, 1)
        ends = document.samples["user_stack_ends"]
        self.assertEqual(ends["not-yet"], 0, ends)
        self.assertGreater(self.whole_share(document), 0.98, ends)
        self.assertGreater(document.share(
            lambda s: [f["name"] for f in document.user(s)][-2:]
            == ["OnOwnStack", "Spin"], lambda s: s["user"]), 0.99)

    def test_clones(self):
        # The C library describes nothing behind clone's system call, where most
        # of the time of starting threads and processes is spent.
        clones = self.workload("rough", "clones")
        document = self.document("-F", 997, "-p", clones.pid, 2)
        ends = document.samples["user_stack_ends"]
        self.assertGreater(self.whole_share(document), 0.98, ends)
        starting = {"StartThread": 0, "StartProcess": 0}
        for stack in document.stacks:
            if "copy_process" not in {
                    f["name"] for f in document.kernel(stack)}:
                continue
            user = [f["name"] for f in document.user(stack)]
            self.assertEqual(user[-1:], ["clone3"], user)
            self.assertIn("main;Clones;Start", ";".join(user))
            starting[user[user.index("Clones") + 1]] += stack["count"]
        self.assertTrue(all(starting.values()), starting)
        self.assertFalse([user for user in map(document.user, document.stacks)
                          if "clone3" in [f["name"] for f in user[1:-1]]])

    def test_context(self):
        # A context made by makecontext() begins with its function; what lies
        # above it on its stack is not its caller.
        context = self.workload("rough", "context")
        document = self.document("-F", 997, "-p", context.pid, 1)
        ends = document.samples["user_stack_ends"]
        self.assertGreater(self.whole_share(document), 0.99, ends)
        for stack in document.stacks:
            user = [f["name"] for f in document.user(stack)]
            self.assertIn(user[1:2], (["OnContext"], ["WorkInContext"]), user)
            self.assertNotIn("Unmap", user)

    def test_bare_code(self):
        # Code without call-frame information and without frame pointers: its
        # own instructions say where its callers are.
        callers = {"BareLoop": "WorkInCode", "BareCases": "BareLoop",
                   "BareAligned": "BareLoop", "BareLeaf": "BareAligned"}
        for program in ("loop", "steps") if has_bpf_loop() else ("steps",):
            if program == "steps" and pads_kernel_stacks():
                continue
            with self.subTest(program=program):
                bare = self.workload("bare")
                document = self.document("-F", 997, "-p", bare.pid,
                                         "--unwind-program", program, 1.5)
                bare.stop()
                ends = document.samples["user_stack_ends"]
                self.assertGreater(self.whole_share(document), 0.99, ends)
                found = collections.Counter()
                for stack in document.stacks:
                    names = [f["name"] for f in document.user(stack)]
                    if stack["user_state"] == "broken":
                        continue
                    self.assertEqual(names[:1], ["_start"], names)
                    for caller, name in zip(names, names[1:]):
                        if name in callers:
                            self.assertEqual(caller, callers[name], names)
                            found[name] += stack["count"]
                self.assertEqual(set(found), set(callers))

    def test_nettle(self):
        # A library's assembly without call-frame information.
        bare = self.workload("bare", "nettle")
        document = self.document("-F", 997, "-p", bare.pid, 1.5)
        ends = document.samples["user_stack_ends"]
        self.assertGreater(self.whole_share(document), 0.99, ends)

    def test_musl(self):
        # A C library without call-frame information.
        compiler = shutil.which("musl-gcc")
        if compiler is None:
            self.skipTest("there is no musl-gcc")
        program = self.path("musl")
        subprocess.run([compiler, "-O2", "-o", program, "-x", "c", "-"],
                       input=MUSL_SOURCE, text=True, check=True)
        musl = self.start([program], ready=True)
        document = self.document("-F", 499, "-p", musl.pid, 4)
        ends = document.samples["user_stack_ends"]
        self.assertGreater(self.whole_share(document), 0.9, ends)
        names = {f["name"] for s in document.stacks for f in document.user(s)}
        self.assertLessEqual({"main", "Sort", "Print"}, names)

    def test_time_to_tables(self):
        # -v and the metadata say how long a process was without them.
        calls = self.workload("calls")
        report = self.path("out.json")
        run = self.profile("-v", "-F", 499, "-p", calls.pid, "-o", report, 1)
        found = re.search(r"ready (\d+) ms after the first sample, at the "
                          r"latest (\d+);", run.stderr)
        self.assertIsNotNone(found, run.stderr)
        median, longest = map(int, found.groups())
        self.assertLessEqual(median, longest)
        self.assertLess(longest, 1000)
        self.assertGreater(longest, 0)
        with open(report, encoding="utf-8") as file:
            tables = json.load(file)["metadata"]["unwind_tables"]
        self.assertEqual(tables["median_delay_ns"], median * 1_000_000)
        self.assertEqual(tables["longest_delay_ns"], longest * 1_000_000)
        self.assertEqual(tables["processes"], 1)
        self.assertGreater(tables["stacks_copied"], 0)

    def test_short_lives(self):
        # Of programs that live for a millisecond; what runs in execve when the
        # old program is gone has no user stack.
        document = self.document(
            "-F", 997, "--", "bash", "-c",
            "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")
        ends = document.samples["user_stack_ends"]
        self.assertGreater(sum(ends.values()), 50, ends)
        self.assertGreater(self.whole_share(document), 0.95, ends)
        self.assertTrue(any(
            not s["user"] and any("execve" in f["name"]
                                  for f in document.kernel(s))
            for s in document.stacks))


if __name__ == "__main__":
    harness.main()
