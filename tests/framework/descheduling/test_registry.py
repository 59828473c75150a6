"""The registries of strategies and evictors reject invalid registrations."""

from typing import Any

import pytest

from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.errors import ConfigurationError
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.strategies.pod_life_time import PodLifeTime


def test_a_name_is_taken_once() -> None:
    """The error names the module that took it."""
    with pytest.raises(ConfigurationError, match=r'"PodLifeTime" is taken by plimsoll\.strategies'):
        StrategyRegistry([PodLifeTime, PodLifeTime])


def test_members_are_needed() -> None:
    """The missing ones are named."""

    class Nothing:
        name = "Nothing"

    with pytest.raises(ConfigurationError, match="lacks kind, candidates"):
        StrategyRegistry([Nothing])  # type: ignore[list-item] # a fake has only what is used


def test_building_names_the_field() -> None:
    """An unknown name, an unknown field, a bad value."""
    registry = StrategyRegistry(IN_TREE)

    with pytest.raises(ConfigurationError, match='there is no strategy "Foo"'):
        registry.build("Foo", {}, "here")
    with pytest.raises(ConfigurationError) as misspelt:
        registry.build("LowNodeUtilization", {"treshold": {}, "thresholds": {"cpu": "20"}}, "here")
    assert str(misspelt.value).startswith('here.thresholds.cpu: "20" has the wrong type; give a number; ')
    assert "here.treshold: there is no such field; did you mean thresholds" in str(misspelt.value)
    with pytest.raises(ConfigurationError, match="here: a query of the strategy measures MetricResource"):
        registry.build(
            "LowNodeUtilization",
            {
                "thresholds": {"cpu": 1},
                "targetThresholds": {"cpu": 2},
                "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "x"}},
            },
            "here",
        )
    assert registry.build("RemoveFailedPods", None, "here").name == "RemoveFailedPods"
    assert EvictorRegistry(EVICTORS).build("DefaultEvictor", {"kind": "x"}, "here").name == "DefaultEvictor"


class Picky(PodLifeTime):
    """Cannot be built."""

    name = "Picky"
    problem: BaseException

    def __init__(self, args: Any) -> None:
        raise self.problem


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        pytest.param(KeyError("pod"), "KeyError: 'pod'", id="of-another-kind"),
        pytest.param(ValueError("give a, not b"), "give a, not b", id="one-that-is-a-sentence"),
        pytest.param(ConfigurationError("there", "is wrong"), "there: is wrong", id="about-a-field"),
    ],
)
def test_what_a_strategy_says_against_its_arguments_is_repeated(problem: BaseException, said: str) -> None:
    """With the kind of the error, unless that kind is known to say a sentence."""
    registry = StrategyRegistry([Picky])
    Picky.problem = problem

    with pytest.raises(ConfigurationError) as raised:
        registry.build("Picky", {"maxPodLifeTimeSeconds": 5}, "here")
    own = isinstance(problem, ConfigurationError)
    assert str(raised.value) == (said if own else f"here: Picky does not accept these arguments: {said}")
