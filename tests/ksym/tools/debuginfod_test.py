# SPDX-License-Identifier: Apache-2.0
"""Tests of --debuginfod: what is fetched, what is refused, what is waited for.

Run by ctest, which sets the paths. The server is one of this program's own on
the loopback device.
"""

import contextlib
import ctypes
import http.server
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

TOOL = os.environ["KSYM_SYMBOLIZE"]
PLAIN, STRIPPED = os.environ["KSYM_ELF_FIXTURES"].split(",")[:2]
BUILD_ID = "00112233445566778899aabbccddeeff"
HIDDEN = "fixture_static"  # of the full table only
UNKNOWN = "??\n??:0:0\n\n"

try:
    ctypes.CDLL("libdebuginfod.so.1")
    MISSING = None
except OSError as error:
    MISSING = f"libdebuginfod1 is not installed: {error}"


def hidden_address():
    listing = subprocess.run(["nm", PLAIN], capture_output=True, text=True,
                             timeout=60, check=True).stdout
    return re.search(rf"^([0-9a-f]+) t {HIDDEN}$", listing,
                     re.MULTILINE).group(1)


class Server(http.server.ThreadingHTTPServer):
    """Answers with `answer(handler)`, and keeps the paths asked for."""
    daemon_threads = True

    def __init__(self, answer):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.paths.append(self.path)
                with contextlib.suppress(OSError):
                    answer(self)

            def log_message(self, *arguments):
                pass

        self.paths = []
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


def sends(body):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def has_nothing(handler):
    handler.send_error(404)


def read(path):
    with open(path, "rb") as file:
        return file.read()


