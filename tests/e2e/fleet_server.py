# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server of one test: at a free port of the loopback, with all it
has in a directory of the test."""

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

CONFIG = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{between}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host>
<max_concurrent_queries>50</max_concurrent_queries>
<mark_cache_size>67108864</mark_cache_size>
<path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path>
<users_config>users.xml</users_config>
<default_profile>default</default_profile>
<default_database>default</default_database>
<!-- Days are UTC wherever the server is. -->
<timezone>America/New_York</timezone>
<mlock_executable>false</mlock_executable>
</yandex>
"""
USERS = """<yandex>
<profiles><default><max_memory_usage>1000000000</max_memory_usage>
<max_threads>2</max_threads></default>
<one><readonly>1</readonly></one><two><readonly>2</readonly></two></profiles>
<users><one><password>se:same</password><networks><ip>127.0.0.1</ip></networks>
<profile>one</profile><quota>default</quota></one>
<two><password>se:same</password><networks><ip>127.0.0.1</ip></networks>
<profile>two</profile><quota>default</quota></two>
<default><password></password>
<networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default><interval><duration>3600</duration><queries>0</queries>
<errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows>
<execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""
# LowCardinality wants this of 18.16; later versions still know the name.
WRITE_SETTINGS = {"allow_experimental_low_cardinality_type": 1}


def program():
    """The command that runs a server, or None."""
    for name in ("clickhouse-server", "/usr/sbin/clickhouse-server"):
        found = shutil.which(name)
        if found:
            return [found]
    found = shutil.which("clickhouse")
    return [found, "server"] if found else None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class ClickHouseServer:
    def __init__(self, directory):
        self.port, tcp, between = free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = os.path.join(directory, "server.log")
        for name in ("data", "tmp"):
            os.makedirs(os.path.join(directory, name))
        config = os.path.join(directory, "config.xml")
        for path, text in ((config, CONFIG.format(
                http=self.port, tcp=tcp, between=between, path=directory)),
                           (os.path.join(directory, "users.xml"), USERS)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                program() + ["--config-file", config], cwd=directory,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.wait()
        except BaseException:
            self.end()
            raise

    def wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.ask("SELECT 1")
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            raise RuntimeError("no ClickHouse server: " + log.read()[-2000:])

    def ask(self, sql, body=b"", database=None):
        """The answer's bytes. With a body: what is inserted."""
        settings = dict(WRITE_SETTINGS)
        if database:
            settings["database"] = database
        text = sql.encode()
        if body:
            settings["query"] = sql
            text = body
        request = urllib.request.Request(
            f"{self.url}/?{urllib.parse.urlencode(settings)}", data=text)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(
                f"{sql[:300]}: {error.read()[:1000]}") from None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()
