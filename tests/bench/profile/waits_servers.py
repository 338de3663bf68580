# SPDX-License-Identifier: Apache-2.0
"""What servers keep of their throughput while their waits are sampled."""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import time

import programs
import waits_cost
from waits_programs import Row


@contextlib.contextmanager
def redis(context):
    """Gives what measures requests per second. The tools' package has the
    server in the same file, and unlike the server's starts none."""
    tool = shutil.which("redis-check-rdb")
    if tool is None or not programs.has_program("redis-benchmark"):
        raise programs.Skipped("redis-tools is not installed")
    server = context.scratch_file("redis-server")
    if not os.path.exists(server):
        os.symlink(tool, server)
    socket = context.scratch_file("waits.sock")

    def measure(seconds):
        # About that long at 50,000 a second.
        done = subprocess.run(
            ["redis-benchmark", "-q", "-s", socket, "-t", "get", "-c", "50",
             "-n", str(int(50000 * seconds))], capture_output=True, text=True,
            check=True)
        found = re.findall(r"([\d.]+) requests per second", done.stdout)
        return float(found[-1])
    with programs.running(context, [server, "--port", "0", "--unixsocket",
                                    socket, "--save", ""]):
        time.sleep(0.5)
        yield measure


@contextlib.contextmanager
def postgres(context):
    """Gives what measures transactions per second."""
    directories = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not directories or not programs.has_program("pgbench"):
        raise programs.Skipped("postgresql is not installed")
    home = context.scratch_file("waits-postgres")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres",
               "--clear-groups", "env", f"PGHOST={home}"]
    initdb, server = (os.path.join(directories[-1], name)
                      for name in ("initdb", "postgres"))
    os.chmod(context.scratch, 0o711)
    os.mkdir(home)
    shutil.chown(home, "postgres", "postgres")

    def run(*command):
        done = subprocess.run([*as_user, *command], capture_output=True,
                              text=True, check=False, cwd=home)
        if done.returncode:
            raise programs.Failed(" ".join(command[:1]) + ": " +
                                  done.stderr.strip()[-200:])
        return done.stdout

    def measure(seconds):
        out = run("pgbench", "-U", "postgres", "-c", "4", "-S", "-T",
                  str(max(int(seconds), 1)), "postgres")
        return float(re.search(r"tps = ([\d.]+)", out).group(1))
    run(initdb, "-D", home + "/db", "-A", "trust")
    process = subprocess.Popen(
        [*as_user, server, "-D", home + "/db", "-k", home, "-c",
         "listen_addresses="], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, cwd=home)
    try:
        time.sleep(2)
        run("pgbench", "-U", "postgres", "-i", "-s", "2", "postgres")
        yield measure
    finally:
        process.terminate()  # it ends its children
        process.wait()


def servers(context, wanted):
    """pgbench -S -c 4, and redis-benchmark with 50 clients."""
    rows = []
    for name, start in (("pgbench", postgres), ("redis-benchmark", redis)):
        try:
            with start(context) as measure:
                commands = waits_cost.commands_of(
                    context, ["--off-cpu", "--off-cpu --wakers"])
                measure(wanted.seconds)  # what is cold is read
                figures = waits_cost.alternate(
                    context, wanted, commands,
                    lambda: (measure(wanted.seconds),))
        except programs.Skipped as reason:
            print(f"  {name} skipped: {reason}")
            continue

        def kept(which):
            return waits_cost.median_of(
                figures, which, lambda without, beside: beside[0] / without[0])
        rows += [Row(f"throughput kept, {name}, `{mode}`", "> 0.99",
                     kept(mode), kept("baseline"), kept("bpftrace"), 3)
                 for mode in ("--off-cpu", "--off-cpu --wakers")]
    return rows
