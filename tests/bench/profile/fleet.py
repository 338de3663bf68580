# SPDX-License-Identifier: Apache-2.0
"""A fleet's samples in ClickHouse: bytes per host and day, and inserts."""

import concurrent.futures
import contextlib
import gzip
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import clickhouse_server
import harness
import history
import programs
import tables

RATE_HZ = 19
INTERVAL_SECONDS = 10
QUICK_INTERVAL_SECONDS = 1
# Of each of the load's five parts.
SECONDS = 30
QUICK_SECONDS = 1
HOSTS = 200
# Hosts of a group run the same programs.
GROUPS = 20
QUICK_HOSTS = 20
HOUR_SECONDS = 3600
DAY_SECONDS = 86400
BULK_ROWS = 1_000_000
BULKS = 4
QUICK_BULK_ROWS = 1000
# Intervals of each of 20 hosts that are sent on their own.
TIMES = 20
CLIENTS = 4
MOST_MERGES = 60
SETTING = "allow_experimental_low_cardinality_type=1"
# Different stacks grow as this power of the samples.
GROWTH = 0.75


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(server, query, body=b"", headers=None, setting=""):
    """The answer's bytes."""
    url = "http://127.0.0.1:%d/?%s&%s" % (
        server.port,
        urllib.parse.urlencode({"database": "fleet", "query": query}), setting)
    request = urllib.request.Request(url, body, headers or {}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise programs.Failed(error.read()[:300].decode()) from error


def number(server, query):
    (row,) = server.ask(query)
    return float(row["n"])


def record(context, server):
    """What a service says of a varied load on this machine; its seconds."""
    directory = context.scratch_file("fleet-service")
    os.mkdir(directory)
    config = os.path.join(directory, "config.json")
    with open(config, "w", encoding="ascii") as file:
        json.dump({
            "frequency_hz": RATE_HZ,
            "interval_seconds": QUICK_INTERVAL_SECONDS if context.quick
                                else INTERVAL_SECONDS,
            "history": {"enabled": False}, "http": {"listen": []},
            "stacks": {"cache_directory": os.path.join(directory, "cache")},
            "push": ["clickhouse+http://127.0.0.1:%d/fleet" % server.port],
            "push_spool": {"directory": os.path.join(directory, "spool")}},
            file)
    with subprocess.Popen(
            [context.built("daemon", "ksym-profiled"), "--config", config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=context.environment()) as service:
        try:
            history.run_load(context, QUICK_SECONDS if context.quick
                             else SECONDS, lambda: None)
            # The last interval's own time to be sent.
            time.sleep(2)
        finally:
            service.terminate()
    if number(server, "SELECT count() AS n FROM samples") == 0:
        raise programs.Failed("nothing arrived in ClickHouse")


def merge(server, table):
    """Makes a part of each partition, as a day's are in the end: what is being
    merged already an OPTIMIZE leaves alone."""
    more = (f"SELECT count() - uniqExact(partition) AS n FROM system.parts WHERE "
            f"active AND database = 'fleet' AND table = '{table}'")
    for _ in range(MOST_MERGES):
        post(server, f"OPTIMIZE TABLE {table} FINAL")
        if number(server, more) == 0:
            return
        time.sleep(1)
    raise programs.Failed(f"{table} is not merged")


def widen(server, hosts, span):
    """The table `wide`: an hour of that many hosts, made of the recorded
    seconds over and over, in another order on each; each group has programs
    of its own. Its seconds."""
    copies = max(2, int(HOUR_SECONDS // span))
    # So many of 256 stacks are others in each part.
    new = round(256 * (copies ** GROWTH - 1) / (copies - 1))
    post(server, "CREATE TABLE wide AS samples", setting=SETTING)
    # ARRAY JOIN makes one block of each: small ones, and some hosts at a time.
    for host in range(0, hosts, GROUPS):
        post(server, f"""INSERT INTO wide
            SELECT toDateTime(1800000000 + toUInt32(time) - first +
                                (c + h) % {copies} * {span}) AS t,
              toDateTime(intDiv(toUInt32(t), 3600) * 3600) AS hour_of_t,
              concat(service, '-', toString(h % {GROUPS})),
              concat('host-', toString(h)),
              lower(hex(intHash64(h))), kind, command, unit, namespace, pod,
              container, container_id, version, parked,
              cityHash64(stack, h % {GROUPS}, stack % 256 < {new} ? c : 0),
              count, value
            FROM (SELECT *, c FROM samples ARRAY JOIN range({copies}) AS c)
            CROSS JOIN (SELECT toUInt32(min(time)) AS first FROM samples)
            ARRAY JOIN arrayMap(x -> x + {host}, range({GROUPS})) AS h""",
             setting=SETTING + "&max_block_size=1024")
    merge(server, "wide")
    return copies * span


def stored_bytes(server, table):
    return number(server, "SELECT sum(bytes_on_disk) AS n FROM system.parts "
                  f"WHERE active AND database = 'fleet' AND table = '{table}'")


def size_row(server, hosts, seconds):
    rows = number(server, "SELECT count() AS n FROM wide")
    different = number(server, "SELECT uniqExact(stack) AS n FROM wide")
    # Names of groups differ, as those of their programs do.
    post(server, "CREATE TABLE wide_stacks AS stacks", setting=SETTING)
    post(server, "INSERT INTO wide_stacks SELECT day, cityHash64(stack, g), "
         "arrayMap(x -> concat(x, toString(g)), names), "
         "arrayMap(x -> concat(x, toString(g)), modules), kinds "
         f"FROM stacks ARRAY JOIN range({GROUPS}) AS g")
    merge(server, "wide_stacks")
    each_row = stored_bytes(server, "wide") / rows
    each_stack = (stored_bytes(server, "wide_stacks") /
                  number(server, "SELECT count() AS n FROM wide_stacks"))
    times = DAY_SECONDS / seconds
    samples = each_row * rows * times / hosts / 1e6
    # A stack is there once a day.
    stacks = each_stack * different * times ** GROWTH / hosts / 1e6
    return [f"{hosts} hosts", int(rows), int(different),
            tables.number(each_row, 2), tables.number(each_stack, 0),
            *(tables.number(size, 2)
              for size in (samples, stacks, samples + stacks))]


def insert(server, name, bodies):
    """What it takes when several clients send all of them."""
    post(server, "DROP TABLE IF EXISTS narrow")
    post(server, "CREATE TABLE narrow AS samples", setting=SETTING)
    begin = time.monotonic()
    cpu = harness.cpu_seconds(server.process.pid)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda body: post(
            server, "INSERT INTO narrow FORMAT RowBinary", body,
            {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}),
            bodies))
    seconds = time.monotonic() - begin
    cpu = harness.cpu_seconds(server.process.pid) - cpu
    rows = number(server, "SELECT count() AS n FROM narrow")
    return [name, int(rows), len(bodies),
            tables.number(sum(map(len, bodies)) / rows, 0),
            tables.number(rows / seconds / 1e6, 2),
            tables.number(len(bodies) / seconds, 1),
            tables.number(cpu / rows * 1e6, 2),
            tables.number(cpu / len(bodies) * 1e3, 1)]


def insert_rows(context, server):
    bulk = QUICK_BULK_ROWS if context.quick else BULK_ROWS
    large = [post(server, f"SELECT * FROM wide LIMIT {i * bulk}, {bulk} "
                  "FORMAT RowBinary") for i in range(BULKS)]
    # As hosts send them.
    times = server.ask("SELECT DISTINCT time FROM wide WHERE host = 'host-0' "
                       f"ORDER BY time LIMIT {TIMES}")
    small = [gzip.compress(post(
        server, f"SELECT * FROM wide WHERE host = 'host-{h}' AND time = "
        f"toDateTime('{row['time']}', 'UTC') FORMAT RowBinary"))
        for row in times for h in range(QUICK_HOSTS)]
    return [insert(server, "large", large),
            insert(server, "an interval each", small)]


def run(context):
    if not shutil.which("clickhouse-server"):
        raise programs.Skipped("needs the command clickhouse-server")
    directory = context.scratch_file("clickhouse")
    os.mkdir(directory)
    server = clickhouse_server.Server(directory, free_port(), free_port())
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: server.process and server.kill())
        server.start()
        record(context, server)
        interval = (QUICK_INTERVAL_SECONDS if context.quick
                    else INTERVAL_SECONDS)
        span = interval * int(number(
            server, "SELECT uniqExact(time) AS n FROM samples"))
        recorded = number(server, "SELECT count() AS n FROM samples")
        hosts = QUICK_HOSTS if context.quick else HOSTS
        sizes = [size_row(server, hosts, widen(server, hosts, span))]
        inserts = insert_rows(context, server)
    print(f"An hour of {hosts} hosts, made of {recorded:.0f} rows of {span} s "
          f"of this machine at {RATE_HZ} Hz,\nmerged, zstd: rows and "
          "different stacks; bytes a row and a stack; MB per host and day")
    tables.print_table(["", "rows", "stacks", "B/row", "B/stack", "samples",
                        "stacks", "both"], sizes)
    print(f"Inserts of {CLIENTS} clients into ClickHouse over HTTP; bytes sent "
          "a row, millions of\nrows and requests a second; the server's CPU "
          "seconds for a million rows, and ms for\na request, merges included")
    tables.print_table(["", "rows", "requests", "B/row", "M rows/s",
                        "requests/s", "CPU s", "CPU ms"], inserts)
