# SPDX-License-Identifier: Apache-2.0
"""Names: hostile ones, C++ ones, and those of the kernel."""

import os
import re

import harness
import reports

# As in workloads/comms.c; the kernel keeps 15 bytes.
HOSTILE = [b"a;b;main 99", b"two words", b"new\nline 7", b"esc\033[31mred",
           b"bad\xff\xfe\x80", b"count 12 3.5", b"-", b"mark_[k]",
           b"quote\"\\\t", b" lead", b"rlo\xe2\x80\xae!"]
IN_FOLDED = ["a:b:main_99", "two words", "new?line_7", "esc?[31mred",
             "bad???", "count_12_3.5", "_", "mark_(k)", "quote\"\\?", " lead",
             "rlo???!"]
IN_JSON = ["a;b;main 99", "two words", "new?line 7", "esc?[31mred", "bad???",
           "count 12 3.5", "-", "mark_[k]", "quote\"\\?", " lead", "rlo???!"]


class HostileNameTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        comms = self.workload("comms")
        self.pids = [int(line) for line in comms.output]
        self.assertEqual(len(self.pids), len(HOSTILE))
        self.filter = ["-F", 499, "-p", ",".join(comms.output)]
        for pid, name in zip(self.pids, HOSTILE):
            harness.wait_for(
                lambda pid=pid, name=name: harness.read_bytes(
                    "/proc/%d/comm" % pid) == name + b"\n", "the name")

    def test_folded(self):
        # No command name can break a line, forge a frame or a count.
        folded = self.folded(*self.filter, 2)
        self.assertEqual(folded.owners(), set(IN_FOLDED))
        for owner in IN_FOLDED:
            self.assertGreater(folded.share(owner, "main;Busy"), 0.8, owner)

    def test_json(self):
        # Nor a JSON text.
        document = self.document(*self.filter, 2)
        found = {s["pid"]: s["comm"] for s in document.stacks}
        self.assertEqual(found, dict(zip(self.pids, IN_JSON)))

    def test_text(self):
        # Nor a line of text: one owner and one count per block.
        run = self.profile(*self.filter, "--format", "text", 2)
        owners = re.findall(rb"^    -                (.*) \((\d+)\)\n"
                            rb"        \d+\n\n", run.stdout, re.M)
        self.assertEqual({int(pid): name for name, pid in owners},
                         dict(zip(self.pids,
                                  [name.encode() for name in IN_JSON])))
        self.assertEqual(len(owners), run.stdout.count(b"\n\n"))
        self.assertNotRegex(run.stdout, rb"[\x00-\x09\x0b-\x1f\x7f-\xff]")

    def test_by_pid(self):
        # With --by pid each process is one owner.
        folded = self.folded(*self.filter, "--by", "pid", 2)
        self.assertEqual(folded.owners(),
                         {"%s-%d" % pair for pair in
                          zip(IN_FOLDED, self.pids)})

    def test_hostile_command(self):
        # A command's name with a newline does not break stderr's lines.
        name = self.path("new\nline\033[31m")
        harness.write_text(name, "#!/bin/sh\nexit 3\n")
        os.chmod(name, 0o755)
        run = self.profile("--", name, status=3)
        self.assertTrue(all(line.startswith("ksym-profile: ")
                            for line in run.stderr.rstrip("\n").split("\n")),
                        str(run))
        self.assertNotIn("\033", run.stderr)


class DemangleTest(harness.E2eTest):

    AREA = "geometry::Polygon<long, 3ul>::Area(long) const"

    def names(self, *arguments):
        shapes = self.workload("shapes")
        document = self.document("-F", 199, *arguments, "-p", shapes.pid, 1)
        return {f["name"] for f in document.of_kind("user")}

    def test_demangled(self):
        # Namespaces, templates, operators and anonymous namespaces.
        names = self.names()
        self.assertLessEqual(
            {self.AREA, "geometry::Polygon<long, 3ul>::operator()(long) const",
             "geometry::(anonymous namespace)::Grind()", "main"}, names)

    def test_mangled(self):
        # --no-demangle prints what is in the symbol table.
        names = self.names("--no-demangle")
        self.assertIn("_ZNK8geometry7PolygonIlLm3EE4AreaEl", names)
        self.assertNotIn(self.AREA, names)
        self.assertIn("main", names)


class KernelNameTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.dd = self.start(
            ["dd", "if=/dev/urandom", "of=/dev/null", "bs=64k"])
        self.filter = ["-F", 299, "-p", self.dd.pid]

    def kernel_names(self, document):
        return {f["name"] for f in document.of_kind("kernel")}

    def test_named(self):
        # Every kernel frame has a name from /proc/kallsyms.
        known = set(re.findall(r"^[0-9a-f]+ \w (\S+)",
                               harness.read_text("/proc/kallsyms"), re.M))
        document = self.document(*self.filter, 1)
        names = self.kernel_names(document)
        self.assertTrue(names)
        self.assertLessEqual(names, known)
        self.assertFalse([n for n in names if n.startswith("__pfx_")])
        self.assertTrue(all("symbol_offset" in f
                            for f in document.of_kind("kernel")))

    def test_hidden_addresses(self):
        # With kptr_restrict=2 kernel frames print as [kernel], with a reason
        # and one warning; user frames are as ever.
        self.set_sysctl("kernel.kptr_restrict", 2)
        spin = self.workload("spin")
        run = self.profile("--format", "json", "-F", 299, "-p",
                           "%d,%d" % (spin.pid, self.dd.pid), 1)
        self.assertEqual(len(run.warnings), 1, str(run))
        self.assertIn("kptr_restrict", run.warnings[0])
        document = reports.Document(run.stdout)
        self.assertEqual(self.kernel_names(document), {"[kernel]"})
        self.assertEqual({f["reason"] for f in document.of_kind("kernel")},
                         {"no-permission"})
        self.assertEqual(len(document.metadata["warnings"]), 1)
        self.assertIn("Hot", {f["name"] for f in document.frames})

    def test_hidden_addresses_matter_to_the_kernel_only(self):
        # With -U nobody is warned about names that are not wanted.
        self.set_sysctl("kernel.kptr_restrict", 2)
        run = self.profile("-U", 0.3)
        self.assertEqual(run.warnings, [])

    def test_hidden_addresses_are_not_shown(self):
        # Addresses that the kernel hides are not in the report without -A.
        self.set_sysctl("kernel.kptr_restrict", 2)
        run = self.profile(*self.filter, "--format", "text", 0.5)
        self.assertNotIn(b"ffffffff", run.stdout)

    def test_names_from_a_file(self):
        # --kernel-symbols takes names from a copy of /proc/kallsyms, even
        # where the kernel hides its addresses.
        path = self.path("kallsyms")
        harness.write_text(path, re.sub(
            r"^([0-9a-f]+ \w )(\S+)", r"\1copy_of_\2",
            harness.read_text("/proc/kallsyms"), flags=re.M))
        self.set_sysctl("kernel.kptr_restrict", 2)
        run = self.profile("--kernel-symbols", path, *self.filter, "--format",
                           "json", 1)
        self.assertEqual(run.warnings, [])
        names = self.kernel_names(reports.Document(run.stdout))
        self.assertTrue(names)
        for name in names:
            self.assertTrue(name.startswith("copy_of_"), name)

    def test_no_file_of_names(self):
        # A file that is not there, or no such table, is refused by name.
        path = self.path("kallsyms")
        run = self.profile_raw("--kernel-symbols", path, 0.3)
        self.assertEqual((run.status, run.stdout), (1, b""), str(run))
        self.assertIn(path, run.stderr)
        harness.write_text(path, "this is\nno table\n")
        run = self.profile_raw("--kernel-symbols", path, 0.3)
        self.assertEqual((run.status, run.stdout), (1, b""), str(run))
        self.assertIn(path, run.stderr)


if __name__ == "__main__":
    harness.main()
