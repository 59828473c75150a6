"""The move machine: every event in every stage, one case a cell.

A row names the event, a cell the next stage and the instructions. ``.`` is an event that comes late: nothing
changes, nothing is ordered. ``x`` cannot happen. ``-`` is a move that is forgotten.
"""

from collections.abc import Callable, Iterator

import pytest
from _pytest.mark import ParameterSet
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.names import RecordKey
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events, eviction
from plimsoll.rebalancing.moves.instructions import (
    Evict,
    FollowReplacement,
    Revalidate,
    WriteRecord,
)
from plimsoll.rebalancing.moves.machine import InvalidTransition
from plimsoll.rebalancing.moves.outcomes import STUCK_S, cancelled
from plimsoll.rebalancing.moves.state import EvictionMethod, MoveStage, PodFacts, TimerName
from rebalancing.moves.moves_world import (
    DONE,
    GRACE_S,
    LOST,
    POLICY,
    Play,
    a_move,
    a_replacement,
    a_victim,
    planned,
)

BUSY = WriteResult(WriteOutcome.BUSY, "later")
WHY = cancelled("NoLongerWanted", "it is fine where it is")
STAGES = ("Pr", "Wa", "Op", "Ch", "Co", "Ev", "Re", "Le", "Cl")

EVENTS: dict[str, Callable[[RecordKey], events.Event]] = {
    "MovePlanned": lambda key: planned(key, a_move()),
    "RecordAnswered:yes": lambda key: events.RecordAnswered(key, Phase.EVICTING, DONE),
    "RecordAnswered:no": lambda key: events.RecordAnswered(key, Phase.EVICTING, LOST),
    "RecordDeleted": events.RecordDeleted,
    "ProposalAnswered:yes": lambda key: events.ProposalAnswered(key, approved=True),
    "ProposalAnswered:no": lambda key: events.ProposalAnswered(key, approved=False),
    "ProposalAnswered:-": lambda key: events.ProposalAnswered(key, approved=None),
    "MoveUnplanned": events.MoveUnplanned,
    "PolicyChanged": lambda _: events.PolicyChanged(POLICY, None),
    "StopPressed": lambda _: events.StopPressed("stop"),
    "RoomAwaited": events.RoomAwaited,
    "TurnReached": lambda key: events.TurnReached(key, a_move()),
    "MoveDropped": lambda key: events.MoveDropped(key, WHY),
    "Revalidated": lambda key: events.Revalidated(key, a_move(), EvictionMethod.EVICT),
    "RevalidationRefused": lambda key: events.RevalidationRefused(key, WHY),
    "EvictionAnswered": lambda key: events.EvictionAnswered(key, DONE),
    "PodTerminating": events.PodTerminating,
    "PodGone": events.PodGone,
    "EvictionMarked": lambda key: events.EvictionMarked(key, present=True),
    "ReplacementSeen": lambda key: events.ReplacementSeen(key, a_replacement(node="")),
    "ReplacementRunning": lambda key: events.ReplacementRunning(key, a_replacement(ready=False)),
    "ReplacementReady": lambda key: events.ReplacementReady(key, a_replacement()),
    "ReplacementReturned": lambda key: events.ReplacementReturned(key, a_replacement(node="bad")),
    "ReplacementLost": lambda key: events.ReplacementLost(key, a_replacement()),
    "TimedOut": lambda key: events.TimedOut(key, TimerName.REPLACEMENT),
}
CELLS = """
MovePlanned          .   .   .   .   .   .   .   .   .
RecordAnswered:yes   .   .   Ch  .   Ev  .   .   .   .
RecordAnswered:no    .   .   -   .   Cl  .   .   .   .
RecordDeleted        -   -   .   -   .   .   .   .   -
ProposalAnswered:yes Pr  .   Op  .   .   .   .   .   .
ProposalAnswered:no  Cl  -   Op  .   .   .   .   .   .
ProposalAnswered:-   .   .   .   .   .   .   .   .   .
MoveUnplanned        Cl  .   .   .   .   .   .   .   .
PolicyChanged        Cl  -   Op  Cl  .   .   .   .   .
StopPressed          .   .   .   .   .   .   .   .   .
RoomAwaited          x   Wa  x   x   x   x   x   x   x
TurnReached          Wa  Op  x   x   x   x   x   x   x
MoveDropped          Cl  -   Op  Cl  .   .   .   .   .
Revalidated          x   x   x   Co  x   x   x   x   .
RevalidationRefused  x   x   x   Cl  x   x   x   x   .
EvictionAnswered     x   x   x   x   x   Re  .   .   .
PodTerminating       .   .   .   .   .   Ev  .   Le  .
PodGone              Cl  .   .   .   .   Ev  Re  Cl  .
EvictionMarked       .   .   .   .   .   .   .   .   .
ReplacementSeen      .   .   .   .   .   Ev  Re  .   .
ReplacementRunning   .   .   .   .   .   Ev  Re  .   .
ReplacementReady     .   .   .   .   .   Ev  Cl  .   .
ReplacementReturned  .   .   .   .   .   Ev  Cl  .   .
ReplacementLost      .   .   .   .   .   .   .   .   .
TimedOut             .   .   .   .   .   Ev  Cl  Cl  .
"""

