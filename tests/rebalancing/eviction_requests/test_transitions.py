"""Every event in the stage Requesting: the table of the design, a case for each cell."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus, PhaseTransition
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import EvictBy, Mode
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import Move
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.eviction_requests.transitions import TABLE, recovered
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.events import (
    EvictionAnswered,
    PodGone,
    PodTerminating,
    PolicyChanged,
    ProcessRestarted,
    RecordDeleted,
    ReplacementLost,
    ReplacementReady,
    ReplacementReturned,
    ReplacementRunning,
    ReplacementSeen,
    RequestProgressed,
    RequestReviewed,
    StopPressed,
    TimedOut,
)
from plimsoll.rebalancing.moves.outcomes import cancelled
from plimsoll.rebalancing.moves.state import Landing, MoveStage, MoveState, PodFacts, TimerName, Way
from plimsoll.rebalancing.moves.transition import Step, nothing
from plimsoll.testing.builders import the_info
from rebalancing.moves.cells import NOW, FakeSurroundings, a_ready, a_state, facts, short, taken
from rebalancing.moves.moved import KEY, a_sibling, a_spec

DONE = WriteResult(WriteOutcome.DONE)
UNKNOWN = WriteResult(WriteOutcome.UNKNOWN, "no answer in time")
BUSY = WriteResult(WriteOutcome.BUSY, "later", retry_after_s=7.0)

MOVE = Move(
    pod=the_info(a_sibling("web-1", "bad")),
    strategy="RemoveDuplicates",
    reason="for a test",
    source="bad",
    target="good",
    gain=1,
    ties=0,
    is_forecast=False,
    workload=Workload("default/uid-ReplicaSet/web", "ReplicaSet default/web"),
)


def a_request(**more: Any) -> EvictionRequest:
    """The request of the move, taken up by a responder."""
    given = {"is_observed": True, "responder": "acme.io/migrator", "said": "copying memory", **more}
    return EvictionRequest("default", "web-1-record", "uid-default-web-1", **given)


def creating(**more: Any) -> MoveState:
    """The request is being created."""
    given = {"way": Way.REQUEST, "move": MOVE, "begun": False, "attempts": 1, "request_timeout_s": 3600.0}
    return a_state(MoveStage.REQUESTING, phase=Phase.EVICTING, reason="Requested", **{**given, **more})


def waiting(**more: Any) -> MoveState:
    """The pod was asked to leave ten seconds ago, and a responder is at work."""
    given = {
        "begun": True,
        "begun_at": NOW - 10,
        "request": a_request(),
        "message": "EvictionRequest web-1-record: acme.io/migrator is at work: copying memory",
        "timers": {TimerName.REQUEST_TIMEOUT: NOW + 3590},
    }
    return creating(**{**given, **more})


LEFT = [
    "CancelTimer requestTimeout",
    "WriteRecord Evicted/Left",
    "EmitEvent Evicted",
    "EmitEvent PodEvicted",
    "RetryAt replacement +300",
]


def called_off(
    record: str, *, timers: tuple[str, ...] = ("requestTimeout",), withdraw: bool = True, written: bool = True
) -> list[str]:
    """What ends a request."""
    return [
        *(["WithdrawRequest"] if withdraw else []),
        "ReleaseTarget",
        "StopFollowing",
        *(f"CancelTimer {timer}" for timer in timers),
        *([f"WriteRecord {record}"] if written else []),
        "CountMove 0/0",
    ]


def refused(record: str) -> list[str]:
    """What ends a move whose request was not made."""
    return ["ReleaseTarget", "StopFollowing", f"WriteRecord {record}"]


BY_REQUEST = RequestReviewed(KEY, Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 3600.0)
BY_EVICTION = RequestReviewed(KEY, Mode.ENFORCE, EvictBy.EVICTION, 3600.0)
NOT_OFFERED = ("EvictionRequestsNotOffered", "the server does not offer it")
POLICY_CHANGED = "Cancelled/PolicyChanged"
KEPT = Landing(Phase.SETTLED, "Verified", "the replacement is ready on good", a_ready())

CELLS = [
    # -- the creation: EvictionAnswered ---------------------------------------------------------------
    (
        "created",
        creating(),
        EvictionAnswered(KEY, DONE),
        "Rq",
        ["CountMove 1/0", "RetryAt takenUp +120", "RetryAt requestTimeout +3600", "ReviewRequest"],
    ),
    (
        "created-and-taken-up-already",
        creating(request=a_request()),
        EvictionAnswered(KEY, DONE),
        "Rq",
        [
            "CountMove 1/0",
            "RetryAt takenUp +120",
            "RetryAt requestTimeout +3600",
            "CancelTimer takenUp",
            "WriteRecord Evicting/Requested",
            "ReviewRequest",
        ],
    ),
    (
        "created-and-left-already",
        creating(pod_terminating=True),
        EvictionAnswered(KEY, DONE),
        "Re",
        ["CountMove 1/0", *LEFT[1:]],
    ),
    (
        "created-and-called-off-already",
        creating(ending=Landing(Phase.CANCELLED, "PolicyChanged", "")),
        EvictionAnswered(KEY, DONE),
        "Cl",
        ["CountMove 1/0", *called_off(POLICY_CHANGED, timers=())],
    ),
    ("no-answer", creating(), EvictionAnswered(KEY, UNKNOWN), "Rq", ["RetryAt retry +1"]),
    ("no-answer-3", creating(attempts=3), EvictionAnswered(KEY, UNKNOWN), "Rq", ["RetryAt retry +1"]),
    ("busy", creating(), EvictionAnswered(KEY, BUSY), "Rq", ["RetryAt retry +7"]),
    (
        "no-answer-4",
        creating(attempts=4),
        EvictionAnswered(KEY, UNKNOWN),
        "Cl",
        refused("Failed/EvictionFailed"),
    ),
    ("broke", creating(), EvictionAnswered(KEY, UNKNOWN, broke=True), "Cl", refused("Failed/EvictionFailed")),
    (
        "refused",
        creating(),
        EvictionAnswered(KEY, WriteResult(WriteOutcome.REFUSED, "forbidden")),
        "Cl",
        refused("Failed/EvictionRefused"),
    ),
    (
        "pod-is-gone",
        creating(pod_gone=True),
        EvictionAnswered(KEY, WriteResult(WriteOutcome.GONE, "no such pod")),
        "Cl",
        refused("Cancelled/Gone"),
    ),
    # -- the request: RequestProgressed --------------------------------------------------------------
    ("seen-while-created", creating(), RequestProgressed(KEY, a_request()), "Rq", []),
    (
        "progress",
        waiting(),
        RequestProgressed(KEY, a_request(said="90 %")),
        "Rq",
        ["WriteRecord Evicting/Requested"],
    ),
    ("no-progress", waiting(), RequestProgressed(KEY, a_request()), "Rq", []),
    (
        "taken-up",
        waiting(timers={TimerName.TAKEN_UP: NOW + 110}),
        RequestProgressed(KEY, a_request()),
        "Rq",
        ["CancelTimer takenUp"],
    ),
    (
        "deleted",
        waiting(),
        RequestProgressed(KEY, None),
        "Cl",
        called_off("Cancelled/RequestWithdrawn"),
    ),
    (
        "withdrawn-by-others",
        waiting(),
        RequestProgressed(KEY, a_request(is_withdrawn=True)),
        "Cl",
        called_off("Cancelled/RequestWithdrawn", withdraw=False),
    ),
    (
        "no-requesters",
        waiting(),
        RequestProgressed(KEY, a_request(failure="CanceledDueToNoRequesters")),
        "Cl",
        called_off("Cancelled/RequestWithdrawn"),
    ),
    (
        "failed",
        waiting(),
        RequestProgressed(KEY, a_request(failure="NoFurtherResponder")),
        "Cl",
        called_off("Failed/NoFurtherResponder"),
    ),
    (
        "api-gone",
        waiting(),
        RequestProgressed(KEY, None, NOT_OFFERED),
        "Cl",
        called_off("Cancelled/EvictionRequestsNotOffered", withdraw=False),
    ),
    (
        "not-taken-up",
        waiting(begun_at=NOW - 120, timers={TimerName.REQUEST_TIMEOUT: NOW + 3480}),
        RequestProgressed(KEY, a_request(is_observed=False)),
        "Cl",
        ["NoteUnattended", *called_off("Failed/RequestNotTakenUp")],
    ),
    (
        "too-late",
        waiting(begun_at=NOW - 3600, timers={}),
        RequestProgressed(KEY, a_request()),
        "Cl",
        called_off("Failed/RequestTimeout", timers=()),
    ),
    (
        "too-late-but-for-rounding",
        waiting(begun_at=NOW - 3600 + 1e-9, timers={}),
        RequestProgressed(KEY, a_request()),
        "Cl",
        called_off("Failed/RequestTimeout", timers=()),
    ),
    (
        "created-and-ended-already",
        creating(request=a_request(is_withdrawn=True)),
        EvictionAnswered(KEY, DONE),
        "Cl",
        [
            "CountMove 1/0",
            "RetryAt takenUp +120",
            "RetryAt requestTimeout +3600",
            *called_off("Cancelled/RequestWithdrawn", timers=("takenUp", "requestTimeout"), withdraw=False),
        ],
    ),
    (
        "cannot-be-read",
        waiting(),
        RequestProgressed(KEY, None, is_known=False),
        "Rq",
        ["RetryAt retry +2"],
    ),
    # -- the circumstances: RequestReviewed ----------------------------------------------------------
    ("nothing-has-changed", waiting(), BY_REQUEST, "Rq", []),
    ("policy-went-another-way", waiting(), BY_EVICTION, "Cl", called_off(POLICY_CHANGED)),
    ("policy-was-deleted", waiting(), RequestReviewed(KEY, None), "Cl", called_off(POLICY_CHANGED)),
    (
        "policy-may-yet-come",
        waiting(request_timeout_s=math.inf),
        RequestReviewed(KEY, None),
        "Rq",
        [],
    ),
    (
        "policy-is-known",
        waiting(request_timeout_s=math.inf),
        BY_REQUEST,
        "Rq",
        ["RetryAt requestTimeout +3590"],
    ),
    (
        "stopped-or-protected",
        waiting(),
        RequestReviewed(KEY, None, call_off=Landing(Phase.CANCELLED, "NeverEvict", "")),
        "Cl",
        called_off("Cancelled/NeverEvict"),
    ),
    # -- time: TimedOut ------------------------------------------------------------------------------
    (
        "another-try",
        creating(timers={TimerName.RETRY: NOW}),
        TimedOut(KEY, TimerName.RETRY),
        "Rq",
        ["CancelTimer retry", "RequestEviction"],
    ),
    (
        "another-inspection",
        waiting(timers={TimerName.RETRY: NOW}),
        TimedOut(KEY, TimerName.RETRY),
        "Rq",
        ["CancelTimer retry", "InspectRequest"],
    ),
    (
        "time-to-be-taken-up-is-over",
        waiting(timers={TimerName.TAKEN_UP: NOW}),
        TimedOut(KEY, TimerName.TAKEN_UP),
        "Rq",
        ["CancelTimer takenUp", "InspectRequest"],
    ),
    (
        "time-is-over",
        waiting(),
        TimedOut(KEY, TimerName.REQUEST_TIMEOUT),
        "Rq",
        ["CancelTimer requestTimeout", "InspectRequest"],
    ),
    (
        "no-policy-has-come",
        waiting(request_timeout_s=math.inf),
        TimedOut(KEY, TimerName.REQUEST_TIMEOUT),
        "Cl",
        ["CancelTimer requestTimeout", *called_off(POLICY_CHANGED, timers=())],
    ),
    (
        "replacement-not-ready",
        waiting(replacement=facts(node="good"), holds=False),
        TimedOut(KEY, TimerName.REPLACEMENT),
        "Rq",
        ["StopFollowing uid-web-2", "ReleaseReplacement"],
    ),
    # -- people and policies -------------------------------------------------------------------------
    ("policy-gone", waiting(), PolicyChanged("tidy", None), "Cl", called_off(POLICY_CHANGED)),
    ("policy-gone-while-created", creating(), PolicyChanged("tidy", None), "Rq", []),
    (
        "other-mode",
        waiting(),
        PolicyChanged("tidy", Mode.APPROVE, EvictBy.EVICTION_REQUEST, 3600.0),
        "Cl",
        called_off(POLICY_CHANGED),
    ),
    (
        "other-way",
        waiting(),
        PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION, 3600.0),
        "Cl",
        called_off(POLICY_CHANGED),
    ),
    ("same-way", waiting(), PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 3600.0), "Rq", []),
    (
        "other-timeout",
        waiting(),
        PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 60.0),
        "Rq",
        ["RetryAt requestTimeout +50"],
    ),
    (
        "other-timeout-that-is-over",
        waiting(begun_at=NOW - 90),
        PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 60.0),
        "Rq",
        ["RetryAt requestTimeout +0"],
    ),
    (
        "other-timeout-while-created",
        creating(),
        PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 60.0),
        "Rq",
        [],
    ),
    ("stopped", waiting(), StopPressed("pressed"), "Cl", called_off("Blocked/EvictionBudget")),
    ("stopped-while-created", creating(), StopPressed("pressed"), "Rq", []),
    (
        "approval-taken-back",
        waiting(spec=a_spec(mode="Approve")),
        events.ProposalAnswered(KEY, approved=None),
        "Cl",
        called_off("Cancelled/Rejected"),
    ),
    (
        "rejected",
        waiting(spec=a_spec(mode="Approve")),
        events.ProposalAnswered(KEY, approved=False),
        "Cl",
        called_off("Cancelled/Rejected"),
    ),
    ("rejected-without-being-proposed", waiting(), events.ProposalAnswered(KEY, approved=False), "Rq", []),
    (
        "protected",
        waiting(),
        RequestReviewed(KEY, None, call_off=cancelled("NeverEvict", "its annotation forbids it")),
        "Cl",
        called_off("Cancelled/NeverEvict"),
    ),
    ("record-deleted", waiting(), RecordDeleted(KEY), "Cl", called_off("", written=False)),
    # -- pods ----------------------------------------------------------------------------------------
    ("leaves", waiting(), PodTerminating(KEY), "Re", LEFT),
    ("gone", waiting(), PodGone(KEY), "Re", LEFT),
    (
        "gone-and-replaced",
        waiting(landing=KEPT, replacement=a_ready(), holds=False),
        PodGone(KEY),
        "Cl",
        [
            *LEFT,
            "StopFollowing uid-web-2",
            "ReleaseReplacement",
            "CancelTimer replacement",
            "WriteRecord Settled/Verified by web-2",
            "CountMove 0/1",
        ],
    ),
    ("leaves-while-created", creating(), PodTerminating(KEY), "Rq", []),
    ("gone-while-created", creating(), PodGone(KEY), "Rq", []),
    ("seen", waiting(), ReplacementSeen(KEY, facts()), "Rq", ["TransferTarget web-2", "ReleaseTarget"]),
    (
        "running",
        waiting(replacement=facts(), holds=False),
        ReplacementRunning(KEY, facts(node="good")),
        "Rq",
        ["RetryAt replacement +300"],
    ),
    (
        "ready",
        waiting(replacement=facts(), holds=False),
        ReplacementReady(KEY, a_ready()),
        "Rq",
        ["ReleaseReplacement"],
    ),
    (
        "returned",
        waiting(replacement=facts(), holds=False),
        ReplacementReturned(KEY, a_ready(node="bad")),
        "Rq",
        ["ReleaseReplacement"],
    ),
    ("lost", waiting(replacement=facts()), ReplacementLost(KEY, facts()), "Rq", []),
    # -- nothing to do with it -----------------------------------------------------------------------
    ("planned-again", waiting(), events.MovePlanned(KEY, a_spec(), MOVE, "run", "Proved", ""), "Rq", []),
    ("unplanned", waiting(), events.MoveUnplanned(KEY), "Rq", []),
    ("approved-again", waiting(), events.ProposalAnswered(KEY, approved=True), "Rq", []),
    ("written", waiting(), events.RecordAnswered(KEY, Phase.EVICTING, DONE), "Rq", []),
    ("not-written", waiting(), events.RecordAnswered(KEY, Phase.EVICTING, UNKNOWN), "Rq", []),
    ("bundle-broken", waiting(), events.MoveDropped(KEY, KEPT), "Rq", []),
]


@pytest.mark.parametrize(
    ("state", "event", "stage", "instructions"), [case[1:] for case in CELLS], ids=[case[0] for case in CELLS]
)
def test_a_cell(state: MoveState, event: Any, stage: str, instructions: list[str]) -> None:
    """Next stage and instructions, in order."""
    after, ordered = taken(TABLE, state, event)

    assert (after.stage.value, ordered) == (stage, instructions)


def test_every_event_is_in_the_column() -> None:
    """A new kind of event must be thought about here as well."""
    kinds = {
        each
        for each in vars(events).values()
        if isinstance(each, type) and each.__module__ == events.__name__
    }
    cells = {kind for stage, kind in TABLE.transitions if stage is MoveStage.REQUESTING}
    tested = {type(case[2]) for case in CELLS}
    no_moves = {events.BundlePlanned, events.HoldUpsChanged, events.NodeClosed}
    abstract = {events.MoveEvent, events.ReplacementEvent, events.RolloutSight}

    assert tested == cells
    assert {kind.__name__ for kind in kinds - cells - abstract - no_moves} == {
        "EvictionMarked",  # for a pod that another component moves without being asked in this way
        "ProcessRestarted",
        "TurnReached",
        "Revalidated",
        "RevalidationRefused",
        "RolloutAnswered",
    }


@pytest.mark.parametrize("kind", [RequestProgressed, RequestReviewed])
@pytest.mark.parametrize("stage", [each for each in MoveStage if each is not MoveStage.REQUESTING])
def test_news_of_requests_concern_no_other_stage(
    kind: type[RequestProgressed] | type[RequestReviewed], stage: MoveStage
) -> None:
    """They may come late or twice; surges have a table of their own."""
    is_surge = stage in {MoveStage.SURGING, MoveStage.REVERTING, MoveStage.NEW}

    assert TABLE.transitions.get((stage, kind)) is (None if is_surge else nothing)


# -- what the state remembers ------------------------------------------------------------------------


def test_a_request_begins_with_the_search_for_the_replacement() -> None:
    """A live migration may start the new pod before the request is answered."""
    state = a_state(
        MoveStage.COMMITTING, phase=Phase.EVICTING, begun=False, way=Way.REQUEST, move=MOVE, pod_gone=True
    )
    step = Step(state, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    TABLE.begins[Way.REQUEST](step)

    assert (step.state.stage, step.state.pod_gone) == (MoveStage.REQUESTING, False)
    assert [short(each) for each in step.instructions] == ["FollowReplacement", "RequestEviction"]


def test_a_pod_without_a_controller_is_not_replaced() -> None:
    """What the record will say is known before the request is made."""
    state = a_state(MoveStage.COMMITTING, spec=a_spec(owner=""), phase=Phase.EVICTING, begun=False, move=MOVE)
    step = Step(state, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    TABLE.begins[Way.REQUEST](step)

    assert (step.state.landing.phase, step.state.landing.reason) == (Phase.FAILED, "NoReplacement")
    assert [short(each) for each in step.instructions] == ["ReleaseTarget", "RequestEviction"]


@pytest.mark.parametrize(
    ("event", "reason", "message"),
    [
        (PolicyChanged("tidy", None), "PolicyChanged", "the policy was changed, suspended or deleted"),
        (StopPressed("somebody pressed it"), "EvictionBudget", "somebody pressed it"),
        (
            RequestReviewed(KEY, None, call_off=cancelled("NeverEvict", "its annotation forbids it")),
            "NeverEvict",
            "its annotation forbids it",
        ),
    ],
)
def test_what_ends_a_request_that_is_being_created_is_remembered(
    event: PolicyChanged | StopPressed | RequestReviewed, reason: str, message: str
) -> None:
    """Until the answer is there nothing can be withdrawn."""
    after, _ = taken(TABLE, creating(), event)

    assert (after.ending.reason, after.ending.message) == (reason, message)


def test_the_time_of_a_request_counts_from_its_creation() -> None:
    """The answer may have taken several tries."""
    after, _ = taken(TABLE, creating(begun_at=NOW - 50), EvictionAnswered(KEY, DONE))

    assert after.begun_at == NOW


def test_a_timeout_that_was_changed_is_the_one_on_record() -> None:
    """Whatever it was when the request was made."""
    state, _ = taken(TABLE, waiting(), PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 600.0))

    after, _ = taken(TABLE, state, RequestProgressed(KEY, a_request()), now=NOW + 590)

    assert after.message.startswith("the pod did not leave within 600 s")


def test_the_stop_button_is_named_as_the_budget() -> None:
    """Who looks at the record finds what to release."""
    after, _ = taken(TABLE, creating(), StopPressed("somebody pressed it"))

    assert after.ending.blocked_by == "plimsoll.dev/stop"


def test_the_record_says_what_the_responder_told_last() -> None:
    """In its own words, once the pod has left."""
    after, _ = taken(TABLE, waiting(), PodTerminating(KEY))

    assert after.message == "copying memory"


def test_a_replacement_that_was_not_ready_is_the_outcome_when_the_pod_has_left() -> None:
    """The pod itself may take its time."""
    state, _ = taken(TABLE, waiting(replacement=facts(node="good")), TimedOut(KEY, TimerName.REPLACEMENT))

    after, instructions = taken(TABLE, state, PodGone(KEY))

    assert after.stage is MoveStage.CLOSED
    assert "WriteRecord Failed/ReplacementNotReady by web-2" in instructions


# -- a restart ---------------------------------------------------------------------------------------


def found(
    pod: PodFacts | None = None,
    *,
    phase: Phase = Phase.EVICTING,
    reason: str = "Requested",
    for_s: float = 10.0,
    spec: EvictionSpec | None = None,
) -> ProcessRestarted:
    """A record of an earlier process."""
    sent = PhaseTransition(phase=Phase.EVICTING, time=datetime.fromtimestamp(NOW - for_s, UTC))
    status = EvictionStatus(phase=phase, reason=reason, transitions=(sent,))
    return ProcessRestarted(KEY, spec or a_spec(), status, for_s, pod=pod, move=MOVE)


OLD = facts("web-1", "bad")


@pytest.mark.parametrize(
    ("event", "instructions"),
    [
        pytest.param(
            found(OLD),
            [
                "ReserveTarget",
                "FollowReplacement since 00:16",
                "RetryAt takenUp +110",
                "RetryAt requestTimeout +30",
                "ReviewRequest",
                "InspectRequest",
            ],
            id="waits",
        ),
        pytest.param(
            found(OLD, for_s=500.0),
            [
                "ReserveTarget",
                "FollowReplacement since 00:08",
                "RetryAt takenUp +0",
                "RetryAt requestTimeout +30",
                "ReviewRequest",
                "InspectRequest",
            ],
            id="waits-for-long",
        ),
        pytest.param(
            found(OLD, spec=a_spec(forecast=True)),
            [
                "FollowReplacement since 00:16",
                "RetryAt takenUp +110",
                "RetryAt requestTimeout +30",
                "ReviewRequest",
                "InspectRequest",
            ],
            id="forecast",
        ),
    ],
)
def test_a_request_of_an_earlier_process_is_waited_for(
    event: ProcessRestarted, instructions: list[str]
) -> None:
    """Its time counts from when it was made; what became of it is looked up first."""
    state = a_state(
        MoveStage.NEW,
        spec=event.spec,
        phase=event.status.phase,
        reason=event.status.reason,
        holds=False,
        begun=False,
    )
    step = Step(state, NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    assert recovered(step, event)
    assert [short(each) for each in step.instructions] == instructions
    assert (step.state.stage, step.state.begun) == (MoveStage.REQUESTING, True)
    assert step.state.begun_at == NOW - event.evicting_for_s


@pytest.mark.parametrize(
    "event",
    [
        found(None),
        found(facts("web-1", "bad", terminating=True)),
        found(OLD, reason="Sent"),
        found(OLD, phase=Phase.PLANNED),
        found(OLD, phase=Phase.EVICTED, reason="Left"),
    ],
    ids=["gone", "on-its-way", "eviction", "planned", "left"],
)
def test_other_records_are_no_requests(event: ProcessRestarted) -> None:
    """They are seen to elsewhere."""
    step = Step(a_state(MoveStage.NEW), NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used

    assert not recovered(step, event)
    assert step.instructions == []


def test_the_policy_that_comes_after_a_restart_sets_the_time() -> None:
    """Counted from when the request was made."""
    step = Step(a_state(MoveStage.NEW, phase=Phase.EVICTING), NOW, FakeSurroundings())  # type: ignore[arg-type] # a fake has only what is used
    recovered(step, found(OLD))

    event = PolicyChanged("tidy", Mode.ENFORCE, EvictBy.EVICTION_REQUEST, 600.0)
    _, instructions = taken(TABLE, step.state, event)

    assert instructions == ["RetryAt requestTimeout +590"]
