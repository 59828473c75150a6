"""Every event in the stages of a surge: the table of the design, a case for each cell."""

from typing import Any

import pytest

from planning.surge_builders import an_only_pod
from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.events import (
    MoveEvent,
    PodGone,
    ProcessRestarted,
    ReplacementLost,
    ReplacementReady,
    ReplacementReturned,
    ReplacementRunning,
    ReplacementSeen,
    RolloutAnswered,
    RolloutSight,
    TimedOut,
)
from plimsoll.rebalancing.moves.state import (
    EvictionMethod,
    Landing,
    MoveStage,
    MoveState,
    PodFacts,
    TimerName,
)
from plimsoll.rebalancing.moves.transition import Step
from plimsoll.rebalancing.surges.transitions import TABLE, TAKING_BACK, recovered
from plimsoll.testing.builders import the_info
from rebalancing.moves.cells import NOW, FakeSurroundings, a_ready, a_state, facts, short, taken
from rebalancing.moves.moved import KEY, a_spec

SURGE = {"deployment": "web", "uid": "uid-Deployment/web", "template": "abc"}
SPEC = a_spec(surge=SURGE)
DONE = WriteResult(WriteOutcome.DONE)
UNKNOWN = WriteResult(WriteOutcome.UNKNOWN, "no answer in time")
BUSY = WriteResult(WriteOutcome.BUSY, "later", retry_after_s=9.0)
CONFLICT = WriteResult(WriteOutcome.CONFLICT, "modified")
FORBIDDEN = WriteResult(WriteOutcome.REFUSED, "deployments.apps is forbidden")
FENCED = WriteResult(WriteOutcome.FENCED)

MOVE = Move(
    pod=the_info(an_only_pod("web-1", node="bad")),
    strategy="RemoveDuplicates",
    reason="for a test",
    source="bad",
    target="good",
    gain=1,
    ties=0,
    is_forecast=False,
    workload=Workload("default/uid-Deployment/web", "Deployment default/web"),
)


def surging(**more: Any) -> MoveState:
    """A surge whose rollout is being started."""
    given = {
        "way": EvictionMethod.SURGE,
        "move": MOVE,
        "begun": False,
        "attempts": 1,
        "timers": {TimerName.REPLACEMENT: NOW + 300},
        **more,
    }
    return a_state(MoveStage.SURGING, spec=SPEC, phase=Phase.SURGING, **given)


def ready(**more: Any) -> MoveState:
    """A surge whose replacement is ready, and whose old pod stands."""
    given = {
        "was_running": True,
        "was_ready": True,
        "replacement": a_ready(),
        "holds": False,
        "begun": True,
        "timers": {TimerName.LEAVING: NOW + 900},
    }
    return surging(**{**given, **more})


def reverting(replacement: PodFacts | None = None, **more: Any) -> MoveState:
    """A surge whose rollout is being reverted."""
    landing = Landing(Phase.FAILED, "ReplacementNotReady", "it was not ready", replacement)
    given = {"begun": True, "ending": landing, "replacement": replacement, "reason": TAKING_BACK}
    return a_state(MoveStage.REVERTING, spec=SPEC, phase=Phase.SURGING, **{**given, **more})


def answered(sight: RolloutSight, answer: WriteResult = DONE, patience_s: float = 600.0) -> RolloutAnswered:
    return RolloutAnswered(KEY, sight, answer, patience_s)


STARTED = ["EmitEvent Surging", "EmitEvent PodSurging", "CountMove 1/0"]
REVERT = ["CancelTimer replacement", "WriteRecord Surging/TakingBack", "RevertRollout"]


def ended(
    record: str,
    *,
    held: bool = True,
    pod: str = "",
    timers: tuple[str, ...] = ("replacement",),
    verified: str = "0/0",
) -> list[str]:
    """What ends a surge that was begun, or not when ``verified`` is empty."""
    return [
        *(["ReleaseTarget"] if held else []),
        f"StopFollowing uid-{pod}" if pod else "StopFollowing",
        *(["ReleaseReplacement"] if pod else []),
        *(f"CancelTimer {timer}" for timer in timers),
        f"WriteRecord {record}" + (f" by {pod}" if pod else ""),
        *([f"CountMove {verified}"] if verified else []),
    ]


