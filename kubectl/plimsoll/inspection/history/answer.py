"""Answer of the command history: recorded moves and their digest."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.rebalancing import Mode


class PastMoveOutcome(StrEnum):
    """The outcome of a move; Open if it has not ended."""

    SETTLED = "Settled"
    RETURNED = "Returned"
    FAILED = "Failed"
    BLOCKED = "Blocked"
    CANCELLED = "Cancelled"
    OPEN = "Open"


class RecordedLoad(AnswerPart):
    """The effect of a move by load on one resource of two nodes, and the error of its expectation."""

    resource: str = Field(description="cpu or memory.")
    basis: str = Field(description="What the expected use rests on: Measured, Stale, Workload or Request.")
    expected: str = Field(description="What the pod was expected to use, as a quantity.")
    source_percent: tuple[float, float] = Field(
        description="Load of the node that it left, in percent of allocatable: before, and expected after."
    )
    target_percent: tuple[float, float] = Field(
        description="Load of the target node, in percent of allocatable: before, and expected after."
    )
    used: str | None = Field(
        description="What the replacement was measured to use once it had started up; null until then."
    )
    error_percent: float | None = Field(
        description="Use measured above what was expected, in percent of what was expected."
    )


class RecordedMove(AnswerPart):
    """One move as recorded."""

    record: str = Field(description="The Eviction record, as namespace/name.")
    planned: datetime = Field(description="When the move was planned.")
    ended: datetime | None = Field(description="When it ended; null while it is open.")
    seconds: float | None = Field(
        description="Seconds from planned to ended; of a move that waited for approval, from approved."
    )
    pod: str = Field(description="The pod that was moved, as namespace/name.")
    workload: str = Field(description="Owner of the pod, as Kind namespace/name.")
    policy: str = Field(description="The policy that decided it.")
    strategy: str = Field(description="The strategy that proposed it.")
    mode: Mode = Field(description="The mode it was decided in.")
    purpose: Purpose = Field(description="Move wants another node; Restart wants a fresh pod, on any node.")
    why: str = Field(description="Why the pod was moved, in a sentence.")
    source_node: str = Field(description="Node that it left.")
    target_node: str | None = Field(description="Node that the replacement was expected on.")
    landed_node: str | None = Field(description="Node that the replacement landed on.")
    gain: int | None = Field(description="Points by which the target scored better.")
    gain_maximum: int | None = Field(description="Points that a node can score at most.")
    phase: str = Field(description="How far it has come.")
    outcome: PastMoveOutcome = Field(description="How the move ended; Open while it has not.")
    reason: str | None = Field(description="Why it is in this phase, in one word.")
    message: str | None = Field(description="Why it is in this phase, in a sentence.")
    load: tuple[RecordedLoad, ...] = Field(
        description="Effect on each resource, for a move by what nodes use."
    )


class MoveDigest(AnswerPart):
    """Statistics of the moves of one policy and strategy."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    strategy: str = Field(description="The strategy; DefaultPreemption for victims that it evicted.")
    moves: int = Field(ge=1, description="Moves in all.")
    settled: int = Field(ge=0, description="Replacement is ready on another node.")
    returned: int = Field(ge=0, description="Replacement came back to the same node.")
    failed: int = Field(ge=0, description="Refused, or without a ready replacement in time.")
    blocked: int = Field(ge=0, description="Stopped by a budget.")
    cancelled: int = Field(ge=0, description="Called off before the eviction, or outdated.")
    open: int = Field(ge=0, description="Waits for approval or is under way.")
    p50_seconds: float | None = Field(
        description="Seconds from planned or approved to settled that half of the settled moves took at most."
    )
    p95_seconds: float | None = Field(
        description="Seconds from planned or approved to settled that 95 in a hundred took at most."
    )


class OwnerMoves(AnswerPart):
    """The number of moves of one owner's pods."""

    workload: str = Field(description="The owner, as Kind namespace/name.")
    moves: int = Field(ge=1, description="Pods that left: settled, returned or failed after the eviction.")
    settled: int = Field(ge=0, description="Moves whose replacement is ready on another node.")
    last: datetime = Field(description="When the last one was planned.")


class MovedAgain(AnswerPart):
    """A move of a pod that had replaced a recently moved pod."""

    pod: str = Field(description="The pod that was moved again, as namespace/name.")
    workload: str = Field(description="The owner, as Kind namespace/name.")
    first: str = Field(description="Record of the earlier move.")
    second: str = Field(description="Record of the later one.")
    seconds: float = Field(
        ge=0, description="Seconds from the end of the earlier move to the plan of the later one."
    )
    back: bool = Field(description="Whether the replacement is on the node that the earlier move left.")


class HistoryTotals(AnswerPart):
    """What all moves together came to."""

    restarts: int = Field(ge=0, description="Pods that left their node: each restarted once because of it.")
    failures: int = Field(ge=0, description="Moves that failed, and those whose pod came back.")
    seconds_below_replicas: float = Field(
        ge=0,
        description="Seconds from the eviction of a pod to the readiness of its replacement, of all pods "
        "together. Pods that were replaced before they left, by a surge, add none.",
    )
    nodes_freed: int = Field(ge=0, description="Times that a node was emptied to save it.")
    nodes_drained: int = Field(ge=0, description="Times that a node was emptied on request.")
    freed_per_hour: Mapping[str, float] = Field(
        description="Prices an hour of the freed nodes, by currency, as far as they stated one."
    )
    saved_at_most: Mapping[str, float] = Field(
        description="What these came to until now, by currency, if each was removed when its last pod left."
    )


class History(Answer):
    """Past moves, with their reasons and outcomes."""

    source: str = Field(description="Where the records were read: a server or a file.")
    namespace: str = Field(description="The namespace whose records were read; empty for all.")
    subject: str = Field(default="", description="Whose moves, as Kind name; empty for all.")
    since: datetime | None = Field(description="Moves that ended before are left out.")
    until: datetime = Field(description="Moves that were planned later are left out.")
    again_within_seconds: float = Field(
        description="Moves of one pod and its replacements that follow one another faster are listed again."
    )
    moves: tuple[RecordedMove, ...] = Field(description="The moves, the oldest first.")
    digest: tuple[MoveDigest, ...] = Field(description="Statistics of the moves of each policy and strategy.")
    owners: tuple[OwnerMoves, ...] = Field(description="Owners whose pods were moved, most often first.")
    moved_again: tuple[MovedAgain, ...] = Field(description="Pods that were moved shortly after a move.")
    totals: HistoryTotals = Field(description="What all moves together came to.")
    predictions: int = Field(ge=0, description="Records of dry runs, which moved nothing and are left out.")
    forecasts: int = Field(
        default=0, ge=0, description="Moves whose replacement another scheduler has placed."
    )
    forecasts_hit: int = Field(
        default=0,
        ge=0,
        description="Moves whose replacement another scheduler placed on the expected node or one as good.",
    )

    def names(self) -> list[str]:
        """As ``-o name`` prints the records."""
        return [f"eviction.plimsoll.dev/{each.record.partition('/')[2]}" for each in self.moves]
