# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the service's metrics."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request

import harness
import service_harness

CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: ksym
    static_configs: [{targets: ["%s"]}]
"""


class PrometheusTest(service_harness.ServiceCase):

    def setUp(self):
        super().setUp()
        self.need_command("prometheus")

    def start_prometheus(self, address, target):
        harness.write_text(self.path("prometheus.yml"), CONFIG % target)
        self.start(["prometheus", "--config.file=" +
                    self.path("prometheus.yml"), "--storage.tsdb.path=" +
                    self.path("series"), "--web.listen-address=" + address])

    def test_scrapes(self):
        # Prometheus takes the answer as it is, finds nothing to object to, and
        # has the counters.
        target, own = ("127.0.0.1:%d" % self.free_port() for _ in range(2))
        self.http["listen"] = [target]
        self.configure()
        self.workload("spin")
        self.start_service()
        self.start_prometheus(own, target)

        def ask(path):
            try:
                with urllib.request.urlopen("http://%s/api/v1/%s" % (
                        own, path), timeout=10) as answer:
                    return json.load(answer)["data"]
            except OSError:  # it is still starting
                return None

        def value(name):
            data = ask("query?" + urllib.parse.urlencode({"query": name}))
            return data and data["result"] and float(
                data["result"][0]["value"][1])

        harness.wait_for(lambda: (value("ksym_samples_taken_total") or 0) > 20,
                         "samples in Prometheus")
        scraped, = ask("targets")["activeTargets"]
        self.assertEqual((scraped["health"], scraped["lastError"]), ("up", ""))
        kinds = {entry["metric"]: entry["type"]
                 for entry in ask("targets/metadata")}
        self.assertEqual(kinds["ksym_samples_taken_total"], "counter")
        self.assertEqual(kinds["ksym_resident_bytes"], "gauge")
        if shutil.which("promtool"):
            with urllib.request.urlopen("http://%s/metrics" % target,
                                        timeout=10) as answer:
                done = subprocess.run(
                    ["promtool", "check", "metrics"], input=answer.read(),
                    capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout + done.stderr),
                             (0, b""))


if __name__ == "__main__":
    harness.main()
