# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `-F 99 1`: what a capture costs who starts it."""

import contextlib

import programs
import tables

RUNS = 7
BPFTRACE_RUNS = 3  # each takes seconds, and varies little beside them
BPFTRACE = ("profile:hz:99 { @[kstack, ustack, comm] = count(); } "
            "interval:s:1 { exit(); }")


def measure_ours(context):
    """One capture: what it cost, and where the time beyond 1 s went."""
    run = programs.run_measured(context, [
        context.profiler, "-F", "99", "-o",
        context.scratch_file("out.folded"), "1"])
    started = run.line_with("Sampling at")
    figures = {"wall": run.wall - 1, "rss": run.peak_rss_mib,
               "cpu": run.cpu_seconds}
    if started is not None:
        # The last line is printed when everything is written.
        figures["start"] = started[0] - run.start
        figures["report"] = run.lines[-1][0] - started[0] - 1
        figures["exit"] = run.end - run.lines[-1][0]
    return figures


def measure_perf(context):
    data = context.scratch_file("perf.data")
    record = programs.run_measured(context, [
        "perf", "record", "-o", data, "-F", "99", "-a", "-g", "sleep", "1"])
    with open(context.scratch_file("perf.txt"), "wb") as output:
        script = programs.run_measured(
            context, ["perf", "script", "-i", data], stdout=output)
    return {"wall": record.wall + script.wall - 1,
            "rss": max(record.peak_rss_mib, script.peak_rss_mib),
            "cpu": record.cpu_seconds + script.cpu_seconds}


def measure_bpftrace(context):
    run = programs.run_measured(context, [
        "bpftrace", "-o", context.scratch_file("bpftrace.txt"), "-e",
        BPFTRACE])
    return {"wall": run.wall - 1, "rss": run.peak_rss_mib,
            "cpu": run.cpu_seconds}


def measure_load(context, load):
    """{program: {figure: median}} under one load."""
    samples = {"ksym-profile": [], "perf": [], "bpftrace": []}
    with load:
        # In turns, so that a change of the machine's mood meets all.
        for i in range(context.runs(RUNS)):
            samples["ksym-profile"].append(measure_ours(context))
            if programs.has_program("perf"):
                samples["perf"].append(measure_perf(context))
            if programs.has_program("bpftrace") and i < BPFTRACE_RUNS:
                samples["bpftrace"].append(measure_bpftrace(context))
    return {program: {figure: tables.median([run.get(figure) for run in runs])
                      for figure in (runs[0] if runs else {})}
            for program, runs in samples.items()}


def print_figures(results, figure, decimals):
    rows = []
    for load, programs_ in results.items():
        ours = programs_["ksym-profile"].get(figure)
        row = [load, tables.number(ours, decimals)]
        for peer in ("perf", "bpftrace"):
            theirs = programs_[peer].get(figure)
            row += [tables.number(theirs, decimals),
                    tables.number(tables.ratio(ours, theirs), 3)]
        rows.append(row)
    tables.print_table(
        ["load", "ksym-profile", "perf", "ratio", "bpftrace", "ratio"], rows)


def run(context):
    results = {"idle": measure_load(context, contextlib.nullcontext())}
    if not context.quick:
        results["a spinner per CPU"] = measure_load(
            context,
            programs.load(context, programs.online_cpus(), "depth", 26))
    print(f"Seconds beyond the capture's one, median of {context.runs(RUNS)} "
          f"runs, bpftrace {context.runs(BPFTRACE_RUNS)}\n(-F 99 1; perf: "
          "record -a -g and script)")
    print_figures(results, "wall", 3)
    print("Peak RSS, MiB (perf: the larger of its two)")
    print_figures(results, "rss", 1)
    print("CPU time, seconds")
    print_figures(results, "cpu", 3)
    print("Where ksym-profile's seconds go: until the first sample, from the "
          "capture's end until\nthe report is written, until the process is "
          "gone")
    tables.print_table(
        ["load", "start", "report", "exit"],
        [[load] + [tables.number(programs_["ksym-profile"].get(phase), 3)
                   for phase in ("start", "report", "exit")]
         for load, programs_ in results.items()])
