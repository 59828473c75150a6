"""Every strategy through a policy with the default planner: trouble, moves, and the rest that follows.

Each case places pods so that its strategy has something to mend, and lets the operator run until two runs in
a row plan nothing. What came of it is read from the API server, by definitions that share no code with the
strategies: the trouble is gone, nothing else has become worse, no pod came back or was moved again, and no
more pods were evicted than descheduler evicts on the same start.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from e2e.descheduler_runs import evictions_of_descheduler, restarts_of_descheduler
from e2e.measures import (
    PREFERRED,
    REQUIRED,
    View,
    duplicates,
    failed,
    measured,
    misplaced,
    pending,
    tainted,
    too_near,
    uneven,
    view_of,
)
from e2e.scene import FINISHED, POLICIES
from e2e.speaker import MERGE
from e2e.troubled import (
    GPU,
    best_node,
    better_node,
    broken_node,
    crashing,
    crowded,
    fragmented,
    little_used,
    lost_label,
    no_compaction,
    no_relief,
    no_room,
    on_nodes,
    overused,
    too_close,
    underused,
    uneven_zones,
    uneven_zones_softly,
    with_a_failed_pod,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

#: Seconds until a policy must have converged.
REST_S = 300.0

#: For owners of one pod, which the default evictor protects.
SINGLE_PODS_TOO: Obj = {"evictor": {"minReplicas": 1}}


# -- troubles that only a policy has ---------------------------------------------------------------------


def not_preferred(view: View) -> int:
    """Pods that are not on the node that they prefer to all others."""
    return sum(size for node, size in view.sizes("web").items() if node != "best")


def all_not_preferred(view: View) -> bool:
    """No pod is on the node that both prefer; one stays on the other for the sake of their spreading."""
    return "new" not in view.sizes("web")


def above_target(view: View) -> list[str]:
    """Nodes above 60 % while another one is at 20 % at most."""
    has_room = any(view.share(node) <= 20 for node in view.nodes)
    return [node for node in view.nodes if has_room and view.share(node) > 60]


def not_compact(view: View) -> list[str]:
    """Nodes at 20 % at most that are not empty."""
    return [node for node in view.nodes if 0 < view.share(node) <= 20]


def not_drained(view: View) -> list[Obj]:
    """Pods on the node that is to be drained."""
    return view.on("little")


def stale(view: View) -> int:
    """Pods that were too old when the policy came."""
    return sum(pod["metadata"]["labels"].get("age") == "old" for pod in view.pods)


def restarted_often(view: View) -> int:
    """Pods with a hundred restarts."""
    return sum(
        sum(each["restartCount"] for each in pod["status"].get("containerStatuses") or ()) >= 100
        for pod in view.pods
    )


def no_block(view: View) -> bool:
    """No node has its four GPUs free."""
    return all(view.on(node) for node in view.nodes)


# -- cases -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """One strategy and its trouble.

    Attributes:
        strategy: Its name.
        start: Places nodes and pods.
        trouble: What the strategy is there to mend; falsy when nothing is left.
        args: Of the strategy.
        evicted: How many pods have to go.
        more: Further fields of the policy's rebalancing.
        like: A strategy of descheduler that has the same aim, with its arguments; left out, the strategy
            itself. None where descheduler knows no such aim.
        is_restart: Whether a fresh pod is all that is wanted.
        is_replaced: Whether another pod comes for each that goes.
    """

    strategy: str
    start: Callable[[Scene], Awaitable[None]]
    trouble: Callable[[View], object]
    args: Obj = field(default_factory=dict)
    evicted: int = 1
    more: Obj = field(default_factory=dict)
    like: Obj | None = field(default_factory=dict)
    is_restart: bool = False
    is_replaced: bool = True


#: The label takes replacements out, which become as old while the test runs.
OLD: Obj = {"maxPodLifeTimeSeconds": 0, "labelSelector": {"matchLabels": {"age": "old"}}}
OFTEN: Obj = {"podRestartThreshold": 100}
LOW: Obj = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}}
HIGH: Obj = {"thresholds": {"cpu": 20}}
PREFERRED_NODES: Obj = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": [PREFERRED]}}

SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
CASES = {
    "RemoveDuplicates": Case("RemoveDuplicates", crowded, duplicates, evicted=2),
    "RemovePodsViolatingNodeTaints": Case("RemovePodsViolatingNodeTaints", broken_node, tainted),
    "RemovePodsViolatingNodeAffinity": Case(
        "RemovePodsViolatingNodeAffinity", lost_label, misplaced, {"nodeAffinityType": [REQUIRED]}
    ),
    "RemovePodsViolatingNodeAffinity, preferred": Case(
        "RemovePodsViolatingNodeAffinity", best_node, not_preferred, PREFERRED_NODES["args"], evicted=2
    ),
    "RemovePodsViolatingInterPodAntiAffinity": Case(
        "RemovePodsViolatingInterPodAntiAffinity", too_close, too_near
    ),
    SPREAD: Case(SPREAD, uneven_zones, uneven, evicted=2),
    f"{SPREAD}, soft": Case(
        SPREAD, uneven_zones_softly, uneven, {"constraints": ["ScheduleAnyway"]}, evicted=2
    ),
    "LowNodeUtilization": Case("LowNodeUtilization", overused, above_target, LOW),
    "HighNodeUtilization": Case("HighNodeUtilization", underused, not_compact, HIGH, evicted=4),
    "PodLifeTime": Case("PodLifeTime", on_nodes("a", "b"), stale, OLD, evicted=2, is_restart=True),
    # Descheduler does nothing in a cluster of one node.
    "PodLifeTime, one node": Case(
        "PodLifeTime", on_nodes("a"), stale, OLD, evicted=2, like=None, is_restart=True
    ),
    "RemovePodsHavingTooManyRestarts": Case(
        "RemovePodsHavingTooManyRestarts", crashing("a", "b"), restarted_often, OFTEN, is_restart=True
    ),
    "RemovePodsHavingTooManyRestarts, one node": Case(
        "RemovePodsHavingTooManyRestarts", crashing("a"), restarted_often, OFTEN, like=None, is_restart=True
    ),
    "RemoveFailedPods": Case(
        "RemoveFailedPods",
        with_a_failed_pod,
        failed,
        {"minPodLifetimeSeconds": 0},  # an hour by default
        is_restart=True,
        is_replaced=False,
    ),
    "ConsolidateNodes": Case(
        "ConsolidateNodes",
        little_used,
        not_compact,
        evicted=2,
        like={"name": "HighNodeUtilization", "args": HIGH},
    ),
    "DefragmentResource": Case(
        "DefragmentResource", fragmented, no_block, {"block": {GPU: 4}}, more=SINGLE_PODS_TOO, like=None
    ),
    "FollowScore": Case(
        "FollowScore", better_node, all_not_preferred, {"marginPercent": 10}, like=PREFERRED_NODES
    ),
    "DrainNodes": Case("DrainNodes", little_used, not_drained, {"nodes": ["little"]}, evicted=2, like=None),
    "MakeRoomForPending": Case("MakeRoomForPending", no_room, pending, like=None),
}


async def converge(scene: Scene, policy: str) -> None:
    """Wait until two runs in a row, which have seen the trouble, plan nothing, all moves being over."""
    quiet, deadline = 0, time.monotonic() + REST_S
    while quiet < 2:
        assert time.monotonic() < deadline, f"no rest after {REST_S:.0f} s: {await scene.phases()}"
        wish = {"metadata": {"annotations": {"plimsoll.dev/run": str(deadline - time.monotonic())}}}
        (await scene.speaker.request("PATCH", f"{POLICIES}/{policy}", wish, sends=MERGE)).accepted()
        status = await scene.runs(policy, 1)
        phases = await scene.phases()
        has_begun = phases or status["counts"]["considered"]
        is_over = set(phases) <= FINISHED and not status["counts"]["planned"]
        quiet = quiet + 1 if has_begun and is_over else 0


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
async def test_a_strategy_mends_its_trouble_and_nothing_gets_worse(case: Case, scene: Scene) -> None:
    """It converges with the fewest evictions, no pod returns, none is moved twice."""
    await scene.scheduling()
    await case.start(scene)
    before = await view_of(scene)
    assert case.trouble(before), "there is nothing to mend"
    named = case.args.get("nodes", ())
    args = {**case.args, **({"nodes": [f"{scene.name}-{each}" for each in named]} if named else {})}
    spec = scene.rebalancing({"name": case.strategy, "args": args}, **case.more)

    await converge(scene, await scene.policy(spec))

    after = await view_of(scene)
    assert not case.trouble(after), {node: after.share(node) for node in after.nodes}
    worse = {name: amount for name, amount in measured(after).items() if amount > measured(before)[name]}
    assert worse == {}
    assert pending(after) == 0
    assert after.nodes.keys() == before.nodes.keys()
    gone = {pod["metadata"]["uid"] for pod in before.pods} - {pod["metadata"]["uid"] for pod in after.pods}
    records = await scene.records()
    assert len(records) == len(gone) == case.evicted
    assert {record["spec"]["pod"]["uid"] for record in records} == gone, "a replacement was moved again"
    for record in records:
        told, outcome = record["spec"], record["status"]
        assert (outcome["phase"], told["strategy"]) == ("Settled", case.strategy), outcome
        assert told["purpose"] == ("Restart" if case.is_restart else "Move")
        if case.is_replaced:
            assert outcome["replacement"]["uid"] in {pod["metadata"]["uid"] for pod in after.pods}
            assert case.is_restart or outcome["replacement"]["node"] != told["fromNode"]
    if case.like is not None:
        compared = scene.rebalancing(case.like or {"name": case.strategy, "args": case.args}, **case.more)
        count = restarts_of_descheduler if case.is_restart else evictions_of_descheduler
        assert case.evicted <= count(before, compared, scene.scheduler)


# -- what must not be moved ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "args", "start"),
    [
        pytest.param("HighNodeUtilization", HIGH, no_compaction, id="HighNodeUtilization"),
        pytest.param("LowNodeUtilization", LOW, no_relief, id="LowNodeUtilization"),
    ],
)
async def test_no_pod_is_evicted_where_no_move_mends_anything(
    strategy: str, args: Obj, start: Callable[[Scene], Awaitable[None]], scene: Scene
) -> None:
    """Though the scheduler would score other nodes higher, as the reasons of the pods that stay say."""
    await scene.scheduling()
    await start(scene)
    before = {pod["metadata"]["uid"] for pod in await scene.pods()}
    name = await scene.policy(scene.rebalancing({"name": strategy, "args": args}))

    await converge(scene, name)

    assert {pod["metadata"]["uid"] for pod in await scene.pods()} == before
    assert await scene.records() == []
    counts = (await scene.policy_status(name))["counts"]
    assert counts["considered"] > 0, "the strategy proposed no pod"
    assert {each["reason"] for each in counts["refused"]} <= {"NoDestination", "MendsNothing", "NoOtherNode"}
