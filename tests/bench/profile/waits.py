# SPDX-License-Identifier: Apache-2.0
"""What --off-cpu, --wall, --wakers and dump do, beside a baseline and bpftrace.

Each part prints rows of one table; --waits chooses parts.
"""

import dataclasses

import programs
import waits_cost
import waits_dump
import waits_known
import waits_programs
import waits_servers
import waits_share

# In the order of the table.
PARTS = {"known": waits_known.known, "quota": waits_share.quota,
         "share": waits_share.share,
         "switch": waits_cost.switch, "servers": waits_servers.servers,
         "ring": waits_cost.ring, "asleep": waits_cost.asleep,
         "memory": waits_cost.memory, "late": waits_dump.late,
         "dump": waits_dump.dump, "beat": waits_dump.beat}
# The others take their time however short their runs are.
QUICK_PARTS = ("known", "switch", "ring", "memory", "dump")


@dataclasses.dataclass
class Wanted:
    """What the command line chose; 0 and nothing: what each part takes."""
    parts: list
    seconds: float
    alternations: int


def run(context):
    chosen = context.waits
    parts = chosen.parts or (QUICK_PARTS if context.quick else PARTS)
    rows = []
    wanted = Wanted(parts, chosen.seconds or (0.5 if context.quick else 2),
                    chosen.alternations or context.runs(9))
    for name in parts:
        print(f"{name}: {PARTS[name].__doc__.splitlines()[0]}", flush=True)
        try:
            found = PARTS[name](context, wanted)
        except programs.Skipped as reason:
            print(f"  skipped: {reason}\n", flush=True)
            continue
        waits_programs.print_rows(found)
        rows += found
    if rows and len(parts) > 1:
        print("All of it:\n")
        waits_programs.print_rows(rows)
