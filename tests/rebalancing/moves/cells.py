"""Cells of the move machine's table: from a stage and an event to the next stage and the instructions."""

from dataclasses import dataclass, field, replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
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
from plimsoll.rebalancing.moves.state import MoveStage, MoveState, PodFacts
from plimsoll.rebalancing.moves.transition import Step
from rebalancing.moves.moved import KEY, a_spec

NOW = 1000.0


@dataclass
class FakeSurroundings:
    """The world at the moment of an event."""

    pods: dict[str, PodFacts] = field(default_factory=dict)
    problem: tuple[str, str] | None = None

    def pod(self, uid):
        return self.pods.get(uid)

    def held_up(self, policy):
        return ""

    def cannot_request(self):
        return self.problem

    def waits(self, uid):
        return True

    def is_wanted(self, key):
        return True

    def proposed(self, specs):
        return None


def a_state(stage=MoveStage.REPLACING, *, spec=None, phase=Phase.EVICTED, **more):
    """A move whose record says ``phase``."""
    fields = {"reason": "Sent", "recorded": True, "holds": True, "begun": True, **more}
    return MoveState(KEY, stage, spec or a_spec(), phase, **fields)


def taken(table, state, event, *, now=NOW, around=None):
    """The state after an event, and the instructions in short."""
    step = Step(state, now, around or FakeSurroundings())
    table.transitions[state.stage, type(event)](step, event)
    return step.state, [short(each, now) for each in step.instructions]


def short(instruction, now=NOW):
    """An instruction as one word and what distinguishes it."""
    return " ".join(filter(None, (type(instruction).__name__, _detail(instruction, now))))


def _detail(instruction, now):
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
        case StopFollowing(_, spent):
            told = spent
        case FollowReplacement(_, _, since):
            told = f"since {since:%H:%M}" if since else ""
        case TransferTarget(_, pod):
            told = pod.name
        case _:
            told = ""
    return told


def facts(name="web-2", node="", phase="", **more):
    """A replacement."""
    return PodFacts(f"uid-{name}", name, "default", node, phase or ("Running" if node else "Pending"), **more)


def a_ready(name="web-2", node="good"):
    """A replacement that is ready."""
    return replace(facts(name, node), ready=True)