CELLS = [
    # -- the rollout: RolloutAnswered ----------------------------------------------------------------
    ("marked", surging(), answered(RolloutSight.MARKED), "Su", STARTED),
    (
        "marked-and-little-time",
        surging(),
        answered(RolloutSight.MARKED, patience_s=20.0),
        "Su",
        ["RetryAt replacement +20", *STARTED],
    ),
    (
        "little-time-after-it-runs",
        surging(was_running=True, begun=True),
        answered(RolloutSight.MARKED, patience_s=20.0),
        "Su",
        STARTED[:2],
    ),
    ("open-1", surging(), answered(RolloutSight.OPEN, UNKNOWN), "Su", ["RetryAt retry +0.2"]),
    ("open-2", surging(attempts=2), answered(RolloutSight.OPEN, CONFLICT), "Su", ["RetryAt retry +1"]),
    ("open-3", surging(attempts=3), answered(RolloutSight.OPEN, UNKNOWN), "Su", ["RetryAt retry +4"]),
    ("open-busy", surging(), answered(RolloutSight.OPEN, BUSY), "Su", ["RetryAt retry +9"]),
    ("open-last", surging(attempts=4), answered(RolloutSight.OPEN, UNKNOWN), "Su", ["CountMove 1/0"]),
    (
        "conflict-last",
        surging(attempts=4),
        answered(RolloutSight.OPEN, CONFLICT),
        "Cl",
        ended("Cancelled/Changed", verified=""),
    ),
    ("changed", surging(), answered(RolloutSight.CHANGED), "Cl", ended("Cancelled/Changed", verified="")),
    ("gone", surging(), answered(RolloutSight.GONE), "Cl", ended("Cancelled/Gone", verified="")),
    (
        "refused",
        surging(),
        answered(RolloutSight.CHANGED, FORBIDDEN),
        "Cl",
        ended("Failed/SurgeRefused", verified=""),
    ),
    ("fenced", surging(), answered(RolloutSight.CHANGED, FENCED), "Su", []),
    (
        "late-marked",
        a_state(MoveStage.CLOSED, move=MOVE, spec=SPEC),
        answered(RolloutSight.MARKED),
        "Cl",
        STARTED[:2],
    ),
    (
        "late-changed",
        a_state(MoveStage.CLOSED, move=MOVE, spec=SPEC),
        answered(RolloutSight.CHANGED),
        "Cl",
        [],
    ),
    (
        "reverted",
        reverting(),
        answered(RolloutSight.UNTOUCHED),
        "Cl",
        ended("Failed/ReplacementNotReady", timers=()),
    ),
    (
        "reverted-by-others",
        reverting(facts(node="good")),
        answered(RolloutSight.CHANGED),
        "Cl",
        ended("Failed/ReplacementNotReady", timers=(), pod="web-2"),
    ),
    (
        "revert-gone",
        reverting(),
        answered(RolloutSight.GONE),
        "Cl",
        ended("Failed/ReplacementNotReady", timers=()),
    ),
    (
        "revert-refused",
        reverting(),
        answered(RolloutSight.CHANGED, FORBIDDEN),
        "Cl",
        ended("Failed/ReplacementNotReady", timers=()),
    ),
    ("revert-open", reverting(), answered(RolloutSight.OPEN, UNKNOWN), "Su", ["RetryAt replacement +5"]),
    ("revert-conflict", reverting(), answered(RolloutSight.OPEN, CONFLICT), "Su", ["RetryAt replacement +5"]),
    (
        "revert-fenced",
        reverting(),
        answered(RolloutSight.CHANGED, FENCED),
        "Su",
        ["RetryAt replacement +5"],
    ),
    (
        "revert-open-and-ready-now",
        reverting(a_ready(), was_running=True),
        answered(RolloutSight.OPEN, UNKNOWN),
        "Su",
        ["RetryAt replacement +5", "CancelTimer replacement", "RetryAt leaving +900"],
    ),
    (
        "revert-open-and-runs-now",
        reverting(facts(node="good")),
        answered(RolloutSight.OPEN, UNKNOWN),
        "Su",
        ["RetryAt replacement +5", "RetryAt replacement +300"],
    ),
    (
        "revert-open-and-over-now",
        reverting(a_ready(), was_running=True, pod_gone=True, holds=False),
        answered(RolloutSight.OPEN, UNKNOWN),
        "Cl",
        [
            "RetryAt replacement +5",
            *ended("Settled/Verified", held=False, pod="web-2", verified="0/1"),
        ],
    ),
    (
        "revert-open-and-returned-now",
        reverting(a_ready(node="bad"), was_running=True, holds=False),
        answered(RolloutSight.OPEN, UNKNOWN),
        "Cl",
        ["RetryAt replacement +5", *ended("Returned/SameNode", held=False, pod="web-2")],
    ),
    # -- time: TimedOut ------------------------------------------------------------------------------
    (
        "another-try",
        surging(timers={TimerName.RETRY: NOW}),
        TimedOut(KEY, TimerName.RETRY),
        "Su",
        ["CancelTimer retry", "StartRollout"],
    ),
    ("not-ready", surging(begun=True), TimedOut(KEY, TimerName.REPLACEMENT), "Rv", REVERT),
    (
        "not-ready-and-not-yet-started",
        surging(awaits=frozenset({"rollout"})),
        TimedOut(KEY, TimerName.REPLACEMENT),
        "Su",
        ["CancelTimer replacement", "RetryAt replacement +5"],
    ),
    (
        "not-ready-after-a-restart",
        surging(begun=True, reason=TAKING_BACK),
        TimedOut(KEY, TimerName.REPLACEMENT),
        "Rv",
        ["CancelTimer replacement", "RevertRollout"],
    ),
    (
        "old-pod-stays",
        ready(),
        TimedOut(KEY, TimerName.LEAVING),
        "Cl",
        ["CancelTimer leaving", *ended("Failed/OldPodStays", held=False, pod="web-2", timers=())],
    ),
    (
        "old-pod-stays-and-the-new-one-died",
        ready(replacement=None),
        TimedOut(KEY, TimerName.LEAVING),
        "Cl",
        ["CancelTimer leaving", *ended("Failed/OldPodStays", held=False, timers=())],
    ),
    ("late-timer", reverting(), TimedOut(KEY, TimerName.REPLACEMENT), "Rv", []),
    # -- pods ----------------------------------------------------------------------------------------
    ("old-pod-gone", surging(), PodGone(KEY), "Su", []),
    (
        "old-pod-gone-and-ready",
        ready(),
        PodGone(KEY),
        "Cl",
        ended("Settled/Verified", held=False, pod="web-2", timers=("leaving",), verified="0/1"),
    ),
    (
        "old-pod-gone-and-ready-no-more",
        ready(replacement=facts(node="good")),
        PodGone(KEY),
        "Su",
        [],
    ),
    ("old-pod-gone-while-reverting", reverting(), PodGone(KEY), "Rv", []),
    (
        "seen",
        surging(),
        ReplacementSeen(KEY, facts()),
        "Su",
        ["TransferTarget web-2", "ReleaseTarget"],
    ),
    ("seen-again", surging(replacement=facts()), ReplacementSeen(KEY, facts()), "Su", []),
    (
        "running",
        surging(replacement=facts(), timers={TimerName.REPLACEMENT: NOW + 40}),
        ReplacementRunning(KEY, facts(node="good")),
        "Su",
        ["RetryAt replacement +300"],
    ),
    (
        "running-again",
        surging(replacement=facts(), was_running=True),
        ReplacementRunning(KEY, facts(node="good")),
        "Su",
        [],
    ),
    (
        "ready",
        surging(replacement=facts(), was_running=True),
        ReplacementReady(KEY, a_ready()),
        "Su",
        ["CancelTimer replacement", "RetryAt leaving +900"],
    ),
    ("ready-again", ready(), ReplacementReady(KEY, a_ready()), "Su", []),
    (
        "ready-and-old-pod-gone",
        surging(replacement=facts(), was_running=True, pod_gone=True),
        ReplacementReady(KEY, a_ready()),
        "Cl",
        ["CountMove 1/0", *ended("Settled/Verified", pod="web-2", verified="0/1")],
    ),
    (
        "returned",
        surging(replacement=facts(), was_running=True),
        ReplacementReturned(KEY, a_ready(node="bad")),
        "Cl",
        ["CountMove 1/0", *ended("Returned/SameNode", pod="web-2")],
    ),
    ("lost", surging(replacement=facts()), ReplacementLost(KEY, facts()), "Su", []),
    (
        "seen-while-reverting",
        reverting(),
        ReplacementSeen(KEY, facts()),
        "Rv",
        ["TransferTarget web-2", "ReleaseTarget"],
    ),
    ("running-while-reverting", reverting(facts()), ReplacementRunning(KEY, facts(node="good")), "Rv", []),
    ("ready-while-reverting", reverting(facts()), ReplacementReady(KEY, a_ready()), "Rv", []),
    ("returned-while-reverting", reverting(facts()), ReplacementReturned(KEY, a_ready(node="bad")), "Rv", []),
    ("lost-while-reverting", reverting(facts()), ReplacementLost(KEY, facts()), "Rv", []),
]


