"""Times by cron in a time zone: the schedule of a policy, and windows."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import Duration
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems

_MINUTE = "[0-5]?[0-9]"
_HOUR = "(2[0-3]|[01]?[0-9])"
_DAY = "(3[01]|[12][0-9]|0?[1-9])"
_MONTH = "(1[0-2]|0?[1-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_WEEKDAY = "([0-7]|sun|mon|tue|wed|thu|fri|sat)"


def _field(value: str) -> str:
    item = rf"(\*|{value}(-{value})?)(/[1-9][0-9]?)?"
    return f"{item}(,{item})*"


CRON = "^(?i)" + " +".join(_field(value) for value in (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)) + "$"
"""Five fields of cron as CEL (RE2) reads it."""

CRON_MESSAGE = (
    "cron takes five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week "
    "0-7 or sun-sat; for example '*/30 22-23 * * mon-fri'"
)

TIME_ZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
"""What IANA names of time zones look like."""

_CRON = re.compile(CRON.replace("^(?i)", ""), re.IGNORECASE)


def is_cron(text: str) -> bool:
    """Whether the text is five fields of cron."""
    return bool(_CRON.fullmatch(text))


def is_cron_cel(field: str) -> str:
    """The same question in CEL."""
    return f"{field}.matches(r'{CRON}')"


class Trigger(StrEnum):
    """A change of the cluster after which rebalancing runs out of turn."""

    NODE_ADDED = "NodeAdded"
    NODE_LABELS_CHANGED = "NodeLabelsChanged"
    NODE_TAINTS_CHANGED = "NodeTaintsChanged"


class Schedule(Resource):
    """When rebalancing runs."""

    rules = (
        Rule(
            cel="has(self.cron) != has(self.intervalSeconds)",
            holds=lambda self: (self.cron is None) != (self.interval_seconds is None),
            message="give exactly one of cron and intervalSeconds",
        ),
        Rule(
            cel="!has(self.timeZone) || has(self.cron)",
            holds=lambda self: self.time_zone is None or self.cron is not None,
            message="a time zone needs a cron expression; remove timeZone or give cron",
            field="timeZone",
        ),
        Rule(
            cel=f"!has(self.cron) || {is_cron_cel('self.cron')}",
            holds=lambda self: self.cron is None or is_cron(self.cron),
            message=CRON_MESSAGE,
            field="cron",
        ),
    )

    cron: str | None = Field(
        default=None,
        min_length=9,
        max_length=128,
        description="Five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday), for "
        "example '0 2 * * mon-fri'.",
    )
    time_zone: str | None = Field(
        default=None,
        pattern=TIME_ZONE,
        max_length=64,
        description="Time zone of cron, by its IANA name; left out, UTC.",
        examples=["Europe/Berlin", "UTC"],
    )
    interval_seconds: int | None = Field(
        default=None,
        ge=1,
        le=31_536_000,
        description="Seconds from the start of one run to the start of the next.",
    )
    triggers: Annotated[tuple[Trigger, ...], Field(max_length=8), UniqueItems()] = Field(
        default=(),
        description="Changes after which it runs within ten seconds, in addition to its schedule; "
        "simultaneous changes cause one run.",
    )


class Window(Resource):
    """A time that returns; moves under way when it closes are seen to their end."""

    rules = (
        Rule(
            cel=is_cron_cel("self.schedule"),
            holds=lambda self: is_cron(self.schedule),
            message=CRON_MESSAGE,
            field="schedule",
        ),
    )

    schedule: str = Field(
        min_length=9,
        max_length=128,
        description="When the window opens, as five fields of cron.",
        examples=["0 2 * * sat"],
    )
    duration: Duration = Field(description="How long it stays open, as a duration such as 4h.")
    time_zone: str | None = Field(
        default=None,
        pattern=TIME_ZONE,
        max_length=64,
        description="Time zone of schedule, by its IANA name; left out, UTC.",
        examples=["Europe/Berlin"],
    )

    @property
    def opening(self) -> Schedule:
        """When it opens, as a schedule."""
        return Schedule(cron=self.schedule, time_zone=self.time_zone)