END = "ReleaseTarget StopFollowing ReleaseReplacement CancelTimer WriteRecord CountMove"
ORDERS = {
    ("Op", "RecordAnswered:yes"): "Revalidate",
    ("Co", "RecordAnswered:yes"): "FollowReplacement Evict",
    ("Co", "RecordAnswered:no"): "ReleaseTarget WriteRecord",
    ("Wa", "RecordDeleted"): "ReleaseTarget",
    ("Pr", "ProposalAnswered:no"): "WriteRecord",
    ("Wa", "ProposalAnswered:no"): "ReleaseTarget",
    ("Pr", "MoveUnplanned"): "WriteRecord",
    ("Pr", "PolicyChanged"): "WriteRecord",
    ("Wa", "PolicyChanged"): "ReleaseTarget",
    ("Ch", "PolicyChanged"): "WriteRecord",
    ("Wa", "RoomAwaited"): "ReserveTarget",
    ("Wa", "TurnReached"): "CreateRecord NoteDisplacement",
    ("Pr", "MoveDropped"): "WriteRecord",
    ("Wa", "MoveDropped"): "ReleaseTarget",
    ("Ch", "MoveDropped"): "WriteRecord",
    ("Ch", "Revalidated"): "ReserveTarget WriteRecord",
    ("Ch", "RevalidationRefused"): "WriteRecord",
    ("Ev", "EvictionAnswered"): "WriteRecord EmitEvent EmitEvent CountMove RetryAt",
    ("Pr", "PodGone"): "WriteRecord",
    ("Le", "PodTerminating"): "RetryAt",
    ("Re", "PodGone"): "RetryAt",
    ("Le", "PodGone"): "CancelTimer WriteRecord",
    ("Ev", "ReplacementSeen"): "TransferTarget ReleaseTarget",
    ("Re", "ReplacementSeen"): "TransferTarget ReleaseTarget",
    ("Ev", "ReplacementRunning"): "ReleaseTarget RetryAt",
    ("Re", "ReplacementRunning"): "ReleaseTarget RetryAt",
    ("Ev", "ReplacementReady"): "ReleaseTarget ReleaseReplacement",
    ("Re", "ReplacementReady"): END,
    ("Ev", "ReplacementReturned"): "ReleaseTarget ReleaseReplacement",
    ("Re", "ReplacementReturned"): END,
    ("Ev", "TimedOut"): "CancelTimer Evict",
    ("Re", "TimedOut"): "ReleaseTarget StopFollowing CancelTimer WriteRecord CountMove",
    ("Le", "TimedOut"): "CancelTimer WriteRecord",
}


def cells() -> Iterator[ParameterSet]:
    """Stage, event and what is expected."""
    for line in CELLS.strip().splitlines():
        name, *row = line.split()
        for stage, cell in zip(STAGES, row, strict=True):
            told = ORDERS.get((stage, name), "")
            yield pytest.param(stage, name, f"{cell} {told}".strip(), id=f"{name}-{stage}")