@unittest.skipIf(MISSING, MISSING)
class Debuginfod(unittest.TestCase):
    def setUp(self):
        self.cache = tempfile.TemporaryDirectory()
        self.addCleanup(self.cache.cleanup)
        # Away from where the full file lies, beside which a link may lead.
        self.file = os.path.join(self.cache.name, "stripped")
        shutil.copy(STRIPPED, self.file)

    @contextlib.contextmanager
    def server(self, answer):
        server = Server(answer)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,),
                                  daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            server.server_close()

    def run_tool(self, urls, *arguments, log=None):
        environment = dict(os.environ, DEBUGINFOD_CACHE_PATH=os.path.join(
            self.cache.name, "cache"), LC_ALL="C")
        environment.pop("DEBUGINFOD_URLS", None)
        if urls is not None:
            environment["DEBUGINFOD_URLS"] = urls
        return subprocess.run([TOOL, *arguments], input=log,
                              capture_output=True, text=True, timeout=60,
                              check=False, env=environment)

    def ask(self, urls, *options):
        return self.run_tool(urls, *options, "-e", self.file, hidden_address())

    # A stripped file's private functions are named by the fetched file, which
    # the second run has in the cache of the client.
    def test_names_by_the_fetched_file(self):
        with self.server(sends(read(PLAIN))) as server:
            for _ in range(2):
                done = self.ask(server.url, "--debuginfod")
                self.assertEqual(done.stdout, f"{HIDDEN}\n??:0:0\n\n")
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0)
            self.assertEqual(server.paths,
                             [f"/buildid/{BUILD_ID}/debuginfo"])

    # Nobody is asked without the option.
    def test_asks_nobody_unless_told_to(self):
        with self.server(sends(read(PLAIN))) as server:
            done = self.ask(server.url)
            self.assertEqual(done.stdout, UNKNOWN)
            self.assertEqual(server.paths, [])

    # A file with the full table of its own needs no server.
    def test_asks_nobody_for_a_full_table(self):
        shutil.copy(PLAIN, self.file)
        with self.server(sends(read(PLAIN))) as server:
            done = self.ask(server.url, "--debuginfod")
            self.assertEqual(done.stdout, f"{HIDDEN}\n??:0:0\n\n")
            self.assertEqual(server.paths, [])

    # Without servers the option is refused, and the message says what to set.
    def test_needs_servers(self):
        for urls in (None, ""):
            done = self.ask(urls, "--debuginfod")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            self.assertIn("DEBUGINFOD_URLS is not set", done.stderr)

    def check_unnamed(self, done, message):
        self.assertEqual(done.stdout, UNKNOWN)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertIn(BUILD_ID, done.stderr)

    # What no server has is told once, with the server and without a password.
    def test_tells_what_is_not_there(self):
        with self.server(has_nothing) as server:
            urls = server.url.replace("//", "//user:secret@")
            done = self.ask(urls, "--debuginfod")
            self.check_unnamed(done, server.url + ": has no such debug file")
            self.assertNotIn("secret", done.stderr)

    # So is a server that is not there.
    def test_tells_of_a_server_that_is_gone(self):
        with self.server(has_nothing) as server:
            url = server.url
        self.check_unnamed(self.ask(url, "--debuginfod"),
                           url + ": Connection refused")

    # A file with another build-id, or none, or one that is no ELF file, gives
    # no name.
    def test_refuses_another_file(self):
        right = read(PLAIN)
        note = bytes.fromhex(BUILD_ID)
        self.assertEqual(right.count(note), 1)
        for body in (right.replace(note, note[::-1]), right[:100], b"hello",
                     b"\0" * 4096, right[:len(right) // 2]):
            shutil.rmtree(os.path.join(self.cache.name, "cache"),
                          ignore_errors=True)
            with self.server(sends(body)) as server:
                done = self.ask(server.url, "--debuginfod")
                self.assertEqual(done.stdout, UNKNOWN)
                self.assertEqual(done.returncode, 0)

    # A server that never answers, or never comes to an end, is given up.
    def test_gives_a_slow_server_up(self):
        def hangs(handler):
            handler.server.released.wait(50)

        def trickles(handler):
            handler.send_response(200)
            handler.end_headers()
            while not handler.server.released.wait(0.05):
                handler.wfile.write(b"x")

        for answer in (hangs, trickles):
            with self.server(answer) as server:
                done = self.ask(server.url, "--debuginfod",
                                "--symbol-timeout", "0.5")
                self.check_unnamed(done, server.url + ": no answer within 0.5")

    # A file beyond the bound is not downloaded.
    def test_refuses_a_huge_file(self):
        def claims_much(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(2 << 30))
            handler.end_headers()
            while not handler.server.released.is_set():
                handler.wfile.write(b"x" * 65536)

        with self.server(claims_much) as server:
            done = self.ask(server.url, "--debuginfod")
            self.check_unnamed(done, "too large")

    # Logs with markup. Two processes have the program, and one of them another
    # one, which no server has.
    OTHER_ID = "ffeeddccbbaa99887766554433221100"

    def filter_markup(self, urls, *options):
        there = 0x10000000 + int(hidden_address(), 16)
        program = (f"{{{{{{module:0:program:elf:{BUILD_ID}}}}}}}\n"
                   "{{{mmap:0x10000000:0x1000000:load:0:rx:0x00}}}\n")
        other = (f"{{{{{{module:1:other:elf:{self.OTHER_ID}}}}}}}\n"
                 "{{{mmap:0x20000000:0x1000:load:1:rx:0x00}}}\n")
        lines = (f"at {{{{{{pc:{there:#x}}}}}}}\n"
                 "at {{{pc:0x20000010}}}\n{{{bt:0:0x20000010:pc}}} end\n")
        return self.run_tool(
            urls, "--filter-markup", "--debug-file-directory", self.cache.name,
            *options,
            log=f"begin\n{program}{lines}{{{{{{reset}}}}}}\n"
                f"{program}{other}{lines}{{{{{{reset}}}}}}\n{other}{lines}end\n")

    def check_log(self, done, name):
        """Each line is there, with `name` for the program's address."""
        self.assertEqual(done.returncode, 0)
        lines = [line for line in done.stdout.splitlines()
                 if not line.startswith("[[[ELF module")]
        address = f"{0x10000000 + int(hidden_address(), 16):#x}"
        unknown = ["at [[[pc:0x20000010]]]", "[[[bt:0:0x20000010:pc]]] end"]
        self.assertEqual(lines, [
            "begin", f"at {name}", *unknown, "[[[reset]]]",
            f"at {name}", *unknown, "[[[reset]]]",
            f"at [[[pc:{address}]]]", *unknown, "end"])

    def errors_of_modules(self, done):
        return re.findall(r'^error: (.*) for ELF module #\S+ "(\w+)"; BuildID=',
                          done.stderr, re.MULTILINE)

    # A log's modules are fetched by their build-ids, each once however often
    # it is there. What no server has is an error for each module element, and
    # a warning in the end.
    def test_log(self):
        def answer(handler):
            has = BUILD_ID in handler.path
            (sends(read(PLAIN)) if has else has_nothing)(handler)

        with self.server(answer) as server:
            done = self.filter_markup(server.url, "--debuginfod")
            self.check_log(done, f"{HIDDEN}[fixture.c:0]")
            self.assertEqual(
                server.paths,
                [f"/buildid/{BUILD_ID}/debuginfo",
                 f"/buildid/{self.OTHER_ID}/debuginfo"])
            missing = ("could not find build ID", "other")
            self.assertEqual(self.errors_of_modules(done), [missing, missing])
            self.assertEqual(done.stderr.count("warning: debuginfod:"), 1)
            self.assertIn(self.OTHER_ID, done.stderr)

    # Nobody is asked without the option.
    def test_log_asks_nobody_unless_told_to(self):
        with self.server(sends(read(PLAIN))) as server:
            done = self.filter_markup(server.url)
            address = 0x10000000 + int(hidden_address(), 16)
            self.check_log(done, f"[[[pc:{address:#x}]]]")
            self.assertEqual(server.paths, [])
            self.assertNotIn("debuginfod", done.stderr)

    # Servers that fail, hang, or send something else cost names and no line.
    def test_log_with_servers_that_fail(self):
        def fails(handler):
            handler.send_error(500)

        def hangs(handler):
            handler.server.released.wait(50)

        address = 0x10000000 + int(hidden_address(), 16)
        for answer in (fails, hangs, sends(b"no ELF file")):
            with self.server(answer) as server:
                done = self.filter_markup(server.url, "--debuginfod",
                                          "--symbol-timeout", "0.5")
                self.check_log(done, f"[[[pc:{address:#x}]]]")
                self.assertLessEqual(len(server.paths), 2)
            self.assertIn("warning: debuginfod:", done.stderr)
            self.assertEqual(
                [name for _, name in self.errors_of_modules(done)],
                ["program", "program", "other", "other"])


if __name__ == "__main__":
    unittest.main()
