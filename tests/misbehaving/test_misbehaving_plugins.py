"""A plugin that misbehaves harms its own pods only: in the same operator, other pods are bound."""

import asyncio
from functools import cache

import pytest

from cluster.invariants import check_cache
from misbehaving.plugins import WAYS, Way
from misbehaving.stage import Stage, played


class Seen:
    """What was seen while all of them misbehaved side by side."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.policies: dict[str, str] = {}
        self.nodes: dict[str, str] = {}
        self.waited: list[str] = []
        self.lives: list[str] = []
        self.logged = 0


@cache
def seen() -> Seen:
    """One operator with all of them, and a healthy scheduler name whose pods come all the time."""
    found = Seen()

    async def story(stage: Stage) -> None:
        stage.serve("healthy")
        for way in WAYS:
            stage.serve(way.name, way.name, is_binding=hasattr(way.plugin, "bind"))
        await asyncio.sleep(5.0)
        for way in WAYS:
            stage.pod(way.name, way.name, cpu=way.cpu)
        for number in range(12):
            stage.pod(f"healthy-{number}", "healthy")
            await asyncio.sleep(1.0)
            found.waited += [] if stage.node_of(f"healthy-{number}") else [f"healthy-{number}"]
        for way in WAYS:
            found.pods[way.name] = stage.said_of_pod(way.name)
            found.policies[way.name] = stage.said_of_policy(way.name)
            found.nodes[way.name] = stage.node_of(way.name)
        found.policies["healthy"] = stage.said_of_policy("healthy")
        found.lives = stage.lives
        check_cache(stage.operator.cache)

    played(story, [way.plugin for way in WAYS])
    return found


def test_pods_of_other_scheduler_names_are_bound_promptly() -> None:
    """Each within a second, in the one process that there was, and no other policy is blamed."""
    assert seen().waited == []
    assert seen().lives == [""]
    assert seen().policies["healthy"] == ""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_plugin_is_named_on_its_pod_and_on_its_policy(way: Way) -> None:
    """Both say which plugin to mend; the pod waits, unless nothing of it depends on that."""
    assert f'plugin "{way.name}"' in seen().policies[way.name]
    assert bool(seen().nodes[way.name]) is way.binds
    if not way.binds:
        assert way.name in seen().pods[way.name]
