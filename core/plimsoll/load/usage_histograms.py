"""Keeps decaying histograms of the use of each workload's pods over days.

Buckets grow by 5 %: cpu from 0.01 to 1,000 cores, memory from 10 MB to 1 TB. A sample weighs
``2^((t - t0) / half-life)``; to decay all samples, the reference ``t0`` moves forward, and no bucket is
touched. Cpu gets one sample per pod and minute; memory gets the largest of each hour, because pods will need
again what they once needed.

Source: VPA's recommender (kubernetes/autoscaler 55c37cd5, ``pkg/recommender/util`` and ``model``). Differs:
the mean is kept in addition; memory peaks are hourly with a half-life of two days, not daily over eight.

Axis letters: W workloads, 2 resources, H buckets.
"""

from collections.abc import Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from plimsoll.load.readings import CPU, MEMORY, FloatArray
from plimsoll.model.columns.columns import IntArray, RowArray, grown

#: Start of the second bucket, by resource, and the growth factor of buckets.
FIRST_BUCKET, GROWTH = np.array((10.0**7, 10.0**7)), 1.05

#: H: the last bucket has all larger amounts.
BUCKETS = 176

#: The upper end of each bucket, shape (2, H).
ENDS: FloatArray = FIRST_BUCKET[:, None] * (GROWTH ** np.arange(1, BUCKETS + 1) - 1.0) / (GROWTH - 1.0)

#: The reference moves when a weight's exponent exceeds this.
HIGHEST_EXPONENT = 20.0

HOUR_S, DAY_S, SAMPLES_A_DAY = 3_600.0, 86_400.0, 1_440


class UsageHistograms:
    """Histograms of workloads' use.

    Args:
        half_lives_s: Half-lives of a sample's weight, for cpu and memory, in seconds.

    Attributes:
        places: Index of each workload on the W axis.
        samples: Shape (W,): number of counted readings.
    """

    def __init__(self, half_lives_s: tuple[float, float]) -> None:
        self._half_lives_s = np.array(half_lives_s)
        self.places: dict[Hashable, int] = {}
        self._weights: NDArray[np.float32] = np.zeros((0, 2, BUCKETS), dtype=np.float32)
        self._sums = np.zeros((0, 2))
        self._counted = np.zeros((0, 2))
        self._hour_peak = np.zeros(0)
        self.samples: IntArray = np.zeros(0, dtype=np.int64)
        self._first = np.zeros(0)
        self._latest = np.zeros(0)
        self._reference: FloatArray | None = None  #: by resource
        self._hour = -1.0

    def place(self, workload: Hashable) -> int:
        """The index of a workload, which may be new."""
        place = self.places.setdefault(workload, len(self.places))
        if place >= len(self.samples):
            capacity = max(64, 2 * len(self.places))
            self._weights = grown(self._weights, capacity)
            self._sums, self._counted = grown(self._sums, capacity), grown(self._counted, capacity)
            self._hour_peak, self._first = grown(self._hour_peak, capacity), grown(self._first, capacity)
            self._latest, self.samples = grown(self._latest, capacity), grown(self.samples, capacity)
        return place

    def add(self, places: RowArray, amounts: FloatArray, now: float) -> None:
        """Add samples: pods of the workloads at ``places`` use these amounts, shape (len(places), 2)."""
        weights = self._weights_at(now)
        self._turn_the_hour(now, float(weights[MEMORY]))
        is_new = self.samples[places] == 0
        self._first[places[is_new]] = now
        self._latest[places] = now
        np.add.at(self.samples, places, 1)
        np.add.at(self._weights[:, CPU], (places, buckets_of(amounts[:, CPU], CPU)), np.float32(weights[CPU]))
        np.maximum.at(self._hour_peak, places, amounts[:, MEMORY])
        for resource in (CPU, MEMORY):
            np.add.at(self._sums[:, resource], places, weights[resource] * amounts[:, resource])
            np.add.at(self._counted[:, resource], places, weights[resource])

    def means(self) -> FloatArray:
        """Average use of a pod of each workload, shape (W, 2)."""
        count = len(self.places)
        means: FloatArray = self._sums[:count] / np.maximum(self._counted[:count], 1e-300)
        return means

    def peaks(self, quantiles: tuple[float, float]) -> FloatArray:
        """Amounts that a workload's pods stay below for these parts of time, shape (W, 2); 0: unknown."""
        count = len(self.places)
        peaks = np.zeros((count, 2))
        for resource, quantile in enumerate(quantiles):
            sums = np.cumsum(self._weights[:count, resource], axis=1, dtype=np.float64)
            total = sums[:, -1:]
            which = (sums < quantile * total).sum(axis=1)
            peaks[:, resource] = np.where(total[:, 0] > 0, ENDS[resource][which], 0.0)
        # The current hour is not in the histogram yet.
        peaks[:, MEMORY] = np.maximum(peaks[:, MEMORY], self._hour_peak[:count])
        return peaks

    def confidence(self, now: float) -> FloatArray:
        """The length of each workload's history, in days of full samples: shape (W,)."""
        count = len(self.places)
        confidence: FloatArray = np.minimum(
            (now - self._first[:count]) / DAY_S, self.samples[:count] / SAMPLES_A_DAY
        )
        return confidence

    def forget(self, before: float, kept: Collection[Hashable]) -> bool:
        """Drop workloads without a sample since then, except ``kept``; returns whether indexes changed."""
        stay = {
            workload: place
            for workload, place in self.places.items()
            if workload in kept or self._latest[place] >= before
        }
        if len(stay) == len(self.places):
            return False
        places = np.array(list(stay.values()), dtype=np.intp)
        self._weights, self._sums = self._weights[places], self._sums[places]
        self._counted, self._hour_peak = self._counted[places], self._hour_peak[places]
        self._first, self._latest = self._first[places], self._latest[places]
        self.samples = self.samples[places]
        self.places = {workload: place for place, workload in enumerate(stay)}
        return True

    def _weights_at(self, now: float) -> FloatArray:
        """The present weight of a sample, by resource."""
        if self._reference is None:
            self._reference = np.array((now, now))
        exponents = (now - self._reference) / self._half_lives_s
        for resource in np.flatnonzero(exponents > HIGHEST_EXPONENT).tolist():
            shrink = np.exp2(-exponents[resource])
            self._weights[:, resource] *= np.float32(shrink)
            self._sums[:, resource] *= shrink
            self._counted[:, resource] *= shrink
            self._reference[resource] = now
        weights: FloatArray = np.exp2((now - self._reference) / self._half_lives_s)
        return weights

    def _turn_the_hour(self, now: float, weight: float) -> None:
        hour = now // HOUR_S
        if hour == self._hour:
            return
        self._hour = hour
        seen = np.flatnonzero(self._hour_peak)
        at = buckets_of(self._hour_peak[seen], MEMORY)
        np.add.at(self._weights[:, MEMORY], (seen, at), np.float32(weight))
        self._hour_peak[:] = 0.0


def buckets_of(amounts: FloatArray, resource: int) -> RowArray:
    """The bucket of each amount."""
    places = np.log1p(amounts * (GROWTH - 1.0) / FIRST_BUCKET[resource]) / np.log(GROWTH)
    buckets: RowArray = np.minimum(places, BUCKETS - 1).astype(np.intp)
    return buckets
