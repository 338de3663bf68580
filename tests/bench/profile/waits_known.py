# SPDX-License-Identifier: Apache-2.0
"""Whether times, reasons, wakers and stacks of waits are right."""

import collections
import json
import math
import re
import time

import programs
import waits_programs
import waits_truth
from waits_programs import Row

HZ = 199  # of whose period one of the workload's loops is
PERIOD_NS = 1e9 / HZ
THREAD = re.compile(r"thread (\d+)/(\d+): (\d+) ns running, (\d+) ns runnable,"
                    r" (\d+) ns blocked")


class Found:
    """What a program says: per thread its time and that of whole stacks."""

    def __init__(self):
        self.times = collections.defaultdict(lambda: [0, 0, 0])
        self.waited = collections.Counter()
        self.whole = 0
        self.end_ns = 0  # when it was told to end


class Own(Found):
    """Of ksym-profile, with its document."""

    def __init__(self, out, err):
        super().__init__()
        self.document = json.loads(out)
        frames = self.document["frames"]
        for _, tid, *times in THREAD.findall(err):
            self.times[int(tid)] = list(map(int, times))
        self.stacks = [stack for stack in self.document["stacks"]
                       if "value" in stack]
        for stack in self.stacks:
            stack["names"] = [frames[i]["name"]
                              for i in stack.get("user", [])]
            kernel = [frames[i] for i in stack.get("kernel", [])]
            names = [frame["name"] for frame in kernel]
            at = names.index("--") if "--" in names else len(names)
            stack["waker"] = tuple(names[at + 1:])
            stack["own"] = [name for name in names if "bpf_" in name
                            or name in ("__schedule", "try_to_wake_up")]
            stack["reason"] = next(
                (frame["name"] for frame in kernel if frame["kind"] == "wait"),
                "")
            self.waited[stack["tid"]] += stack["value"]
            if waits_truth.OUTERMOST & set(stack["names"]):
                self.whole += stack["value"]


class Baseline(Found):
    """Of bench_switch_stacks."""

    def __init__(self, out, functions):
        super().__init__()
        for line in out.splitlines():
            tid, value, *frames = line.split()
            if tid == "lost":
                continue
            self.waited[int(tid)] += int(value)
            addresses = [int(frame, 16) for frame in frames]
            if any(begin <= address < end for begin, end in functions
                   for address in addresses):
                self.whole += int(value)


class Bpftrace(Found):
    """Of bpftrace, which has printed names."""

    ENTRY = re.compile(r"@off\[(\d+), (.*?)\]: (\d+)$",
                       re.DOTALL | re.MULTILINE)

    def __init__(self, out):
        super().__init__()
        for tid, stacks, value in self.ENTRY.findall(out):
            self.waited[int(tid)] += int(value)
            names = set(re.findall(r"\s(\w+)\+", stacks))
            if waits_truth.OUTERMOST & names:
                self.whole += int(value)


def sample(context, wanted, make_command, read):
    """(workload, what was found, schedstats) of one run."""
    workload = waits_truth.Workload(context, wanted.seconds)
    try:
        with waits_programs.sampling(context,
                                     make_command(workload)) as running:
            workload.run()
            statistics = workload.schedstats()
            end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            found = read(*running.finish(), workload)
            found.end_ns = end
        return workload, found, statistics
    finally:
        workload.stop()


def worst(values):
    return max(values, default=None)


def peer_errors(workload, found, statistics):
    """(worst % of a life that is wrong, % of all lives that is there)."""
    errors, there, lives = [], 0, 0
    for tid in workload.names:
        life = found.end_ns - workload.made[tid]
        waited = life - statistics[tid][0]
        errors.append(100 * abs(found.waited[tid] - waited) / life)
        there += min(found.waited[tid], waited) + statistics[tid][0]
        lives += life
    return worst(errors), 100 * there / lives


