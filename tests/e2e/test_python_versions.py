# SPDX-License-Identifier: Apache-2.0
"""Python's frames in builds of other distributions: what scripts/truth-python
measures, for seconds, of Debian 12's version and a newer one. The roots that
they are in are made at first use, and kept in the build directory."""

import os
import sys
import unittest

import harness

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests/truth/python"))
import builds  # noqa: E402
import cases  # noqa: E402
import context  # noqa: E402

CACHE = os.path.join(harness.SOURCE_DIR, "build/roots")
KINDS = ["static", "libpython", "embedded"]
# The first tenth of a second of a capture has no frames.
MOST_IN_CAPTURE = 0.8


def say(text):
    print(text, file=sys.stderr, flush=True)


class VersionTest(harness.E2eTest):
    version = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root")
        reasons = []
        cls.builds = list(builds.all_builds(CACHE, [cls.version], KINDS,
                                            reasons.append))
        for reason in reasons:
            say(reason)
        if not cls.builds:
            raise unittest.SkipTest("no Python %s: %s" % (
                cls.version, "; ".join(reasons)))
        cls.context = context.Context.short(harness.PROFILER)

    def figures(self, case, build):
        return {figure.column: figure for figure in case(self.context, build)}

    def assert_good(self, figure):
        self.assertTrue(figure.good, (figure.text, figure.notes))

    def assert_most(self, figure):
        self.assertGreater(figure.value, MOST_IN_CAPTURE,
                           (figure.text, figure.notes))


class Tests:
    """Of each version."""

    def test_stacks(self):
        # Names, files, lines and order are those that the interpreter has.
        for build in self.builds:
            with self.subTest(build.text):
                figures = self.figures(cases.scenes, build)
                self.assert_good(figures["right %"])
                self.assert_good(figures["bad order"])
                self.assert_most(figures["scenes all %"])

    def test_calls(self):
        # No call is shown that the program does not make.
        for build in self.builds:
            with self.subTest(build.text):
                figures = self.figures(cases.calls, build)
                self.assert_good(figures["bad edges"])
                self.assert_most(figures["all frames %"])


    def test_one_interpreter_inside_another(self):
        build = self.builds[0]
        self.assert_most(self.figures(cases.inside, build)["inside %"])


class DebianTwelveTest(Tests, VersionTest):
    version = "3.11"


class NewerTest(Tests, VersionTest):
    version = "3.13"


if __name__ == "__main__":
    harness.main()
