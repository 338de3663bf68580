# SPDX-License-Identifier: Apache-2.0
"""What is given up because of somebody's files, and that it is said."""

import shutil
import time

import harness
from loads import hostile
import reports
from service_harness import ServiceCase

FRAME_BYTES = 33 << 20  # kMaxCallFrameBytes and one MiB
# Reading symbols of one of these takes a second or so of CPU time.
SYMBOLS = 1_500_000
SLOW_FILES = 12


class GivenUpTest(ServiceCase):

    def start_large_frames(self):
        """A program whose table is beyond a bound; returns its path."""
        path = hostile.large_frames(self.program("spin"), self.path("frames"),
                                    FRAME_BYTES)
        self.start([path], ready=True)
        return path

    def assert_one_line(self, text, path):
        """Which file, whose it is, and the bound."""
        lines = [line for line in text.splitlines()
                 if path in line and "(of user " in line]
        self.assertEqual(len(lines), 1, text)
        self.assertIn("(of user 0)", lines[0])
        self.assertIn(str(32 << 20), lines[0])

    def test_large_table(self):
        # A file whose unwind table is beyond a bound is one line of a
        # capture with its path and owner.
        path = self.start_large_frames()
        run = self.profile("--unwind", "dwarf", "1")
        self.assert_one_line(run.stderr, path)

    def test_large_table_of_service(self):
        # And of the service, once.
        path = self.start_large_frames()
        self.configure()
        service = self.start_service()
        service.wait_log(path)
        self.wait_files(3)
        service.end()
        self.assert_one_line(service.log(), path)

    def start_slow_files(self):
        """Processes whose symbols take far longer to read than there is."""
        first = hostile.many_symbols(self.program("spin"), self.path("slow"),
                                     SYMBOLS)
        for i in range(SLOW_FILES):
            path = "%s%d" % (first, i)
            shutil.copy(first, path)
            self.start([path], ready=True)

    def test_slow_names(self):
        # A capture ends in time with what there is, and says how much has no
        # name.
        self.start_slow_files()
        output = self.path("out.json")
        begin = time.monotonic()
        run = self.profile("-o", output, "1")
        self.assertLess(time.monotonic() - begin, 5)
        document = reports.Document(harness.read_bytes(output))
        self.assertIn("not-in-time",
                      {frame.get("reason") for frame in document.frames})
        self.assertRegex(run.stderr, r"\d+ frames of \d+ files have no names: "
                         "they were not read in time")

    def test_slow_names_of_service(self):
        # A service that is stopped while it finds names writes its last
        # profile without them, counts it, and ends in time.
        self.start_slow_files()
        self.configure(interval_seconds=3600, format="json")
        service = self.start_service()
        harness.wait_for(
            lambda: self.metrics()["ksym_samples_taken_total"] > 50,
            "samples")
        self.assertLess(service.end(), 4)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)
        documents = [reports.Document(harness.read_bytes(path))
                     for path in self.files("json")]
        self.assertIn("not-in-time", {
            frame.get("reason") for document in documents
            for frame in document.frames})
        self.assertIn("some names were not found in time", service.log())


if __name__ == "__main__":
    harness.main()
