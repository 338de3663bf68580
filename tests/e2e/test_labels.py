# SPDX-License-Identifier: Apache-2.0
"""Names of pods and containers in the service's profiles: real cgroups as
kubelet and the engines make them, and files of a node that is made up."""

import contextlib
import json
import os
import subprocess

import cgroups
import harness
import history_reader
import otlp_decoder
import reports
import service_harness

UID = "0f0e0d0c-1111-2222-3333-%012x" % os.getpid()
OTHER_UID = "0f0e0d0c-4444-5555-6666-%012x" % os.getpid()
POD_ID = "a1%062x" % os.getpid()
OTHER_ID = "b2%062x" % os.getpid()
DOCKER_ID = "c3%062x" % os.getpid()


class LabelsTest(service_harness.ServiceCase):

    def setUp(self):
        super().setUp()
        self.logs = self.path("log")
        self.docker = self.path("docker")
        self.podman = self.path("podman")
        self.more_keys = {"containers": {"logs_directory": self.logs,
                                         "docker_directory": self.docker,
                                         "podman_directory": self.podman}}
        for directory in (self.logs + "/pods", self.logs + "/containers",
                          self.docker, self.podman):
            os.makedirs(directory, mode=0o755)

    def made_cgroup(self, path):
        """A cgroup of that path, removed in the end."""
        mount = cgroups.second_version()
        if mount is None:
            self.skipTest("no cgroups of the second version to write to")
        made = mount + path

        def remove():
            # Its processes have ended, but may be there for a moment.
            def is_removed():
                with contextlib.suppress(OSError):
                    os.removedirs(made)
                return not os.path.exists(made)
            harness.wait_for(is_removed, "the cgroup to be empty")

        os.makedirs(made, exist_ok=True)
        self.addCleanup(remove)
        return made

    def spin_in(self, path, **variables):
        """A process that works in a cgroup of that path."""
        made = self.made_cgroup(path)
        spin = self.workload("spin", env=dict(os.environ, **variables))
        harness.write_text(made + "/cgroup.procs", str(spin.pid))
        return spin

    def make_pod(self, namespace, pod, uid, container, container_id):
        """What kubelet has of a pod with one container."""
        directory = "%s_%s_%s/%s" % (namespace, pod, uid, container)
        os.makedirs("%s/pods/%s" % (self.logs, directory), mode=0o755)
        # As on the node, whatever the mount is called here.
        os.symlink("/var/log/pods/%s/0.log" % directory,
                   "%s/containers/%s_%s_%s-%s.log" % (
                       self.logs, pod, namespace, container, container_id))

    def labels_by_pid(self):
        """Of the newest profile: the labels of each process's stacks."""
        document = reports.Document(
            harness.read_bytes(self.files("json")[-1]))
        found = {}
        for stack in document.stacks:
            found.setdefault(stack["pid"], []).append(
                stack.get("labels", {}))
        return found

    def wait_labels(self, pid, wanted):
        """Until a whole profile has those labels of that process only."""
        def is_there():
            seen = self.files("json") and self.labels_by_pid().get(pid)
            return seen and all(labels == wanted for labels in seen)
        harness.wait_for(is_there, "%s of process %d" % (wanted, pid),
                         seconds=30)

    def slice_of(self, uid, container_id):
        return ("/kubepods.slice/kubepods-burstable.slice/"
                "kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (
                    uid.replace("-", "_"), container_id))

    def test_pods(self):
        # Pods have their names in all formats; one that comes while the
        # service runs is seen, and one that nobody describes has none.
        self.make_pod("shop", "web-0", UID, "nginx", POD_ID)
        pod = self.spin_in(self.slice_of(UID, POD_ID))
        unknown = self.spin_in("/kubepods/besteffort/pod%s/%s" % (
            OTHER_UID, OTHER_ID))
        self.configure(format="json")
        service = self.start_service()
        wanted = {"k8s.namespace.name": "shop", "k8s.pod.name": "web-0",
                  "k8s.container.name": "nginx"}
        self.wait_labels(pod.pid, wanted)
        self.assertEqual(self.labels_by_pid()[unknown.pid][0], {})
        metrics = self.metrics()
        self.assertEqual(
            metrics['ksym_container_names{result="found"}'], 1)
        # The other's first sample may be later.
        harness.wait_for(
            lambda: self.metrics()[
                'ksym_container_names{result="not-found"}'] == 1,
            "the container that nobody describes")
        self.make_pod("bank", "vault-0", OTHER_UID, "safe", OTHER_ID)
        self.wait_labels(unknown.pid, {"k8s.namespace.name": "bank",
                                       "k8s.pod.name": "vault-0",
                                       "k8s.container.name": "safe"})
        status, body = self.get("/profile?seconds=3&format=otlp")
        self.assertEqual(status, 200, body)
        resources = {attributes.get("k8s.pod.uid"): attributes
                     for attributes, _ in
                     otlp_decoder.Decoded(body).resources}
        for key, value in wanted.items():
            self.assertEqual(resources[UID][key], value)
        self.assertEqual(resources[UID]["service.name"], "nginx")
        self.assertEqual(resources[OTHER_UID]["k8s.pod.name"], "vault-0")
        # pprof's labels survive the way through it.
        status, body = self.get("/debug/pprof/profile?seconds=1")
        self.assertEqual(status, 200)
        path = self.path("now.pb.gz")
        with open(path, "wb") as file:
            file.write(body)
        document = json.loads(self.profile("convert", path, "--format",
                                           "json").stdout)
        self.assertIn(wanted, [stack.get("labels") for stack in
                               document["stacks"] if stack["pid"] == pod.pid])
        self.assertLess(service.end(), 3)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)

    def test_lies(self):
        # A cgroup below a user's manager is nobody's pod, whatever it is
        # called, and neither is one whose link leads to another pod.
        self.make_pod("shop", "web-0", UID, "nginx", POD_ID)
        os.makedirs("%s/pods/bank_vault-0_%s/safe" % (self.logs, OTHER_UID))
        os.symlink("/var/log/pods/shop_web-0_%s/nginx/0.log" % UID,
                   "%s/containers/web-0_shop_nginx-%s.log" % (
                       self.logs, OTHER_ID))
        faker = self.spin_in("/user.slice/user-%d.slice/user@%d.service%s" % (
            os.getpid(), os.getpid(), self.slice_of(UID, POD_ID)))
        wrong = self.spin_in(self.slice_of(OTHER_UID, OTHER_ID))
        self.configure(format="json")
        self.start_service()
        name = 'ksym_container_names{result="contradictory"}'
        harness.wait_for(lambda: self.metrics()[name] == 1, name)
        self.wait_labels(wrong.pid, {})
        self.wait_labels(faker.pid, {})

    def test_engines(self):
        # Docker's containers have the name that they have now.
        os.mkdir("%s/%s" % (self.docker, DOCKER_ID))
        state = "%s/%s/config.v2.json" % (self.docker, DOCKER_ID)
        harness.write_text(state, json.dumps(
            {"State": {"Running": True}, "ID": DOCKER_ID, "Name": "/web"}))
        harness.write_text(self.podman + "/containers.json", json.dumps(
            [{"id": OTHER_ID, "names": ["db"], "metadata": "{}"}]))
        docker = self.spin_in("/system.slice/docker-%s.scope" % DOCKER_ID)
        podman = self.spin_in(
            "/machine.slice/libpod-%s.scope/container" % OTHER_ID)
        self.configure(format="json")
        self.start_service()
        self.wait_labels(docker.pid, {"container.name": "web"})
        self.wait_labels(podman.pid, {"container.name": "db"})

    def history(self, *arguments):
        done = subprocess.run(
            [harness.PROFILER, "history", self.path("history"), "--from",
             "-5m", *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        return done.stdout

    def rows_of(self, *arguments):
        """The names of a time line's rows."""
        text = self.history(*arguments, "--series", "--format", "json")
        return {row["name"] for row in json.loads(text)["rows"]} if text else \
            set()

    def pids_of(self, *arguments):
        text = self.history(*arguments, "--format", "json")
        return reports.Document(text).pids() if text else set()

    def test_history(self):
        # The history has the names, by which it chooses, in rows and labels;
        # of a pod that nobody describes its uid.
        self.make_pod("shop", "web-0", UID, "nginx", POD_ID)
        os.mkdir("%s/%s" % (self.docker, DOCKER_ID))
        harness.write_text(
            "%s/%s/config.v2.json" % (self.docker, DOCKER_ID), json.dumps(
                {"State": {"Running": True}, "ID": DOCKER_ID,
                 "Name": "/proxy"}))
        pod = self.spin_in(self.slice_of(UID, POD_ID))
        unknown = self.spin_in("/kubepods/besteffort/pod%s/%s" % (
            OTHER_UID, OTHER_ID))
        docker = self.spin_in("/system.slice/docker-%s.scope" % DOCKER_ID)
        self.more_keys["history"] = {"enabled": True,
                                     "directory": self.path("history")}
        self.configure(format="json")
        service = self.start_service()
        pods, containers = {"shop/web-0", OTHER_UID}, {
            "shop/web-0/nginx", "proxy", OTHER_ID}
        harness.wait_for(
            lambda: self.rows_of("--by", "pod") >= pods and
            self.rows_of("--by", "container") >= containers, "rows by name")
        # After a restart the names are those of a segment and of a journal.
        self.assertLess(service.end(), 3)
        service = self.start_service()
        harness.wait_for(lambda: len(os.listdir(self.path("history"))) > 2,
                         "a journal beside a segment")
        for arguments, pid in (
                (("--pod", "web-0"), pod.pid),
                (("--pod", "shop/web-0"), pod.pid), (("--pod", UID), pod.pid),
                (("--container", "nginx"), pod.pid),
                (("--pod", OTHER_UID), unknown.pid),
                (("--container", "proxy"), docker.pid),
                (("--container", DOCKER_ID[:12]), docker.pid)):
            self.assertEqual(self.pids_of(*arguments), {pid}, arguments)
        self.assertEqual(self.pids_of("--pod", "web"), set())
        document = reports.Document(
            self.history("--pod", "web-0", "--format", "json"))
        self.assertEqual(document.stacks[0]["labels"], {
            "k8s.namespace.name": "shop", "k8s.pod.name": "web-0",
            "k8s.container.name": "nginx"})
        status, body = self.get(
            "/api/history/timeline?seconds=60&by=pod&pod=shop%2Fweb-0")
        self.assertEqual(status, 200, body)
        self.assertEqual([row["name"] for row in json.loads(body)["rows"]],
                         ["shop/web-0"])
        service.end()
        names = history_reader.names_of(
            history_reader.read_directory(self.path("history")))
        self.assertEqual(
            {cgroup.rsplit("/", 1)[1]: name for cgroup, name in names.items()},
            {"cri-containerd-%s.scope" % POD_ID: ("shop", "web-0", "nginx"),
             "docker-%s.scope" % DOCKER_ID: ("", "", "proxy")})

    def test_environment(self):
        # What a process's environment says is there if it is asked for, and
        # nothing else of it; from a reload on it is not.
        variables = {"OTEL_SERVICE_NAME": "shop",
                     "OTEL_RESOURCE_ATTRIBUTES":
                         "team=a%2Cb,k8s.pod.name=vault,service.name=no",
                     "SECRET_OF_TEST": "swordfish"}
        spin = self.workload("spin", env=dict(os.environ, **variables))
        self.more_keys["environment_labels"] = ["OTEL_SERVICE_NAME",
                                                "OTEL_RESOURCE_ATTRIBUTES"]
        self.configure(format="json")
        service = self.start_service()
        self.wait_labels(spin.pid, {"service.name": "shop", "team": "a,b"})
        for path in self.files("json"):
            self.assertNotIn(b"swordfish", harness.read_bytes(path))
        metrics = self.metrics()
        self.assertGreater(metrics['ksym_environments_total{result="read"}'],
                           0)
        self.assertGreater(
            metrics["ksym_environment_attributes_refused_total"], 0)
        del self.more_keys["environment_labels"]
        self.configure(format="json")
        service.process.send_signal(harness.signal.SIGHUP)
        service.wait_log("reloaded")
        self.wait_labels(spin.pid, {})


if __name__ == "__main__":
    harness.main()
