"""LoadReadings are the readings of one source as columns, LoadSettings the numbers that judge them.

Units throughout this package: cpu in billionths of a core, memory in bytes, times in seconds since the epoch.
Axis letters: M readings, 2 resources (``CPU``, ``MEMORY``).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: The places of the two resources.
CPU, MEMORY = 0, 1

#: The columns of the cluster have cpu in thousandths and memory in bytes; times this they are in our units.
PER_COLUMN_UNIT = (10**6, 1)

#: No reading is larger: a million cores, a pebibyte. Sums over the pods of a node stay within 64 bits.
LARGEST = (10**15, 2**50)

#: Seconds that a source's clock may be ahead of ours.
AHEAD_S = 60.0


class LoadReading(NamedTuple):
    """What one node or pod used.

    Attributes:
        name: Of the node, or ``namespace/name`` of the pod.
        cpu: Billionths of a core, the mean over the window.
        memory: Bytes.
        taken: When the window ended.
        window: Its length in seconds.
    """

    name: str
    cpu: float
    memory: float
    taken: float
    window: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LoadReadings:
    """The readings of one kind that came together.

    Attributes:
        names: M names, each once.
        amounts: Shape (M, 2).
        taken: Shape (M,): when each one's window ended.
        window: Shape (M,): how long it was.
    """

    names: Sequence[str]
    amounts: FloatArray
    taken: FloatArray
    window: FloatArray

    @classmethod
    def of(cls, readings: Iterable[LoadReading]) -> Self:
        """Those that make sense; of several with one name the latest, then the largest, in whatever order."""
        latest: dict[str, LoadReading] = {}
        for each in readings:
            if is_sound(each):
                known = latest.get(each.name)
                if known is None or (each.taken, each) > (known.taken, known):
                    latest[each.name] = each
        table = np.array([each[1:] for each in latest.values()], dtype=np.float64).reshape(-1, 4)
        return cls(tuple(latest), table[:, :2], table[:, 2], table[:, 3])

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

    def until(self, moment: float) -> "LoadReadings":
        """Those that were not taken later."""
        if not len(self) or self.taken.max() <= moment:
            return self
        return self.at(np.flatnonzero(self.taken <= moment).tolist())

    def at(self, places: Sequence[int]) -> "LoadReadings":
        """Those at some places."""
        kept = np.array(places, dtype=np.intp)
        names = [self.names[each] for each in places]
        return LoadReadings(names, self.amounts[kept], self.taken[kept], self.window[kept])


def is_sound(reading: LoadReading) -> bool:
    """Whether its numbers may be true: finite, not negative, no more than any machine has."""
    return (
        is_possible(CPU, reading.cpu)
        and is_possible(MEMORY, reading.memory)
        and math.isfinite(reading.taken)
        and 0 <= reading.window < math.inf
    )


def is_possible(resource: int, amount: float) -> bool:
    """Whether some machine could use that much of a resource; not a number is not possible."""
    return 0 <= amount <= LARGEST[resource]


#: No readings.
NOTHING = LoadReadings.of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How readings become expectations.

    Attributes:
        half_life_s: In which half of a reading's weight is gone from a level.
        warm_up_s: The age below which a pod counts with its prior where that is more.
        least_readings: As many readings does a pod need besides that.
        cpu_percent: Share of its request that a pod without a history is taken to use.
        memory_percent: Likewise.
        unrequested: Cpu and memory of a pod that requests neither and has no limit.
        uses_history: Whether the workload's history and predecessors say what a new pod will use.
        least_samples: Samples of a workload below which its history says nothing.
        habit_half_lives_s: In which half of a sample's weight is gone from a history: cpu, memory.
        peak_quantiles: Which part of a history is not above its peak: cpu, memory.
        peak_margin: By which share a peak is larger than that while little is known.
        handed_on_s: How long a pod that left says what its replacement will use.
        freshest_s: A reading is fresh for at least so long, and for three of its source's intervals.
        stalest_s: And never for longer than that.
        saturated: The share of a node's room above which what pods use says less than what they would use.
        dead_band: The share of a node's room below which a change is not worth computing its scores again.
    """

    half_life_s: float = 600.0
    warm_up_s: float = 300.0
    least_readings: int = 3
    cpu_percent: int = 85
    memory_percent: int = 70
    unrequested: tuple[int, int] = (250 * 10**6, 200 * 2**20)
    uses_history: bool = True
    least_samples: int = 30
    habit_half_lives_s: tuple[float, float] = (86_400.0, 172_800.0)
    peak_quantiles: tuple[float, float] = (0.95, 0.98)
    peak_margin: float = 0.10
    handed_on_s: float = 600.0
    freshest_s: float = 60.0
    stalest_s: float = 300.0
    saturated: float = 0.90
    dead_band: float = 0.01