@pytest.mark.parametrize(
    ("state", "event", "stage", "instructions"), [case[1:] for case in CELLS], ids=[case[0] for case in CELLS]
)
def test_a_cell(state: MoveState, event: MoveEvent, stage: str, instructions: list[str]) -> None:
    """Next stage and instructions, in order."""
    after, ordered = taken(TABLE, state, event)

    assert (after.stage.value, ordered) == (stage, instructions)


INDIFFERENT = [
    events.MovePlanned(KEY, SPEC, MOVE, "run", "Proved", ""),
    events.MoveUnplanned(KEY),
    events.ProposalAnswered(KEY, approved=True),
    events.ProposalAnswered(KEY, approved=False),
    events.ProposalAnswered(KEY, approved=None),
    events.RecordAnswered(KEY, Phase.SURGING, DONE),
    events.RecordAnswered(KEY, Phase.SURGING, UNKNOWN),
    events.RecordDeleted(KEY),
    events.PolicyChanged("tidy", None),
    events.PolicyChanged("tidy", Mode.ENFORCE),
    events.StopPressed("somebody pressed it"),
    events.MoveDropped(KEY, Landing(Phase.CANCELLED, "NotAll", "")),
    events.PodTerminating(KEY),
]


@pytest.mark.parametrize("state", [surging(), ready(), reverting()], ids=["surging", "ready", "reverting"])
@pytest.mark.parametrize("event", INDIFFERENT, ids=lambda event: type(event).__name__)
def test_a_rollout_goes_on_whatever_else_happens(state: MoveState, event: Any) -> None:
    """Once the Deployment is marked, only the rollout and time end a surge."""
    assert taken(TABLE, state, event) == (state, [])


