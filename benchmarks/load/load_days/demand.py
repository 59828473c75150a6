"""Demand is the use of every pod at every moment if its node let it: the truth behind readings and measures.

Formula, for pod ``i`` of workload ``w`` at time t, with x a row of the trace read at an offset of its own::

    use[i](t) = f * request[i] * mean[w] * (1 + sqrt(rho) * d(x_w) + sqrt(1 - rho) * d(x_i)) * wave(t)
    d(x)      = x(t) / mean(x) - 1

so that replicas have one mean, and their deviations correlate by ``rho``. Between two samples it is linear.
With fine grain there is noise (an AR(1) process, 20 % at one sigma, correlation 0.8 after 15 s),
a twentieth of the pods bursts to twice its use for two to five minutes at random, and a pod that starts uses
three times as much for two minutes, but no more than its request and its usual use.

Units: milli-cores and bytes. Array axis: slots, one for each pod that ever lived.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from load_days.traces import SAMPLE_S, SAMPLES, Floats, Traces

DAY_S = 86_400.0

#: Seconds of a start-up, and how often a pod's use it takes.
STARTING_S, STARTING = 120.0, 3.0

#: Of memory: the share of the request that the trace's 100 % is.
MEMORY_FACTOR = 1.0


@dataclass(slots=True)
class Shape:
    """How one pod uses what it asked for; a replacement has that of the pod before it.

    Attributes:
        row: Of the trace, for the workload; ``own_row`` for the pod alone.
        offset: Samples by which the row is rotated; ``own_offset`` likewise.
        phase: Of the daily wave, in radians.
        fixed: Milli-cores, whatever the trace says; 0 for none.
    """

    row: int
    offset: float
    own_row: int
    own_offset: float
    cpu: int
    memory: int
    phase: float = 0.0
    fixed: float = 0.0


@dataclass(slots=True)
class Demand:
    """The use of all pods, by slot.

    Attributes:
        factor: f; a world sets it so that its pods use what its scenario says.
        correlation: rho.
        wave: Amplitude of the daily wave, 0 for none.
        cpu_means: Of each row of the trace.
        grain_s: Seconds between two moments; below 60 the grain is fine.
    """

    traces: Traces
    factor: float
    correlation: float
    wave: float
    grain_s: float
    seed: int
    count: int = 0
    _held: dict[str, Floats] = field(default_factory=dict, init=False)
    cpu_means: Floats = field(init=False)
    _memory_means: Floats = field(init=False)
    _chance: np.random.Generator = field(init=False)
    _noise: Floats = field(init=False)
    _burst_until: Floats = field(init=False)

    def __post_init__(self) -> None:
        names = ("row", "offset", "own_row", "own_offset", "cpu", "memory", "phase", "fixed", "started")
        self._held = {name: np.zeros(1024) for name in names}
        self.cpu_means = self.traces.cpu[:, :SAMPLES].mean(axis=1)
        self._memory_means = self.traces.memory[:, :SAMPLES].mean(axis=1)
        self._chance = np.random.default_rng([self.seed, 7])
        self._noise = np.zeros(1024)
        self._burst_until = np.zeros(1024)

    @property
    def is_fine(self) -> bool:
        """Whether there is what five-minute samples hide."""
        return self.grain_s < 60.0

    def add(self, shape: Shape, started: float) -> int:
        """A pod; its slot."""
        slot, self.count = self.count, self.count + 1
        if slot == len(self._noise):
            self._held = {name: np.concatenate([each, np.zeros(slot)]) for name, each in self._held.items()}
            self._noise = np.concatenate([self._noise, np.zeros(slot)])
            self._burst_until = np.concatenate([self._burst_until, np.zeros(slot)])
        for name in self._held:
            if name != "started":
                self._held[name][slot] = getattr(shape, name)
        self._held["started"][slot] = started
        return slot

    def start(self, slot: int, at: float) -> None:
        """The pod runs from now on."""
        self._held["started"][slot] = at

    def cpu(self, at: float | Floats, slots: NDArray[np.intp], *, fine: bool = True) -> Floats:
        """Milli-cores, shape (slots,); of one slot at several moments, shape (moments,)."""
        held = {name: each[slots] for name, each in self._held.items()}
        rows, own = held["row"].astype(np.intp), held["own_row"].astype(np.intp)
        shared = _read(self.traces.cpu, rows, held["offset"], at) / self.cpu_means[rows] - 1
        alone = _read(self.traces.cpu, own, held["own_offset"], at) / self.cpu_means[own] - 1
        moving = 1 + np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * alone
        level = self.cpu_means[rows] * np.maximum(moving, 0.05)
        if self.wave:
            level = level * (1 + self.wave * np.sin(2 * np.pi * at / DAY_S + held["phase"]))
        used: Floats = self.factor * held["cpu"] * level
        if fine and self.is_fine:
            bursting = self._burst_until[slots] > at
            used = used * np.maximum(1 + self._noise[slots], 0.2) * np.where(bursting, 2.0, 1.0)
            usual = used
            starting = (at - held["started"] < STARTING_S) & (held["started"] > 0)
            used = np.where(starting, np.minimum(STARTING * usual, held["cpu"] + usual), usual)
        return np.where(held["fixed"] > 0, held["fixed"], used)

    def memory(self, at: float, slots: NDArray[np.intp]) -> Floats:
        """Bytes, shape (slots,)."""
        rows, offsets = self._held["row"][slots].astype(np.intp), self._held["offset"][slots]
        return MEMORY_FACTOR * self._held["memory"][slots] * _read(self.traces.memory, rows, offsets, at)

    def series(self, slot: int, at: float, steps: int) -> Floats:
        """Milli-cores of one pod from now on, every five minutes, without noise; shape (steps,)."""
        moments: Floats = at + SAMPLE_S * np.arange(steps, dtype=np.float64)
        return self.cpu(moments, np.array([slot]), fine=False)

    def step(self, at: float) -> None:
        """Time goes on by one grain: noise moves, bursts begin."""
        if not self.is_fine or not self.count:
            return
        n = self.count
        keep = 0.8 ** (self.grain_s / 15.0)
        fresh = self._chance.normal(0.0, 0.2 * np.sqrt(1 - keep**2), n)
        self._noise[:n] = keep * self._noise[:n] + fresh
        # a twentieth of the time in bursts of 210 s on average
        begins = self._chance.random(n) < 0.05 * self.grain_s / 210.0
        length = self._chance.uniform(120.0, 300.0, n)
        self._burst_until[:n] = np.where(begins, at + length, self._burst_until[:n])


def _read(table: Floats, rows: NDArray[np.intp], offsets: Floats, at: float | Floats) -> Floats:
    """The series at a moment, linear between samples; shape of ``rows``."""
    position = (offsets + at / SAMPLE_S) % SAMPLES
    before = position.astype(np.intp)
    share = position - before
    found: Floats = table[rows, before] * (1 - share) + table[rows, before + 1] * share
    return found
