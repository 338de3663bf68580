# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's profiles: all of a capture comes back out of them, and a
collector that dies, refuses and lies gets each of them."""

import collections
import gzip
import json
import os
import signal
import sys

import harness
import service_harness

import otlp_decoder

KINDS = {"user": "native", "kernel": "kernel", "python": "cpython",
         "javascript": "v8js", "javascript-interpreted": "v8js",
         "java": "jvm", "java-interpreted": "jvm"}


class FormatTest(harness.E2eTest):

    def captured(self, *arguments):
        """What JSON and OTLP say of one capture."""
        document = self.document(*arguments)
        path = self.path("capture.json")
        harness.write_text(path, json.dumps(document.json))
        target = self.path("capture.otlp")
        self.profile("convert", path, "-o", target)
        return document, otlp_decoder.Decoded(harness.read_bytes(target))

    def stacks_of(self, document):
        """Sums by kind, command, pid and names, leaf first."""
        kinds = [kind["name"] for kind in
                 document.metadata.get("kinds", [{"name": "cpu"}])]
        sums = collections.Counter()
        for stack in document.stacks:
            frames = document.user(stack) + document.kernel(stack)
            names = tuple(frame.get("function", frame["name"])
                          for frame in reversed(frames))
            key = (stack.get("sample_kind", kinds[0]), stack["comm"], stack["pid"],
                   names)
            sums[key] += stack.get("value", stack["count"])
        return sums

    def check_same(self, document, decoded):
        known = {frame.get("function", frame["name"])
                 for frame in document.frames}
        sums = collections.Counter()
        for _, profiles in decoded.resources:
            for profile in profiles:
                kind = (profile["period_type"][0]
                        if profile["type"] == ("samples", "count")
                        else profile["type"][0])
                for stack, (value,), labels in profile["samples"]:
                    # Without the marks for what is missing of a stack.
                    names = tuple(name for frame in stack
                                  for name in frame[0] if name in known)
                    key = (kind, labels["thread.name"], labels["process.pid"],
                           names)
                    sums[key] += value
        wanted = self.stacks_of(document)
        self.assertEqual(sum(sums.values()), sum(wanted.values()))
        self.assertEqual({key: sums[key] for key in sums if key not in wanted},
                         {})
        self.assertEqual(sums, wanted)

    def test_cpu(self):
        self.start([sys.executable, "-c",
                    "def busy():\n while True: sum(range(999))\nbusy()"])
        self.workload("spin")
        document, decoded = self.captured("-F", 199, 1)
        self.check_same(document, decoded)
        seen = {frame for _, profiles in decoded.resources
                for profile in profiles
                for stack, _, _ in profile["samples"] for frame in stack}
        # Code of two kinds may have one name.
        types = {(frame[0][-1], frame[2]) for frame in seen}
        self.assertIn(("busy", "cpython"), types)
        self.assertIn(("Hot", "native"), types)
        for frame in document.frames:
            kind = KINDS.get(frame["kind"])
            # What has a perf map alone may be any runtime's.
            if kind and not frame.get("inlined") and not (
                    frame["kind"] == "user" and "module" not in frame):
                self.assertIn(
                    (frame.get("function", frame["name"]), kind), types)
        found = decoded.build_ids()
        for frame in document.frames:
            if frame.get("build_id"):
                self.assertIn((frame["module"], frame["build_id"]), found)
        (_, (profile, *_)) = decoded.resources[0]
        self.assertEqual(profile["period_type"], ("cpu", "nanoseconds"))
        self.assertEqual(profile["period"], 10**9 // 199)
        self.assertEqual(decoded.scope["ksym.capture.samples.taken"],
                         document.samples["taken"])

    def test_waits(self):
        self.workload("spin")
        self.start(["sleep", "60"])
        document, decoded = self.captured("--wall", 2)
        self.check_same(document, decoded)
        kinds = {profile["type"] for _, profiles in decoded.resources
                 for profile in profiles}
        self.assertIn(("blocked", "nanoseconds"), kinds)
        self.assertIn(("samples", "count"), kinds)


class PushTest(service_harness.ServiceCase):

    def test_collector(self):
        # It is down, refuses for a while, and once says that it took only a
        # part. Each profile has arrived, and what was refused is counted.
        receiver = service_harness.Receiver(self.free_port())
        self.push = ["otlp+http://127.0.0.1:%d" % receiver.port]
        self.configure(format="pprof")
        receiver.statuses = [503, 429]
        self.workload("spin")
        service = self.start_service()
        harness.wait_for(
            lambda: self.metrics()["ksym_push_waiting"] >= 2, "a backlog")
        receiver.start()
        self.addCleanup(receiver.stop)
        harness.wait_for(lambda: len(receiver.posts) >= 6, "profiles")
        self.assertEqual(self.metrics()["ksym_push_rejected_total"], 0)
        # rejected_profiles: 1, error_message: "full".
        receiver.answer = b"\x0a\x08\x08\x01\x12\x04full"
        harness.wait_for(
            lambda: self.metrics()["ksym_push_rejected_total"] >= 1, "refusal")
        receiver.answer = b"\xff no message \xff" * 9999
        sent = self.metrics()["ksym_push_sent_total"]
        harness.wait_for(
            lambda: self.metrics()["ksym_push_sent_total"] >= sent + 2,
            "profiles that are taken again")
        self.assertIn("1 profiles of it are not taken: full", service.log())
        self.assertEqual(self.metrics()["ksym_push_dropped_total"], 0)
        self.assertLess(service.end(signal.SIGTERM), 2)
        times = set()
        for (path, body), headers in zip(receiver.posts, receiver.headers):
            self.assertEqual(path, "/v1development/profiles")
            self.assertEqual(headers["Content-Type"], "application/x-protobuf")
            self.assertEqual(headers["Content-Encoding"], "gzip")
            decoded = otlp_decoder.Decoded(gzip.decompress(body))
            for attributes, profiles in decoded.resources:
                self.assertEqual(attributes["host.name"], os.uname().nodename)
                self.assertTrue(attributes["service.name"])
                times.update((profile["time"], profile["duration"])
                             for profile in profiles)
        # One after the other without a hole.
        ends = sorted(times)
        for (begin, duration), (following, _) in zip(ends, ends[1:]):
            self.assertLess(abs(begin + duration - following), 0.2e9)


if __name__ == "__main__":
    harness.main()