def in_stage(stage: str) -> tuple[Play, RecordKey]:
    """A play with a move in a stage, and its key."""
    play = Play()
    if stage == "Wa":
        (other,) = play.plan(a_move(2))
        play.tell(
            events.RecordAnswered(other, Phase.PLANNED, DONE),
            events.Revalidated(other, a_move(2), EvictionMethod.EVICT),
            events.RecordAnswered(other, Phase.EVICTING, DONE),
            events.EvictionAnswered(other, DONE),
        )
        (key,) = play.plan(a_move(waits=True))
        return play, key
    if stage == "Pr":
        (key,) = play.plan(a_move(), mode=Mode.APPROVE)
        play.world.hold_up = "the stop button is pressed"
        play.tell(events.RecordAnswered(key, Phase.PLANNED, DONE))
        return play, key
    victim = stage == "Le"
    (key,) = play.plan(a_victim() if victim else a_move())
    for reached, event in (
        ("Op", events.RecordAnswered(key, Phase.PLANNED, DONE)),
        ("Ch", None if victim else events.Revalidated(key, a_move(), EvictionMethod.EVICT)),
        ("Co", events.RecordAnswered(key, Phase.EVICTING, DONE)),
        ("Ev", events.EvictionAnswered(key, DONE)),
        ("Re", events.ReplacementReady(key, a_replacement())),
    ):
        if play.stage(key) == stage:
            break
        if event is not None and play.stage(key) == reached:
            play.tell(event)
    assert play.stage(key) == stage
    return play, key


def outcome(stage: str, name: str) -> str:
    """What a cell says of what the machine does."""
    play, key = in_stage(stage)
    timer = {"Le": TimerName.LEAVING, "Ev": TimerName.RETRY}.get(stage, TimerName.REPLACEMENT)
    if (stage, name) == ("Ev", "TimedOut"):
        play.tell(events.EvictionAnswered(key, LOST))
    event = events.TimedOut(key, timer) if name == "TimedOut" else EVENTS[name](key)
    before = play.state(key)
    try:
        orders = play.tell(event)
    except InvalidTransition as exc:
        return "x" if exc.story[-1] == f"{before.stage.name}:{name}" else "no story"
    after = play.state(key)
    if not orders and after is not None and replace(after, awaits=before.awaits) == before:
        return "."
    told = " ".join(type(order).__name__ for order in orders)
    return f"{'-' if after is None else after.stage.value} {told}".strip()


@pytest.mark.parametrize(("stage", "name", "expected"), list(cells()))
def test_every_event_in_every_stage(stage: str, name: str, expected: str) -> None:
    """One cell of the table."""
    assert outcome(stage, name) == expected


def test_the_table_names_every_event_of_a_move() -> None:
    """An event that is added needs a row here, or in the table of an optional package."""
    named = {line.split()[0].partition(":")[0] for line in CELLS.strip().splitlines()}
    elsewhere = {
        "ProcessRestarted",
        "RequestProgressed",
        "RolloutAnswered",
        "RequestReviewed",
    }
    concrete = {
        each.__name__
        for each in vars(events).values()
        if isinstance(each, type) and issubclass(each, events.MoveEvent)
    } - {"MoveEvent", "ReplacementEvent"}

    assert named - {"PolicyChanged", "StopPressed"} == concrete - elsewhere


# -- evictions -------------------------------------------------------------------------------------------


def evicting() -> tuple[Play, RecordKey]:
    """A play with a move whose eviction has been sent."""
    play, key = in_stage("Ev")
    return play, key


def phases(play: Play, key: RecordKey) -> list[tuple[Phase, str]]:
    """The phases and reasons that a record was given, in order."""
    return [
        (each.phase, each.reason)
        for each in play.ordered
        if isinstance(each, WriteRecord) and each.key == key
    ]


def evictions(play: Play) -> int:
    """How often the Eviction API was asked."""
    return sum(isinstance(each, Evict) for each in play.ordered)


