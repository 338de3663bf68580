# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server whose tables a test fills itself."""

import os
import re
import shutil
import signal
import socket
import urllib.parse
import urllib.request

import clickhouse_server
import harness

DOCS = os.path.join(harness.SOURCE_DIR, "docs/fleet.md")
# LowCardinality wants this of 18.16; later versions still know the name.
WRITE_SETTINGS = {"allow_experimental_low_cardinality_type": 1}


def why_missing():
    """The reason why there is no server here, or None."""
    if shutil.which("clickhouse-server"):
        return None
    return "there is no clickhouse-server (Debian's package)"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class FleetServer(clickhouse_server.Server):
    """One that runs, with the tables of docs/fleet.md in its database "fleet".
    The users "one" and "two" may read, two also say how."""

    def __init__(self, directory, ports=None, shards=()):
        super().__init__(directory, *(ports or free_ports(2)), shards)
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()
        self.create_tables()

    def create_tables(self, database="fleet"):
        block = re.search(r"```sql\n(CREATE TABLE.*?)```",
                          harness.read_text(DOCS), re.DOTALL).group(1)
        for statement in re.split(r"\n(?=CREATE TABLE)", block):
            self.post(self.changed(statement), {"database": database})

    def changed(self, statement):
        """A table as it is to be made here."""
        return statement

    def insert(self, table, rows):
        self.post(rows, {"query": f"INSERT INTO {table} FORMAT RowBinary"})

    def post(self, body, parameters):
        query = urllib.parse.urlencode(
            {"database": "fleet", **WRITE_SETTINGS, **parameters})
        data = body if isinstance(body, bytes) else body.encode()
        with urllib.request.urlopen(f"{self.url}/?{query}", data,
                                    timeout=60) as answer:
            answer.read()

    def count(self, table="samples"):
        return int(self.ask(f"SELECT count() AS n FROM {table}")[0]["n"])

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


class OlderServer(FleetServer):
    """With the table of stacks that services made first."""

    def changed(self, statement):
        older = statement.replace("Array(LowCardinality(String))",
                                  "Array(String)")
        return re.sub(r"PARTITION BY day\n.*?\nSETTINGS",
                      "PARTITION BY day\nORDER BY stack\nSETTINGS", older,
                      flags=re.DOTALL)


class Shard(FleetServer):
    """A server that holds a part of the rows, in its database "shard"."""

    def create_tables(self, database="shard"):
        self.ask("CREATE DATABASE IF NOT EXISTS shard", "default")
        super().create_tables(database)


class ShardedServer(Shard):
    """Two servers, of which this one has the rows of both in "fleet": tables
    that are Distributed as docs/fleet.md says, over those in "shard"."""

    def __init__(self, directory):
        ports = free_ports(4)
        shards = (ports[1], ports[3])
        other = os.path.join(directory, "other")
        os.makedirs(other)
        self.other = Shard(other, ports[2:], shards)
        try:
            super().__init__(directory, ports[:2], shards)
        except BaseException:
            self.other.kill()
            raise

    def create_tables(self, database="shard"):
        super().create_tables(database)
        block = re.search(r"```sql\n(CREATE TABLE samples AS.*?)```",
                          harness.read_text(DOCS), re.DOTALL).group(1)
        for statement in re.split(r"\n\n", block):
            self.post(statement, {})

    def kill(self):
        super().kill()
        self.other.kill()
