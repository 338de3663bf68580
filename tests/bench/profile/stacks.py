"""Samples lost, or left without their stack, with 10,000 call paths."""

import programs
import tables

PATHS = 10_000
RATE_HZ = 4999
BPFTRACE_ATTEMPTS = 2  # now and then it ends without printing its maps
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
    name = "bpftrace (default map size)"
    for _ in range(BPFTRACE_ATTEMPTS):
        sums = programs.bpftrace_counts(programs.run_bpftrace(
            context, BPFTRACE.format(RATE_HZ, int(seconds * 1000))))
        if "@taken" in sums:
            taken = sums["@taken"]
            return [name, taken, taken - sums.get("@kept", 0), None]
    return [name, None, None, None]


def run(context):
    seconds = 0.5 if context.quick else 8
    rows = []
    with programs.load(context, programs.online_cpus(), "paths", PATHS):
        for store in ("exact", "stackid"):
            rows.append(measure_ours(context, store, seconds))
        if programs.has_program("bpftrace"):
            rows.append(measure_bpftrace(context, min(seconds, 3)))
    print(f"{PATHS} call paths at {RATE_HZ} Hz for {seconds} s "
          "(bpftrace: 3 s at most)")
    tables.print_table(
        ["program", "taken", "lost", "without stack", "% of taken"],
        [[name] + [tables.number(figure, 0)
                   for figure in (taken, lost, damaged)] +
         [tables.number(tables.ratio(100 * ((lost or 0) + (damaged or 0)),
                                     taken), 2)]
         for name, taken, lost, damaged in rows])
