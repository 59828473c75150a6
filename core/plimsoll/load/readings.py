"""Defines the readings of one source as columns, and the settings by which they are smoothed and age.

Units throughout this package: cpu in billionths of a core, memory in bytes, times in seconds since the epoch.
Axis letters: M readings, 2 resources (``CPU``, ``MEMORY``).
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Indexes of the two resources.
CPU, MEMORY = 0, 1

#: The cluster's columns have thousandths of cpu and bytes of memory; the factors to our units.
PER_COLUMN_UNIT = (10**6, 1)

#: The largest valid reading: a million cores, a pebibyte. Sums over a node's pods stay within 64 bits.
LARGEST = (10**15, 2**50)

#: Seconds by which a source's clock may be ahead of ours.
AHEAD_S = 60.0


class LoadReading(NamedTuple):
    """The measured use of one node or pod.

    Attributes:
        name: The node's name, or the pod's ``namespace/name``.
        cpu: Billionths of a core, averaged over the window.
        memory: Bytes.
        taken: The end of the window.
        window: Its length in seconds.
    """

    name: str
    cpu: float
    memory: float
    taken: float
    window: float = 0.0


class LoadReadings(Struct, frozen=True, eq=False):
    """Readings of one kind that arrived together.

    Attributes:
        names: M names, each once.
        amounts: Shape (M, 2).
        taken: Shape (M,): the end of each window.
        window: Shape (M,): its length.
    """

    names: Sequence[str]
    amounts: FloatArray
    taken: FloatArray
    window: FloatArray

    @classmethod
    def of(cls, readings: Iterable[LoadReading]) -> Self:
        """The valid ones; of several with one name the latest, then the largest, in whatever order."""
        latest: dict[str, LoadReading] = {}
        for each in readings:
            if is_sound(each):
                known = latest.get(each.name)
                if known is None or (each.taken, each) > (known.taken, known):
                    latest[each.name] = each
        table = np.array([each[1:] for each in latest.values()], dtype=np.float64).reshape(-1, 4)
        return cls(tuple(latest), table[:, :2], table[:, 2], table[:, 3])

    def __len__(self) -> int:
        """Number of readings."""
        return len(self.names)

    def until(self, moment: float) -> "LoadReadings":
        """The readings that were not taken later."""
        if not len(self) or self.taken.max() <= moment:
            return self
        return self.at(np.flatnonzero(self.taken <= moment).tolist())

    def at(self, places: Sequence[int]) -> "LoadReadings":
        """The readings at some indexes."""
        kept = np.array(places, dtype=np.intp)
        names = [self.names[each] for each in places]
        return LoadReadings(names, self.amounts[kept], self.taken[kept], self.window[kept])


def is_sound(reading: LoadReading) -> bool:
    """Whether its numbers are valid: finite, not negative, no more than any machine has."""
    return (
        is_possible(CPU, reading.cpu)
        and is_possible(MEMORY, reading.memory)
        and math.isfinite(reading.taken)
        and 0 <= reading.window < math.inf
    )


def is_possible(resource: int, amount: float) -> bool:
    """Whether a machine could use that much of a resource; NaN is not possible."""
    return 0 <= amount <= LARGEST[resource]


#: No readings.
NOTHING = LoadReadings.of(())


class LoadSettings(Struct, frozen=True, kw_only=True):
    """How readings become expectations.

    Attributes:
        half_life_s: Half-life of a reading's weight in a level.
        warm_up_s: The age below which a pod counts with its prior if that is larger.
        least_readings: The number of readings that a pod needs in addition.
        cpu_percent: The share of its request that a pod without history is expected to use.
        memory_percent: Likewise.
        unrequested: Cpu and memory of a pod that requests neither and has no limit.
        uses_history: Whether new pods are expected to use what the workload's history and predecessors show.
        least_samples: Number of samples below which a workload's history is not used.
        habit_half_lives_s: Half-lives of a sample's weight in a history: cpu, memory.
        peak_quantiles: The part of a history that is not above its peak: cpu, memory.
        peak_margin: The share by which a peak exceeds that while the history is short.
        handed_on_s: Seconds for which the use of a pod that left is expected of its replacement.
        freshest_s: A reading is fresh for at least so long, and for three of its source's intervals.
        stalest_s: A reading is never fresh for longer.
        saturated: The share of a node's allocatable above which its pods' use understates what they would
            use.
        dead_band: The share of a node's allocatable below which a change does not renew its scores.
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
