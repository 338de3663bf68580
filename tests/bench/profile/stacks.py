"""Samples lost, or left without their stack, with 10,000 call paths."""

import programs
import tables

PATHS = 10_000
RATE_HZ = 4999
BPFTRACE = ("profile:hz:{} {{ @taken = count(); "
            "@kept[kstack, ustack, comm] = count(); }} "
            "interval:ms:{} {{ exit(); }}")


def measure_ours(context, store, seconds):
    samples = programs.profile_to_json(
        context, ["-F", str(RATE_HZ), "--stack-map", store,
                  str(seconds)])["samples"]
    return [f"ksym-profile, {store}", samples["taken"],
            sum(samples["lost"].values()), samples["damaged"]["collision"]]


def measure_bpftrace(context, seconds):
    """Its map keeps what fits; the rest it loses without a word."""
    sums = programs.bpftrace_counts(programs.run_bpftrace(
        context, BPFTRACE.format(RATE_HZ, int(seconds * 1000))))
    if "@taken" not in sums:
        raise programs.Failed("bpftrace did not print its counts")
    taken = sums["@taken"]
    return ["bpftrace (default map size)", taken,
            taken - sums.get("@kept", 0), "-"]


def run(context):
    seconds = 0.5 if context.quick else 8
    rows = []
    with programs.load(context, programs.online_cpus(), "paths", PATHS):
        for store in ("exact", "stackid"):
            rows.append(measure_ours(context, store, seconds))
        if programs.has_program("bpftrace"):
            rows.append(measure_bpftrace(context, min(seconds, 3)))
    for row in rows:
        damaged = row[3] if isinstance(row[3], int) else 0
        share = tables.ratio(100 * (row[2] + damaged), row[1])
        row.append(tables.number(share, 2))
    print(f"{PATHS} call paths at {RATE_HZ} Hz for {seconds} s "
          "(bpftrace: 3 s at most)")
    tables.print_table(
        ["program", "taken", "lost", "without stack", "% of taken"], rows)
