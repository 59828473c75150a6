"""Drawn worlds, and the counts of what came of them."""

from __future__ import annotations

from random import Random

from plimsoll.strategies import IN_TREE
from promises.commits import Commit
from simulation.world.features import LATER, Feature, drawn_features, later_features
from simulation.world.happenings import LOOKS, Happening, Happenings
from simulation.world.plans import STRATEGIES
from simulation.world.world import PARTS


def test_small_worlds_stay_common_and_each_feature_is_drawn() -> None:
    """A seed costs little on the whole, and some seed has each."""
    drawn = [drawn_features(Random(seed)) for seed in range(300)]

    assert 0.3 < sum(not each for each in drawn) / len(drawn) < 0.6
    assert frozenset().union(*drawn) == frozenset(Feature) - LATER.keys()


def test_each_later_feature_is_drawn_in_its_share_of_the_runs() -> None:
    """Whatever the others are."""
    drawn = [later_features(seed) for seed in range(1000)]

    for feature, share in LATER.items():
        assert 0.6 * share < sum(feature in each for each in drawn) / len(drawn) < 1.5 * share


def test_features_that_are_given_are_not_drawn() -> None:
    """And what is drawn later is as it would be."""
    one, other = Random(1), Random(1)

    assert drawn_features(one, [Feature.GANGS]) == {Feature.GANGS}
    drawn_features(other)
    assert one.random() == other.random()


def test_all_strategies_and_features_have_their_place() -> None:
    """A new strategy is drawn as well; DrainNodes is the operator's own, of the policies that it makes."""
    assert {each.name for each in IN_TREE} == {*STRATEGIES, "DrainNodes"}
    others = {Feature.PREEMPTION, Feature.EVICTED_VICTIMS}
    others |= {Feature.EXTENDERS, Feature.PAGES}
    assert set(PARTS) == set(Feature) - others


def test_happenings_are_counted_once_each() -> None:
    """At the commit that makes the difference."""
    happenings = Happenings()
    before = {"metadata": {"name": "g"}, "status": {"phase": "Pending"}}
    running = {"metadata": {"name": "g"}, "status": {"phase": "Running"}}

    happenings.see(Commit("podgroups.plimsoll.dev", "MODIFIED", running, before))
    happenings.see(Commit("podgroups.plimsoll.dev", "MODIFIED", running, running))

    assert happenings.counts == {Happening.GANG_STARTED: 1}
    assert "podgroups.plimsoll.dev" in LOOKS
