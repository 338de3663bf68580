#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""install_test.py CMAKE BUILD CXX: installs libksym into a temporary directory and
builds the installed examples outside of the tree, by CMake and by pkg-config;
then runs them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, CXX = sys.argv[1:4]


def run(*command, **options):
    done = subprocess.run(command, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="ksym-install-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.prefix = cls.dir + "/usr"
        run(CMAKE, "--install", BUILD, "--component", "dev", "--prefix",
            cls.prefix)
        # Copied, so that nothing can be found beside the sources.
        cls.examples = cls.dir + "/examples"
        shutil.copytree(cls.prefix + "/share/doc/libksym-dev/examples",
                        cls.examples)

    def find(self, name):
        path, = (os.path.join(directory, name) for directory, _, names
                 in os.walk(self.prefix) if name in names)
        return path

    def check_programs(self, directory):
        """The examples in `directory` do what their comments say."""
        named = run(directory + "/example_symbolize", "pid", str(os.getpid()),
                    "1")
        self.assertIn("0x1 ?? (unmapped)", named)
        program = directory + "/example_log_markup"
        symbols = run("nm", program)
        address = re.search(r"(?m)^([0-9a-f]+) T handle_request$", symbols)[1]
        named = run(directory + "/example_symbolize", "file", program, address)
        self.assertRegex(named, r"handle_request\+0x0 .*in .*log_markup")
        log = run(program)
        self.assertNotIn("handle_request", log)
        frames = subprocess.run(
            [directory + "/example_filter_log", self.debug_directory(program)],
            input=log, text=True, check=True, capture_output=True).stdout
        self.assertRegex(
            frames, r"(?s)odd.*#0 .* log_backtrace.*#1 .* handle_request"
                    r".*#2 .* main")

    def debug_directory(self, program):
        notes = run("readelf", "-n", program)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        directory = tempfile.mkdtemp(dir=self.dir)
        place = f"{directory}/.build-id/{build_id[:2]}"
        os.makedirs(place)
        shutil.copy(program, f"{place}/{build_id[2:]}.debug")
        return directory

    def test_cmake(self):
        """find_package(ksym) is enough for a C program."""
        build = self.dir + "/cmake"
        run(CMAKE, "-S", self.examples, "-B", build,
            "-DCMAKE_PREFIX_PATH=" + self.prefix, "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
        run(CMAKE, "--build", build, "-j2")
        self.check_programs(build)

    def test_pkg_config(self):
        """So is pkg-config, whose file has the prefix of the build; here it is
        moved."""
        config = self.find("ksym.pc")
        with open(config, encoding="utf-8") as file:
            text = file.read()
        prefix = re.search(r"(?m)^prefix=(.+)$", text)[1]
        with open(config, "w", encoding="utf-8") as file:
            file.write(text.replace(prefix, self.prefix))
        out = self.dir + "/pkg-config"
        os.mkdir(out)
        environment = {**os.environ, "OUT": out,
                       "PKG_CONFIG_PATH": os.path.dirname(config)}
        run("pkg-config", "--validate", "ksym", env=environment)
        run("make", "-j2", "-C", self.examples, env=environment)
        self.check_programs(out)

    def test_headers(self):
        """The C header is C and C++, also old ones; each C++ header that is
        installed compiles with what is installed."""
        include = self.prefix + "/include"
        header = include + "/ksym/ksym.h"
        for language in ("c -std=c99", "c++ -std=c++11"):
            run(CXX, "-x", *language.split(), "-fsyntax-only", "-Wall",
                "-Wextra", "-pedantic", "-Werror", "-include", header,
                "/dev/null")
        headers = [os.path.relpath(os.path.join(directory, name), include)
                   for directory, _, names in os.walk(include) for name in names]
        self.assertGreater(len(headers), 20)
        source = "".join(f"#include <{name}>\n" for name in sorted(headers))
        run(CXX, "-x", "c++", "-std=c++23", "-fsyntax-only", "-I", include, "-",
            input=source)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
