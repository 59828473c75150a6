"""Scopes that match nothing, name what does not exist, or overlap."""

from typing import Any

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import Namespace
from plimsoll.rebalancing.runs.scope_review import EMPTY_S
from rebalancing.scene import POLICY, Scene, a_policy

OTHER = "other"


def policy(name: str = POLICY, mode: str = "Enforce", **scope: Any) -> SchedulingPolicy:
    """A policy with a scope."""
    document = a_policy(mode).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["metadata"]["name"] = name
    document["spec"]["scope"] = scope
    return SchedulingPolicy.model_validate(document)


async def test_a_scope_without_pods_is_reported() -> None:
    """After a minute, for pods may be about to come; no longer when it has some; and again of a new spec."""
    scene = Scene()
    async with scene.running(policy(podSelector={"matchLabels": {"app": "wbe"}})):
        await scene.run()
        assert scene.rebalancers.troubles(POLICY) == {}
        await scene.clock.advance(EMPTY_S)
        await scene.run()
        assert list(scene.rebalancers.troubles(POLICY)) == ["ScopeEmpty"]

        scene.rebalancers.configure([policy(podSelector={"matchLabels": {"app": "bew"}})])
        await scene.run()
        assert scene.rebalancers.troubles(POLICY) == {}
        await scene.clock.advance(EMPTY_S)
        assert list(scene.rebalancers.troubles(POLICY)) == ["ScopeEmpty"]

        scene.rebalancers.adopt(policy(mode="DryRun"))
        await scene.run()
        assert scene.rebalancers.troubles(POLICY) == {}


async def test_a_namespace_that_does_not_exist_is_named() -> None:
    """With the one that may be meant."""
    scene = Scene()
    scene.tell(ObjectAdded(convert(Namespace, {"metadata": {"name": "payments", "uid": "1"}})))
    async with scene.running(policy(namespaces={"include": ["paymnets"]})):
        await scene.run()
        assert scene.rebalancers.troubles(POLICY) == {
            "ScopeNameUnknown": 'spec.scope: namespace "paymnets" does not exist; did you mean "payments"?'
        }
        scene.tell(ObjectAdded(convert(Namespace, {"metadata": {"name": "paymnets", "uid": "2"}})))
        await scene.run()
        assert scene.rebalancers.troubles(POLICY) == {}


async def test_a_priority_class_that_does_not_exist_is_named() -> None:
    """It protects every pod."""
    scene = Scene()
    async with scene.running(policy(priorityThreshold={"name": "hihg"})):
        await scene.run()
        (sentence,) = scene.rebalancers.troubles(POLICY).values()
    assert sentence == 'spec.scope: PriorityClass "hihg" does not exist, so every pod is protected'


async def test_policies_that_move_the_same_pods_say_so() -> None:
    """Both act; how many pods, and which; and no longer when the other one goes."""
    scene = Scene()
    async with scene.running(policy(mode="Approve")):
        scene.rebalancers.adopt(policy(OTHER, "Approve"))
        await scene.runs.rebalance(OTHER)
        await scene.run()
        reason, sentence = scene.rebalancers.advice(POLICY)["Overlapping"]
        assert reason == "SamePods"
        assert sentence.startswith("of the 2 pods in scope, others may be moved as well: 2 by policy other")
        assert "default/web-1" in sentence

        scene.rebalancers.drop(OTHER)
        assert scene.rebalancers.advice(POLICY) == {}


async def test_a_dry_run_next_to_another_policy_is_no_overlap() -> None:
    """Nothing of it moves."""
    scene = Scene()
    async with scene.running(policy(mode="Enforce")):
        scene.rebalancers.adopt(policy(OTHER, "DryRun"))
        await scene.runs.rebalance(OTHER)
        await scene.run()

    assert scene.rebalancers.advice(POLICY) == {}
    assert scene.rebalancers.advice(OTHER) == {}


async def test_scopes_that_touch_and_do_not_meet() -> None:
    """Different pods of the same nodes."""
    scene = Scene()
    async with scene.running(policy(podSelector={"matchLabels": {"app": "a"}})):
        scene.rebalancers.adopt(
            policy(OTHER, podSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
        )
        await scene.runs.rebalance(OTHER)
        await scene.run()

    assert scene.rebalancers.advice(POLICY) == {}
