# SPDX-License-Identifier: Apache-2.0
"""Source lines and inlined calls: --lines and --inlines."""

import glob
import os
import re
import shutil
import subprocess

import harness

SOURCE = """\
#include <cstdint>
#include <unistd.h>

volatile std::uint64_t g_sink;

[[gnu::always_inline]] inline std::uint64_t Inner(std::uint64_t value) {
  for (int i = 0; i < 1000; ++i) value = value * 6364136223846793005u + 1;
  return value;
}

[[gnu::always_inline]] inline std::uint64_t Middle(std::uint64_t value) {
  return Inner(value) ^ Inner(value + 1);
}

[[gnu::noinline]] std::uint64_t Outer(std::uint64_t value) {
  return Middle(value) + 7;
}

int main() {
  if (write(1, "ready\\n", 6) != 6) return 1;
  for (;;) g_sink = Outer(g_sink);
}
"""


class LinesTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.need_command("g++")
        harness.write_text(self.path("lines.cc"), SOURCE)
        self.binary = self.path("lines")
        subprocess.run(["g++", "-O2", "-g", "-o", self.binary, "lines.cc"],
                       cwd=self.dir, check=True, timeout=60)
        self.cache = self.path("cache")
        os.mkdir(self.cache, 0o700)
        self.options = {"env": {**os.environ, "XDG_CACHE_HOME": self.cache}}

    def cached(self, program):
        notes = subprocess.run(["readelf", "-n", program], check=True,
                               capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        return glob.glob(os.path.join(self.cache, "ksym", build_id + "*.gsym"))

    def test_lines_and_inlined_calls(self):
        # Frames of inlined calls have their function, file and line, and the
        # caller has the line of the call.
        program = self.start([self.binary], ready=True)
        raw = self.path("raw")
        document = self.document(
            "--inlines", "--lines", "-F", 199, "-p", program.pid, "--raw", raw,
            1, **self.options)
        share = document.share(
            lambda stack: [f["name"] for f in document.user(stack)[-4:]] ==
            ["main", "Outer(unsigned long)", "Middle(unsigned long)",
             "Inner(unsigned long)"])
        self.assertGreater(share, 0.9)
        path = os.path.join(self.dir, "lines.cc")
        for name, line, inlined in (("Inner", 7, True), ("Middle", 12, True),
                                    ("Outer", 16, False), ("main", 21, False)):
            frames = [frame for frame in document.frames
                      if frame["name"].split("(")[0] == name]
            self.assertEqual({frame["file"] for frame in frames}, {path})
            self.assertIn(line, {frame["line"] for frame in frames})
            self.assertEqual({frame.get("inlined", False)
                              for frame in frames}, {inlined})
        self.check_replays(raw)

    def check_replays(self, raw):
        # A replay gives the same from what the capture left in the cache.
        cached = self.cached(self.binary)
        self.assertEqual(len(cached), 1)
        self.assertEqual(os.stat(cached[0]).st_mode & 0o777, 0o600)
        path = "main;Outer(unsigned long);Middle(unsigned long)%s;" \
               "Inner(unsigned long)%s"
        for options, mark in (([], ""), (["-a"], "_[i]")):
            run = self.profile("--inlines", "-v", *options, "--replay", raw,
                               **self.options)
            folded = self.check_folded(run)
            self.assertGreater(folded.share("lines", path % (mark, mark)), 0.9)
            self.assertIn(", 0 converted in ", run.stderr)
        # What somebody else may have put there is made anew.
        os.chmod(cached[0], 0o666)
        run = self.profile("--inlines", "-v", "--replay", raw, **self.options)
        self.assertIn(", 1 converted in ", run.stderr)
        self.assertIn("must be a regular file of this user", run.stderr)
        self.assertEqual(os.stat(cached[0]).st_mode & 0o777, 0o600)

    def test_nothing_without_debug_data(self):
        # Without them names are as ever, and what is missing is said.
        stripped = self.path("stripped")
        shutil.copy(self.binary, stripped)
        subprocess.run(["strip", "-g", stripped], check=True, timeout=60)
        program = self.start([stripped], ready=True)
        run = self.profile("--inlines", "--lines", "-F", 99, "-p", program.pid,
                           0.5, **self.options)
        folded = self.check_folded(run)
        self.assertGreater(
            folded.share("stripped", "main;Outer(unsigned long)"), 0.9)
        warnings = "".join(run.warnings)
        self.assertIn("for want of debug data", warnings)
        self.assertIn(stripped, warnings)
        self.assertEqual(self.cached(stripped), [])


if __name__ == "__main__":
    harness.main()
