# SPDX-License-Identifier: Apache-2.0
"""What every case gets: the profiler, and how long and how much it measures."""

import dataclasses


@dataclasses.dataclass
class Context:
    profiler: str
    samples: int  # of call-heavy code
    hertz: int  # of that, and of scenes
    seconds: float  # of scenes
    churn_seconds: float
    cost_seconds: float = 2
    cost_runs: int = 3
    pairs: int = 9
    memory_seconds: float = 20
    load_seconds: float = 10
    settle_seconds: float = 15  # of a service, with its first profile
    service_seconds: float = 60
    options: tuple = ()  # of all captures

    @classmethod
    def short(cls, profiler):
        """All of it for seconds: proves that it works."""
        return cls(profiler, samples=3000, hertz=1999, seconds=2,
                   churn_seconds=4, cost_seconds=0.5, cost_runs=1, pairs=2,
                   memory_seconds=4, load_seconds=3, settle_seconds=2,
                   service_seconds=3)

    @classmethod
    def full(cls, profiler, samples, hertz):
        return cls(profiler, samples, hertz, seconds=15, churn_seconds=60)