@pytest.mark.parametrize("stage", [MoveStage.SURGING, MoveStage.REVERTING])
@pytest.mark.parametrize(
    "kind",
    [
        events.ProcessRestarted,
        events.RoomAwaited,
        events.TurnReached,
        events.Revalidated,
        events.RevalidationRefused,
        events.EvictionAnswered,
    ],
)
def test_what_cannot_happen_has_no_cell(stage: MoveStage, kind: Any) -> None:
    """The machine refuses it and tells the record's story."""
    assert (stage, kind) not in TABLE.transitions


def test_every_event_is_in_the_columns() -> None:
    """A new kind of event must be thought about here as well."""
    kinds = {
        each
        for each in vars(events).values()
        if isinstance(each, type) and each.__module__ == events.__name__
    }
    concerned = {kind for stage, kind in TABLE.transitions if stage is MoveStage.SURGING}
    abstract = {events.MoveEvent, events.ReplacementEvent, events.RolloutSight}
    for_bundles = {events.BundlePlanned, events.HoldUpsChanged, events.NodeClosed}

    assert {kind.__name__ for kind in kinds - concerned - abstract - for_bundles} == {
        "EvictionMarked",  # for a pod that another component moves without being asked in this way
        "ProcessRestarted",
        "RoomAwaited",
        "TurnReached",
        "Revalidated",
        "RevalidationRefused",
        "EvictionAnswered",
    }


def test_a_surge_begins_with_the_search_for_its_replacement() -> None:
    """The rollout may be quicker than the answer to its start."""
    state = a_state(
        MoveStage.COMMITTING, spec=SPEC, phase=Phase.SURGING, begun=False, way=EvictionMethod.SURGE
    )
    step = Step(state, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    TABLE.begins[EvictionMethod.SURGE](step)

    assert step.state.stage is MoveStage.SURGING
    assert [short(each) for each in step.instructions] == [
        "FollowReplacement",
        "StartRollout",
        "RetryAt replacement +300",
    ]


def test_what_happens_while_a_rollout_is_reverted_counts_when_it_is_not() -> None:
    """The old pod goes and the replacement becomes ready before the server answers."""
    state, told = reverting(facts(node="good")), []
    for event in (
        PodGone(KEY),
        ReplacementReady(KEY, a_ready()),
        answered(RolloutSight.OPEN, UNKNOWN),
    ):
        state, instructions = taken(TABLE, state, event)
        told.append((state.stage.value, [each for each in instructions if each.startswith("WriteRecord")]))

    assert told == [("Rv", []), ("Rv", []), ("Cl", ["WriteRecord Settled/Verified by web-2"])]


@pytest.mark.parametrize("state", [surging(replacement=facts()), reverting(facts())])
def test_a_replacement_that_is_lost_is_no_replacement(state: MoveState) -> None:
    """Until the next one comes."""
    after, _ = taken(TABLE, state, ReplacementLost(KEY, facts()))

    assert after.replacement is None


# -- sentences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (surging(begun=True), "no replacement came within 300 s"),
        (surging(begun=True, patience_s=20.0), "no replacement came within 20 s"),
        (
            surging(begun=True, replacement=facts()),
            "the replacement was not ready within 300 s; pod web-2 is Pending",
        ),
        (
            surging(begun=True, replacement=facts(node="good")),
            "the replacement was not ready within 300 s; pod web-2 is not ready",
        ),
    ],
)
def test_what_is_wrong_with_a_replacement_is_on_record(state: MoveState, message: str) -> None:
    """Before the rollout is reverted."""
    after, _ = taken(TABLE, state, TimedOut(KEY, TimerName.REPLACEMENT))

    assert after.message == message


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (answered(RolloutSight.UNTOUCHED), "the rollout was taken back, pod web-1 stays"),
        (
            answered(RolloutSight.CHANGED),
            "somebody changed the Deployment since, so the rollout was left alone",
        ),
        (answered(RolloutSight.GONE), "the Deployment is gone since, so the rollout was left alone"),
        (
            answered(RolloutSight.CHANGED, FORBIDDEN),
            "the rollout could not be taken back: deployments.apps is forbidden",
        ),
    ],
)
def test_what_became_of_the_rollout_is_on_record(event: RolloutAnswered, end: str) -> None:
    """After what was wrong."""
    after, _ = taken(TABLE, reverting(), event)

    assert after.message == f"it was not ready; {end}"


