"""Our counters and histograms are exposed as prometheus-client's own would be."""

import sys
import threading

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from plimsoll.telemetry.tallies import Durations, Occurrences

BOUNDS = (0.0001, 0.5, 1, 2.5, 1e6)
VALUES = st.one_of(st.sampled_from(BOUNDS), st.floats(0, 1e7))
LABELS = st.tuples(st.sampled_from(["a", 'b"\\\n']), st.sampled_from(["x", "y"]))


def exposed(registry: CollectorRegistry) -> list[str]:
    """The page without the times at which series were made, which the operator switches off."""
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


@given(st.lists(st.tuples(LABELS, VALUES), max_size=30))
def test_the_page_is_the_library_s(observed: list[tuple[tuple[str, str], float]]) -> None:
    """Bounds belong to their buckets, unseen labels have no series, and an unlabeled histogram is there."""
    library, ours = CollectorRegistry(), CollectorRegistry()
    counter = Counter("events", "Text. Labeled by one and two.", ["one", "two"], registry=library)
    histogram = Histogram(
        "took_seconds", "Text. Labeled by one and two.", ["one", "two"], buckets=BOUNDS, registry=library
    )
    plain = Histogram("size", "Text.", buckets=BOUNDS, registry=library)
    tally = Occurrences("events", "Text. Labeled by one and two.", ["one", "two"], registry=ours)
    durations = Durations(
        "took_seconds", "Text. Labeled by one and two.", ["one", "two"], buckets=BOUNDS, registry=ours
    )
    size = Durations("size", "Text.", buckets=BOUNDS, registry=ours)

    for labels, value in observed:
        counter.labels(*labels).inc(value)
        histogram.labels(*labels).observe(value)
        plain.observe(value)
        tally.add(*labels, amount=value)
        durations.observe(value, *labels)
        size.observe(value)

    assert exposed(ours) == exposed(library)


def test_threads_lose_no_count() -> None:
    """The election's loop reports its requests from a thread of its own."""
    registry = CollectorRegistry()
    tally = Occurrences("events", "Text. Labeled by one.", ["one"], registry=registry)

    def count() -> None:
        for _ in range(2000):
            tally.add("a")

    pause = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(pause)

    assert registry.get_sample_value("events_total", {"one": "a"}) == 8000
