# SPDX-License-Identifier: Apache-2.0
"""The package goes without a trace."""

import os
import subprocess

from checks import check, expect, run, wait_for
import machine_state


@check("apt purge")
def purged():
    # Running, with profiles and caches on the disk.
    run("systemctl", "enable", "--now", "ksym-profiled")
    run("apt-get", "purge", "-y", "ksym", seconds=300)
    state = run("systemctl", "show", "-p", "LoadState,ActiveState",
                "ksym-profiled")
    expect("not-found" in state and "ActiveState=inactive" in state, state)
    expect(subprocess.run(["pgrep", "ksym-profiled"],
                          check=False).returncode == 1, "it runs")
    left = machine_state.left_behind()
    expect(left == [], "left behind: %s" % left)
    missing = machine_state.gone()
    expect(missing == [], "gone as well: %s" % missing)
    expect(not os.path.exists("/run/ksym-profiled"), "/run/ksym-profiled")
    # The kernel frees programs a moment after their owner's end.
    wait_for(lambda: not any(
        name in ("sample_by_loop", "sample_by_step", "sample_exact")
        for name in machine_state.program_names()), "BPF programs to go")
