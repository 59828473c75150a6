"""One of several replicas moves by one more and one less, unless somebody else chooses the number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from planning.surge_builders import a_deployment
from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.framework import ClusterObjects
from plimsoll.model.kinds.deployment import FieldManager, surger_of
from plimsoll.planning.surges import obstacle_of_several
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import (
    PodGone,
    ProcessRestarted,
    ReplacementReady,
    ReplacementReturned,
    TimedOut,
)
from plimsoll.rebalancing.moves.events import RolloutAnswered as Answered
from plimsoll.rebalancing.moves.events import RolloutSight as Sight
from plimsoll.rebalancing.moves.instructions import LowerReplicas, RevertRollout, StartRollout
from plimsoll.rebalancing.moves.state import Landing, MoveStage, TimerName
from plimsoll.rebalancing.moves.transition import Step
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.surges.transitions import TABLE, recovered
from plimsoll.testing.fakes.evictions import OF_REPLICAS, FakeRollouts
from rebalancing.moves.cells import NOW, FakeSurroundings, a_ready, a_state, facts, taken
from rebalancing.moves.moved import KEY, a_spec

if TYPE_CHECKING:
    from plimsoll.model.kinds.deployment import Deployment

SPEC = a_spec(surge={"deployment": "web", "uid": "uid-Deployment/web", "replicas": 3})
OURS, POD = surger_of(KEY), f"{SPEC.pod.namespace}/{SPEC.pod.name}"
CONFLICT = WriteResult(WriteOutcome.CONFLICT, "somebody else owns the annotation")
FORBIDDEN = WriteResult(WriteOutcome.REFUSED, "forbidden")
DONE = WriteResult(WriteOutcome.DONE)
LOST = WriteResult(WriteOutcome.UNKNOWN, "no answer in time")


def three(replicas: int = 3, by: str = "", ready: int | None = None, **metadata: Any) -> Deployment:
    """A Deployment at rest, or with as many ready pods, whose number somebody wrote."""
    count = replicas if ready is None else ready
    status = {"replicas": replicas, "updatedReplicas": replicas, "availableReplicas": count}
    wrote = {"manager": by, "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    given = {"managedFields": [wrote] if by else [], "resourceVersion": "3", **metadata}
    return a_deployment(metadata=given, status=status, replicas=replicas)


@pytest.mark.parametrize(
    ("order", "found", "sight", "written", "leaving"),
    [
        pytest.param(StartRollout, three(), Sight.MARKED, [4], False, id="raised"),
        pytest.param(StartRollout, three(4, OURS), Sight.MARKED, [], False, id="raised already"),
        pytest.param(StartRollout, three(4, "kubectl"), Sight.CHANGED, [], False, id="scaled by a person"),
        pytest.param(StartRollout, three(ready=2), Sight.CHANGED, [], False, id="not at rest"),
        pytest.param(StartRollout, three(by="argocd-controller"), Sight.CHANGED, [], False, id="kept"),
        pytest.param(LowerReplicas, three(4, OURS), Sight.OPEN, [3], True, id="lowered"),
        pytest.param(LowerReplicas, three(4, OURS, ready=3), Sight.OPEN, [], False, id="one is not ready"),
        pytest.param(LowerReplicas, three(3, OURS), Sight.LOWERED, [], False, id="at rest after that"),
        pytest.param(LowerReplicas, three(3, OURS, ready=2), Sight.OPEN, [], False, id="not at rest yet"),
        pytest.param(LowerReplicas, three(5, "hpa"), Sight.CHANGED, [], False, id="another number"),
        pytest.param(LowerReplicas, three(3, "hpa"), Sight.UNTOUCHED, [], False, id="lowered by others"),
        pytest.param(RevertRollout, three(4, OURS), Sight.UNTOUCHED, [3], False, id="taken back"),
        pytest.param(RevertRollout, three(3, OURS), Sight.UNTOUCHED, [], False, id="only the cost"),
        pytest.param(RevertRollout, three(5, "hpa"), Sight.CHANGED, [], False, id="another number stays"),
    ],
)
def test_an_attempt(
    order: Any, found: Deployment, sight: Sight, written: list[int], *, leaving: bool
) -> None:
    """What is written depends on what the Deployment says, and on who wrote that."""
    rollouts = FakeRollouts(found)
    surges = RolloutSurges(rollouts, ClusterObjects())

    async def tried() -> Any:
        return await surges.awaited[order](order(KEY, SPEC))

    answer = asyncio.run(tried())

    assert (answer.sight, rollouts.scales) == (sight, written)
    assert (POD in rollouts.leaving) is leaving


@pytest.mark.parametrize("uid", ["", "uid-of-another"])
def test_a_pod_outlives_its_deployment_without_the_cost(uid: str) -> None:
    """A Deployment that is deleted without its pods, or made again, leaves them as they were."""
    rollouts = FakeRollouts(*([three(uid=uid)] if uid else []))
    rollouts.leaving.add(POD)
    surges = RolloutSurges(rollouts, ClusterObjects())

    answer = asyncio.run(surges.revert(RevertRollout(KEY, SPEC)))

    assert (answer.sight, rollouts.scales, rollouts.leaving) == (Sight.GONE, [], set())


@pytest.mark.parametrize(
    ("said", "sight", "written"),
    [(CONFLICT, Sight.CHANGED, []), (FORBIDDEN, Sight.CHANGED, []), (LOST, Sight.OPEN, [])],
)
def test_without_the_pods_cost_nothing_is_lowered(
    said: WriteResult, sight: Sight, written: list[int]
) -> None:
    """Another pod might go."""
    rollouts = FakeRollouts(three(4, OURS))
    rollouts.preferring = said
    surges = RolloutSurges(rollouts, ClusterObjects())

    answer = asyncio.run(surges.lower(LowerReplicas(KEY, SPEC)))

    assert (answer.sight, rollouts.scales) == (sight, written)


OWNED = three(ownerReferences=[{"kind": "Shop", "name": "x", "uid": "u", "controller": True}])


@pytest.mark.parametrize(
    ("manager", "operation", "subresource", "kept"),
    [
        ("kubectl-create", "Update", "", False),
        ("kubectl", "Update", "scale", False),
        (surger_of("default/earlier"), "Update", "scale", False),
        ("kustomize-controller", "Apply", "", True),
        ("somebody", "Apply", "", True),
        ("argocd-controller", "Update", "", True),
        ("kube-controller-manager", "Update", "scale", True),
    ],
)
def test_who_keeps_the_number(manager: str, operation: str, subresource: str, *, kept: bool) -> None:
    """GitOps and autoscalers do; a person who typed it once, and we ourselves, do not."""
    wrote = FieldManager(manager=manager, operation=operation, subresource=subresource, fields=OF_REPLICAS)
    found = three()
    metadata = msgspec.structs.replace(found.metadata, managed_fields=(wrote,))

    assert (obstacle_of_several(msgspec.structs.replace(found, metadata=metadata), {}) != "") is kept


@pytest.mark.parametrize(
    ("found", "autoscaled", "said"),
    [
        (three(1), {}, "Deployment web wants 1 replica"),
        (three(), None, "whether an autoscaler decides on the replicas of Deployment web could not be read"),
        (
            three(),
            {"Deployment default/web": "w"},
            "HorizontalPodAutoscaler w decides on the replicas of Deployment web",
        ),
        (OWNED, {}, "Shop x decides on the replicas of Deployment web"),
        (three(), {"CloneSet default/web": "w"}, ""),
    ],
)
def test_the_missing_condition_is_named(found: Deployment, autoscaled: Any, said: str) -> None:
    assert obstacle_of_several(found, autoscaled) == said


def surging(**more: Any) -> Any:
    """A surge whose replacement is ready."""
    given = {"was_running": True, "was_ready": True, "replacement": a_ready(), "holds": False, **more}
    return a_state(MoveStage.SURGING, spec=SPEC, **given)


def reverting(reason: str, phase: Phase) -> Any:
    """A surge that is being taken back, and ends so."""
    ending = Landing(phase, reason, "because", a_ready())
    return a_state(MoveStage.REVERTING, spec=SPEC, ending=ending, holds=False)


SAID, LATER = frozenset({StartRollout.asks}), ["RetryAt replacement +5"]
LOWER = ["RetryAt leaving +900", "LowerReplicas"]


def revert(why: str) -> list[str]:
    """It is taken back, and the record says why."""
    return [f"WriteRecord Surging/{why}", "RevertRollout"]


@pytest.mark.parametrize(
    ("state", "event", "stage", "ordered"),
    [
        (surging(was_ready=False), ReplacementReady(KEY, a_ready()), "Su", LOWER),
        (surging(), Answered(KEY, Sight.OPEN, LOST), "Su", ["RetryAt retry +0.5"]),
        (surging(), TimedOut(KEY, TimerName.RETRY), "Su", ["LowerReplicas"]),
        (surging(), PodGone(KEY), "Su", []),
        (surging(), Answered(KEY, Sight.LOWERED, LOST), "Su", []),
        (surging(pod_gone=True), Answered(KEY, Sight.LOWERED, LOST), "X", "Settled"),
        (surging(is_lowered=True), PodGone(KEY), "X", "Settled"),
        (surging(), Answered(KEY, Sight.CHANGED, FORBIDDEN), "Rv", revert("SurgeRefused")),
        (surging(), Answered(KEY, Sight.CHANGED, DONE), "Rv", revert("Changed")),
        (reverting("Changed", Phase.CANCELLED), Answered(KEY, Sight.CHANGED, DONE), "X", "Cancelled"),
        (reverting("SurgeRefused", Phase.FAILED), Answered(KEY, Sight.UNTOUCHED, DONE), "X", "Failed"),
        (surging(), TimedOut(KEY, TimerName.LEAVING), "Rv", revert("OldPodStays")),
        (surging(was_ready=False), ReplacementReturned(KEY, a_ready(node="bad")), "Rv", revert("SameNode")),
        (surging(was_ready=False, awaits=SAID), ReplacementReturned(KEY, a_ready(node="bad")), "Su", LATER),
        (surging(awaits=SAID), TimedOut(KEY, TimerName.LEAVING), "Su", ["RetryAt leaving +5"]),
        (surging(was_ready=False, replacement=None), Answered(KEY, Sight.LOWERED, DONE), "X", "Cancelled"),
    ],
)  # fmt: skip
def test_a_step(state: Any, event: Any, stage: str, ordered: Any) -> None:
    """It ends when the pod has gone and the number is as before, whichever is seen first."""
    after, instructions = taken(TABLE, state, event, now=NOW)

    if stage == "X":
        assert (after.stage, after.phase) == (MoveStage.CLOSED, ordered)
    else:
        assert after.stage.value == stage
        assert [each for each in instructions if not each.startswith("CountMove")] == ordered


@pytest.mark.parametrize("answer", [LOST, WriteResult(WriteOutcome.FENCED, "not the leader")])
@pytest.mark.parametrize(
    ("reason", "phase", "pod"),
    [
        pytest.param("Changed", Phase.CANCELLED, a_ready(), id="another number was chosen"),
        pytest.param("Returned", Phase.RETURNED, a_ready(node="bad"), id="came back to its node"),
    ],
)
def test_a_surge_taken_back_twice_ends_as_it_was_to_end(
    answer: WriteResult, reason: str, phase: Phase, pod: Any
) -> None:
    """Without an answer it waits before the next attempt, and remembers why it is taken back."""
    ready = phase is Phase.CANCELLED
    state = a_state(
        MoveStage.REVERTING,
        spec=SPEC,
        ending=Landing(phase, reason, "because", pod),
        replacement=pod,
        was_running=True,
        was_ready=ready,
        holds=False,
    )

    waiting, first = taken(TABLE, state, Answered(KEY, Sight.OPEN, answer), now=NOW)
    again, second = taken(TABLE, waiting, TimedOut(KEY, TimerName.REPLACEMENT), now=NOW)
    after, _ = taken(TABLE, again, Answered(KEY, Sight.UNTOUCHED, DONE), now=NOW)

    assert (waiting.stage, first) == (MoveStage.SURGING, LATER)
    assert (again.stage, second[-1]) == (MoveStage.REVERTING, "RevertRollout")
    assert (after.stage, after.phase, after.reason) == (MoveStage.CLOSED, phase, reason)


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (surging(), Answered(KEY, Sight.CHANGED, DONE)),
        (surging(), Answered(KEY, Sight.UNTOUCHED, DONE)),
        (surging(pod_gone=True), Answered(KEY, Sight.GONE, DONE)),
        (surging(), Answered(KEY, Sight.CHANGED, CONFLICT)),
        (surging(), Answered(KEY, Sight.CHANGED, FORBIDDEN)),
        (surging(), TimedOut(KEY, TimerName.LEAVING)),
        (surging(was_ready=False), ReplacementReturned(KEY, a_ready(node="bad"))),
        (surging(was_ready=False, replacement=None), TimedOut(KEY, TimerName.REPLACEMENT)),
    ],
)
@pytest.mark.parametrize("pod_seen", [True, False])
def test_a_restart_in_between_changes_no_ending(state: Any, event: Any, *, pod_seen: bool) -> None:
    """The record says why the surge is taken back; the ready replacement, seen again, is no news."""
    before, _ = taken(TABLE, state, event, now=NOW)
    done = Answered(KEY, Sight.UNTOUCHED, DONE)
    expected, _ = taken(TABLE, before, done, now=NOW)
    status = EvictionStatus(phase=Phase.SURGING, reason=before.reason, message=before.message)
    new = a_state(
        MoveStage.NEW,
        spec=SPEC,
        phase=Phase.SURGING,
        reason=before.reason,
        message=before.message,
        holds=False,
    )
    step = Step(new, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    assert recovered(
        step, ProcessRestarted(KEY, SPEC, status, pod=None if state.pod_gone else facts("web-1", "bad"))
    )
    after = step.state
    pod = before.replacement
    if pod is not None and pod_seen:
        kind = ReplacementReturned if pod.node == SPEC.from_node else ReplacementReady
        after, _ = taken(TABLE, after, kind(KEY, pod), now=NOW)
    after, ordered = taken(TABLE, after, TimedOut(KEY, TimerName.REPLACEMENT), now=NOW)
    after, _ = taken(TABLE, after, done, now=NOW)

    assert ordered[-1] == "RevertRollout"
    assert (after.stage, after.phase, after.reason) == (MoveStage.CLOSED, expected.phase, expected.reason)
    assert after.message.removeprefix("no replacement came within 0 s") == expected.message.removeprefix(
        "no replacement came within 300 s"
    )


@pytest.mark.parametrize(
    ("state", "events", "said"),
    [
        pytest.param(
            reverting("Changed", Phase.FAILED),
            [Answered(KEY, Sight.CHANGED, FORBIDDEN)],
            "because; the replicas could not be lowered again: forbidden",
            id="refused",
        ),
        pytest.param(
            surging(pod_gone=True),
            [Answered(KEY, Sight.GONE, DONE), Answered(KEY, Sight.GONE, DONE)],
            "the Deployment is gone, and pod web-1 has gone; the number of replicas is left alone",
            id="both are gone",
        ),
    ],
)
def test_the_last_sentence(state: Any, events: list[Any], said: str) -> None:
    """It says what is left to do, and claims of no pod that it stays which has gone."""
    for event in events:
        state, _ = taken(TABLE, state, event, now=NOW)

    assert state.message == said


def test_a_raising_that_is_seen_to_be_done_is_not_tried_again() -> None:
    """Its next attempt would lower the number while the attempt under way does."""
    state = surging(was_ready=False, timers={TimerName.RETRY: NOW + 1.0})

    after, ordered = taken(TABLE, state, ReplacementReady(KEY, a_ready()), now=NOW)

    assert "LowerReplicas" in ordered
    assert TimerName.RETRY not in after.timers
