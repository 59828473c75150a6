"""Smooths the readings of many named things by their times.

Formula: with ``a = 1 - 2^(-dt / half-life)``, where ``dt`` is the time between two readings of a thing,
``level += a * (x - level)`` and ``variance = (1 - a) * (variance + a * (x - level)^2)`` with the old level.
Edges: the first reading is the level; a reading that is not later than the latest one is ignored.
Source: West, "Updating mean and variance estimates" (1979), with exponential weights (Finch, 2009).

Axis letters: K things, in order of appearance; columns are allocated for more.
"""

from collections.abc import Collection

import numpy as np

from plimsoll.load.readings import FloatArray, LoadReadings
from plimsoll.model.columns.columns import RowArray, grown

#: Assumed seconds between readings of a thing that has had only one.
FIRST_INTERVAL_S = 15.0

#: Half-life of a reading's weight in recent use, in seconds.
RECENT_HALF_LIFE_S = 90.0


class SmoothedReadings:
    """Smoothed readings of named things.

    Args:
        half_life_s: Half-life of a reading's weight in ``level``.
        recent_half_life_s: Half-life of a reading's weight in ``recent``.

    Attributes:
        places: Index of each name on the K axis.
        level: Shape (K, 2).
        recent: Shape (K, 2): the level with the shorter half-life.
        variance: Shape (K, 2).
        latest: Shape (K, 2): the latest reading.
        taken: Shape (K,): the time of the latest reading.
        window: Shape (K,): its window in seconds.
        first: Shape (K,): the time of the first reading.
        count: Shape (K,): number of counted readings.
        interval: Shape (K,): seconds between the latest two.
        since: Shape (K,): a reading whose window began earlier belongs to another thing of that name.
    """

    def __init__(self, half_life_s: float, recent_half_life_s: float = RECENT_HALF_LIFE_S) -> None:
        self._half_life_s, self._recent_half_life_s = half_life_s, recent_half_life_s
        self.places: dict[str, int] = {}
        self.level = np.zeros((0, 2))
        self.recent = np.zeros((0, 2))
        self.variance = np.zeros((0, 2))
        self.latest = np.zeros((0, 2))
        self.taken = np.zeros(0)
        self.window = np.zeros(0)
        self.first = np.zeros(0)
        self.count = np.zeros(0, dtype=np.int64)
        self.interval = np.zeros(0)
        self.since = np.zeros(0)

    def add(self, readings: LoadReadings) -> RowArray:
        """Add readings, each name once; returns the indexes of the counted ones."""
        places = self._places_of(readings)
        newer = readings.taken > self.taken[places]
        newer &= readings.taken - readings.window >= self.since[places]
        if not newer.all():
            places = places[newer]
            amounts, taken = readings.amounts[newer], readings.taken[newer]
            window = readings.window[newer]
        else:
            amounts, taken, window = readings.amounts, readings.taken, readings.window
        is_first = self.count[places] == 0
        elapsed = np.where(is_first, np.inf, taken - self.taken[places])
        weight = (1.0 - np.exp2(-elapsed / self._half_life_s))[:, None]
        level, variance = self.level[places], self.variance[places]
        gap = amounts - level
        self.level[places] = np.where(is_first[:, None], amounts, level + weight * gap)
        self.variance[places] = np.where(
            is_first[:, None], 0.0, (1.0 - weight) * (variance + weight * gap * gap)
        )
        brief = (1.0 - np.exp2(-elapsed / self._recent_half_life_s))[:, None]
        recent = self.recent[places]
        self.recent[places] = np.where(is_first[:, None], amounts, recent + brief * (amounts - recent))
        self.latest[places] = amounts
        self.interval[places] = np.where(is_first, FIRST_INTERVAL_S, elapsed)
        self.first[places] = np.where(is_first, taken, self.first[places])
        self.taken[places] = taken
        self.window[places] = window
        self.count[places] += 1
        return places

    def begin(self, place: int, since: float) -> None:
        """Record that the thing of this name began to exist at that time, if it is not known yet."""
        if self.since[place] < since and self.first[place] - self.window[place] < since:
            self.restart(place, since)

    def restart(self, place: int, since: float) -> None:
        """Record that another thing has this name since then: older readings are not its own."""
        taken = self.taken[place]
        self.level[place] = self.recent[place] = self.latest[place]
        self.variance[place] = 0.0
        is_own = taken - self.window[place] >= since
        self.count[place] = int(is_own)
        self.since[place] = since
        self.first[place] = taken
        self.interval[place] = FIRST_INTERVAL_S

    def forget(self, before: float, kept: Collection[str]) -> bool:
        """Drop things last read before that moment, except ``kept``; returns whether indexes changed."""
        gone = [
            name for name, place in self.places.items() if self.taken[place] < before and name not in kept
        ]
        if 4 * len(gone) <= len(self.places):
            return False  # too few to rearrange the others
        for name in gone:
            del self.places[name]
        stay = np.array(list(self.places.values()), dtype=np.intp)
        self.level, self.variance, self.latest = self.level[stay], self.variance[stay], self.latest[stay]
        self.recent = self.recent[stay]
        self.taken, self.window, self.first = self.taken[stay], self.window[stay], self.first[stay]
        self.count, self.interval, self.since = self.count[stay], self.interval[stay], self.since[stay]
        self.places = {name: place for place, name in enumerate(self.places)}
        return True

    def fresh_for(self, places: RowArray, least_s: float, most_s: float) -> FloatArray:
        """Seconds for which the latest reading of each counts: three of its intervals."""
        return np.minimum(np.maximum(3.0 * self.interval[places], least_s), most_s)

    def _places_of(self, readings: LoadReadings) -> RowArray:
        places = self.places
        found = [places.get(name, -1) for name in readings.names]
        if -1 in found:
            found = [places.setdefault(name, len(places)) for name in readings.names]
        if len(places) > len(self.taken):
            capacity = max(64, 2 * len(places))
            self.level = grown(self.level, capacity)
            self.recent = grown(self.recent, capacity)
            self.variance = grown(self.variance, capacity)
            self.latest = grown(self.latest, capacity)
            self.taken = grown(self.taken, capacity)
            self.window = grown(self.window, capacity)
            self.first = grown(self.first, capacity)
            self.count = grown(self.count, capacity)
            self.interval = grown(self.interval, capacity)
            self.since = grown(self.since, capacity)
        return np.array(found, dtype=np.intp)
