# SPDX-License-Identifier: Apache-2.0
"""Where every sample went: taken = emitted + lost by cause, always.

The harness checks that equation, and that the counts in the report add up to
what was emitted, in every run of every test; here it is put under pressure.
"""

import os
import time

import harness

STORES = ["exact", "stackid"]


class OverloadTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.allow_rate(25_000)

    def test_tiny_maps(self):
        # With maps of 16 entries at 20 kHz most samples are lost, and each
        # one is counted by its cause.
        self.workload("paths")
        self.workload("threads", 100)
        for store in STORES:
            with self.subTest(store):
                document = self.document(
                    "-F", 20_000, "--hash-storage-size", 16,
                    "--stack-storage-size", 16, "--stack-map", store, 2)
                samples = document.samples
                self.assertGreater(samples["taken"], 1000)
                self.assertGreater(samples["lost"]["counts-full"], 0)
                self.assertGreater(samples["emitted"], 0)

    def test_tiny_counts(self):
        # One count per drain is enough to account for all samples.
        self.workload("paths")
        for store in STORES:
            with self.subTest(store):
                document = self.document(
                    "-F", 5_000, "--hash-storage-size", 1, "--stack-map",
                    store, 1)
                self.assertGreater(document.samples["lost"]["counts-full"], 0)

    def test_tiny_stacks(self):
        # One stack per drain: the exact store still keeps every sample that
        # fits the ring, the other one counts its collisions.
        paths = self.workload("paths")
        for store in STORES:
            with self.subTest(store):
                document = self.document(
                    "-F", 5_000, "--stack-storage-size", 1, "--stack-map",
                    store, "-p", paths.pid, 1)
                samples = document.samples
                self.assertGreater(samples["taken"], 100)
                if store == "stackid":
                    self.assertGreater(samples["damaged"]["collision"], 0)
                    self.assertEqual(
                        samples["damaged"]["collision"], document.total(
                            lambda s: "collided" in (s["user_state"],
                                                     s["kernel_state"])))
                else:
                    self.assertEqual(samples["damaged"]["collision"], 0)

    def test_summary_names_the_cure(self):
        # The summary line says what was lost, why, and what helps.
        self.workload("paths")
        run = self.profile("-F", 5_000, "--hash-storage-size", 4, 1)
        self.assertGreater(run.summary()[2], 0)
        self.assertIn("counts-full", run.stderr)
        self.assertIn("--hash-storage-size", run.stderr)
        self.check_folded(run)

    def test_20_khz(self):
        # Overload in folded form, with the default maps.
        self.workload("paths")
        folded = self.folded("-F", 20_000, 1)
        self.assertGreater(folded.total(), 1000)


class DistinctStacksTest(harness.E2eTest):

    def test_ten_thousand_paths(self):
        # Thousands of distinct stacks between two drains are all kept by the
        # exact store; the other store says what it could not keep apart.
        self.allow_rate(10_000)
        paths = self.workload("paths")
        for store in STORES:
            with self.subTest(store):
                document = self.document("-F", 9_999, "--stack-map", store,
                                         "-p", paths.pid, 3)
                samples = document.samples
                self.assertGreater(len(document.stacks), 1000)
                if store == "exact":
                    self.assertEqual(sum(samples["lost"].values()), 0)
                    self.assertEqual(samples["damaged"]["collision"], 0)
                else:
                    self.assertGreater(samples["damaged"]["collision"], 0)
                self.assert_paths(document)

    def assert_paths(self, document):
        def whole(stack):
            names = document.names(stack)
            return (sum(name.startswith("Step") for name in names) == 4
                    and "Leaf" in names)

        def has_leaf(stack):
            return "Leaf" in document.names(stack)
        self.assertGreater(document.share(whole, has_leaf), 0.95)

    def test_two_thousand_threads(self):
        # A process with 2,000 threads: each thread is itself with --by tid,
        # and together they are one process without.
        threads = self.workload("threads", 2000)
        document = self.document("-F", 999, "--by", "tid", "-p", threads.pid,
                                 2)
        self.assertEqual(document.pids(), {threads.pid})
        tids = {s["tid"] for s in document.stacks}
        self.assertGreater(len(tids), 50)
        self.assertNotIn(0, tids)
        self.assertEqual(sum(document.samples["lost"].values()), 0)
        folded = self.folded("-F", 999, "-p", threads.pid, 1)
        self.assertEqual(folded.owners(), {"threads"})
        self.assertGreater(folded.share("threads", "ThreadMain"), 0.8)


class ShortLivedProcessTest(harness.E2eTest):

    def test_fork_and_exec_storm(self):
        # Processes that live for milliseconds: each sample is counted under
        # its process, and a frame without a name says why.
        self.start([os.path.join(harness.WORKLOADS, "storm"), "1000000"])
        document = self.document("-F", 999, 2)
        children = [s for s in document.stacks if s["comm"] == "exe"]
        self.assertGreater(len({s["pid"] for s in children}), 20)
        self.assertEqual(sum(document.samples["lost"].values()), 0)
        for stack in children:
            for frame in document.user(stack):
                self.assertIn("reason" if frame["name"] == "[unknown]"
                              else "module", frame)


class StrictTest(harness.E2eTest):

    def test_nothing_lost(self):
        # --strict: status 0 when nothing was lost.
        asleep = self.start(["sleep", "1000"])
        time.sleep(0.3)
        run = self.profile("--strict", "-p", asleep.pid, 0.3)
        self.assertEqual(run.summary(), (0, 0, 0))

    def test_lost(self):
        # --strict: status 3 when samples were lost; the report is written.
        self.workload("paths")
        run = self.profile("--strict", "-F", 5_000, "--hash-storage-size", 1,
                           1, status=3)
        self.assertGreater(run.summary()[2], 0)
        self.check_folded(run)

    def test_without_strict(self):
        # Without --strict losses are no failure.
        self.workload("paths")
        run = self.profile("-F", 5_000, "--hash-storage-size", 1, 1)
        self.assertGreater(run.summary()[2], 0)

    def test_incomplete_stacks(self):
        # --strict: a truncated stack is a loss, too.
        deep = self.workload("deep", 600)
        self.profile("--strict", "-p", deep.pid, 1, status=3)


if __name__ == "__main__":
    harness.main()