@pytest.mark.parametrize(
    ("answers", "pod", "expected"),
    [
        ([DONE], "stands", (Phase.EVICTED, "Accepted")),
        ([LOST, DONE], "stands", (Phase.EVICTED, "Accepted")),
        ([LOST, WriteResult(WriteOutcome.GONE)], "stands", (Phase.EVICTED, "Accepted")),
        ([LOST, BUSY, BUSY, BUSY], "stands", (Phase.FAILED, "EvictionFailed")),
        ([BUSY, WriteResult(WriteOutcome.GONE)], "stands", (Phase.CANCELLED, "Gone")),
        ([WriteResult(WriteOutcome.GONE)], "stands", (Phase.CANCELLED, "Gone")),
        ([LOST], "goes", (Phase.EVICTED, "Accepted")),
        ([BUSY], "goes", (Phase.CANCELLED, "Gone")),
        ([LOST, BUSY], "goes", (Phase.EVICTED, "Accepted")),
        ([LOST, LOST, LOST, LOST], "stands", (Phase.FAILED, "EvictionFailed")),
        ([LOST, LOST, LOST, LOST], "goes", (Phase.EVICTED, "Accepted")),
        ([LOST, BUSY, BUSY, BUSY], "goes", (Phase.EVICTED, "Accepted")),
        ([LOST, WriteResult(WriteOutcome.REFUSED, "no")], "stands", (Phase.FAILED, "EvictionRefused")),
        ([LOST, WriteResult(WriteOutcome.REFUSED, "no")], "goes", (Phase.EVICTED, "Accepted")),
        ([WriteResult(WriteOutcome.CONFLICT, "owners")], "stands", (Phase.CANCELLED, "Changed")),
        ([LOST, WriteResult(WriteOutcome.CONFLICT)], "stands", (Phase.CANCELLED, "Changed")),
        ([LOST, WriteResult(WriteOutcome.CONFLICT)], "goes", (Phase.EVICTED, "Accepted")),
        (
            [LOST, WriteResult(WriteOutcome.BLOCKED, "no", budget="default/web")],
            "stands",
            (Phase.BLOCKED, "PodDisruptionBudget"),
        ),
        (
            [LOST, WriteResult(WriteOutcome.BLOCKED, "no", budget="default/web")],
            "goes",
            (Phase.EVICTED, "Accepted"),
        ),
        ([BUSY, BUSY, BUSY, BUSY], "stands", (Phase.FAILED, "EvictionFailed")),
        (
            [WriteResult(WriteOutcome.BLOCKED, "no", budget="default/web")],
            "stands",
            (Phase.BLOCKED, "PodDisruptionBudget"),
        ),
        ([WriteResult(WriteOutcome.REFUSED, "no")], "stands", (Phase.FAILED, "EvictionRefused")),
        ([WriteResult(WriteOutcome.FENCED)], "stands", (Phase.FAILED, "EvictionFailed")),
    ],
)
def test_what_answers_to_an_eviction_mean(
    answers: list[WriteResult], pod: str, expected: tuple[Phase, str]
) -> None:
    """A pod that has left counts as evicted by us as soon as one answer was lost."""
    play, key = evicting()

    for answer in answers:
        play.now += 10
        if TimerName.RETRY in play.state(key).timers:
            play.tell(events.TimedOut(key, TimerName.RETRY))
        play.tell(events.EvictionAnswered(key, answer))
    if pod == "goes":
        play.tell(events.PodTerminating(key))
    elif TimerName.RETRY in play.state(key).timers:
        assert phases(play, key)[-1] == (Phase.EVICTING, "Sent"), "the watch may be behind"
        play.now = play.state(key).timers[TimerName.RETRY]
        play.tell(events.TimedOut(key, TimerName.RETRY))

    assert phases(play, key)[-1] == expected
    assert evictions(play) == len(answers)


def test_pauses_between_tries_grow_and_heed_the_server() -> None:
    """0.5, 2 and 5 seconds, or what the server asks for."""
    play, key = evicting()
    pauses = []

    for wait_s in (0.0, 9.0, 1.0):
        play.tell(events.EvictionAnswered(key, WriteResult(WriteOutcome.BUSY, retry_after_s=wait_s)))
        pauses.append(play.state(key).timers[TimerName.RETRY] - play.now)
        play.now += pauses[-1]
        play.tell(events.TimedOut(key, TimerName.RETRY))

    assert pauses == [0.5, 9.0, 5.0]


def test_an_eviction_that_broke_is_not_tried_again() -> None:
    """Nothing is known of what the port did; the record is carried to its end."""
    play, key = evicting()

    play.tell(events.EvictionAnswered(key, WriteResult(WriteOutcome.UNKNOWN, "asking broke"), broke=True))

    assert phases(play, key)[-1] == (Phase.FAILED, "EvictionFailed")