# -- a restart ---------------------------------------------------------------------------------------


def found(
    reason: str = "Sent",
    *,
    rollout: RolloutSight | None = None,
    pod: PodFacts | None = None,
    patience_s: float = 300.0,
) -> ProcessRestarted:
    """A record of an earlier process."""
    answer = UNKNOWN if rollout is RolloutSight.OPEN else DONE
    seen = None if rollout is None else RolloutAnswered(KEY, rollout, answer, patience_s)
    return ProcessRestarted(
        KEY, SPEC, EvictionStatus(phase=Phase.SURGING, reason=reason), rollout=seen, pod=pod
    )


OLD = facts("web-1", "bad")


@pytest.mark.parametrize(
    ("event", "stage", "instructions"),
    [
        pytest.param(
            found(rollout=RolloutSight.UNTOUCHED, pod=OLD),
            "Cl",
            ["WriteRecord Cancelled/Restarted"],
            id="not-started",
        ),
        pytest.param(
            found(rollout=RolloutSight.UNTOUCHED),
            "Su",
            ["FollowReplacement", "RetryAt replacement +300"],
            id="undone-and-pod-gone",
        ),
        pytest.param(
            found(rollout=RolloutSight.MARKED, pod=OLD),
            "Su",
            ["FollowReplacement", "RetryAt replacement +300"],
            id="started",
        ),
        pytest.param(
            found(rollout=RolloutSight.MARKED, pod=OLD, patience_s=20.0),
            "Su",
            ["FollowReplacement", "RetryAt replacement +20"],
            id="little-time",
        ),
        pytest.param(
            found(rollout=RolloutSight.CHANGED, pod=OLD, patience_s=600.0),
            "Su",
            ["FollowReplacement", "RetryAt replacement +300"],
            id="changed",
        ),
        pytest.param(
            found(rollout=RolloutSight.OPEN, pod=OLD),
            "Su",
            ["FollowReplacement", "RetryAt replacement +300"],
            id="cannot-be-read",
        ),
        pytest.param(
            found(TAKING_BACK, rollout=RolloutSight.UNTOUCHED, pod=OLD),
            "Su",
            ["FollowReplacement", "RetryAt replacement +0"],
            id="being-reverted",
        ),
    ],
)
def test_a_record_of_an_earlier_process(event: ProcessRestarted, stage: str, instructions: list[str]) -> None:
    """Table 3: the next process goes on where the Deployment says that the last one was."""
    state = a_state(
        MoveStage.NEW, spec=SPEC, phase=Phase.SURGING, reason=event.status.reason, holds=False, begun=False
    )
    step = Step(state, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    assert recovered(step, event)
    assert step.state.stage.value == stage
    assert [short(each) for each in step.instructions] == instructions
    assert step.state.pod_gone == (stage == "Su" and event.pod is None)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.SURGING])
def test_other_records_are_no_surges(phase: Phase) -> None:
    """They are seen to elsewhere."""
    step = Step(a_state(MoveStage.NEW), NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    assert not recovered(step, ProcessRestarted(KEY, SPEC, EvictionStatus(phase=phase)))
    assert step.instructions == []
