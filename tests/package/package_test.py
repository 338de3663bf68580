#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""package_test.py CPACK CONFIG PREFIX: makes the Debian packages and looks at
what is in them and at what they would do."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CPACK, CONFIG, PREFIX = sys.argv[1:4]


def run(*command, **options):
    done = subprocess.run(command, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="ksym-package-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        run(CPACK, "--config", CONFIG, "-B", cls.dir + "/deb",
            "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")  # faster
        cls.deb, cls.dev = sorted(glob.glob(cls.dir + "/deb/*.deb"))
        cls.root, cls.control = cls.dir + "/root", cls.dir + "/control"
        run("dpkg-deb", "-x", cls.deb, cls.root)
        run("dpkg-deb", "-e", cls.deb, cls.control)

    def fields(self, control):
        return dict(line.split(": ", 1) for line in control.splitlines()
                    if ": " in line and not line.startswith(" "))

    def test_name_and_dependencies(self):
        fields = self.fields(read(self.control + "/control"))
        self.assertEqual(fields["Package"], "ksym")
        self.assertEqual(os.path.basename(self.deb), "ksym_%s_%s.deb" % (
            fields["Version"], fields["Architecture"]))
        for library in ("libbpf1", "libc6", "libstdc++6"):
            self.assertIn(library, fields["Depends"])

    def test_files(self):
        # Programs, what the service needs, a page and completions for each
        # program, and no file of the build's own directories.
        there = {os.path.join(directory, name).removeprefix(self.root)
                 for directory, _, names in os.walk(self.root) for name in names}
        programs = {"/usr/bin/ksym-fleet",
                    "/usr/bin/ksym-symbolize", "/usr/bin/gen_ksym",
                    "/usr/bin/gen_gsym", "/usr/sbin/ksym-profile",
                    "/usr/sbin/ksym-profiled"}
        wanted = programs | {
            "/etc/ksym/ksym-profiled.json",
            "/usr/lib/systemd/system/ksym-profiled.service",
            "/usr/lib/ksym/perf-event-paranoid",
            "/usr/lib/ksym/ksym-profile-ui",
            "/usr/lib/sysusers.d/ksym-profiled.conf",
            "/usr/lib/tmpfiles.d/ksym-profiled.conf",
            "/usr/share/doc/ksym/copyright",
            "/usr/share/doc/ksym/changelog.gz",
            "/usr/share/man/man8/ksym-profiled.8.gz",
            "/usr/share/man/man5/ksym-profiled.json.5.gz",
            "/usr/share/man/man8/ksym-profile.8.gz",
            "/usr/share/man/man1/ksym-fleet.1.gz",
            "/usr/share/man/man1/ksym-symbolize.1.gz",
            "/usr/share/bash-completion/completions/ksym-fleet",
            "/usr/share/bash-completion/completions/ksym-profiled",
            "/usr/share/zsh/vendor-completions/_ksym-profiled",
            "/usr/share/fish/vendor_completions.d/ksym-profiled.fish"}
        self.assertEqual(wanted - there, set())
        self.assertTrue(all(path.startswith(("/etc/ksym/", "/usr/bin/",
                                             "/usr/sbin/", "/usr/lib/",
                                             "/usr/share/"))
                            for path in there), there)
        for program in programs:
            run(self.root + program, "--version")
        # From where it is found by ksym-profile.
        run(self.root + "/usr/sbin/ksym-profile", "ui", "--help")
        answer = subprocess.run(
            [self.root + "/usr/sbin/ksym-profile", "ui", "--socket", "/none"],
            stderr=subprocess.PIPE, text=True)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("/none", answer.stderr)

    def test_library(self):
        # What a program needs to be built, and nothing that the other package
        # has; without debug data, but with its symbols.
        fields = self.fields(run("dpkg-deb", "-f", self.dev))
        self.assertEqual(fields["Package"], "libksym-dev")
        self.assertEqual(fields["Section"], "libdevel")
        for library in ("libiberty-dev", "nettle-dev", "zlib1g-dev"):
            self.assertIn(library, fields["Depends"])
        root = self.dir + "/dev"
        run("dpkg-deb", "-x", self.dev, root)
        there = {os.path.join(directory, name).removeprefix(root)
                 for directory, _, names in os.walk(root) for name in names}
        names = {os.path.basename(path) for path in there}
        wanted = {"ksym.h", "symbolizer.h", "markup_writer.h", "libksym.a",
                  "ksym.pc", "ksym-config.cmake", "libksym.3.gz", "copyright",
                  "changelog.gz", "symbolize.c", "log_markup.c"}
        self.assertEqual(wanted - names, set())
        self.assertFalse(any(path.startswith(("/usr/bin", "/usr/sbin", "/etc"))
                             for path in there), there)
        archive, = (root + path for path in there if path.endswith(".a"))
        self.assertIn(" T ksym_resolve\n", run("nm", archive))
        self.assertNotIn(".debug_info", run("readelf", "-SW", archive))
        self.assertEqual(run("dpkg-deb", "-c", self.deb).count("libksym"), 0)

    def test_service(self):
        # The unit starts the program that is there, with the configuration
        # that is there, which is valid and kept on upgrades.
        unit = read(self.root + "/usr/lib/systemd/system/ksym-profiled.service")
        program, config = re.search(
            r"(?m)^ExecStart=(\S+) --config (\S+)$", unit).groups()
        run(self.root + program, "--check-config", "--config",
            self.root + config)
        self.assertEqual(read(self.control + "/conffiles").split(), [config])

    def test_scripts(self):
        # Each is a valid script that ends well for what it need not act on.
        for name in ("postinst", "prerm", "postrm"):
            path = os.path.join(self.control, name)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o755)
            run("/bin/sh", "-n", path)
            run(path, "abort-upgrade")

    def test_lintian(self):
        if shutil.which("lintian") is None:
            self.skipTest("lintian is not installed")
        done = subprocess.run(
            ["lintian", "--allow-root", "--fail-on", "none", self.deb,
             self.dev],
            text=True, check=True, stdout=subprocess.PIPE)
        errors = [line for line in done.stdout.splitlines()
                  if line.startswith("E:")]
        self.assertEqual(errors, [], done.stdout)


if __name__ == "__main__":
    if PREFIX != "/usr" or shutil.which("dpkg-shlibdeps") is None:
        print("skipped: wants a build for /usr and dpkg-dev")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
