"""Cells of the move machine's table: from a stage and an event to the next stage and the instructions."""

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import NodeName, PodUid
from plimsoll.rebalancing.moves.instructions import (
    CancelTimer,
    CountMove,
    CreateRecord,
    EmitEvent,
    FollowReplacement,
    RetryAt,
    StopFollowing,
    TransferTarget,
    WriteRecord,
)
from plimsoll.rebalancing.moves.state import MoveStage, MoveState, PodFacts, TimerName
from plimsoll.rebalancing.moves.transition import MoveTable, Step
from rebalancing.moves.moved import KEY, a_spec

NOW = 1000.0


@dataclass
class FakeSurroundings:
    """The world at the moment of an event."""

    pods: dict[str, PodFacts] = field(default_factory=dict)

    def pod(self, uid: str) -> Any:
        return self.pods.get(uid)

    def held_up(self, policy: Any) -> Any:
        return ""

    def waits(self, uid: Any) -> Any:
        return True

    def is_wanted(self, key: Any) -> Any:
        return True

    def proposed(self, specs: Any) -> None:
        return None

    def empties(self, move: Any) -> bool:
        return bool(move.bundle)


def a_state(
    stage: MoveStage = MoveStage.REPLACING,
    *,
    spec: EvictionSpec | None = None,
    phase: Any = Phase.EVICTED,
    **more: Any,
) -> MoveState:
    """A move whose record says ``phase``."""
    fields = {"reason": "Sent", "recorded": True, "holds": True, "begun": True, **more}
    return MoveState(KEY, stage, spec or a_spec(), phase, **fields)


def taken(
    table: MoveTable, state: MoveState, event: Any, *, now: float = NOW, around: None = None
) -> tuple[MoveState, list[str]]:
    """The state after an event, and the instructions in short."""
    step = Step(state, now, around or FakeSurroundings())  # type: ignore[arg-type, redundant-expr] # a fake has only what is used
    table.transitions[state.stage, type(event)](step, event)
    return step.state, [short(each, now) for each in step.instructions]


def short(instruction: Any, now: float = NOW) -> str:
    """An instruction as one word and what distinguishes it."""
    return " ".join(filter(None, (type(instruction).__name__, _detail(instruction, now))))


def _detail(instruction: Any, now: float) -> str | TimerName:
    """What distinguishes an instruction from others of its type, as far as a cell says it."""
    match instruction:
        case WriteRecord(_, phase, reason) | CreateRecord(_, _, phase, reason):
            landed = getattr(instruction, "replacement", None)
            told = f"{phase}/{reason}" + (f" by {landed.name}" if landed else "")
        case RetryAt(_, timer, at):
            told = f"{timer} +{at - now:g}"
        case CancelTimer(_, timer):
            told = timer
        case CountMove(_, _, evicted, verified):
            told = f"{evicted}/{verified}"
        case EmitEvent(_, reason):
            told = reason
        case StopFollowing(_, spent, _):
            told = spent
        case FollowReplacement(_, _, since):
            told = f"since {since:%H:%M}" if since else ""
        case TransferTarget(_, pod):
            told = pod.name
        case _:
            told = ""
    return told


def facts(name: str = "web-2", node: str = "", phase: str = "", **more: Any) -> PodFacts:
    """A replacement."""
    return PodFacts(
        PodUid(f"uid-{name}"),
        name,
        "default",
        NodeName(node),
        phase or ("Running" if node else "Pending"),
        **more,
    )


def a_ready(name: str = "web-2", node: str = "good") -> PodFacts:
    """A replacement that is ready."""
    return replace(facts(name, node), ready=True)
