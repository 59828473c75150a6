"""Third-party plugins: found by entry point, registered, and skipped with a message when unusable."""

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from engine import toys
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.plugins import IN_TREE
from plimsoll.policies import extensions
from plimsoll.ports.observer import Observer


class Seen(Observer):
    def __init__(self) -> None:
        self.failed = []  # type: ignore[assignment, method-assign] # replaced for this test

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.failed.append((plugin, point))  # type: ignore[attr-defined] # known to exist in this test


class Nameless:
    def filter(self, state: Any, pod: Any, snapshot: Any) -> None:
        raise AssertionError


class HalfAFilter:
    name = "HalfAFilter"

    def filter(self, state: Any, pod: Any, snapshot: Any) -> None:
        raise AssertionError


class NothingToSay:
    name = "NothingToSay"


class OddArgs(toys.Room):
    name = "OddArgs"
    args_model = dict  # type: ignore[assignment] # a fake differs on purpose


class Impostor(toys.Room):
    name = "NodeName"


NO_CLASS = 42


@pytest.fixture
def observer() -> Seen:
    return Seen()


@pytest.fixture
def registry() -> Registry:
    return Registry(IN_TREE)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file, under a name that entry points can say."""
    monkeypatch.setitem(sys.modules, "sample_extensions", sys.modules[__name__])


def points(group: str, **values: Any) -> Callable[..., Any]:
    """A function that finds these entry points."""
    return lambda _: [EntryPoint(name, value, group) for name, value in values.items()]


def test_a_good_plugin_can_be_named_by_policies(registry: Registry, observer: Seen) -> None:
    """It is in the registry next to the in-tree plugins."""
    found = points(extensions.PLUGINS, Room="engine.toys:Room", Pool="engine.toys:Pool")

    problems = extensions.load(extensions.PLUGINS, registry.add, observer, found)

    assert problems == {}
    assert {"Room", "Pool", "NodeName"} <= set(registry)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(
            "no_such_package:X", "ModuleNotFoundError: No module named 'no_such_package'", id="import"
        ),
        pytest.param("engine.toys:Missing", "AttributeError", id="attribute"),
        pytest.param("sample_extensions:NO_CLASS", "is no class but 42", id="no-class"),
        pytest.param(
            "sample_extensions:Nameless", "has no name; set the class attribute `name`", id="no-name"
        ),
        pytest.param("sample_extensions:NothingToSay", "implements no extension point", id="no-point"),
        pytest.param("sample_extensions:HalfAFilter", "lacks refusal, which filter needs", id="half-a-point"),
        pytest.param("sample_extensions:OddArgs", "derived from PluginArgs", id="args"),
        pytest.param(
            "sample_extensions:Impostor", 'the name "NodeName" is taken by plimsoll', id="duplicate"
        ),
    ],
)
def test_a_bad_plugin_is_left_out_and_named(registry: Registry, observer: Seen, value: str, why: str) -> None:
    """The sentence says which and why; it is counted; the good ones around it are there."""
    found = points(extensions.PLUGINS, Bad=value, Room="engine.toys:Room")
    in_tree = registry["NodeName"]

    problems = extensions.load(extensions.PLUGINS, registry.add, observer, found)

    assert problems.keys() == {"Bad"}
    assert problems["Bad"].startswith(
        "Bad of an unknown package (entry point group plimsoll.plugins) is left out: "
    )
    assert why in problems["Bad"]
    assert observer.failed == [("Bad", "load")]  # type: ignore[comparison-overlap] # mypy does not see the change
    assert "Room" in registry
    assert registry["NodeName"] is in_tree


def test_strategies_come_the_same_way(observer: Seen) -> None:
    """A class that is not a strategy is skipped; the message says what it lacks."""
    registry = StrategyRegistry()
    found = points(
        extensions.STRATEGIES, Mine="plimsoll.strategies.pod_life_time:PodLifeTime", Bad="engine.toys:Room"
    )

    problems = extensions.load(extensions.STRATEGIES, registry.add, observer, found)

    assert set(registry) == {"PodLifeTime"}
    assert "lacks kind, candidates" in problems["Bad"]


def test_this_environment_has_none_of_its_own() -> None:
    """Only installed packages are loaded."""
    assert list(extensions.installed(extensions.PLUGINS)) == []
