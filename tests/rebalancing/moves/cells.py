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
    name = type(instruction).__name__
    match instruction:
        case WriteRecord() | CreateRecord():
            replacement = getattr(instruction, "replacement", None)
            landed = f" by {replacement.name}" if replacement else ""
            return f"{name} {instruction.phase}/{instruction.reason}{landed}"
        case RetryAt():
            return f"{name} {instruction.timer} +{instruction.at - now:g}"
        case CancelTimer():
            return f"{name} {instruction.timer}"
        case CountMove():
            return f"{name} {instruction.evicted}/{instruction.verified}"
        case EmitEvent():
            return f"{name} {instruction.reason}"
        case StopFollowing():
            return f"{name} {instruction.spent}".strip()
        case FollowReplacement():
            return name + (f" since {instruction.since:%H:%M}" if instruction.since else "")
        case TransferTarget():
            return f"{name} {instruction.pod.name}"
        case _:
            return name


def facts(name="web-2", node="", phase="", **more):
    """A replacement."""
    return PodFacts(f"uid-{name}", name, "default", node, phase or ("Running" if node else "Pending"), **more)


def a_ready(name="web-2", node="good"):
    """A replacement that is ready."""
    return replace(facts(name, node), ready=True)