@pytest.mark.parametrize("is_accepted", [True, False])
def test_an_outcome_does_not_overtake_the_record(is_accepted: bool) -> None:
    """A replacement that is ready before the answer settles the move after it, or replaces no pod."""
    play, key = evicting()
    pod = a_replacement()
    play.tell(events.ReplacementSeen(key, replace(pod, ready=False)), events.ReplacementReady(key, pod))
    before = phases(play, key)[-1]

    play.tell(events.EvictionAnswered(key, DONE if is_accepted else WriteResult(WriteOutcome.REFUSED, "no")))

    assert before == (Phase.EVICTING, "Sent")
    assert phases(play, key)[-2:] == (
        [(Phase.EVICTED, "Accepted"), (Phase.SETTLED, "Verified")]
        if is_accepted
        else [(Phase.EVICTING, "Sent"), (Phase.FAILED, "EvictionRefused")]
    )
    assert not play.machine.in_flight()


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (None, (Phase.FAILED, "NoReplacement")),
        (a_replacement(node="", phase="Pending", ready=False), (Phase.FAILED, "ReplacementNotRunning")),
        (a_replacement(ready=False), (Phase.FAILED, "ReplacementNotReady")),
        (a_replacement(node="bad", ready=False), (Phase.RETURNED, "SameNode")),
    ],
)
def test_how_a_move_is_given_up(pod: PodFacts | None, expected: tuple[Phase, str]) -> None:
    """By what its replacement is when the time is up."""
    play, key = in_stage("Re")
    if pod is not None:
        play.tell(events.ReplacementSeen(key, pod))

    play.tell(events.TimedOut(key, TimerName.REPLACEMENT))

    assert phases(play, key)[-1] == expected


@pytest.mark.parametrize("node", ["bad", "good"])
def test_a_restart_is_not_ready_on_any_node(node: str) -> None:
    """It was to bring a fresh pod: that this one is where the old one was is no return."""
    play = Play()
    (key,) = play.plan(a_move(renews=True))
    play.tell(
        events.RecordAnswered(key, Phase.PLANNED, DONE),
        events.Revalidated(key, a_move(renews=True), EvictionMethod.EVICT),
        events.RecordAnswered(key, Phase.EVICTING, DONE),
        events.EvictionAnswered(key, DONE),
        events.ReplacementSeen(key, a_replacement(node=node, ready=False)),
        events.TimedOut(key, TimerName.REPLACEMENT),
    )

    assert phases(play, key)[-1] == (Phase.FAILED, "ReplacementNotReady")


def test_a_replacement_that_runs_gets_the_time_again_once() -> None:
    """From the moment that it runs; a further sign of life changes nothing."""
    play, key = in_stage("Re")
    pod = a_replacement(ready=False)

    for now in (1_100.0, 1_200.0):
        play.now = now
        play.tell(events.ReplacementRunning(key, pod))

    assert play.state(key).timers == {TimerName.REPLACEMENT: 1_400.0}


@pytest.mark.parametrize(("late_s", "stage"), [(-1.0, MoveStage.REPLACING), (1.0, MoveStage.CLOSED)])
def test_a_pod_that_leaves_slowly_is_waited_for_an_hour_beyond_its_grace_period(
    late_s: float, stage: MoveStage
) -> None:
    """Its owner may replace it only when it is gone."""
    play, key = in_stage("Re")
    (pod,) = play.world.pods.values()
    play.world.pods[pod.uid] = replace(pod, terminating=True)
    play.now += GRACE_S + STUCK_S + late_s

    play.tell(events.TimedOut(key, TimerName.REPLACEMENT))

    assert play.stage(key) is stage


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (a_move(owner=""), (Phase.FAILED, "NoReplacement")),
        (a_move(phase="Succeeded", target=""), (Phase.SETTLED, "NoReplacement")),
    ],
)
def test_pods_that_are_not_replaced(move: Move, expected: tuple[Phase, str]) -> None:
    """No replacement is awaited of a pod without a controller, or of one that had ended."""
    play = Play()
    (key,) = play.plan(move)
    play.tell(
        events.RecordAnswered(key, Phase.PLANNED, DONE),
        events.Revalidated(key, move, EvictionMethod.EVICT),
        events.RecordAnswered(key, Phase.EVICTING, DONE),
        events.EvictionAnswered(key, DONE),
    )

    assert phases(play, key)[-2:] == [(Phase.EVICTED, "Accepted"), expected]
    assert not any(isinstance(each, FollowReplacement) for each in play.ordered)


