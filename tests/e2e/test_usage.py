# SPDX-License-Identifier: Apache-2.0
"""The command line: what needs no capture. Needs no root."""

import harness

LONG_OPTIONS = """
--frequency --count --event --pid --tid --cpu --cgroup --cgroupmap --mntnsmap
--user-stacks-only --kernel-stacks-only --include-idle --stack-storage-size
--hash-storage-size --max-stack-depth --stack-map --output --format --folded
--by --delimited --annotations --addresses --kernel-symbols --no-demangle
--raw --replay --quiet --verbose --strict --version --help
""".split()
SHORT_OPTIONS = """
-F -c -e -p -L -C -U -K -I -o -f -d -a -A -q -v -h
""".split()

WRONG = """
-F 0
-F -1
-F 99x
-F 99.5
-F 18446744073709551616
-F
-c 0
-c -5
-F 99 -c 100
-e
-e no-such-event
-e cycles:u
-p 0
-p -3
-p 1,
-p ,1
-p 1,,2
-p one
-p 99999999999
-L 0
-L 1,x
-p 1 -L 1
-C 1-
-C 3-1
-C x
-C -1
-C 0,,1
-U -K
-I -p 1
-d 1 2
0
-1
1e400
nan
inf
ten
1x
--stack-storage-size 0
--stack-storage-size 99999999999
--hash-storage-size 0
--hash-storage-size x
--max-stack-depth 0
--max-stack-depth 513
--stack-map sometimes
--format xml
--format
-f --format json
--by name
-q -v
--replay file 5
--replay file -F 99
--replay file -p 1
--replay file --raw other
--replay file -- true
--no-such-option
-Z
--
5 -- true
-p 1 -- true
-L 1 -- true
--cgroup /x -- true
-I -- true
""".strip().splitlines()


class UsageTest(harness.E2eTest):
    NEEDS_ROOT = False

    def test_version(self):
        # --version prints one line with the program's name to stdout.
        run = self.profile("--version")
        self.assertRegex(run.stdout, rb"^ksym-profile [0-9]+\.[0-9]+[^\n]*\n$")
        self.assertEqual(run.stderr, "")

    def test_help_names_every_option(self):
        # --help goes to stdout and describes every option and both forms.
        run = self.profile("--help")
        self.assertEqual(run.stderr, "")
        text = run.stdout.decode()
        words = set(text.replace(",", " ").split())
        for option in LONG_OPTIONS + SHORT_OPTIONS:
            self.assertIn(option, words)
        self.assertIn("[DURATION]", text)
        self.assertIn("-- COMMAND", text)

    def test_wrong_usage(self):
        # A usage error is one line on stderr and status 2; nothing is run.
        for line in WRONG:
            with self.subTest(line):
                self.assert_usage_error(line.split())

    def test_empty_lists(self):
        # An empty argument is no list, no number and no event.
        for option in ["-p", "-L", "-C", "-e", "-F", "--max-stack-depth"]:
            with self.subTest(option):
                self.assert_usage_error([option, ""])

    def test_hostile_argument_stays_one_line(self):
        # What is wrong is quoted in the message without breaking its line.
        for option in ["-p", "-C", "-e", "--by", "--format"]:
            with self.subTest(option):
                self.assert_usage_error([option, "1\n2\033[31m"])

    def assert_usage_error(self, arguments):
        run = self.profile_raw(*arguments)
        self.assertEqual(run.status, 2, str(run))
        self.assertEqual(run.stdout, b"")
        self.assertEqual(run.stderr.count("\n"), 1, str(run))
        self.assertTrue(run.stderr.endswith("\n"))
        self.assertTrue(run.stderr.startswith("ksym-profile: "), str(run))
        self.assertNotIn("\033", run.stderr)

    def test_files_that_cannot_be_used(self):
        # Each is named in one line with status 1, before anything is sampled.
        missing = self.path("none/file")
        for arguments in [["--replay", missing], ["-o", missing, "1"],
                          ["-o", self.dir, "1"], ["--raw", missing, "1"],
                          ["-o", missing, "--", "true"]]:
            with self.subTest(arguments=arguments):
                run = self.profile_raw(*arguments)
                self.assert_failure(run, self.dir)

    def test_replay_of_something_else(self):
        # A file that is no raw capture is refused by name.
        path = self.path("other")
        for content in ["", "hello\n", "KSYMRAW\n", "KSYMRAW\n" + "\0" * 16]:
            with self.subTest(repr(content)):
                harness.write_text(path, content)
                self.assert_failure(self.profile_raw("--replay", path), path)


if __name__ == "__main__":
    harness.main()
