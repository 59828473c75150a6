"""A policy's rebalancing as plain values, with the protections of its scope."""

import sys
from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted
from plimsoll.framework import ConfigurationError
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PriorityClass
from plimsoll.policies.rebalancing import SolverMissingError
from rebalancing.scene import POLICY, Scene, a_policy

GOLD = convert(PriorityClass, {"metadata": {"name": "gold"}, "value": 1000})


def below(**threshold: Any) -> SchedulingPolicy:
    """Moves pods of lower priority away from nodes whose taints they do not tolerate."""
    spec = {
        "scope": {"priorityThreshold": threshold},
        "rebalancing": {"mode": "Enforce", "strategies": [{"name": "RemovePodsViolatingNodeTaints"}]},
    }
    return SchedulingPolicy.model_validate({"metadata": {"name": POLICY}, "spec": spec})


async def test_a_priority_class_that_does_not_exist_protects_every_pod() -> None:
    """A name with a typo must not mean that there is no threshold; it may be created later, or deleted."""
    scene = Scene()

    async with scene.running(below(name="gold")):
        await scene.run()
        (refused,) = scene.statuses.statuses[POLICY]["counts"]["refused"]
        scene.tell(ObjectAdded(GOLD), ObjectDeleted(GOLD))
        await scene.run()
        assert scene.evictor.evicted == []
        scene.tell(ObjectAdded(GOLD))
        await scene.run()

    assert refused["reason"] == "OutOfScope"
    assert "names PriorityClass gold, which does not exist" in refused["message"]
    assert scene.evictor.evicted == ["web-1"]


@pytest.mark.parametrize(("value", "evicted"), [(1, ["web-1"]), (0, [])])
async def test_a_threshold_protects_its_own_priority_and_all_above(value: int, evicted: list[str]) -> None:
    """The pods have priority 0; by number, and by class."""
    by_number, by_class = Scene(), Scene()
    by_class.tell(ObjectAdded(msgspec.structs.replace(GOLD, value=value)))

    for scene, policy in ((by_number, below(value=value)), (by_class, below(name="gold"))):
        async with scene.running(policy):
            await scene.run()

        assert scene.evictor.evicted == evicted


async def test_optimal_without_its_solver_is_refused_with_what_to_install(monkeypatch: Any) -> None:
    """The reason of the condition is its own; the other planners are accepted."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    scene = Scene()

    scene.rebalancers.check(a_policy(planner="Proven"))
    with pytest.raises(SolverMissingError) as refused:
        scene.rebalancers.check(a_policy(planner="Optimal"))

    assert refused.value.reason == "SolverMissing"
    assert str(refused.value) == (
        "spec.rebalancing.planner: Optimal needs the solver HiGHS, which is not installed; install the"
        " wheel plimsoll_optimal of the same release"
    )


def test_what_is_wrong_with_a_strategys_evictor_is_said_of_the_strategy() -> None:
    """A malformed selector would otherwise select no node, and nothing would ever be evicted."""
    taints = {"name": "RemovePodsViolatingNodeTaints"}
    strategies = [taints, taints | {"evictor": {"nodeSelector": "pool in general"}}]

    with pytest.raises(ConfigurationError) as refused:
        Scene().rebalancers.check(a_policy(planner="Upstream", strategies=strategies))

    assert str(refused.value).startswith("spec.rebalancing.strategies[1].evictor.nodeSelector: ")
