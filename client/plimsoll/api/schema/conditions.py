"""Conditions of a status: type, status, a reason for machines, a sentence for people."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import Timestamp, to_second
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import UniqueItems

ACCEPTED = "Accepted"
"""The operator could use every part of the spec; otherwise the message holds the exact field path."""
READY = "Ready"
"""The policy is at work."""
DEGRADED = "Degraded"
"""It is at work with something missing, or something keeps failing."""
PAUSED = "Paused"
"""Somebody has stopped its moves; nothing is wrong."""


class ConditionStatus(StrEnum):
    """Whether the condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Resource):
    """One aspect of an object's state, as in meta/v1 Condition."""

    type: str = Field(
        pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$",
        max_length=316,
        description="Name of the aspect.",
    )
    status: ConditionStatus = Field(description="Whether it holds.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the object that this was judged on."
    )
    last_transition_time: Timestamp = Field(description="When the status changed last.")
    reason: str = Field(
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        min_length=1,
        max_length=1024,
        description="Why, in one CamelCase word for machines.",
    )
    message: str = Field(max_length=32768, description="Why, in a sentence for people.")


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32), UniqueItems("type")]


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of a type, if there is one."""
    return next((one for one in conditions if one.type == kind), None)


def with_condition(
    conditions: tuple[Condition, ...],
    kind: str,
    status: ConditionStatus,
    *,
    reason: str,
    message: str,
    now: datetime,
    generation: int | None = None,
) -> tuple[Condition, ...]:
    """The conditions with the one of type ``kind`` set; its transition time moves only with its status.

    The order stays, a new type comes last, and equal input gives an equal result, so that a status is
    written only when it says something new.
    """
    before = condition(conditions, kind)
    changed = before is None or before.status is not status
    after = Condition(
        type=kind,
        status=status,
        observed_generation=generation,
        last_transition_time=to_second(now) if before is None or changed else before.last_transition_time,
        reason=reason,
        message=message,
    )
    if before is None:
        return (*conditions, after)
    return tuple(after if one is before else one for one in conditions)
