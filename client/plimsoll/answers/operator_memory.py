"""Defines the parts of answers that only the leader knows: queue, assumed pods, reservations."""

from pydantic import Field

from plimsoll.answers.answer import AnswerPart


class QueueMemory(AnswerPart):
    """A pod in the scheduling queue."""

    queue: str = Field(description="active, backoff, unschedulable, gated or in flight (being tried).")
    ahead: int = Field(description="Active pods that are tried before it; 0 in another queue.")
    attempts: int = Field(description="How often it was tried.")
    waited_seconds: int = Field(
        description="Seconds since the pod entered the queue, or its last attempt ended."
    )
    backoff_seconds: int = Field(
        description="Seconds until the pod may be tried again; 0 when it may be tried now."
    )
    rejected_by: list[str] = Field(
        description="Plugins that rejected the last attempt; their events wake it."
    )
    gated_by: str = Field(description="The PreEnqueue plugin that holds it; empty without one.")
    event: str = Field(description="What brought it to where it waits.")


class RoomMemory(AnswerPart):
    """Reserved room on a node."""

    node: str = Field(description="Node that has the reserved room.")
    pod: str = Field(description="The pod, or whose replacement, as namespace/name.")
    reason: str = Field(description="Nominated, MoveTarget, Room or Gang.")
    owner: str = Field(description="The profile, policy or PodGroup that answers for it.")
    seconds_left: int | None = Field(
        description="Seconds until the reservation ends by itself; null when it does not."
    )


class PodMemory(AnswerPart):
    """The operator's memory about a pod."""

    standing: str = Field(description="Whether the process that answers leads.")
    queue: QueueMemory | None = Field(description="Null for a pod that does not wait.")
    assumed: str = Field(description="The node that it is assumed on before its binding is confirmed.")
    room: RoomMemory | None = Field(description="Room that is reserved for it.")


class NodeMemory(AnswerPart):
    """The operator's memory about a node."""

    standing: str = Field(description="Whether the process that answers leads.")
    assumed: list[str] = Field(description="Pods that are assumed there and not confirmed yet.")
    rooms: list[RoomMemory] = Field(description="Room that is reserved there.")