def test_a_forecast_holds_no_target() -> None:
    """Nothing vouches for it."""
    play = Play()
    move = a_move(is_forecast=True)
    (key,) = play.plan(move)

    orders = play.tell(
        events.RecordAnswered(key, Phase.PLANNED, DONE), events.Revalidated(key, move, EvictionMethod.EVICT)
    )

    assert [type(each) for each in orders] == [Revalidate, WriteRecord]


# -- records ---------------------------------------------------------------------------------------------


def test_nothing_is_sent_that_is_not_on_record() -> None:
    """The announcement could not be written: the target is free, the move is called off."""
    play, key = in_stage("Co")

    play.tell(events.RecordAnswered(key, Phase.EVICTING, LOST))

    assert phases(play, key)[-1] == (Phase.CANCELLED, "NotRecorded")
    assert evictions(play) == 0


def test_a_policy_that_changes_while_its_record_is_created_is_heeded() -> None:
    """The record says so as soon as it exists."""
    play, key = in_stage("Op")
    play.tell(events.PolicyChanged(POLICY, None))

    play.tell(events.RecordAnswered(key, Phase.PLANNED, DONE))

    assert phases(play, key) == [(Phase.CANCELLED, "PolicyChanged")]


# -- victims of preemption -------------------------------------------------------------------------------


def test_a_victim_is_not_evicted_when_its_room_is_needed_no_longer() -> None:
    """Asked right before the eviction is sent."""
    play = Play()
    (key,) = play.plan(a_victim())
    play.tell(events.RecordAnswered(key, Phase.PLANNED, DONE))
    play.world.unwanted = {key}

    play.tell(events.RecordAnswered(key, Phase.EVICTING, DONE))

    assert phases(play, key)[-1] == (Phase.CANCELLED, "NotNeeded")
    assert evictions(play) == 0


def test_a_victim_that_is_gone_before_the_answer_has_left() -> None:
    """The answer goes on record first."""
    play = Play()
    (key,) = play.plan(a_victim())
    play.tell(
        events.RecordAnswered(key, Phase.PLANNED, DONE),
        events.RecordAnswered(key, Phase.EVICTING, DONE),
        events.PodGone(key),
        events.EvictionAnswered(key, DONE),
    )

    assert phases(play, key)[-2:] == [(Phase.EVICTED, "Accepted"), (Phase.SETTLED, "Left")]


def test_a_move_whose_record_was_deleted_is_forgotten_at_its_end() -> None:
    """It goes on, for the pod has left; no retention comes to a record that is gone."""
    play, key = in_stage("Re")
    play.tell(events.RecordDeleted(key))
    assert play.stage(key) is MoveStage.REPLACING

    play.tell(events.ReplacementReady(key, a_replacement()))

    assert key not in play.machine.moves
    assert key not in play.machine.open


def test_a_move_whose_record_turns_out_to_be_deleted_is_forgotten_at_its_end() -> None:
    """A write that finds no record says so as surely as a watch, which may never have shown it."""
    play, key = in_stage("Re")
    play.tell(events.RecordAnswered(key, Phase.EVICTED, WriteResult(WriteOutcome.GONE)))
    assert play.stage(key) is MoveStage.REPLACING

    play.tell(events.ReplacementReady(key, a_replacement()))

    assert key not in play.machine.moves


def test_a_move_whose_last_write_finds_no_record_is_forgotten() -> None:
    """The end is not on record, and nothing else is left to say it."""
    play, key = in_stage("Re")
    play.tell(events.ReplacementReady(key, a_replacement()))
    assert play.stage(key) is MoveStage.CLOSED

    play.tell(events.RecordAnswered(key, Phase.SETTLED, WriteResult(WriteOutcome.GONE)))

    assert key not in play.machine.moves


def test_two_tables_do_not_decide_the_same() -> None:
    """Refused when the machine is built."""
    with pytest.raises(ValueError, match="two tables"):
        Play(tables=(eviction.TABLE,))
