"""The page of metrics is, byte for byte, the one that prometheus-client writes."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    SummaryMetricFamily,
    UnknownMetricFamily,
)

from plimsoll.telemetry import exposition

TEXTS = st.text(st.sampled_from('az"\\\n{},=é '), max_size=6)
VALUES = st.one_of(st.floats(), st.integers(-(10**12), 10**12).map(float))
LABELED = (CounterMetricFamily, GaugeMetricFamily, UnknownMetricFamily)


class Families:
    """Collects what it is given."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        yield from self._found


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, VALUES), max_size=5))
def test_every_kind_of_metric_is_written_as_by_the_library(rows: list[tuple[str, str, str, float]]) -> None:
    found: list[Metric] = []
    for at, (text, one, two, value) in enumerate(rows):
        for kind in LABELED:
            family = kind(f"n_{kind.__name__.lower()}_{at}", text, labels=["b", "a"])
            family.add_metric([one, two], value)
            found += [family, kind(f"plain_{at}", text, value=value)]
        info = InfoMetricFamily(f"build_{at}", text, labels=["a"])
        info.add_metric([one], {"version": two})
        buckets = HistogramMetricFamily(f"took_{at}", text, labels=["a"])
        buckets.add_metric([one], [("0.1", 1.0), ("+Inf", value)], value)
        summary = SummaryMetricFamily(f"size_{at}", text, count_value=2, sum_value=value)
        found += [info, buckets, summary]
    registry = CollectorRegistry()
    registry.register(Families(found))

    assert exposition.page(registry) == generate_latest(registry)
