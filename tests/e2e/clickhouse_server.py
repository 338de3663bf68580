# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server of a test's own, which may be killed, and what stands
between it and its clients."""

import collections
import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import harness
import reports

CONFIG = """<yandex>
 <logger><level>warning</level><console>true</console></logger>
 <http_port>%(http)d</http_port><tcp_port>%(tcp)d</tcp_port>
 <listen_host>127.0.0.1</listen_host>
 <compression><case><min_part_size>0</min_part_size>
  <min_part_size_ratio>0</min_part_size_ratio><method>zstd</method>
 </case></compression>
 <mark_cache_size>67108864</mark_cache_size>
 <path>%(data)s/</path><tmp_path>%(data)s/tmp/</tmp_path>
 <format_schema_path>%(data)s/formats/</format_schema_path>
 <users_config>%(users)s</users_config>
 <default_profile>default</default_profile>
 <default_database>default</default_database>
 <remote_servers><shards>%(shards)s</shards></remote_servers>
 <!-- Days are UTC's wherever the server is. -->
 <timezone>America/New_York</timezone>
</yandex>
"""
SHARD = """<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>"""
USERS = """<yandex>
 <profiles><default><max_memory_usage>2000000000</max_memory_usage>
   <insert_distributed_sync>1</insert_distributed_sync></default>
  <one><readonly>1</readonly></one><two><readonly>2</readonly></two>
 </profiles>
 <users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks>
   <profile>default</profile><quota>default</quota></default>
  <writer><password>a:b</password><networks><ip>127.0.0.1</ip></networks>
   <profile>default</profile><quota>default</quota></writer>
  <one><password>a:b</password><networks><ip>127.0.0.1</ip></networks>
   <profile>one</profile><quota>default</quota></one>
  <two><password>a:b</password><networks><ip>127.0.0.1</ip></networks>
   <profile>two</profile><quota>default</quota></two>
 </users>
 <quotas><default><interval><duration>3600</duration><queries>0</queries>
  <errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows>
  <execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""


class Server:
    """clickhouse-server on a port of the loopback, with a database "fleet".
    `shards`: TCP ports of the servers of its cluster "shards"."""

    def __init__(self, directory, http, tcp, shards=()):
        self.port = http
        self.log = os.path.join(directory, "clickhouse.log")
        self.config = os.path.join(directory, "clickhouse.xml")
        data, users = (os.path.join(directory, name)
                       for name in ("clickhouse", "users.xml"))
        os.makedirs(data)
        harness.write_text(users, USERS)
        harness.write_text(self.config, CONFIG % {
            "http": http, "tcp": tcp, "data": data, "users": users,
            "shards": "".join(SHARD % port for port in shards or (tcp,))})
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["clickhouse-server", "--config-file=" + self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=harness.die_with_parent)
        harness.wait_for(self.answers, "ClickHouse", 60)
        self.ask("CREATE DATABASE IF NOT EXISTS fleet", "default")

    def answers(self):
        reports.expect(self.process.poll() is None,
                       "ClickHouse ended: see " + self.log)
        with contextlib.suppress(OSError):
            return self.ask("SELECT 1", "default")
        return None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, query, database="fleet"):
        """The rows of an answer, as dictionaries; none of other queries."""
        if query.lstrip().startswith("SELECT"):
            # 18.16 takes the format of a UNION's last query for that of all.
            query = "SELECT * FROM (%s) FORMAT JSONEachRow" % query
        url = "http://127.0.0.1:%d/?%s" % (
            self.port, urllib.parse.urlencode({"database": database}))
        try:
            with urllib.request.urlopen(url, query.encode(),
                                        timeout=60) as answer:
                return [json.loads(line) for line in answer]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error


class AnswerThief:
    """A way to a server that loses some of its answers, after the server has
    said all: of each `every`th insert into each table; 0: none."""

    def __init__(self, port, server_port, every):
        self.server_port = server_port
        self.every = every
        self.inserts = collections.Counter()  # by table
        self.lost = collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.pass_on, daemon=True,
                                 args=(client,)).start()

    def loses(self, request):
        insert = re.match(rb"POST [^ ]*INSERT(?:%20|\+)INTO(?:%20|\+)(\w+)",
                          request)
        if not insert:
            return False
        table = insert[1].decode()
        self.inserts[table] += 1
        loses = self.every and self.inserts[table] % self.every == 0
        self.lost[table] += bool(loses)
        return loses

    def pass_on(self, client):
        with client, contextlib.suppress(OSError):
            client.settimeout(30)
            request = self.read_request(client)
            with socket.create_connection(
                    ("127.0.0.1", self.server_port), 30) as server:
                server.sendall(request.replace(
                    b"\r\n", b"\r\nConnection: close\r\n", 1))
                answer = b""
                while True:
                    piece = server.recv(65536)
                    if not piece:
                        break
                    answer += piece
            if not self.loses(request):
                client.sendall(answer)

    @staticmethod
    def read_request(client):
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(65536)
        head = request.partition(b"\r\n\r\n")[0]
        # What the client itself says of the connection goes.
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
        while len(request) < len(head) + 4 + length:
            request += client.recv(65536)
        return re.sub(rb"(?i)connection: [^\r]*\r\n", b"", request, count=1)