def own_errors(workload, found, statistics):
    """The worst errors of sums in %: of lives, of running, of runnable."""
    ends = {tid: workload.made[tid] + sum(found.times[tid])
            for tid in workload.names}
    end = sorted(ends.values())[len(ends) // 2]
    lives = [100 * abs(ends[tid] - end) / sum(found.times[tid])
             for tid in ends]
    errors = [[100 * abs(found.times[tid][part] - statistics[tid][part])
               / max(statistics[tid][part], 1) for tid in workload.names]
              for part in (0, 1)]
    there = 100 * sum(sum(found.times[tid]) for tid in ends) / sum(
        end - workload.made[tid] for tid in ends)
    return worst(lives), worst(errors[0]), worst(errors[1]), there


def deviation(sampled, truth, life, stacks):
    """In standard deviations: a period's point is waited at or not."""
    share = min(truth / life, 1)
    variance = life / PERIOD_NS * share * (1 - share) + 1
    for stack in stacks:
        points = stack["value"] / PERIOD_NS
        variance += points * max(points / stack["count"] - 1, 0)
    return (sampled - truth) / (PERIOD_NS * math.sqrt(variance))


def deviations(workload, found):
    """{thread's or place's name: how far its samples are off}."""
    result = {}
    for tid, name in workload.names.items():
        times = found.times[tid]
        stacks = [stack for stack in found.stacks if stack["tid"] == tid]
        result[name] = deviation(found.waited[tid], times[1] + times[2],
                                 sum(times), stacks)
        if name != "step":
            continue
        for place, truth in workload.places.items():
            at = [stack for stack in stacks if place in stack["names"]]
            result[place] = deviation(sum(stack["value"] for stack in at),
                                      truth, workload.seconds * 1e9, at)
    return result


def judge_reasons(found):
    """% of samples of known functions whose reason is theirs."""
    right, wrong = 0, collections.Counter()
    for stack in found.stacks:
        called = next((name for name in reversed(stack["names"])
                       if name in waits_truth.CALLED), None)
        if stack["sample_kind"] == "blocked" and called:
            wanted = "[blocked: %s" % waits_truth.CALLED[called]
            is_right = stack["reason"].rstrip("]").split(",")[0] == wanted
        elif "Wait_spin" in stack["names"][-1:]:
            is_right = stack["reason"] == "[runnable: preempted]" or (
                stack["reason"].startswith("[blocked: page fault"))
        else:
            continue
        if is_right:
            right += stack["count"]
        else:
            wrong[called, stack["reason"]] += stack["count"]
    if wrong:
        print("  other reasons:", dict(wrong))
    return 100 * right / max(right + sum(wrong.values()), 1)


def judge_wakers(workload, found):
    """% right of those whom a thread woke, of those whom an interrupt did,
    % unknown of all, and whether the chain leads to its holder."""
    known = {True: [0, 0], False: [0, 0]}
    unknown, chain, wrong = 0, set(), collections.Counter()
    for stack in found.stacks:
        name = workload.names.get(stack["tid"], stack["comm"])
        key = name, stack["reason"][len("[blocked: "):-1]
        by_thread = key in waits_truth.WAKERS
        if not stack["waker"] or not (by_thread
                                      or key in waits_truth.INTERRUPTS):
            continue
        if stack["waker"][0] == "[waker unknown]":
            unknown += stack["count"]
            continue
        is_right = (waits_truth.WAKERS[key](stack["waker"]) if by_thread else
                    stack["waker"] == waits_truth.INTERRUPTS[key])
        known[by_thread][0] += stack["count"] * is_right
        known[by_thread][1] += stack["count"]
        if is_right and by_thread:
            chain.add((name, stack["waker"][0]))
        if not is_right:
            wrong[key, stack["waker"][0]] += stack["count"]
    if wrong:
        print("  other wakers:", dict(wrong))
    total = known[True][1] + known[False][1] + unknown
    return ([100 * right / max(of, 1) for right, of in known.values()],
            100 * unknown / max(total, 1),
            {("third", "second"), ("second", "first")} <= chain)


def uncounted(document):
    samples = document["metadata"]["samples"]
    return (samples["taken"] - samples["emitted"]
            - sum(samples["lost"].values()))


def known(context, wanted):
    """Threads whose waits are known."""
    seconds = max(wanted.seconds, 1)
    print(f"  {seconds:g} s at {HZ} Hz, beside {waits_truth.SPINNERS} that "
          "spin")
    own = sample(
        context, wanted, lambda workload: waits_programs.own_command(
            context, "--off-cpu", "--wakers", "--parked", "-v", "--by", "tid",
            "-F", HZ, "--format", "json", "-p",
            f"{workload.pid},{workload.stopped}"),
        lambda out, err, _: Own(out, err))
    peers = {"baseline": sample(
        context, wanted,
        lambda workload: waits_programs.baseline_command(context,
                                                         workload.pid),
        lambda out, _, workload: Baseline(out, workload.functions))}
    if programs.has_program("bpftrace"):
        peers["bpftrace"] = sample(
            context, wanted,
            lambda workload: waits_programs.bpftrace_command(context,
                                                             workload.pid),
            lambda out, *_: Bpftrace(out))
    return known_rows(own, peers)


def known_rows(own, peers):
    workload, found, statistics = own
    life, running, runnable, there = own_errors(*own)
    errors = {name: peer_errors(*peer) for name, peer in peers.items()}

    def of_peers(which):
        return [errors.get(name, (None, None))[which]
                for name in ("baseline", "bpftrace")]
    whole = [100 * found.whole / max(sum(found.waited.values()), 1)] + [
        100 * peers[name][1].whole / max(sum(peers[name][1].waited.values()),
                                         1) if name in peers else None
        for name in ("baseline", "bpftrace")]
    off = deviations(workload, found)
    print("  standard deviations:", ", ".join(
        f"{name} {sigma:.1f}" for name, sigma in off.items()))
    places = [abs(off[name]) for name in workload.places if name in off]
    right, unknown, is_chain = judge_wakers(workload, found)
    total = sum(off[name] for name in workload.names.values())
    waits = sum(sum(found.times[tid][1:]) for tid in workload.names)
    bias = 100 * abs(sum(found.waited[tid] for tid in workload.names)
                     / waits - 1)
    return [
        Row("running + runnable + blocked against the life, worst thread, % "
            "off (peers: waits)", "< 0.1", life, *of_peers(0), 4),
        Row("running against schedstat, worst thread, % off", "< 0.1",
            running, decimals=4),
        Row("runnable against schedstat, worst thread, % off", "< 0.1",
            runnable, decimals=4),
        Row("threads' time in the report, %", "> 99.9", there, *of_peers(1),
            2),
        Row("samples against sums, worst thread, standard deviations", "< 3.5",
            worst(abs(sigma) for sigma in off.values()), decimals=1),
        Row("same, all threads together, % off", "", bias),
        Row("same, all threads together, standard deviations", "< 3",
            abs(total) / math.sqrt(len(workload.names)), decimals=1),
        Row("same, two waits in step with the sampling", "< 3", worst(places),
            decimals=1),
        Row("reasons right, %", "> 99", judge_reasons(found)),
        Row("wakers right, of waits that a thread ended, %", "> 99",
            right[0]),
        Row("wakers right, of waits that an interrupt ended, %", "> 99",
            right[1]),
        Row("wakers unknown, counted, %", "", unknown),
        Row("the chain of three locks leads to its holder (1: yes)", "> 1",
            int(is_chain), decimals=0),
        Row("time with whole user stacks, no frame pointers, %", "> 99",
            *whole, 2),
        Row("frames of the profiler's own", "< 0",
            sum(len(stack["own"]) for stack in found.stacks), decimals=0),
        Row("samples lost and not counted", "< 0",
            uncounted(found.document), decimals=0)]
