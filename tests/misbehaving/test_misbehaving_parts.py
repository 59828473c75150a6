"""Calls that never return, strategies, extenders, sorts and packages that misbehave."""

import asyncio
from functools import cache
from typing import Any, ClassVar

import pytest

from misbehaving.plugins import HANGING, a_way, returning
from misbehaving.stage import Stage, played
from misbehaving.strategies import ANSWERS, STRATEGIES
from plimsoll.framework import QueueSortPlugin
from plimsoll.policies import extensions
from plimsoll.ports.extenders import Reply

#: More pods than bindings may be under way at a time.
MANY = 110


class Seen:
    """What was seen while all of them misbehaved side by side."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.policies: dict[str, str] = {}
        self.waited: list[str] = []
        self.lives: list[str] = []


@cache
def seen() -> Seen:
    """One operator with all of them, and a healthy scheduler name whose pods come all the time."""
    found = Seen()
    names = [each.name for each in (*HANGING, *STRATEGIES)] + [*ANSWERS, "absent", "absents"]

    async def story(stage: Stage) -> None:
        async def answered(_sender: str, endpoint: Any, _verb: str, _body: bytes) -> Reply:
            await asyncio.sleep(0.001)
            return Reply(ANSWERS[endpoint.url.removeprefix("http://").removesuffix("/")])

        stage.extenders.post = answered  # type: ignore[method-assign, assignment] # for this run
        for name in ("healthy", "absent"):
            stage.serve(name, *(["absent"] if name == "absent" else []))
        for way in HANGING:
            stage.serve(way.name, way.name, is_binding=hasattr(way.plugin, "bind"))
        for name in ANSWERS:
            stage.serve(
                name,
                extenders=[
                    {"urlPrefix": f"http://{name}/", "filterVerb": "filter", "nodeCacheCapable": True}
                ],
            )
        for each in STRATEGIES:
            stage.rebalance(each.name, each.name)
        stage.rebalance("absents", "absents")
        stage.rebalance("tidy", "RemoveDuplicates")
        await asyncio.sleep(5.0)
        for name in (*(way.name for way in HANGING), *ANSWERS):
            stage.pod(name, name)
        await asyncio.sleep(1.0)  # the many use up the events of their scheduler's burst, in any order
        for number in range(MANY):
            stage.pod(f"hanging-{number}", HANGING[0].name)
        for number in range(40):
            stage.pod(f"healthy-{number}", "healthy")
            await asyncio.sleep(1.0)
            found.waited += [] if stage.node_of(f"healthy-{number}") else [f"healthy-{number}"]
        found.pods = {name: stage.said_of_pod(name) for name in (*(way.name for way in HANGING), *ANSWERS)}
        found.policies = {name: stage.said_of_policy(name) for name in (*names, "healthy", "tidy")}
        found.lives = stage.lives

    packages = {
        extensions.PLUGINS: {"absent": "not_there:X"},
        extensions.STRATEGIES: {"absents": "not_there:Y"},
    }
    played(story, [way.plugin for way in HANGING], STRATEGIES, packages)
    return found


def test_other_pods_are_bound_promptly() -> None:
    """Each within a second, in the one process that there was; no policy is blamed for another's parts."""
    assert seen().waited == []
    assert seen().lives == [""]
    assert seen().policies["healthy"] == ""
    assert seen().policies["tidy"] == ""


@pytest.mark.parametrize("name", [way.name for way in HANGING])
def test_a_call_that_never_returns_is_named_on_its_pod(name: str) -> None:
    """What is waited for, and how long at most."""
    assert f'plugin "{name}" has not returned for 30s' in seen().pods[name]
    assert "at most 15m0s" in seen().pods[name]


@pytest.mark.parametrize("name", [each.name for each in STRATEGIES])
def test_a_strategy_is_named_on_its_policy(name: str) -> None:
    """And its policy alone is degraded."""
    assert name in seen().policies[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_extender_is_named_on_its_pod_and_on_its_policy(name: str) -> None:
    """Its pod waits."""
    assert name in seen().pods[name]
    assert name in seen().policies[name]


@pytest.mark.parametrize("name", ["absent", "absents"])
def test_a_package_that_cannot_be_imported_degrades_the_policies_that_name_its_parts(name: str) -> None:
    """Their status says what could not be imported."""
    assert f"{name} of an unknown package" in seen().policies[name]
    assert "No module named 'not_there'" in seen().policies[name]


class OddSort(QueueSortPlugin):
    """Gives no usable key to pods whose names say so."""

    name: ClassVar = "OddSort"

    def sort_key(self, pod: Any, timestamp: float) -> Any:
        """A pair, or whatever misbehaves."""
        match pod.name.partition("-")[0]:
            case "raises":
                raise ValueError("boom")
            case "exits":
                raise SystemExit(3)
            case "none":
                return None
            case "nan":
                return (float("nan"), timestamp)
            case "text":
                return ("text", timestamp)
            case "single":
                return timestamp
            case "list":
                return [0, timestamp]
        return (-pod.priority, timestamp)


ODD = ("raises", "exits", "none", "nan", "text", "single", "list")


def test_pods_without_a_usable_sort_key_go_last_and_hold_up_no_other() -> None:
    """One plugin sorts the pods of all profiles: a key that cannot be compared must not stop the queue."""
    said: dict[str, str] = {}
    waited: list[str] = []

    async def story(stage: Stage) -> None:
        sorts: Any = {
            "plugins": {"queueSort": {"enabled": [{"name": "OddSort"}], "disabled": [{"name": "*"}]}}
        }
        for name in ("odd", "healthy"):
            stage.serve(name, **sorts)
        await asyncio.sleep(5.0)
        for number, odd in enumerate(ODD * 2):
            stage.pod(f"{odd}-{number}", "odd")
            stage.pod(f"healthy-{number}", "healthy")
        await asyncio.sleep(1.0)
        names = [f"{odd}-{number}" for number, odd in enumerate(ODD * 2)]
        names += [f"healthy-{number}" for number in range(len(names))]
        waited.extend(name for name in names if not stage.node_of(name))
        await asyncio.sleep(2.0)
        said["odd"] = stage.said_of_policy("odd")

    played(story, [OddSort])

    assert waited == []
    assert 'plugin "OddSort" failed at queueSort' in said["odd"]


def test_a_plugin_whose_class_misbehaves_when_built_rejects_its_policy_only() -> None:
    """The policy says so; its neighbour is served."""
    said: dict[str, str] = {}

    async def story(stage: Stage) -> None:
        stage.serve("healthy")
        stage.serve("built", "exits-when-built")
        await asyncio.sleep(5.0)
        stage.pod("p", "healthy")
        await asyncio.sleep(1.0)
        said["node"], said["policy"] = stage.node_of("p"), stage.said_of_policy("built")

    def exits(_self: Any, _args: Any) -> None:
        raise SystemExit(3)

    played(story, [a_way("exits-when-built", __init__=exits, post_bind=returning(None)).plugin])

    assert said["node"]
    assert "exits-when-built does not accept these arguments: SystemExit: 3" in said["policy"]
