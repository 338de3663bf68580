#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""completion_test.py PROGRAM [COMMAND...]: what shells complete is what --help
has, the program's own and that of each of its commands.

bash and fish run the scripts of --completion on half a command line; zsh, which
completes only at a terminal, checks the syntax of its own. Shells that are not
installed are skipped, and said so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, *COMMANDS = sys.argv[1:]
del sys.argv[1:]
NAME = os.path.basename(PROGRAM)


def help_options(*command):
    """The options of a help text:
    "  -F,--frequency HZ   ..." or "    --strict   ..."."""
    text = subprocess.run([PROGRAM, *command, "--help"], capture_output=True,
                          text=True, check=True).stdout
    found = set()
    for line in text.split("\nExamples:")[0].splitlines():
        match = re.match(r" {2,4}(-[-\w,]+)(?= |$)", line)
        found |= set(match[1].split(",") if match else ())
    return text, found


HELP, OPTIONS = help_options()


def script(shell):
    return subprocess.run([PROGRAM, "--completion", shell], check=True,
                          capture_output=True, text=True).stdout


def bash(*words):
    """What bash completes the last of `words` to."""
    program = script("bash") + """
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { echo "compopt $*"; }
"$(complete -p %s | sed -E 's/.* -F ([^ ]+) .*/\\1/')"
printf '%%s\\n' "${COMPREPLY[@]}"
""" % NAME
    done = subprocess.run(["bash", "-c", program, NAME, NAME, *words],
                          capture_output=True, text=True, check=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split("\n")[:-1]


class Bash(unittest.TestCase):
    def test_all_options(self):
        """A lone dash completes to every option of --help, and to no other."""
        self.assertGreater(len(OPTIONS), 8)
        self.assertEqual(set(bash("-")), OPTIONS)

    def test_prefix(self):
        """A prefix completes to what begins with it."""
        self.assertEqual(set(bash("--co")),
                         {name for name in OPTIONS if name.startswith("--co")})

    def test_value(self):
        """A value completes to the words that the option knows, also behind
        an equals sign, which bash takes for a word of its own."""
        shells = ["bash", "zsh", "fish"]
        self.assertEqual(bash("--completion", ""), shells)
        self.assertEqual(bash("--completion", "z"), ["zsh"])
        self.assertEqual(bash("--completion", "="), shells)
        self.assertEqual(bash("--completion", "=", "f"), ["fish"])

    def test_process(self):
        """A process id completes to one that is there."""
        if not re.search(r"--pid PID", HELP):
            self.skipTest(f"{NAME} has no option for one process")
        self.assertIn(str(os.getpid()), bash("--pid", str(os.getpid())[:-1]))

    def test_no_value(self):
        """Where no word is known, files are not offered instead."""
        option = next(name for name in ("--symbol-timeout", "--frequency-hz",
                                        "--types", "--threads")
                      if name in OPTIONS)
        self.assertEqual(bash(option, ""), ["compopt +o default", ""])

    def test_words(self):
        """Of a program with commands the first word is one, and what follows
        has the options and values of its own help."""
        self.assertEqual(set(bash("")) - {""}, set(COMMANDS))
        for command in COMMANDS:
            options = help_options(command)[1]
            self.assertGreater(len(options), 4)
            self.assertEqual(set(bash(command, "-")), options)
        if COMMANDS:
            self.assertEqual(bash("report", "f", "--by", "mo"), ["module"])
            self.assertIn("svg", bash("convert", "--format", "s"))
            self.assertEqual(bash("--format", "repor"), [""])

    def test_command(self):
        """Behind "--" is a command."""
        self.assertIn("true", bash("--", "tru"))
        self.assertEqual(bash("--", "ls", "--"), [""])


class Fish(unittest.TestCase):
    def setUp(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")

    def complete(self, line):
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "completion.fish")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script("fish"))
            done = subprocess.run(
                ["fish", "--no-config", "-c",
                 f"source {path}; complete -C '{line}'"],
                capture_output=True, text=True, check=True,
                env={**os.environ, "HOME": home})
        assert done.stderr == "", done.stderr
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    def test_options(self):
        """Two dashes complete to every long option, and to no other."""
        self.assertEqual(self.complete(f"{NAME} --"),
                         {name for name in OPTIONS if name.startswith("--")})

    def test_words(self):
        """Each command has the long options of its own help, and no other."""
        for command in COMMANDS:
            options = help_options(command)[1]
            self.assertEqual(self.complete(f"{NAME} {command} --"),
                             {name for name in options
                              if name.startswith("--")})
            self.assertIn(command, self.complete(f"{NAME} {command[:3]}"))

    def test_value(self):
        """A value completes to the words that the option knows."""
        self.assertEqual(self.complete(f"{NAME} --completion "),
                         {"bash", "zsh", "fish"})


class Zsh(unittest.TestCase):
    def test_syntax(self):
        """zsh can read its script, which has each option."""
        text = script("zsh")
        for option in OPTIONS.union(*(help_options(command)[1]
                                      for command in COMMANDS)):
            self.assertIn(option + "[", text)
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        subprocess.run(["zsh", "-n", "-c", text], check=True)


class Usage(unittest.TestCase):
    def test_unknown_shell(self):
        """Another shell is a usage error that names those there are."""
        done = subprocess.run([PROGRAM, "--completion", "tcsh"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash, zsh, fish", done.stderr)


if __name__ == "__main__":
    unittest.main()
