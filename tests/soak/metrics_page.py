"""Reads a page of metrics: sums of samples, and quantiles of what was observed between two pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The samples of one scrape, keyed by name."""

    samples: Mapping[str, list[tuple[Mapping[str, str], float]]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> MetricsPage:
        """Parse what ``/metrics`` answers."""
        found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(found)

    def total(self, name: str, **labels: str) -> float:
        """The sum of a name's samples with these labels."""
        chosen = self.samples.get(name, ())
        return sum(value for given, value in chosen if labels.items() <= given.items())

    def quantile_since(self, before: MetricsPage, name: str, share: float) -> float | None:
        """A quantile of what a histogram observed since an earlier page, interpolated in its bucket.

        Returns:
            None when nothing was observed; the last bound when it lies above all buckets.
        """
        counts: dict[float, float] = {}
        for page, sign in ((self, 1), (before, -1)):
            for labels, value in page.samples.get(f"{name}_bucket", ()):
                bound = float(labels["le"])
                counts[bound] = counts.get(bound, 0.0) + sign * value
        bounds = sorted(counts)
        if not bounds or counts[bounds[-1]] <= 0:
            return None
        wanted, low, below = share * counts[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            if counts[bound] >= wanted:
                if bound == float("inf"):
                    return low
                return low + (bound - low) * (wanted - below) / max(counts[bound] - below, 1e-9)
            low, below = bound, counts[bound]
        return low
