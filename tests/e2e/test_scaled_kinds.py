"""Pods of Rollouts and of CloneSets move by one replica more, and the right one goes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.polls import eventually
from e2e.scaled_kinds import Played
from e2e.test_surging import BROKEN, surging, witnessed

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded

pytestmark = pytest.mark.e2e

WANTED = {"Rollout": 2, "CloneSet": 1}


async def test_pods_of_other_kinds_move_and_none_is_missing(guarded: StartGuarded) -> None:
    """Under exactly the rights of the overlay; without a cost the newest pods would go, the replacements."""
    async with guarded("surge") as (scene, entrance, operator), AsyncExitStack() as played:
        old = await scene.node("old")
        await scene.scheduling()
        kinds = [Played(scene, kind, replicas) for kind, replicas in WANTED.items()]
        for each in kinds:
            await each.make()
            await played.enter_async_context(each.controlled())
        before = {pod["metadata"]["name"] for pod in await scene.pods()}
        new = await scene.node("new")
        await scene.change_node(old, BROKEN)
        async with witnessed(scene) as seen:
            await scene.policy(surging(scene))
            records = await scene.until_finished(3)
            await eventually(scene.running, lambda nodes: nodes == [new] * 3)
        found = [await each.found() for each in kinds]

        assert await operator.stop() == 0
    made = [each["spec"]["surge"]["kind"] for each in records if each["status"]["phase"] == "Settled"]
    assert sorted(made) == ["CloneSet", "Rollout", "Rollout"]
    assert {each["spec"]["pod"]["name"] for each in records} == before
    for kind, replicas in WANTED.items():
        ready = [sum(name.startswith(kind.lower()) for name in names) for names in seen]
        assert (min(ready), max(ready)) == (replicas, replicas + 1)
    assert [each["spec"]["replicas"] for each in found] == list(WANTED.values())
    assert entrance.refused == set()
    assert entrance.denied == []
    assert {"rollouts/scale", "clonesets/scale"} <= entrance.admitted
    others = {each for each in grants("surge") if each[1] in ("argoproj.io", "apps.kruise.io")}
    assert len(others) == 6
    assert others <= entrance.used
