"""Readings of what is gone are dropped after a while, and of what lives never, as in a plain model."""

import math
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from load.test_load_book import MILLI, observed, pod_of
from plimsoll.load.readings import MEMORY
from plimsoll.load.usage_histograms import FIRST_BUCKET, GROWTH, HOUR_S, UsageHistograms
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_node
from plimsoll.usage.load_keeper import GONE_S, LOOK_S, LoadKeeper

STEPS = st.lists(
    st.tuples(
        st.sampled_from([1.0, LOOK_S - 1.0, LOOK_S, GONE_S, GONE_S + LOOK_S]),
        st.sets(st.sampled_from(["a", "b", "c"])),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
@example([(1.0, {"a"}), (LOOK_S - 1.0, set()), (1.0, set()), (1.0, set())])
@example([(1.0, {"a", "b"}), *[(60.0, {"b"})] * 12, (GONE_S, {"b"}), (60.0, {"b"}), (60.0, {"b"})])
def test_readings_go_when_their_pod_has_been_gone_for_a_while(steps: Any) -> None:
    """Looked for each ten minutes, where more than a quarter can go; the other pods keep their own."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="8", memory="16Gi"))
    keeper, now, looked = LoadKeeper(cluster), 1_000_000.0, float("-inf")
    alive: set[str] = set()
    read: dict[str, float] = {}
    uses = {name: (100 * MILLI * at, at * 2**20) for at, name in enumerate("abc", 1)}
    for wait_s, wanted in steps:
        now += wait_s
        for name in alive - wanted:
            cluster.displace(pod_of(name).metadata.uid)
        for name in wanted - alive:
            cluster.place(cluster.templates.info(pod_of(name)), "n1")
        alive = wanted
        read |= dict.fromkeys(alive, now)
        observed(keeper, now, {name: uses[name] for name in sorted(alive)}, {"n1": (900 * MILLI, 2**30)})
        if now - looked >= LOOK_S:
            looked = now
            gone = {name for name, at in read.items() if name not in alive and at < now - GONE_S}
            if 4 * len(gone) > len(read):
                read = {name: at for name, at in read.items() if name not in gone}

        assert {key.removeprefix("default/") for key in keeper.pods.places} == set(read)
        assert list(keeper.nodes.places) == ["n1"]
        for name in alive:
            assert keeper.use_of(pod_of(name).metadata.uid) in (None, uses[name])


HOURS = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(HOURS, st.sampled_from([0.1, 0.45, 0.9]))
def test_of_each_hour_the_largest_memory_is_kept_once(hours: list[list[int]], quantile: float) -> None:
    """The hour that is not over counts as well, until it is."""
    kept = UsageHistograms((1e9, 1e9))  # nothing decays here
    place = np.array([kept.place("web")])
    for hour, amounts in enumerate(hours):
        for minute, amount in enumerate(amounts):
            kept.add(place, np.array([[1e9, amount * 1e9]]), hour * HOUR_S + minute * 60.0)
    *over, current = [max(amounts) * 1e9 for amounts in hours]
    below = sorted(over)[math.ceil(quantile * len(over) - 1e-6) - 1] if over else 0.0

    peak = float(kept.peaks((0.5, quantile))[0, MEMORY])

    assert max(below, current) <= peak <= max(below * GROWTH + FIRST_BUCKET[MEMORY], current)


def test_means_hold_when_weights_move_far() -> None:
    """Old samples weigh next to nothing, in sums and in counts."""
    kept = UsageHistograms((60.0, 60.0))
    place = np.array([kept.place("web")])
    samples = [(0.0, 9e9), (60.0, 5e9), (1_500.0, 4e9), (1_560.0, 2e9), (4_000.0, 1e9)]
    for now, amount in samples:
        kept.add(place, np.array([[amount, amount]]), now)
        weights = [(2.0 ** ((at - now) / 60.0), each) for at, each in samples if at <= now]

        mean = sum(weight * each for weight, each in weights) / sum(weight for weight, _ in weights)
        assert np.allclose(kept.means()[0], mean, rtol=1e-5)


def test_confidence_is_the_shorter_of_a_history_and_its_samples() -> None:
    """In days: long ago and rarely is as little as often and just now."""
    histograms = UsageHistograms((86_400.0, 86_400.0))
    starts = {"old": 0.0, "young": 86_400.0}
    for moment in (0.0, 86_400.0):
        known = [name for name, start in starts.items() if start <= moment]
        places = np.array([histograms.place(name) for name in known])
        histograms.add(places, np.ones((len(known), 2)), moment)
    samples = histograms.samples[:2]

    for now, days in ((86_400.0, [1.0, 0.0]), (86_400.0 * 3, [3.0, 2.0])):
        samples[:] = [10 * 1_440, 10 * 1_440]
        assert histograms.confidence(now).tolist() == days
        samples[:] = [1_440, 720]
        assert histograms.confidence(now).tolist() == [min(days[0], 1.0), min(days[1], 0.5)]
