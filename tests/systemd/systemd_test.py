#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""systemd_test.py CMAKE DIRECTORY PROGRAM: what is installed for the service.

DIRECTORY is the build's systemd/, PROGRAM the ksym-profiled that was built. Tests
whose systemd program is not there are skipped and say so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, DIRECTORY, PROGRAM = sys.argv[1:4]
# systemd-analyze counts in tenths.
MOST_EXPOSED = 31


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Installed(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="ksym-systemd-")
        self.addCleanup(shutil.rmtree, self.root)
        subprocess.run([CMAKE, "-P", DIRECTORY + "/cmake_install.cmake"],
                       check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, DESTDIR=self.root))

    def find(self, end):
        found = [os.path.join(directory, name)
                 for directory, _, names in os.walk(self.root) for name in names
                 if os.path.join(directory, name).endswith(end)]
        self.assertEqual(len(found), 1, f"{end}: {found}")
        return found[0]

    def unit(self):
        """A copy of the unit that starts the program that was built."""
        text = read(self.find("systemd/system/ksym-profiled.service"))
        text, changed = re.subn(r"(?m)^ExecStart=\S+/ksym-profiled ",
                                f"ExecStart={PROGRAM} ", text)
        self.assertEqual(changed, 1)
        text, changed = re.subn(r"(?m)^(Exec\w+=\+-)(/\S+/lib/ksym/)",
                                rf"\1{self.root}\2", text)
        self.assertEqual(changed, 2)
        path = os.path.join(self.root, "ksym-profiled.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_tool(self, *command):
        """The tool's output, without failing; skips if it is not there."""
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(command, text=True, check=False,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_verify(self):
        """systemd understands every line of the unit."""
        self.assertEqual(
            self.run_tool("systemd-analyze", "verify", "--man=no",
                          self.unit()), (0, ""))

    def test_security(self):
        """The unit is at most as exposed as the bound says."""
        unit = self.unit()
        status, output = self.run_tool(
            "systemd-analyze", "security", "--offline=yes",
            f"--threshold={MOST_EXPOSED}", unit)
        self.assertIn("Overall exposure", output)
        self.assertEqual(status, 0, output)
        # The check itself can fail.
        with open(unit, "w", encoding="utf-8") as file:
            file.write("[Service]\nExecStart=/bin/true\n")
        status, output = self.run_tool(
            "systemd-analyze", "security", "--offline=yes",
            f"--threshold={MOST_EXPOSED}", unit)
        self.assertNotEqual(status, 0, output)

    def test_perf_event_paranoid(self):
        """What is above 2 is 2 while the service runs and then as before;
        what others have set meanwhile stays."""
        program = read(self.find("lib/ksym/perf-event-paranoid"))
        setting, kept = self.root + "/setting", self.root + "/kept"
        for name, path in (("setting", setting), ("kept", kept)):
            program, changed = re.subn(rf"(?m)^{name}=.*$", f"{name}={path}",
                                       program)
            self.assertEqual(changed, 1)
        for before, during, meanwhile, after in (
                (3, 2, None, 3), (4, 2, 1, 1), (2, 2, None, 2),
                (-1, -1, None, -1), (1, 1, 3, 3)):
            with open(setting, "w", encoding="utf-8") as file:
                file.write(f"{before}\n")
            subprocess.run(["sh", "-c", program, "sh", "lower"], check=True,
                           stdout=subprocess.DEVNULL)
            self.assertEqual(int(read(setting)), during)
            if meanwhile is not None:
                with open(setting, "w", encoding="utf-8") as file:
                    file.write(f"{meanwhile}\n")
            for _ in range(2):
                subprocess.run(["sh", "-c", program, "sh", "restore"],
                               check=True)
                self.assertEqual(int(read(setting)), after)
            self.assertFalse(os.path.exists(kept))

    def test_capabilities(self):
        """Ambient are the capabilities of the bounding set, each of which has
        a comment, and CAP_SYS_ADMIN is not among them."""
        text = read(self.unit())
        bounding = re.findall(r"(?m)^CapabilityBoundingSet=(.*)$", text)
        ambient = re.findall(r"(?m)^AmbientCapabilities=(.*)$", text)
        self.assertEqual(bounding, ambient)
        names = bounding[0].split()
        self.assertNotIn("CAP_SYS_ADMIN", names)
        for name in names:
            self.assertIn(f"# {name}: ", text)

    def test_user_and_directories(self):
        """The user can be made, and the directories are its own."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.makedirs(self.root + "/etc", exist_ok=True)
        status, output = self.run_tool(
            "systemd-sysusers", "--root=" + self.root,
            self.find("sysusers.d/ksym-profiled.conf"))
        self.assertEqual(status, 0, output)
        user = re.search(r"(?m)^ksym:x:(\d+):(\d+):",
                         read(self.root + "/etc/passwd"))
        status, output = self.run_tool(
            "systemd-tmpfiles", "--create", "--root=" + self.root,
            self.find("tmpfiles.d/ksym-profiled.conf"))
        self.assertEqual((status, output), (0, ""))
        for directory in ("lib", "cache", "../run"):
            made = os.stat(f"{self.root}/var/{directory}/ksym-profiled")
            self.assertEqual([made.st_uid, made.st_gid],
                             [int(user[1]), int(user[2])])
            self.assertEqual(made.st_mode & 0o007, 0)

    def test_configuration(self):
        """The default configuration is valid, also with all that it has in
        comments, and the unit names it."""
        path = self.find("ksym/ksym-profiled.json")
        self.assertIn(" --config " + path[len(self.root):],
                      read(self.unit()))
        text, keys = re.subn(r'(?m)^(  +)// (?=["} ])', r"\1", read(path))
        self.assertGreater(keys, 15)
        everything = os.path.join(self.root, "everything.json")
        with open(everything, "w", encoding="utf-8") as file:
            file.write(text)
        for config in (path, everything):
            done = subprocess.run([PROGRAM, "--check-config", "--config",
                                   config], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
