"""Records after a restart: table 3 of the design, line by line, then any record there may be."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionStatus, PhaseTransition, Replacement
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase, may_follow
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import (
    ProcessRestarted,
    RolloutAnswered,
    RolloutSight,
)
from plimsoll.rebalancing.moves.instructions import (
    CreateRecord,
    Evict,
    ReleaseTarget,
    ReserveTarget,
    StartRollout,
    WriteRecord,
)
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.recovery import rank, table
from plimsoll.rebalancing.moves.state import MoveStage, PodFacts
from plimsoll.rebalancing.surges import transitions as surges
from plimsoll.testing.builders import a_pod, the_info
from rebalancing.moves.cells import NOW, FakeSurroundings, facts, short
from rebalancing.moves.invariants import checked
from rebalancing.moves.moved import KEY, a_spec

SENT = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
SURGE = {"surge": {"deployment": "web", "uid": "uid-Deployment/web", "template": "abc"}}
VICTIM = {"strategy": "DefaultPreemption", "target_node": None}

STANDS = facts("web-1", "bad")
LEAVES = facts("web-1", "bad", terminating=True)
GONE = None

MOVE = Move(
    pod=the_info(a_pod("web-1", owner="ReplicaSet/web", node="bad", terminationGracePeriodSeconds=30)),
    strategy="RemoveDuplicates",
    reason="for a test",
    source="bad",
    target="good",
    gain=1,
    ties=0,
    is_forecast=False,
    workload=Workload("default/uid-ReplicaSet/web", "ReplicaSet default/web"),
)


def a_status(
    phase: Phase | None, reason: str = "Sent", replacement: Replacement | None = None
) -> EvictionStatus:
    """How far a record has come; it was sent at half past twelve."""
    path = {
        Phase.EVICTING: [Phase.EVICTING],
        Phase.EVICTED: [Phase.EVICTING, Phase.EVICTED],
        Phase.SURGING: [Phase.SURGING],
    }.get(phase, [])  # type: ignore[arg-type] # a fake has only what is used
    return EvictionStatus(
        phase=phase,
        reason=reason,
        transitions=tuple(PhaseTransition(phase=each, time=SENT) for each in path),
        replacement=replacement,
    )


def found(
    phase: Phase | None,
    pod: PodFacts | None = GONE,
    reason: Any = "Sent",
    *,
    rollout: Any = None,
    replacement: Any = None,
    key: Any = KEY,
    over_limit: Any = "",
    **spec: Any,
) -> ProcessRestarted:
    """A record of an earlier process, found 20 s after it was sent."""
    return ProcessRestarted(
        key,
        a_spec(**spec),
        a_status(phase, reason, replacement),
        20.0,
        pod=pod,
        move=MOVE if pod is not None else None,
        rollout=rollout,
        over_limit=over_limit,
    )


def a_machine(around: FakeSurroundings | None = None, *, is_whole: bool = True) -> MoveMachine:
    """All there is, or only what is not optional."""
    rules = (surges.recovered,) if is_whole else ()
    tables = (surges.TABLE,) if is_whole else ()
    return checked(MoveMachine(around or FakeSurroundings(), (table(rules), *tables)))  # type: ignore[arg-type] # a fake has only what is used


def rollout(
    sight: RolloutSight, answer: WriteOutcome = WriteOutcome.DONE, patience_s: float = 600.0
) -> RolloutAnswered:
    """What the Deployment says."""
    return RolloutAnswered(KEY, sight, WriteResult(answer), patience_s)


AWAITED = ["ReserveTarget", "FollowReplacement since 12:30", "RetryAt replacement +300"]
CANCELLED = ["WriteRecord Cancelled/Restarted"]
NOT_BELIEVED = ["WriteRecord Failed/StillThere", "EmitEvent RecordRefused"]
LINES = [
    # -- no phase: it ended between a record and its status ------------------------------------------
    ("prediction", found(None, mode="DryRun"), "Cl", ["WriteRecord Predicted/Restarted"]),
    ("no-status", found(None), "Cl", ["WriteRecord Planned/Restarted", *CANCELLED]),
    ("no-status-of-a-proposal", found(None, mode="Approve"), "Pr", ["WriteRecord Planned/Restarted"]),
    # -- Planned -------------------------------------------------------------------------------------
    ("proposal", found(Phase.PLANNED, STANDS, "AwaitsApproval", mode="Approve"), "Pr", []),
    ("proposal-of-a-gone-pod", found(Phase.PLANNED, GONE, "AwaitsApproval", mode="Approve"), "Pr", []),
    ("planned", found(Phase.PLANNED, STANDS), "Cl", CANCELLED),
    ("planned-and-gone", found(Phase.PLANNED), "Cl", CANCELLED),
    # -- Evicting ------------------------------------------------------------------------------------
    ("evicting", found(Phase.EVICTING, STANDS), "Cl", CANCELLED),
    ("evicting-approved", found(Phase.EVICTING, STANDS, mode="Approve"), "Cl", CANCELLED),
    ("evicting-and-leaves", found(Phase.EVICTING, LEAVES), "Re", ["WriteRecord Evicted/Restarted", *AWAITED]),
    ("evicting-and-gone", found(Phase.EVICTING), "Re", ["WriteRecord Evicted/Restarted", *AWAITED]),
    (
        "requested-and-gone",
        found(Phase.EVICTING, GONE, "Requested"),
        "Re",
        ["WriteRecord Evicted/Restarted", *AWAITED],
    ),
    ("victim-stands", found(Phase.EVICTING, STANDS, **VICTIM), "Cl", CANCELLED),
    (
        "victim-leaves",
        found(Phase.EVICTING, LEAVES, **VICTIM),
        "Le",
        ["WriteRecord Evicted/Restarted", "RetryAt leaving +330"],
    ),
    (
        "victim-gone",
        found(Phase.EVICTING, GONE, **VICTIM),
        "Cl",
        ["WriteRecord Evicted/Restarted", "WriteRecord Settled/Left"],
    ),
    # -- Evicted -------------------------------------------------------------------------------------
    ("evicted", found(Phase.EVICTED), "Re", AWAITED),
    ("evicted-and-leaves", found(Phase.EVICTED, LEAVES), "Re", AWAITED),
    ("evicted-and-stands", found(Phase.EVICTED, STANDS), "Cl", NOT_BELIEVED),
    (
        "evicted-over-the-limit",
        found(Phase.EVICTED, over_limit="policy tidy allows at most 1 eviction of ReplicaSet default/web"),
        "Re",
        ["EmitEvent RecordRefused", *AWAITED[1:]],
    ),
    ("evicted-forecast", found(Phase.EVICTED, forecast=True), "Re", AWAITED[1:]),
    ("evicted-by-upstream", found(Phase.EVICTED, planner="Upstream"), "Re", AWAITED[1:]),
    (
        "evicted-without-an-owner",
        found(Phase.EVICTED, owner=""),
        "Cl",
        ["WriteRecord Failed/NoReplacement", "CountMove 0/0"],
    ),
    (
        "evicted-after-it-had-ended",
        found(Phase.EVICTED, target=None),
        "Cl",
        ["WriteRecord Settled/NoReplacement", "CountMove 0/1"],
    ),
    ("victim-evicted", found(Phase.EVICTED, LEAVES, **VICTIM), "Le", ["RetryAt leaving +330"]),
    ("victim-evicted-and-stands", found(Phase.EVICTED, STANDS, **VICTIM), "Cl", NOT_BELIEVED),
    ("victim-evicted-and-gone", found(Phase.EVICTED, GONE, **VICTIM), "Cl", ["WriteRecord Settled/Left"]),
    # -- Surging -------------------------------------------------------------------------------------
    (
        "surging",
        found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.MARKED), **SURGE),
        "Su",
        ["FollowReplacement", "RetryAt replacement +300"],
    ),
    (
        "surging-with-little-time",
        found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.MARKED, patience_s=20.0), **SURGE),
        "Su",
        ["FollowReplacement", "RetryAt replacement +20"],
    ),
    (
        "surging-untouched",
        found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.UNTOUCHED), **SURGE),
        "Cl",
        CANCELLED,
    ),
    (
        "surging-unknown",
        found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.OPEN, WriteOutcome.UNKNOWN), **SURGE),
        "Su",
        ["FollowReplacement", "RetryAt replacement +300"],
    ),
    (
        "surging-forbidden",
        found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.CHANGED, WriteOutcome.REFUSED), **SURGE),
        "Su",
        ["FollowReplacement", "RetryAt replacement +300"],
    ),
    (
        "reverting",
        found(Phase.SURGING, STANDS, "TakingBack", rollout=rollout(RolloutSight.UNTOUCHED), **SURGE),
        "Su",
        ["FollowReplacement", "RetryAt replacement +0"],
    ),
    # -- finished ------------------------------------------------------------------------------------
    *((f"finished-{phase}", found(phase), "Cl", []) for phase in FINISHED),
    (
        "settled",
        found(Phase.SETTLED, replacement=Replacement(name="web-2", uid="uid-web-2")),
        "Cl",
        ["StopFollowing uid-web-2"],
    ),
]


@pytest.mark.parametrize(
    ("event", "stage", "instructions"), [line[1:] for line in LINES], ids=[line[0] for line in LINES]
)
def test_a_line(event: ProcessRestarted, stage: str, instructions: list[str]) -> None:
    """Stage and instructions of one record."""
    around = FakeSurroundings({} if event.pod is None else {event.pod.uid: event.pod})
    around.pods = {f"uid-default-{each.name}": each for each in around.pods.values()}
    machine = a_machine(around)

    ordered = machine.handle(event, NOW)

    assert [short(each) for each in ordered] == instructions
    assert machine.moves[KEY].stage.value == stage


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (found(None), "the operator ended before the eviction was sent"),
        (found(Phase.PLANNED), "the operator ended before the eviction was sent"),
        (found(Phase.EVICTING, STANDS), "the operator ended before the eviction was accepted"),
        (
            found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.UNTOUCHED), **SURGE),
            "the operator ended before the rollout was started",
        ),
    ],
)
def test_what_is_cancelled_says_how_far_it_had_come(event: ProcessRestarted, message: str) -> None:
    """For people who look at the record."""
    machine = a_machine()

    machine.handle(event, NOW)

    assert machine.moves[KEY].message == message


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        (found(Phase.SURGING, STANDS, rollout=rollout(RolloutSight.MARKED), **SURGE), "Cl"),
        (found(Phase.EVICTING, STANDS, "Requested"), "Cl"),
        (found(Phase.EVICTED), "Re"),
    ],
)
def test_without_the_optional_ways_their_records_are_cancelled(event: ProcessRestarted, stage: str) -> None:
    """A build without them has no transition that would end such a move."""
    machine = a_machine(is_whole=False)

    machine.handle(event, NOW)

    assert machine.moves[KEY].stage.value == stage


def test_records_are_taken_over_in_order() -> None:
    """Spent replacements are known first, then targets are held before anything is decided."""
    phases = [Phase.PLANNED, Phase.EVICTED, None, Phase.SETTLED, Phase.EVICTING, Phase.FAILED, Phase.EVICTED]

    assert [each.status.phase for each in sorted(map(found, phases), key=rank)] == [
        Phase.SETTLED,
        Phase.FAILED,
        Phase.EVICTED,
        Phase.EVICTED,
        Phase.EVICTING,
        Phase.PLANNED,
        None,
    ]


def test_the_last_that_was_sent_is_taken_over_first() -> None:
    """Fewer pods may be its replacement than that of an earlier one."""
    sent = [SENT + timedelta(seconds=each) for each in (1, 3, 2)]
    events = [replace(found(Phase.EVICTED), announced=each) for each in sent]

    assert [each.announced for each in sorted(events, key=rank)] == [sent[1], sent[2], sent[0]]


# -- anything ----------------------------------------------------------------------------------------

RECORDS = st.builds(
    found,
    st.sampled_from([None, *Phase]),
    st.sampled_from([STANDS, replace(STANDS, in_progress=True), LEAVES, GONE]),
    st.sampled_from(["Sent", "Requested", "TakingBack", "Accepted", "Deferred", "Left", "anything"]),
    rollout=st.none()
    | st.builds(
        rollout,
        st.sampled_from(RolloutSight),
        st.sampled_from([WriteOutcome.DONE, WriteOutcome.UNKNOWN, WriteOutcome.REFUSED]),
        st.floats(0, 1e6),
    ),
    replacement=st.none() | st.just(Replacement(name="web-2", uid="uid-web-2")),
    mode=st.sampled_from(["DryRun", "Approve", "Enforce"]),
    owner=st.sampled_from(["", "web"]),
    target=st.none() | st.just("good"),
    forecast=st.booleans(),
    strategy=st.sampled_from(["RemoveDuplicates", "DefaultPreemption"]),
    surge=st.none() | st.just(SURGE["surge"]),
)


@settings(max_examples=3 * settings.default.max_examples)
@given(RECORDS)
def test_whatever_a_record_says_it_is_carried_to_an_end(event: ProcessRestarted) -> None:
    """By phases that may follow, with nothing sent again; each open one waits for something."""
    machine = a_machine(FakeSurroundings({} if event.pod is None else {"uid-default-web-1": event.pod}))

    ordered = machine.handle(event, NOW)  # its invariants are checked

    phases = [event.status.phase, *(each.phase for each in ordered if isinstance(each, WriteRecord))]
    assert all(may_follow(before, after) for before, after in pairwise(phases))  # type: ignore[arg-type] # a fake has only what is used
    assert not any(isinstance(each, CreateRecord | Evict | StartRollout) for each in ordered)
    state = machine.moves[KEY]
    assert state.phase is phases[-1]
    is_over = state.stage is MoveStage.CLOSED
    assert is_over == (state.phase in FINISHED)
    assert is_over or state.timers or state.stage is MoveStage.PROPOSED
    kept = [
        isinstance(each, ReserveTarget) for each in ordered if isinstance(each, ReserveTarget | ReleaseTarget)
    ]
    assert state.holds == (kept[-1:] == [True])


@pytest.mark.parametrize(("reason", "in_progress"), [("Deferred", True), ("Deferred", False), ("Sent", True)])
def test_what_others_carry_out_goes_on(reason: str, in_progress: bool) -> None:
    """By the record, or by the annotation of the pod if the process ended before it was written."""
    machine = a_machine()
    event = found(Phase.EVICTING, replace(STANDS, in_progress=in_progress), reason=reason)

    orders = [short(each) for each in machine.handle(event, NOW)]

    (state,) = machine.moves.values()
    assert state.stage is MoveStage.EVICTING
    assert state.deferred
    assert "RetryAt deferral +3580" in orders
    assert ("RetryAt sign +120" in orders) is not in_progress
    assert any(each.startswith("FollowReplacement") for each in orders)


def test_a_record_is_taken_over_once() -> None:
    """It is not new to the machine a second time."""
    machine = a_machine()
    machine.handle(found(Phase.EVICTED), NOW)

    with pytest.raises(Exception, match="ProcessRestarted cannot happen"):
        machine.handle(found(Phase.EVICTED), NOW)


def test_times_are_taken_from_the_record() -> None:
    """When it was sent; a record that was not sent does not say that."""
    sent, planned = found(Phase.EVICTED), found(Phase.PLANNED)

    assert (sent.since, planned.since) == (SENT, None)
    assert isinstance(sent, ProcessRestarted)


@pytest.mark.parametrize(
    ("planned_s", "since_s"),
    [
        pytest.param(0, -30, id="sent-at-once"),
        pytest.param(1, -30, id="times-are-cut-to-seconds"),
        pytest.param(600, 569, id="sent-after-ten-minutes"),
    ],
)
def test_replacements_are_looked_for_by_the_clock_that_says_when_pods_are_made(
    planned_s: float, since_s: float
) -> None:
    """The machine that wrote the record was 30 s ahead: its times are later than those of the API server."""
    planned = SENT - timedelta(seconds=planned_s)
    event = found(Phase.EVICTED)
    steps = [
        PhaseTransition(phase=Phase.PLANNED, time=planned),
        *event.status.transitions,
    ]
    status = event.status.model_copy(update={"transitions": tuple(steps)})
    ahead = timedelta(seconds=30)

    known = replace(event, status=status, created=planned - ahead)

    assert known.since == planned - ahead + timedelta(seconds=since_s + 30)


def test_replacements_are_looked_for_since_the_api_server_wrote_that_the_pod_goes() -> None:
    """A proposal is written by one machine, and sent by the next, whose clock is ten minutes ahead."""
    announced = SENT - timedelta(seconds=600)
    event = found(Phase.EVICTED)
    planned = PhaseTransition(phase=Phase.PLANNED, time=announced - timedelta(seconds=60))
    status = event.status.model_copy(update={"transitions": (planned, *event.status.transitions)})
    known = replace(event, status=status, created=planned.time)

    assert known.since == SENT - timedelta(seconds=1)
    assert replace(known, announced=announced).since == announced


def test_a_record_that_was_not_sent_is_followed_since_no_time() -> None:
    """Whatever its metadata say."""
    assert replace(found(Phase.PLANNED), announced=SENT).since is None
